r"""Maps with one number for each logarithm: :math:`z_k = s_k x_k + b_k`, then softmax.

Temperature (all :math:`s_k` alike, no bias), bias-corrected temperature (all alike, with bias) and
vector scaling (all free) are one map and one fit, with the unknowns tied together more or less. The
minimiser of smooth convex functions at the end of this file also fits the matrix maps.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from priorshift._numerics import log_floored, row_softmax
from priorshift._validation import check_number
from priorshift.calibration.base import Recipe, Rows, freeze
from priorshift.typing import FloatArray, IntArray

_log = logging.getLogger(__name__)

# A held-out set without errors asks for an infinite scale. This much weight, in rows, pulls the
# scales to 1; where anything is to be learned of them it is not felt.
RIDGE_ROWS = 0.01
# A scale of 0 or less would turn f0's order around.
LEAST_SCALE = 1e-3
# With more unknowns than this the Hessian costs more than the steps that it saves.
NEWTON_UNKNOWNS = 500
_NEWTON_STEPS = 60
_LBFGS_STEPS = 2000
_TOLERANCE = 1e-8


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
        freeze(self, scale=(None,), bias=np.shape(self.scale))
        check_number("floor", self.floor, 0, 1)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.scale)

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        return row_softmax(log_floored(proba, self.floor) * self.scale + self.bias)

    def widened(self, rows: Rows) -> ScaledMap:
        """With the mean scale and the mean bias for classes that ``rows`` lack."""
        scale = np.full(rows.n_classes, self.scale.mean())
        scale[rows.seen] = self.scale
        apart = self.scale - self.scale.mean()
        bias = wide_bias(self.bias, apart * rows.centre[rows.seen], rows)
        return ScaledMap(self.name, scale, bias, self.floor)


@dataclass(frozen=True)
class Temperature(Recipe[ScaledMap]):
    r"""Divide the logits by one temperature (Guo et al., 2017): softmax of ``log(f0) / T``.

    The most probable class stays what it is. There is no bias: the mean calibrated probability of a
    class need not be its share of the held-out set, so importance weights may stay off.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
    >>> Temperature().fit(proba, np.array([0, 0, 1, 1]))(proba[:1]).round(2).tolist()
    [[0.74, 0.26]]
    """

    name: ClassVar[str] = "temperature"
    needs_every_class: ClassVar[bool] = False

    def _fit(self, rows: Rows) -> ScaledMap:
        return fit_scaled(rows, self.name, tied=True, biased=False)


@dataclass(frozen=True)
class BiasTemperature(Recipe[ScaledMap]):
    r"""Softmax of ``log(f0) / T + b`` (Alexandari et al., 2020).

    At the optimum the mean calibrated probability of each class is its share of the held-out set:
    the gradient in the bias is the difference of the two.

    Parameters
    ----------
    shrink : float
        Rows whose weight pulls the scale to 1 and each bias to 0, by default none: a class with n_k
        rows moves its bias by about ``n_k / (n_k + shrink)`` of what they ask for.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.9, 0.1]])
    >>> BiasTemperature().fit(proba, np.array([0, 0, 1, 1]))(proba).mean(axis=0).round(6).tolist()
    [0.5, 0.5]
    """

    shrink: float = 0.0
    name: ClassVar[str] = "bias-temperature"

    def __post_init__(self) -> None:
        check_number("shrink", self.shrink, 0, float("inf"), "[")

    def _fit(self, rows: Rows) -> ScaledMap:
        return fit_scaled(rows, self.name, tied=True, biased=True, shrink=self.shrink)


@dataclass(frozen=True)
class VectorScaling(Recipe[ScaledMap]):
    r"""Softmax of ``s_k log(f0)_k + b_k`` (Guo et al., 2017), all scales positive.

    The mean calibrated probability of each class is its share of the held-out set.

    Parameters
    ----------
    shrink : float
        As in ``BiasTemperature``; it also pulls the scales to each other.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), 300)
    >>> labels = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> VectorScaling().fit(proba, labels).n_classes
    3
    """

    shrink: float = 0.0
    name: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        check_number("shrink", self.shrink, 0, float("inf"), "[")

    def _fit(self, rows: Rows) -> ScaledMap:
        return fit_scaled(rows, self.name, tied=False, biased=True, shrink=self.shrink)


class Pull:
    r"""A Gaussian prior of mean scale and biases around doing nothing, as a penalty.

    With the mean scale 1 + m and the biases b', on centred logarithms of centre c, it is
    :math:`\frac\kappa2 (m^2 + \|b\|^2)`, b being :math:`b' - (1 + m) c` less its mean, which
    softmax does not see.

    Examples
    --------
    >>> pull = Pull(2.0, np.array([-1.0, -3.0]))
    >>> value, by_mean, by_bias = pull(0.5, np.array([-1.5, -4.5]))     # a temperature, no bias
    >>> value, by_mean, by_bias.tolist()
    (0.25, 1.0, [0.0, 0.0])
    """

    def __init__(self, weight: float, centre: FloatArray) -> None:
        self.weight, self.centre = weight, centre
        self.across = weight * (centre - centre.mean())
        self.curvature = weight + float(self.across @ centre)

    def __call__(self, mean: float, bias: FloatArray) -> tuple[float, float, FloatArray]:
        """The penalty and its derivatives in m and in the biases."""
        away = bias - (1.0 + mean) * self.centre
        away -= away.mean()
        value = 0.5 * self.weight * (mean * mean + float(away @ away))
        by_mean = self.weight * mean - float(self.across @ away)
        return value, by_mean, self.weight * away


class ScaledObjective:
    """Weighted log-loss of a scaled map, as a function of its free unknowns.

    The unknowns are the scale, or K scales, and with ``biased`` K biases on the centred logarithms.
    ``shrink`` is that of the recipes.

    Examples
    --------
    >>> rows = Rows(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> objective = ScaledObjective(rows, tied=True, biased=False)
    >>> value, gradient = objective.value_and_gradient(np.ones(1))
    >>> round(value, 3), gradient.shape
    (0.49, (1,))
    """

    def __init__(self, rows: Rows, *, tied: bool, biased: bool, shrink: float = 0.0) -> None:
        self.rows, self.tied, self.biased = rows, tied, biased
        # Centred, scale and bias hardly depend on each other; without a bias there is no centre.
        self.centre = rows.centre if biased else np.zeros(rows.n_classes)
        # Rows along the last axis: sums over classes then run through memory in order.
        self.logs = np.ascontiguousarray((rows.logs - self.centre).T)
        self.ridge = RIDGE_ROWS / len(rows.labels)
        self.pull = Pull(shrink / len(rows.labels), self.centre)
        self.together = self.pull.weight * float((self.logs**2 @ rows.weights).mean())

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
        """Log-loss with its penalties, and its gradient."""
        residual, losses = self._proba(theta)
        away = theta[: self.n_scales] - 1.0
        mean = float(away.mean())
        apart = away - mean
        bias = theta[self.n_scales :] if self.biased else np.zeros(self.rows.n_classes)
        pulled, by_mean, by_bias = self.pull(mean, bias)
        value = float(
            self.rows.weights @ losses
            + 0.5 * (self.ridge * away @ away + self.together * apart @ apart)
            + pulled
        )
        residual[self.rows.labels, np.arange(len(losses))] -= 1.0
        residual *= self.rows.weights
        slopes = np.einsum("kn,kn->k", residual, self.logs)
        scales = slopes.sum(keepdims=True) if self.tied else slopes
        scales += self.ridge * away + self.together * apart + by_mean / self.n_scales
        return value, np.append(scales, residual.sum(axis=1) + by_bias if self.biased else [])

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
        H[first, first] += (squares.sum() if self.tied else squares) + self.ridge + self.together
        H[:s, :s] += self.pull.curvature / s**2 - self.together / s
        if self.biased:
            last = s + np.arange(K)
            H[last, last] += proba @ weights + self.pull.weight
            H[s:, s:] -= self.pull.weight / K
            H[:s, s:] -= self.pull.across / s
            H[s:, :s] -= self.pull.across[:, None] / s
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
    rows: Rows,
    name: str,
    *,
    tied: bool,
    biased: bool,
    shrink: float = 0.0,
    tolerance: float = _TOLERANCE,
) -> ScaledMap:
    """Fit the map of least log-loss.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
    >>> fit_scaled(Rows(proba, np.array([0, 0, 1, 1])), "temperature", tied=True,
    ...            biased=False).scale.round(2).tolist()
    [0.47, 0.47]
    """
    objective = ScaledObjective(rows, tied=tied, biased=biased, shrink=shrink)
    theta = minimise(objective, objective.start(), objective.lower(), tolerance)
    scale, bias = objective.parameters(theta)
    return ScaledMap(name, scale, bias, rows.floor)


def wide_bias(bias: FloatArray, moved: FloatArray, rows: Rows) -> FloatArray:
    """Biases of all classes: those of the classes that ``rows`` have, and their mean for the rest.

    ``moved`` is what the map adds to their scores on average beside bias and common scale. The mean
    is weighted by the classes' shares: a class without rows keeps its place among the others.

    Examples
    --------
    >>> rows = Rows(np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]]), np.array([0, 1]))
    >>> wide_bias(np.array([1.0, -1.0]), np.zeros(2), rows).tolist()
    [1.0, -1.0, 0.0]
    """
    shares = rows.shares[rows.seen]
    wide = np.full(rows.n_classes, float((bias + moved) @ shares / shares.sum()))
    wide[rows.seen] = bias
    return np.asarray(wide - wide.mean())


class Objective(Protocol):
    """A convex function of a vector, with its first two derivatives."""

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        ...

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the matrix of second derivatives; an approximation slows Newton, no more."""
        ...


