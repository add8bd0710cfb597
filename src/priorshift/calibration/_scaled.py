r"""Maps with one number for each logarithm: :math:`z_k = s_k x_k + b_k`, then softmax.

Temperature (all :math:`s_k` alike, no bias), bias-corrected temperature (all alike, with bias) and
vector scaling (all free) are one map and one fit, with the unknowns tied together more or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from priorshift.calibration._minimise import minimise
from priorshift.calibration.base import Rows, frozen, log_floored
from priorshift.errors import InputError
from priorshift.typing import FloatArray, IntArray

# A hold-out without errors asks for an infinite scale. This much weight, in rows, pulls the scales
# to 1; where anything is to be learned of them it is not felt.
RIDGE_ROWS = 0.01
# A scale of 0 or less would turn f0's order around.
LEAST_SCALE = 1e-3


@dataclass(frozen=True, eq=False)
class ScaledMap:
    r"""Softmax of :math:`s_k \log f_0(x)_k + b_k`.

    Examples
    --------
    >>> sharper = ScaledMap("temperature", np.array([2.0, 2.0]), np.zeros(2), 1e-12)
    >>> sharper(np.array([[0.75, 0.25]])).round(6).tolist()
    [[0.9, 0.1]]
    """

    name: str
    scale: FloatArray
    bias: FloatArray
    floor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", frozen(self.scale, (None,), "scale"))
        object.__setattr__(self, "bias", frozen(self.bias, (len(self.scale),), "bias"))
        if not 0.0 < self.floor < 1.0:
            raise InputError(f"floor is {self.floor}: it must be between 0 and 1")

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.scale)

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        scores = log_floored(proba, self.floor) * self.scale + self.bias
        return np.asarray(softmax(scores, axis=1))


class ScaledObjective:
    """Weighted log-loss of a scaled map, as a function of its free unknowns.

    The unknowns are the scale, or K scales, and with ``biased`` K biases on the centred logarithms.

    Examples
    --------
    >>> rows = Rows.of(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> objective = ScaledObjective(rows, tied=True, biased=False)
    >>> value, gradient = objective.value_and_gradient(np.ones(1))
    >>> round(value, 3), gradient.shape
    (0.49, (1,))
    """

    def __init__(self, rows: Rows, *, tied: bool, biased: bool) -> None:
        self.rows, self.tied, self.biased = rows, tied, biased
        # Centred, scale and bias hardly depend on each other; without a bias there is no centre.
        self.centre = rows.weights @ rows.logs if biased else np.zeros(rows.n_classes)
        # Rows along the last axis: sums over classes then run through memory in order.
        self.logs = np.ascontiguousarray((rows.logs - self.centre).T)
        self.ridge = RIDGE_ROWS / len(rows.labels)

    @property
    def n_scales(self) -> int:
        """Free scales: 1 or K."""
        return 1 if self.tied else self.rows.n_classes

    def start(self) -> FloatArray:
        """The unknowns of the identity map."""
        scales = np.ones(self.n_scales)
        return np.concatenate([scales, self.centre]) if self.biased else scales

    def lower(self) -> FloatArray:
        """Bounds that keep the map monotone."""
        return np.concatenate(
            [
                np.full(self.n_scales, LEAST_SCALE),
                np.full(len(self.start()) - self.n_scales, -np.inf),
            ]
        )

    def parameters(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scale and bias (K,) for logarithms that are not centred."""
        scale = np.broadcast_to(theta[: self.n_scales], (self.rows.n_classes,))
        bias = theta[self.n_scales :] - scale * self.centre if self.biased else 0.0 * scale
        return scale, bias - bias.mean()

    def _proba(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities (K, n), and the log-loss of each row."""
        scores = self.logs * theta[: self.n_scales, None]
        if self.biased:
            scores += theta[self.n_scales :, None]
        return softmax_rows(scores, self.rows.labels)

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Log-loss with the ridge, and its gradient."""
        residual, losses = self._proba(theta)
        away = theta[: self.n_scales] - 1.0
        value = float(self.rows.weights @ losses + 0.5 * self.ridge * away @ away)
        residual[self.rows.labels, np.arange(len(losses))] -= 1.0
        residual *= self.rows.weights
        slopes = np.einsum("kn,kn->k", residual, self.logs)
        scales = slopes.sum(keepdims=True) if self.tied else slopes
        parts = [scales + self.ridge * away]
        if self.biased:
            parts.append(residual.sum(axis=1))
        return value, np.concatenate(parts)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivatives: mean over rows of the covariance of (x_k e_k, e_k) under softmax."""
        proba, _ = self._proba(theta)
        weights = self.rows.weights
        moved = proba * self.logs
        parts = [moved.sum(axis=0, keepdims=True) if self.tied else moved]
        if self.biased:
            parts.append(proba)
        outer = np.vstack(parts)
        H = -(outer * weights) @ outer.T
        squares = (moved * self.logs) @ weights
        s, K = self.n_scales, self.rows.n_classes
        first = np.arange(s)
        H[first, first] += (squares.sum() if self.tied else squares) + self.ridge
        if self.biased:
            last = s + np.arange(K)
            H[last, last] += proba @ weights
            across = np.zeros(K, dtype=np.intp) if self.tied else np.arange(K)
            weighted = moved @ weights
            H[across, last] += weighted
            H[last, across] += weighted
        return np.asarray(H)


def softmax_rows(scores: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Softmax over the first axis of (K, n) scores, in place; and each column's log-loss.

    Examples
    --------
    >>> proba, losses = softmax_rows(np.zeros((2, 1)), np.array([0]))
    >>> proba.tolist(), losses.round(3).tolist()
    ([[0.5], [0.5]], [0.693])
    """
    scores -= scores.max(axis=0)
    own = scores[labels, np.arange(len(labels))]
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    scores /= total
    return scores, np.log(total) - own


def fit_scaled(
    rows: Rows, name: str, *, tied: bool, biased: bool, tolerance: float = 1e-8
) -> ScaledMap:
    """Fit the map of least log-loss.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
    >>> fit_scaled(Rows.of(proba, np.array([0, 0, 1, 1])), "temperature", tied=True,
    ...            biased=False).scale.round(2).tolist()
    [0.47, 0.47]
    """
    objective = ScaledObjective(rows, tied=tied, biased=biased)
    theta = minimise(objective, objective.start(), objective.lower(), tolerance)
    scale, bias = objective.parameters(theta)
    return ScaledMap(name, scale, bias, rows.floor)
