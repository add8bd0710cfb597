"""Worlds where the right map is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax


class World(NamedTuple):
    """f0's probabilities, labels, and the true probabilities behind them."""

    proba: np.ndarray
    labels: np.ndarray
    truth: np.ndarray


def draw(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label for each row of true probabilities."""
    found = (truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    return np.minimum(found, truth.shape[1] - 1)


def make_world(n: int, K: int, distort, seed: int = 0, spread: float = 1.5) -> World:
    """Rows with true logits of the given spread; f0 says ``softmax(distort(logits))``."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, K))
    truth = softmax(logits, axis=1)
    return World(softmax(distort(logits), axis=1), draw(truth, rng), truth)
