"""G and B as the data show them: what gradients and losses are on the way to f0's head.

The theorems' G and B are suprema over the ball. ``sqrt(2) max ||x||`` bounds every gradient, but
where features have long tails it is many times what a learner meets, and step sizes and Hedge's
rate, which are divided by it, come out so small that nothing moves. The paper estimates G while it
trains the initial model. A straight line to the head stands for that training here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.risk import Loss, RiskData
from priorshift.typing import Float32Array, FloatArray

QUANTILE = 0.95
"""The part of all gradients, and of all losses, that lies below the estimate."""
PATH = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where on the straight line from zero weights to the head they are measured."""
_DIGITS = 4
# Of each class, rows that the curvature is measured on, and steps of the search for its direction.
_ROWS, _STEPS = 200, 20


class Bounds(NamedTuple):
    """Estimates of G and of B.

    Examples
    --------
    >>> Bounds(gradient=1.5, loss=2.0).gradient
    1.5
    """

    gradient: float
    loss: float


def estimate_bounds(
    data: RiskData,
    loss: Loss,
    head: Float32Array,
    prior: FloatArray,
    quantile: float = QUANTILE,
) -> Bounds:
    r"""Quantiles of the rows' gradient norms and losses along a training path.

    The path is the straight line from zero weights to the head, where training ends. Of every
    row of the held-out set, at every point ``s * head`` of ``PATH``, it takes the norm of the
    gradient :math:`\|(p - e_y) x^\top\| = \|p - e_y\| \|x\|` and the loss (:math:`-\log p_y`
    for softmax), pools them, each class with the weight of its prior, and returns the quantile
    of each. Four digits are kept: the last bits of a sum depend on the machine, and a source
    that was saved has to give the same elsewhere.

    At zero weights every loss is log K. Where the head is right of most rows, few losses on the way
    are larger, and the estimate of B is log K itself.

    Parameters
    ----------
    data : RiskData
        The held-out set, or the sketch that has replaced it.
    loss : Loss
    head : (K, d) array
    prior : (K,) array
        Class prior of the held-out set.
    quantile : float

    Examples
    --------
    >>> from priorshift.risk import Softmax
    >>> data = RiskData.of(np.array([[2.0], [-2.0]]), np.array([0, 1]), 2)
    >>> estimate_bounds(data, Softmax(), np.zeros((2, 1), np.float32), np.array([0.5, 0.5]))
    Bounds(gradient=1.414, loss=0.6931)
    """
    slopes, losses = zip(
        *(_along_path(data, loss, head, k) for k in range(len(prior))), strict=True
    )
    shares = data.shares.astype(np.float64) * np.repeat(prior, data.counts)
    weights = np.tile(shares, len(PATH))
    gradient, value = (
        _quantile(np.concatenate(parts, axis=1).ravel(), weights, quantile)
        for parts in (slopes, losses)
    )
    return Bounds(gradient, value)


def head_curvature(data: RiskData, head: Float32Array) -> float:
    r"""The largest second derivative of any class's softmax risk at the head, in any direction.

    A gradient step is stable below 2 over it, whatever the class prior: the risk of a prior on the
    simplex is a mean of the classes' own. Found by power iteration on at most 200 evenly spaced
    rows of each class, to four digits.

    Examples
    --------
    >>> data = RiskData.of(np.array([[2.0], [-1.0]]), np.array([0, 1]), 2)
    >>> head_curvature(data, np.zeros((2, 1), np.float32))  # x^2 / 4 (1, -1; -1, 1)
    2.0
    """
    found = [_curvature(data, head, k) for k in range(len(head))]
    return float(f"{max(found):.{_DIGITS}g}")


def _curvature(data: RiskData, head: Float32Array, label: int) -> float:
    """The largest eigenvalue of the Hessian of one class's risk at the head."""
    a, b = int(data.offsets[label]), int(data.offsets[label + 1])
    if a == b:
        return 0.0
    rows = np.unique(np.linspace(a, b - 1, min(b - a, _ROWS)).astype(np.intp))
    X = data.XT[:, rows].astype(np.float64)
    logits = head @ X
    P = np.exp(logits - logits.max(axis=0))
    P /= P.sum(axis=0)
    weights = data.shares[rows] / data.shares[rows].sum()
    direction, size = P @ X.T - len(rows) * np.outer(np.eye(len(head))[label], X.mean(axis=1)), 0.0
    for _ in range(_STEPS):
        size = float(np.linalg.norm(direction))
        if size == 0.0:
            return 0.0
        along = P * ((direction / size) @ X)
        direction = ((along - P * along.sum(axis=0)) * weights) @ X.T
    return size


def _along_path(
    data: RiskData, loss: Loss, head: Float32Array, label: int
) -> tuple[FloatArray, FloatArray]:
    """Gradient norms and losses (points, rows) of one class."""
    rows = slice(data.offsets[label], data.offsets[label + 1])
    logits = np.multiply.outer(np.asarray(PATH, np.float32), head @ data.XT[:, rows])
    own = logits[:, label].copy()
    losses = loss.potential(logits, label) - own  # and logits are the potential's gradient now
    logits[:, label] -= 1.0
    lengths = np.sqrt(np.einsum("nkm,nkm->nm", logits, logits, dtype=np.float64))
    return lengths * np.sqrt(data.squares[rows].astype(np.float64)), losses.astype(np.float64)


def _quantile(values: FloatArray, weights: FloatArray, quantile: float) -> float:
    """The smallest value with at least that part of the weight at or below it, to four digits."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    # Weights add up to one but for rounding: of equal rows, that must not choose the next one.
    found = values[order[np.searchsorted(below, quantile * below[-1] * (1 - 1e-9))]]
    return float(f"{found:.{_DIGITS}g}")
