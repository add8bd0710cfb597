"""Data files, and a short way to call the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import priorshift
from priorshift.cli import main


class Answer(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return json.loads(self.out)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Call main with the words of a command line."""

    def caller(*words: object) -> Answer:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Answer(status, captured.out, captured.err)

    return caller


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """What a process needs to find this very package."""
    root = str(Path(priorshift.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths}


@pytest.fixture(scope="session")
def feature_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes by name, two features."""
    path = tmp_path_factory.mktemp("data") / "features.npz"
    rng = np.random.default_rng(0)
    y = np.repeat(["ape", "bee", "cat"], 200)
    centres = np.repeat([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], 200, axis=0)
    X0, X1 = (rng.normal(size=(600, 2)) + centres for _ in range(2))
    np.savez(path, X0=X0, y0=y, X1=X1, y1=y)
    return path


@pytest.fixture(scope="session")
def probability_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class probabilities of two numbered classes."""
    path = tmp_path_factory.mktemp("data") / "probabilities.npz"
    rng = np.random.default_rng(1)
    y = np.repeat([3, 7], 300)

    def table() -> np.ndarray:
        score = 1 / (1 + np.exp(-(rng.normal(size=600) + np.where(y == 7, 1.5, -1.5))))
        return np.stack([1 - score, score], axis=1)

    np.savez(path, P0=table(), y0=y, P1=table(), y1=y)
    return path
