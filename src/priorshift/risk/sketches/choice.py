r"""Choosing few rows of a class to stand for all of it, and weighing them.

*Candidates* are rows seen through features, along the directions in which the rows of the class
differ most. Rows are drawn with unequal probabilities, and their weights come by exponential
tilting: given features :math:`b_i` of the chosen rows, their mean :math:`\bar b` over all rows, and
weights :math:`q_i` that undo the way the rows were chosen,

.. math:: \min_w \; \sum_i w_i \log(w_i / q_i) + \frac{1}{2\lambda} \|\sum_i w_i b_i - \bar b\|^2
    \quad\text{over the simplex}

has the solution :math:`w_i \propto q_i \exp(\theta^\top (b_i - \bar b))`: positive weights, as near
to q as the means allow. The dual in :math:`\theta` is smooth and convex; Newton's method finds
its minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd

from priorshift.risk.data import RiskData
from priorshift.risk.sketches.base import chunks, class_rows
from priorshift.typing import Float32Array, FloatArray, IntArray

Features = Callable[[Float32Array], Float32Array]
"""Rows (m, d) to features (m, c)."""

_CHUNK = 4096
# Rows of a class that are looked at closely: from them come the directions and the choice.
_CANDIDATES = 4096
_MOST_DIRECTIONS = 400
_SMALLEST = 1e-5
# Weights further from their base than this rest on too few rows.
_LEAST_NEARNESS = 0.4
# No row loses more of its base weight than this leaves it.
_FLOOR = 1e-6
_RIDGE = 1e-6
_SHRINK = 0.8
_STEPS = 30


class Candidates(NamedTuple):
    """Some rows of a class, seen through features.

    Their columns in the held-out set, their features less the mean over *all* rows of the class,
    and those along the main directions, the important ones first, of variance one.
    """

    columns: IntArray
    centred: Float32Array
    whitened: FloatArray


def candidates(
    data: RiskData, k: int, features: Features, rows: int, rng: np.random.Generator
) -> Candidates:
    """Look at class k through ``features``, to choose ``rows`` rows of it."""
    total = np.sum(
        [features(X).sum(axis=0, dtype=np.float64) for X in chunks(data, k, _CHUNK)], axis=0
    )
    mean = (total / data.counts[k]).astype(np.float32)
    columns = class_rows(data, k, max(_CANDIDATES, 2 * rows), rng)
    centred = features(np.ascontiguousarray(data.XT[:, columns].T)) - mean
    number = max(1, min(_MOST_DIRECTIONS, rows // 3, *centred.shape))
    left, lengths, _ = randomized_svd(
        centred, number, n_iter=4, random_state=int(rng.integers(2**31))
    )
    kept = lengths > _SMALLEST * max(float(lengths[0]), 1e-30)
    whitened = left[:, kept].astype(np.float64) * np.sqrt(len(centred))
    return Candidates(columns, centred, whitened)


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


def calibrated(features: FloatArray, base: FloatArray | None = None) -> FloatArray:
    """Weights (m,) near ``base`` under which every column of ``features`` (m, r) has mean zero.

    The columns are wanted centred at the mean over all rows, of variance one there, the important
    ones first. Columns are dropped from the end until the weights are near enough to ``base``, by
    default uniform.

    Examples
    --------
    >>> w = calibrated(np.array([[-1.0], [0.5], [2.0], [0.0]]))
    >>> bool((w > 0).all()), round(float(w.sum()), 9), abs(round(float(w @ [-1, 0.5, 2, 0]), 4))
    (True, 1.0, 0.0)
    """
    rows, columns = features.shape
    if base is None:
        base = np.full(rows, 1.0 / rows)
    number = min(columns, rows // 3)
    while number > 0:
        weights = _tilted(features[:, :number], base)
        if weights is not None and _is_sound(weights, base):
            weights = np.maximum(weights, _FLOOR * base)
            return np.asarray(weights / weights.sum())
        number = int(_SHRINK * number)
    return base


def nearness(weights: FloatArray, base: FloatArray) -> float:
    """``1 / sum(w^2 / base)``: 1 for the base weights, and less the more weights differ from them.

    With uniform base weights, the effective number of rows as a part of all rows.

    Examples
    --------
    >>> nearness(np.array([0.5, 0.5, 0.0, 0.0]), np.full(4, 0.25))
    0.5
    """
    return float(1.0 / (weights @ (weights / base)))


def _is_sound(weights: FloatArray, base: FloatArray) -> bool:
    """Near the base weights, and spread over not many fewer rows than they are."""
    spread = float((base @ base) / (weights @ weights))
    return min(spread, nearness(weights, base)) >= _LEAST_NEARNESS


def _tilted(C: FloatArray, base: FloatArray) -> FloatArray | None:
    """Newton's method on the dual; None where it does not settle."""
    theta, start = np.zeros(C.shape[1]), np.log(base)
    value, weights = _dual(C, start, theta)
    for _ in range(_STEPS):
        mean = weights @ C
        gradient = mean + _RIDGE * theta
        if np.abs(gradient).max() < 1e-9:
            return weights
        curvature = (C * weights[:, None]).T @ C - np.outer(mean, mean)
        curvature[np.diag_indices_from(curvature)] += _RIDGE
        direction = -np.linalg.solve(curvature, gradient)
        slope, step = float(gradient @ direction), 1.0
        while True:
            new_value, new_weights = _dual(C, start, theta + step * direction)
            if new_value <= value + 1e-4 * step * slope + 1e-14:
                break
            step *= 0.5
            if step < 1e-4:
                return None
        theta, value, weights = theta + step * direction, new_value, new_weights
    return weights if np.abs(weights @ C).max() < 1e-3 else None


def _dual(C: FloatArray, start: FloatArray, theta: FloatArray) -> tuple[float, FloatArray]:
    scores = start + C @ theta
    top = float(scores.max())
    lifted = np.exp(scores - top)
    total = float(lifted.sum())
    value = top + float(np.log(total)) + 0.5 * _RIDGE * float(theta @ theta)
    return value, lifted / total
