r"""Weights that let few rows stand for many: exponential tilting.

Given features :math:`b_i` of the chosen rows, their mean :math:`\bar b` over all rows, and weights
:math:`q_i` that undo the way the rows were chosen,

.. math:: \min_w \; \sum_i w_i \log(w_i / q_i) + \frac{1}{2\lambda} \|\sum_i w_i b_i - \bar b\|^2
    \quad\text{over the simplex}

has the solution :math:`w_i \propto q_i \exp(\theta^\top (b_i - \bar b))`: positive weights, as near
to q as the means allow. The dual in :math:`\theta` is smooth and convex; Newton's method finds
its minimum.
"""

from __future__ import annotations

import numpy as np

from priorshift.typing import FloatArray

# Weights further from their base than this rest on too few rows.
_LEAST_NEARNESS = 0.4
# No row loses more of its base weight than this leaves it.
_FLOOR = 1e-6
_RIDGE = 1e-6
_SHRINK = 0.8


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


def _tilted(C: FloatArray, base: FloatArray, rounds: int = 30) -> FloatArray | None:
    """Newton's method on the dual; None where it does not settle."""
    theta, start = np.zeros(C.shape[1]), np.log(base)
    value, weights = _dual(C, start, theta)
    for _ in range(rounds):
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