def minimise(
    objective: Objective,
    start: FloatArray,
    lower: FloatArray | None = None,
    tolerance: float = _TOLERANCE,
) -> FloatArray:
    """Return the argument of the minimum, to a largest gradient entry of about ``tolerance``.

    ``lower`` bounds the entries from below. It is seldom reached, so it is looked at only after a
    minimum without it was found, and then kept by L-BFGS-B.

    Examples
    --------
    >>> class Bowl:
    ...     def value_and_gradient(self, theta):
    ...         return float(((theta - 3.0) ** 2).sum()), 2.0 * (theta - 3.0)
    ...     def hessian(self, theta):
    ...         return 2.0 * np.eye(len(theta))
    >>> minimise(Bowl(), np.zeros(2)).round(6).tolist()
    [3.0, 3.0]
    >>> minimise(Bowl(), np.zeros(1), np.array([4.0])).tolist()
    [4.0]
    """
    if len(start) <= NEWTON_UNKNOWNS:
        found = _newton(objective, start, tolerance)
        if found is not None and (lower is None or (found >= lower).all()):
            return found
        if found is not None and lower is not None:
            start = np.maximum(found, lower)
    bounds = None if lower is None else [(low, None) for low in lower]
    options = {"maxiter": _LBFGS_STEPS, "maxfun": 2 * _LBFGS_STEPS, "maxcor": 20}
    answer: Any = minimize(
        objective.value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={**options, "ftol": 1e-14, "gtol": tolerance},
    )
    if answer.status == 1:
        _log.info("a calibration map's fit ended after %d steps of L-BFGS", answer.nit)
    return np.asarray(answer.x, dtype=np.float64)


