r"""Confidence intervals for the class mix of a batch, a window or a tracker.

With the influence functions h of `priorshift.insight.influence`, the estimate of class k is the
mean of h_k. If its true share is m, and the other classes keep their proportions
:math:`\nu_j`, the variance of that estimate is

.. math:: \sigma_k^2(m) = \frac{m s_{kk} + (1-m) \sum_{j \ne k} \nu_j s_{kj} - m^2}{N}
    + \frac{m^2 v_{kk}}{n_k} + (1-m)^2 \sum_{j \ne k} \frac{\nu_j^2 v_{kj}}{n_j},

the first part from the N rows, the second from the finite hold-out. The interval holds every m
that the estimate does not contradict, with the deviation measured by the variance *at m*, as in
Wilson's interval for a share; for an f0 that is always right it is Wilson's interval. Near the
ends of [0, 1], where an estimate cannot fall as far on one side as on the other, the threshold is
the one of the likelihood ratio of a bounded normal mean (Feldman and Cousins, 1998).
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from priorshift.errors import InputError, PriorshiftWarning
from priorshift.insight.influence import (
    Influence,
    check_level,
    check_mix,
    check_proba,
    influence_at,
)
from priorshift.priors.mlls import MLLS
from priorshift.priors.simplex import project_simplex
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, FloatArray

_TINY = 1e-12
_BISECTIONS = 50
_FAR = 6.0
_ESTIMATOR = MLLS(tol=1e-5)


def mix_interval(source: Source, rows: object, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
    """Return the ends (K,) of a confidence interval for each class's share of the rows.

    Parameters
    ----------
    source : Source
    rows : Batch or (N, K) array
        A batch, or f0's class probabilities of its rows.
    level : float
        The chance with which each interval shall hold the share that the rows were drawn with.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**5, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> low, high = mix_interval(source, np.repeat(np.eye(2), [30, 70], axis=0))
    >>> low.round(3), high.round(3)
    (array([0.231, 0.62 ]), array([0.38 , 0.769]))
    """
    proba = check_proba(rows, source.n_classes)
    level = check_level(level)
    influence, estimate = _estimate(source, proba)
    return _interval(source, influence, estimate, float(len(proba)), level)


def estimate_mix(source: Source, rows: object) -> FloatArray:
    """Return the class mix (K,) of the rows: maximum likelihood, set right by the hold-out.

    One step from the maximum of the likelihood with the influence functions: as sharp as the
    maximum where f0 is calibrated, and right without that.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)  # f0 is right, and does not know it
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 4 + [1] * 4)
    >>> estimate_mix(source, np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])).round(3)
    array([0.25, 0.75])
    """
    return project_simplex(_estimate(source, check_proba(rows, source.n_classes))[1])


def _estimate(source: Source, proba: FloatArray) -> tuple[Influence, FloatArray]:
    """The influence functions at the likeliest mix, and their means, which add up to 1."""
    with warnings.catch_warnings():
        # It is where one step starts from: near the maximum is near enough.
        warnings.simplefilter("ignore", PriorshiftWarning)
        mix = _ESTIMATOR.raw(source, Batch(proba, proba))
    influence = influence_at(source, mix, len(proba))
    return influence, influence.of(source, proba).mean(axis=0)


def prior_interval(
    source: Source, mix: FloatArray, size: float, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return the ends (K,) of a confidence interval around a mix that was tracked.

    Parameters
    ----------
    source : Source
    mix : (K,) array
        The mix that a learner believes in.
    size : float
        Rows that this belief rests on; for evidence that is discounted by a factor a row,
        ``(sum of weights)**2 / sum of squared weights``.
    level : float
        See `mix_interval`. It holds while the mix stands still for as long as the evidence goes
        back.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**5, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> low, high = prior_interval(source, np.array([0.3, 0.7]), size=100)
    >>> low.round(3), high.round(3)
    (array([0.231, 0.62 ]), array([0.38 , 0.769]))
    """
    mix = check_mix(mix, source.n_classes)
    if not (np.isfinite(size) and size > 0):
        raise InputError(f"size is {size}: give the number of rows behind the mix, above 0")
    influence = influence_at(source, mix, size)
    return _interval(source, influence, mix, float(size), check_level(level))


