"""Drawing rows with unequal probabilities."""

from __future__ import annotations

import numpy as np

from priorshift.typing import FloatArray, IntArray


def importance(whitened: FloatArray) -> FloatArray:
    """Probabilities (n,), half uniform and half in proportion to leverage ``||b_i||^2``.

    The rows that decide the mean of some direction have a large leverage: when few rows are hard,
    a uniform draw misses most of them.

    Examples
    --------
    >>> importance(np.array([[1.0], [1.0], [0.0], [-2.0]])).round(3).tolist()
    [0.208, 0.208, 0.125, 0.458]
    """
    leverage = np.einsum("ij,ij->i", whitened, whitened)
    total = float(leverage.sum())
    even = np.full(len(leverage), 1.0 / len(leverage))
    return even if total <= 0.0 else 0.5 * even + 0.5 * leverage / total


def systematic(
    probabilities: FloatArray, rows: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Draw ``rows`` different rows, each included in proportion to its probability.

    Returns their places, sorted, and weights in inverse proportion to how likely they were
    included, adding up to one. Rows that would be included more than once are always in.

    Examples
    --------
    >>> places, weights = systematic(np.array([0.7, 0.1, 0.1, 0.1]), 2, np.random.default_rng(0))
    >>> int(places[0]), weights.round(6).tolist()
    (0, [0.25, 0.75])
    """
    inclusion = np.minimum(1.0, rows * probabilities / probabilities.sum())
    while inclusion.sum() < rows * (1 - 1e-9):
        free = inclusion < 1.0
        left = rows - (len(inclusion) - np.count_nonzero(free))
        inclusion[free] = np.minimum(1.0, left * inclusion[free] / inclusion[free].sum())
    order = rng.permutation(len(inclusion))
    edges = np.cumsum(inclusion[order])
    marks = (rng.random() + np.arange(rows)) * (edges[-1] / rows)
    places = np.sort(order[np.searchsorted(edges, marks, side="right").clip(max=len(order) - 1)])
    weights = 1.0 / inclusion[places]
    return places, weights / weights.sum()