def _newton(objective: Objective, start: FloatArray, tolerance: float) -> FloatArray | None:
    """Damped Newton steps; None where they get stuck."""
    theta = np.array(start, dtype=np.float64)
    value, gradient = objective.value_and_gradient(theta)
    for _ in range(_NEWTON_STEPS):
        if np.abs(gradient).max() <= tolerance:
            return theta
        step = _solve(objective.hessian(theta), gradient)
        slope = float(step @ gradient)
        length = 1.0
        while True:
            tried = theta - length * step
            new_value, new_gradient = objective.value_and_gradient(tried)
            if new_value <= value - 1e-4 * length * slope:
                break
            if slope <= 1e-14 * max(1.0, abs(value)):  # nothing left but rounding
                return theta
            length *= 0.5
            if length < 1e-10:
                return None
        theta, value, gradient = tried, new_value, new_gradient
    return None


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for the step; directions without curvature (softmax has some) get a little."""
    size = len(gradient)
    extra = 1e-10 * float(np.trace(hessian)) / size + 1e-300
    for _ in range(8):
        try:
            factor = cho_factor(hessian + extra * np.eye(size), check_finite=False)
        except np.linalg.LinAlgError:
            extra *= 100.0
        else:
            return np.asarray(cho_solve(factor, gradient, check_finite=False))
    return gradient  # no curvature to speak of: a step down the slope will do
