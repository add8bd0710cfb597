from __future__ import annotations

import numpy as np
import pytest

from priorshift import LabelShiftClassifier


def probabilities(n, classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    Z = rng.normal(size=(n, classes))
    Z[np.arange(n), y] += 2.0
    P = np.exp(Z)
    return P / P.sum(axis=1, keepdims=True), y


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