def effective_size(weights: FloatArray) -> float:
    r"""Kish's effective sample size, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`.

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InputError("weights must be a vector of numbers from 0, not all of them 0")
    return float(weights.sum() ** 2 / (weights**2).sum())


def hold_out_size(source: Source, mix: FloatArray) -> float:
    r"""Rows that the hold-out is worth under a mix: :math:`1 / \sum_k \mu_k^2 / n_k`.

    Kish's effective size of the hold-out's rows, each weighted by its class's new share over its
    old one. All rows where the mix is the hold-out's own, few where a rare class became common.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(counts=np.array([90, 10]), n_classes=2)
    >>> [round(hold_out_size(source, np.array(mix)), 6) for mix in ([0.9, 0.1], [0.0, 1.0])]
    [100.0, 10.0]
    """
    mix = check_mix(mix, source.n_classes)
    return float(1.0 / (mix**2 / source.counts).sum())


def _interval(
    source: Source, influence: Influence, estimate: FloatArray, size: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Both ends, by bisection between the estimate and the ends of [0, 1]."""
    variance = _Variance(influence, source.counts, size)
    middle = np.clip(estimate, 0.0, 1.0)
    ends = []
    for outer in (np.zeros(len(middle)), np.ones(len(middle))):
        inside, outside = middle.copy(), outer.copy()
        reached = _accepts(estimate, outside, variance, level)
        for _ in range(_BISECTIONS):
            half = (inside + outside) / 2.0
            good = _accepts(estimate, half, variance, level)
            inside, outside = np.where(good, half, inside), np.where(good, outside, half)
        ends.append(np.where(reached, outer, inside))
    return ends[0], ends[1]


class _Variance:
    """Variance of the estimates as a function of the true shares; see the module's equation."""

    def __init__(self, influence: Influence, counts: AnyArray, size: float) -> None:
        others = influence.mix * (1.0 - np.eye(len(counts)))
        others /= np.maximum(others.sum(axis=1, keepdims=True), _TINY)
        self.size = size
        self.own = np.diag(influence.squares)
        self.rest = (others * influence.squares).sum(axis=1)
        self.own_hold = np.diag(influence.variances) / counts
        self.rest_hold = (others**2 * influence.variances / counts).sum(axis=1)

    def __call__(self, m: FloatArray) -> FloatArray:
        rows = np.maximum(m * self.own + (1.0 - m) * self.rest - m**2, 0.0) / self.size
        variance: FloatArray = rows + m**2 * self.own_hold + (1.0 - m) ** 2 * self.rest_hold
        return variance


def _accepts(estimate: FloatArray, m: FloatArray, variance: _Variance, level: float) -> AnyArray:
    """Say for each class whether the estimate is compatible with a true share of m."""
    sigma = np.sqrt(np.maximum(variance(m), _TINY**2))
    beyond = np.minimum(estimate, 0.0) + np.maximum(estimate - 1.0, 0.0)
    ratio = ((estimate - m) ** 2 - beyond**2) / sigma**2
    room = np.minimum(m, 1.0 - m) / sigma
    thresholds = np.interp(room, *_threshold_table(level))
    return np.asarray(ratio <= thresholds)


@lru_cache(maxsize=32)
def _threshold_table(level: float) -> tuple[FloatArray, FloatArray]:
    """Thresholds of the likelihood ratio against the distance to the bound, in deviations."""
    room = np.linspace(0.0, _FAR, 121)
    return room, np.array([bounded_threshold(float(t), level) for t in room])


def bounded_threshold(room: float, level: float) -> float:
    r"""Threshold c of a normal mean that is ``room`` deviations above its lower bound.

    The likelihood ratio of x against the nearest possible mean is :math:`(x-t)^2` for x above the
    bound and :math:`t^2 - 2tx` below it, and c is what it stays under with chance `level`.

    Examples
    --------
    >>> round(bounded_threshold(0.0, 0.9), 3), round(bounded_threshold(9.0, 0.9), 3)
    (1.642, 2.706)
    """
    if room == 0.0:
        return float(max(ndtri(level), 0.0) ** 2)

    def short(c: float) -> float:
        root = np.sqrt(c)
        left = root if root <= room else (room**2 + c) / (2.0 * room)
        return float(ndtr(root) - ndtr(-left)) - level

    return float(brentq(short, 0.0, ndtri((1.0 + level) / 2.0) ** 2 + 1e-9))
