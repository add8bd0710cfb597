"""Worlds that many tests of calibration share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from calibration_worlds import make_world


@pytest.fixture(scope="session")
def bold():
    """Logits three times too large."""
    return make_world(1500, 4, lambda z: 3 * z)


@pytest.fixture(scope="session")
def rotated():
    """Logits turned: each class's score has a part of every other's."""
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0]
    return make_world(1500, 4, lambda z: z @ (0.6 * np.eye(4) + 0.5 * turn))


@pytest.fixture(scope="session")
def right():
    """f0 is the truth."""
    return make_world(1500, 4, lambda z: z)


@pytest.fixture(scope="session")
def skewed():
    """A scale and a bias for each class are wrong."""
    scale, bias = np.array([0.5, 1.0, 2.0]), np.array([1.0, 0.0, -0.5])
    return make_world(800, 3, lambda z: np.log(softmax(z, axis=1)) * scale + bias)
