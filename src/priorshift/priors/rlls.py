"""Regularised learning under label shift: BBSE that stays near the source's prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq

from priorshift._validation import check_number
from priorshift.priors.base import PriorEstimate
from priorshift.priors.bbse import mean_covariance, prediction_mean
from priorshift.source.derived import per_source
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source


class _Spectrum(NamedTuple):
    """Singular value decomposition of J = left @ diag(values) @ right, and J 1."""

    left: FloatArray
    values: FloatArray
    right: FloatArray
    row_sums: FloatArray


def _decompose(joint: FloatArray) -> _Spectrum:
    left, values, right = np.linalg.svd(joint)
    return _Spectrum(left, values, right, joint.sum(axis=1))


@per_source
def _hard_spectrum(source: Source) -> _Spectrum:
    return _decompose(source.confusion * source.prior)


@per_source
def _soft_spectrum(source: Source) -> _Spectrum:
    return _decompose(source.soft_confusion * source.prior)


def _mix(spectrum: _Spectrum, penalty: float, target: FloatArray) -> float:
    r"""Where the solution lies, in [0, 1]: 0 is no shrinkage at all, 1 is theta = 0.

    A minimiser other than 0 and :math:`J^{-1}b` solves the ridge problem :math:`(J^\top J +
    \lambda I)\theta = J^\top b` with :math:`\lambda = \Delta\,\|J\theta - b\| / \|\theta\|`. In
    the singular basis, with :math:`\beta = U^\top b`, that is one equation in :math:`\lambda`,

    .. math:: \sum_i (s_i^2 - \Delta^2)\, \beta_i^2 / (s_i^2 + \lambda)^2 = 0,

    a weighted mean of :math:`s_i^2` set equal to :math:`\Delta^2`; the mean grows with
    :math:`\lambda`, so the root is unique, and its sign at both ends says when there is none. With
    :math:`\lambda = s_1^2 u / (1 - u)` the range is [0, 1].
    """
    squares = spectrum.values**2
    scale = float(squares[0])
    beta = spectrum.left.T @ target
    # A null direction of J cannot be fitted: a tiny floor makes it outweigh the others at u = 0.
    floored = np.maximum(squares, scale * np.finfo(np.float64).eps ** 2)
    slack = squares - penalty**2

    def secular(u: float) -> float:
        # Scaled by the largest weight: only the sign and the root matter, and 1/s^4 may overflow.
        weights = np.abs(beta / (floored * (1.0 - u) + scale * u))
        top = float(weights.max())
        return float(slack @ (weights / top) ** 2) if top > 0.0 else 0.0

    if secular(0.0) >= 0.0:
        return 0.0
    if secular(1.0) <= 0.0:
        return 1.0
    return float(brentq(secular, 0.0, 1.0, xtol=1e-15, rtol=1e-14))


def _solve(spectrum: _Spectrum, penalty: float, target: FloatArray) -> tuple[FloatArray, float]:
    """Return theta and the mix u that gave it."""
    left, values, right, _ = spectrum
    u = _mix(spectrum, penalty, target)
    if u == 1.0:
        return np.zeros(len(values)), u
    below = values <= len(values) * np.finfo(np.float64).eps * values[0]
    scaled = values**2 * (1.0 - u) + values[0] ** 2 * u
    gains = np.where(below, 0.0, values * (1.0 - u) / np.where(below, 1.0, scaled))
    theta: FloatArray = right.T @ (gains * (left.T @ target))
    return theta, u


def _slope(spectrum: _Spectrum, penalty: float, target: FloatArray) -> FloatArray:
    r"""Jacobian of theta in b, by differentiating the optimality condition.

    0 where theta stays 0, :math:`J^{+}` where nothing is shrunk; in between, with r the residual,
    :math:`H\,d\theta = J^\top P_r\,db/\|r\|` and :math:`H = J^\top P_r J/\|r\| +
    \Delta P_\theta/\|\theta\|`, where P projects off its index.
    """
    left, values, right, _ = spectrum
    theta, u = _solve(spectrum, penalty, target)
    joint = (left * values) @ right
    if u == 1.0:
        return np.zeros_like(joint)
    if u == 0.0:
        return np.asarray(np.linalg.pinv(joint), dtype=np.float64)
    residual = joint @ theta - target
    off_residual = _project_off(residual) / np.linalg.norm(residual)
    off_theta = _project_off(theta) / np.linalg.norm(theta)
    hessian = joint.T @ off_residual @ joint + penalty * off_theta
    slope: FloatArray = np.linalg.pinv(hessian, hermitian=True) @ joint.T @ off_residual
    return slope


def _project_off(vector: FloatArray) -> FloatArray:
    unit = vector / np.linalg.norm(vector)
    projector: FloatArray = np.eye(len(unit)) - np.outer(unit, unit)
    return projector


@dataclass(frozen=True)
class RLLS:
    r"""Regularised learning under label shift (Azizzadenesheli, Liu, Yang, Anandkumar, 2019).

    .. math:: \hat\theta = \arg\min_\theta \|J\theta - (q - J\mathbf 1)\|_2
        + \Delta\|\theta\|_2, \qquad \hat\mu = \pi_0 \odot (1 + \gamma\hat\theta)

    with :math:`J = C\,\mathrm{diag}(\pi_0)` the joint confusion matrix and q the mean prediction of
    the batch. Shrinking the weights to 1 trades bias for variance; J need not be invertible. The
    problem is solved exactly, by the singular value decomposition of J (once for each source) and
    a scalar equation.

    Parameters
    ----------
    gamma : float
        How far to trust the weights, from 0 (the source's prior) to 1.
    delta : float
        Probability with which the bound on the error of J, that is :math:`\Delta`, may fail.
    alpha : float
        Share of that bound used as the penalty. The bound is loose; 0.01 is what the authors'
        code uses, and 1 is what the theory asks for.
    penalty : float or None
        :math:`\Delta` itself, in place of the one from `delta`, `alpha` and the size of the
        held-out set.
    soft : bool
        Use f0's probabilities and the soft confusion matrix in place of its labels.

    Notes
    -----
    The penalty is a norm and not its square, so it has a threshold: for :math:`\Delta` no larger
    than the smallest singular value of J, the answer is exactly BBSE's (with gamma = 1). The
    authors' code also asks :math:`\theta \ge -1`; `clipped` and `simplex` do that work here, so
    that `raw` stays linear in the batch where BBSE is. Shrunk estimates need not sum to one.

    The covariance is that of q, carried to :math:`\hat\mu` by the derivative of the solution
    (exact where the solution is linear in q; where the penalty bites the solution bends, and small
    batches can be off by a factor of two). It is the noise of the estimate, not its bias: where
    the penalty holds theta at 0 it is zero.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> source = SimpleNamespace(
    ...     confusion=np.array([[0.75, 0.25], [0.25, 0.75]]),
    ...     prior=np.array([0.5, 0.5]),
    ...     counts=np.array([50, 50]),
    ... )
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]])
    >>> batch = SimpleNamespace(proba=proba, labels=proba.argmax(axis=1))
    >>> RLLS().raw(source, batch).round(6)  # BBSE's answer: the penalty is below its threshold
    array([1., 0.])
    >>> RLLS(gamma=0.5).raw(source, batch).round(6)
    array([0.75, 0.25])
    >>> RLLS(penalty=1.0).raw(source, batch)
    array([0.5, 0.5])
    """

    gamma: float = 1.0
    delta: float = 0.05
    alpha: float = 0.01
    penalty: float | None = None
    soft: bool = False

    def __post_init__(self) -> None:
        check_number("RLLS gamma", self.gamma, 0, 1, "[]")
        check_number("RLLS delta", self.delta, 0, 1)
        check_number("RLLS alpha", self.alpha, 0, math.inf, "[")
        if self.penalty is not None:
            check_number("RLLS penalty", self.penalty, 0, math.inf, "[")

    @property
    def name(self) -> str:
        """``"rlls"`` or ``"rlls-soft"``."""
        return "rlls-soft" if self.soft else "rlls"

    def strength(self, source: Source) -> float:
        r"""Return the penalty :math:`\Delta` used with this source.

        :math:`3\alpha\,(2L/(3n_0) + \sqrt{2L/n_0})` with :math:`L = \log(2K/\delta)`.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import numpy as np
        >>> source = SimpleNamespace(counts=np.array([5000, 5000]))
        >>> round(RLLS(alpha=1.0).strength(source), 4)
        0.0897
        """
        if self.penalty is not None:
            return self.penalty
        rows = float(source.counts.sum())
        log = math.log(2.0 * len(source.counts) / self.delta)
        return 3.0 * self.alpha * (2.0 * log / (3.0 * rows) + math.sqrt(2.0 * log / rows))

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate; biased to the source's prior on purpose."""
        spectrum = self._spectrum(source)
        target = prediction_mean(batch, self.soft) - spectrum.row_sums
        theta, _ = _solve(spectrum, self.strength(source), target)
        return source.prior * (1.0 + self.gamma * theta)

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the estimate with its covariance."""
        return PriorEstimate(self.raw(source, batch), partial(_covariance, self, source, batch))

    def _spectrum(self, source: Source) -> _Spectrum:
        return _soft_spectrum(source) if self.soft else _hard_spectrum(source)


def _covariance(rlls: RLLS, source: Source, batch: Batch) -> FloatArray:
    spectrum = rlls._spectrum(source)
    mean = prediction_mean(batch, rlls.soft)
    slope = _slope(spectrum, rlls.strength(source), mean - spectrum.row_sums)
    slope = rlls.gamma * source.prior[:, None] * slope
    mapped: FloatArray = slope @ mean_covariance(batch, mean, rlls.soft) @ slope.T
    return mapped
