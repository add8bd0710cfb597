from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

import serving


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> SimpleNamespace:
    """A source in a file, and the classifier that was saved there."""
    path: Path = tmp_path_factory.mktemp("source") / "animals.priorshift"
    return SimpleNamespace(path=path, classifier=serving.save_source(path))


@pytest.fixture(autouse=True)
def logs_as_before():
    """A service that was started in this process leaves no handler behind."""
    loggers = [logging.getLogger(name) for name in ("priorshift.service", "uvicorn")]
    before = [(log.handlers[:], log.propagate, log.level) for log in loggers]
    yield
    for log, (handlers, propagate, level) in zip(loggers, before, strict=True):
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)


@pytest.fixture
def client(served, tmp_path):
    with serving.client(served.path, tmp_path / "state") as found:
        yield found
