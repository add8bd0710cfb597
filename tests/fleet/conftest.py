from __future__ import annotations

import pytest
from benchmarks.fleet import probabilities

from priorshift import LabelShiftClassifier


@pytest.fixture(scope="session")
def make():
    """A function that makes a classifier on class probabilities."""

    def made(learner="auto", classes=4, **settings):
        P, y = probabilities(400, classes, 0)
        return LabelShiftClassifier.from_probabilities(P, y, learner=learner, **settings)

    return made


@pytest.fixture(scope="session")
def default(make):
    return make()


@pytest.fixture(scope="session")
def rows():
    return probabilities(3000, 4, 1)[0]
