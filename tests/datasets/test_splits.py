"""No row is in two of: f0's training half, the held-out set half, the online pool.

Every row of every file has a number of its own, so that rows are told apart by what is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import priorshift.datasets.offline
from priorshift.datasets import Dataset, arxiv_order, digits_split, load_dataset, reduced, shl_order
from priorshift.datasets.offline import offline_stage

ROWS = 200
RNG = np.random.default_rng(0)
Y = RNG.permutation(np.arange(ROWS) % 4)
X = np.column_stack([np.arange(ROWS) * 1.0, 3 * Y + RNG.normal(size=ROWS)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    return tmp_path


def identities(rows: Any) -> set[bytes]:
    found = {np.asarray(row, dtype=np.float64).tobytes() for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


def three_parts(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> list[set[bytes]]:
    """The rows that f0 was really fitted on, those that it was measured on, and the pool."""
    fitted, measured = [], []

    class Spy(priorshift.datasets.offline.LogisticRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            fitted.append(X)
            return super().fit(X, y)

    def build(model: Any, X: Any, *others: Any, **settings: Any) -> Any:
        measured.append(X)
        return original(model, X, *others, **settings)

    original = priorshift.datasets.offline.build_source
    monkeypatch.setattr(priorshift.datasets.offline, "LogisticRegression", Spy)
    monkeypatch.setattr(priorshift.datasets.offline, "build_source", build)
    offline_stage(dataset)
    assert len(fitted) == (0 if dataset.probabilities else 1)
    assert len(measured) == 1
    return [*map(identities, fitted), identities(measured[0]), identities(dataset.X1)]


def own_file(folder: Path) -> Dataset:
    np.savez(folder / "own.npz", X0=X[:120], y0=Y[:120], X1=X[120:], y1=Y[120:])
    return load_dataset(folder / "own.npz")


def without_split(folder: Path) -> Dataset:
    np.savez(folder / "plain.npz", X=X, y=Y)
    return load_dataset("plain")


def with_split(folder: Path) -> Dataset:
    np.savez(folder / "given.npz", X=X, y=Y, split=np.arange(ROWS) % 3 == 1)
    return load_dataset("given")


def pixels(folder: Path) -> Dataset:
    wide = RNG.integers(0, 256, (ROWS, 64), dtype=np.uint8)
    np.savez(folder / "pixels.npz", X=wide, y=Y)
    return load_dataset("pixels")


def logits(folder: Path) -> Dataset:
    np.savez(folder / "net_logits.npz", X=RNG.normal(size=(ROWS, 4)), y=Y)
    return load_dataset("net_logits")


def shl(folder: Path) -> Dataset:
    np.savez(folder / "shl2019.npz", X=X, y=Y, label_sequence=np.sort(Y))
    return shl_order().dataset


def arxiv(folder: Path) -> Dataset:
    np.savez(folder / "arxiv2025_stream.npz", X=X, y=Y, time=RNG.permutation(ROWS))
    return arxiv_order().dataset


def sampled(folder: Path) -> Dataset:
    return reduced(without_split(folder), rows=50)


LOADERS = [own_file, without_split, with_split, pixels, logits, shl, arxiv, sampled]


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.__name__)
def test_files(folder: Path, monkeypatch: Any, load: Callable[[Path], Dataset]) -> None:
    dataset = load(folder)
    parts = three_parts(dataset, monkeypatch)
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert len(set.union(*parts)) == len(dataset.X0) + len(dataset.X1)
    if load is not sampled:
        assert len(set.union(*parts)) == ROWS, "a row was lost"
    if not dataset.probabilities:
        assert abs(len(parts[0]) - len(parts[1])) <= 1


def test_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = three_parts(load_dataset("digits"), monkeypatch)
    assert list(map(len, parts)) == [599, 599, 599]
    assert set.union(*parts) == identities(load_digits().data / 16)
    split = digits_split()
    named = [identities(rows) for rows in (split.X_train, split.X_holdout, split.X_pool)]
    assert len(set.union(*named)) == 1797
    assert named[2] == parts[2]


def test_given_halves_are_those_of_the_file(folder: Path) -> None:
    dataset = with_split(folder)
    online = np.arange(ROWS) % 3 == 1
    numbers = (X[:, 0] - X[~online, 0].mean()) / X[~online, 0].std()
    assert {*dataset.X1[:, 0].round(9)} == {*numbers[online].round(9)}
    assert {*dataset.X0[:, 0].round(9)} == {*numbers[~online].round(9)}
