r"""Confidence intervals for the class prior of a batch, a window or a tracker.

With the influence functions h of `priorshift.monitoring.influence`, the estimate of class k is the
mean of h_k. If its true share is m, and the other classes are in the proportions
:math:`\nu_j`, the variance of that estimate is

.. math:: \sigma_k^2(m) = \frac{m s_{kk} + (1-m) \sum_{j \ne k} \nu_j s_{kj} - m^2}{N}
    + \frac{m^2 v_{kk}}{n_k} + (1-m)^2 \sum_{j \ne k} \frac{\nu_j^2 v_{kj}}{n_j},

the first part from the N rows, the second from the finite held-out set. The interval holds every m
that the estimate does not contradict, with the deviation measured by the variance *at m*, as in
Wilson's interval for a share.

*Skewness.* The mean of N influence values is skewed where the share is small: few rows make the
estimate, as few hits make a count. So its deviation from m, in standard deviations of the estimate
at m, is turned into a normal score by way of a gamma distribution with the same mean, variance and
skewness (Wilson and Hilferty, 1931). For counts that comes close to the mid-p value.

*The ends of [0, 1].* A share cannot be below 0, and what was estimated may have been cut off there.
So a share that is so close to 0 that an estimate of 0 does not contradict it is tested from above
alone, at the whole level, and all others from both sides at half of it each: for a normal estimate,
cut off at 0 or not, every share then has exactly the chance asked for. The same holds at 1.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from priorshift._validation import check_chance, check_positive
from priorshift.errors import PriorshiftWarning
from priorshift.monitoring.influence import (
    Influence,
    Moments,
    check_prior,
    check_proba,
    influence_at,
    moments_of,
    recentred,
    silent,
)
from priorshift.priors import project_simplex
from priorshift.priors.mlls import MLLS
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, FloatArray

_BISECTIONS = 20
# Rows of a class below which a tracked prior is taken to lie on the edge of the simplex.
_SEEN = 0.5
_ESTIMATOR = MLLS(tol=1e-5)
_TINY = 1e-12
# A gamma with more skewness than this says less of a sum of rows than one with this much.
_SKEWED = 1.0
# A class that has less than this of a direction that f0 is silent of is told from the others.
_UNTOLD = 0.01


def batch_prior_interval(
    source: Source, rows: object, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
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
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**5, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> low, high = batch_prior_interval(source, np.repeat(np.eye(2), [30, 70], axis=0))
    >>> low.round(3), high.round(3)
    (array([0.229, 0.621]), array([0.379, 0.771]))
    """
    proba = check_proba(rows, source.n_classes)
    level = check_chance("level", level, such_as=0.9)
    step = _estimate(source, proba)
    return _interval(source, step.influence, step.moments, step.estimate, float(len(proba)), level)


def estimate_prior(source: Source, rows: object) -> FloatArray:
    """Return the class prior (K,) of the rows: maximum likelihood, set right by the held-out set.

    One step from the maximum of the likelihood with the influence functions: as sharp as the
    maximum where f0 is calibrated, and right without that.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)  # f0 is right, and does not know it
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 4 + [1] * 4)
    >>> estimate_prior(source, np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])).round(3)
    array([0.25, 0.75])
    """
    return project_simplex(_estimate(source, check_proba(rows, source.n_classes)).estimate)


class _Step(NamedTuple):
    """Influence functions at a class prior, their moments, their means over a batch (K,)."""

    influence: Influence
    moments: Moments
    estimate: FloatArray


def _estimate(source: Source, proba: FloatArray) -> _Step:
    """Influence functions at a class prior near the rows' own, and their means, which sum to 1.

    Any prior gives an unbiased estimate, and one near the truth a sharp one. The likeliest prior
    may be far off where f0 is not calibrated; so a second step starts from where the first one
    ended, and the one with the smaller error to be expected is taken.
    """
    with warnings.catch_warnings():
        # It is where one step starts from: near the maximum is near enough.
        warnings.simplefilter("ignore", PriorshiftWarning)
        prior = _ESTIMATOR.raw(source, Batch(proba, proba))
    first = _step(source, proba, prior)
    second = _step(source, proba, project_simplex(first.estimate))
    return min(first, second, key=lambda one: _expected_error(source, one, len(proba)))


def _step(source: Source, proba: FloatArray, prior: FloatArray) -> _Step:
    influence = influence_at(source, prior, len(proba))
    estimate = influence.of(source, proba).mean(axis=0)
    return _Step(influence, moments_of(source, influence), estimate)


def _expected_error(source: Source, step: _Step, size: float) -> float:
    """Squared error of the estimates, summed over classes, if the prior is what they say."""
    prior = project_simplex(step.estimate)
    squares, _, variances = step.moments
    rows = (squares @ prior - prior**2) / size
    return float((rows + variances @ (prior**2 / np.maximum(source.counts, 1))).sum())


def prior_interval(
    source: Source,
    prior: FloatArray,
    size: float,
    level: float = 0.9,
    *,
    corrected: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends (K,) of a confidence interval around a class prior that was tracked.

    Parameters
    ----------
    source : Source
    prior : (K,) array
        The class prior that a learner believes in.
    size : float
        Rows that it rests on; for evidence that is discounted by a factor a row,
        ``(sum of weights)**2 / sum of squared weights``.
    level : float
        See `batch_prior_interval`. It holds while the class prior stands still for as long as the
        evidence goes back.
    corrected : bool
        False for a prior that makes the evidence likely under f0, as trackers find it: where f0 is
        wrong on the held-out set, so is the prior, and the interval is moved by that error. True
        for a prior that allows for f0's errors already, as those of `estimate_prior` and of
        confusion matrices do.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**5, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> low, high = prior_interval(source, np.array([0.3, 0.7]), size=100)
    >>> low.round(3), high.round(3)
    (array([0.229, 0.621]), array([0.379, 0.771]))
    """
    prior = check_prior(prior, source.n_classes)
    check_positive("size, the number of rows behind the prior,", size)
    influence = influence_at(source, prior, size)
    centre = prior if corrected else recentred(source, prior, size * prior >= _SEEN)
    level = check_chance("level", level, such_as=0.9)
    return _interval(source, influence, moments_of(source, influence), centre, float(size), level)


def held_out_size(source: Source, prior: FloatArray) -> float:
    r"""Rows that the held-out set is worth under a class prior: :math:`1 / \sum_k \mu_k^2 / n_k`.

    Kish's effective size of the held-out rows, each with the importance weight of its class. All
    rows where the prior is the held-out set's own, few where a rare class became common.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(counts=np.array([90, 10]), n_classes=2)
    >>> [round(held_out_size(source, np.array(prior)), 6) for prior in ([0.9, 0.1], [0.0, 1.0])]
    [100.0, 10.0]
    """
    prior = check_prior(prior, source.n_classes)
    return float(1.0 / (prior**2 / np.maximum(source.counts, 1)).sum())


def _interval(
    source: Source,
    influence: Influence,
    found: Moments,
    estimate: FloatArray,
    size: float,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Both ends, by bisection between the estimate and the ends of [0, 1]."""
    moments = _ByShare(source, influence, found, size)
    outer = np.array([np.zeros(len(estimate)), np.ones(len(estimate))])
    inside, outside = np.clip([estimate, estimate], 0.0, 1.0), outer
    reached = _accepts(estimate, outer, moments, level)
    for _ in range(_BISECTIONS):
        half = (inside + outside) / 2.0
        good = _accepts(estimate, half, moments, level)
        inside, outside = np.where(good, half, inside), np.where(good, outside, half)
    # Of a class that f0 does not tell from another one, rows may hold any share.
    untold = (silent(source) ** 2).sum(axis=1) > _UNTOLD
    low, high = np.where(reached | untold, outer, inside)
    return low, high


class _ByShare:
    """Moments of the estimates as functions of the true shares, by class.

    ``size`` are the rows that the estimate rests on.
    """

    def __init__(self, source: Source, influence: Influence, found: Moments, size: float) -> None:
        counts = np.maximum(source.counts, 1)
        others = influence.prior * (1.0 - np.eye(len(counts)))
        others /= np.maximum(others.sum(axis=1, keepdims=True), _TINY)
        self.size = size
        self.squares = np.diag(found.squares), (others * found.squares).sum(axis=1)
        self.cubes = np.diag(found.cubes), (others * found.cubes).sum(axis=1)
        self.own_noise = np.diag(found.variances) / counts
        self.other_noise = (others**2 * found.variances / counts).sum(axis=1)

    def at(self, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deviation and skewness of each class's estimate where its share is m."""
        square = m * self.squares[0] + (1.0 - m) * self.squares[1]
        cube = m * self.cubes[0] + (1.0 - m) * self.cubes[1]
        variance = np.maximum(square - m**2, 0.0) / self.size
        variance += m**2 * self.own_noise + (1.0 - m) ** 2 * self.other_noise
        sigma = np.sqrt(np.maximum(variance, _TINY**2))
        third = (cube - 3.0 * m * square + 2.0 * m**3) / self.size**2
        return sigma, np.clip(third / sigma**3, -_SKEWED, _SKEWED)


def _accepts(estimate: FloatArray, m: FloatArray, moments: _ByShare, level: float) -> AnyArray:
    """Say for each class whether the estimate is compatible with a true share of m."""
    sigma, skewness = moments.at(m)
    side = np.where(m > 0.5, -1.0, 1.0)  # what is said of 0 holds of 1, seen from the other end
    skewness = side * skewness
    score = normal_score(side * (estimate - m) / sigma, skewness)
    above = -normal_score(-np.minimum(m, 1.0 - m) / sigma, skewness)
    return compatible(score, above, level)


def normal_score(x: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return the normal score of a standardised gamma variable of some skewness.

    Examples
    --------
    >>> from scipy.stats import pearson3
    >>> x = np.array([-1.0, 0.0, 2.0])
    >>> normal_score(x, np.full(3, 0.8)).round(2), ndtri(pearson3.cdf(x, 0.8)).round(2)
    (array([-1.04,  0.13,  1.76]), array([-1.04,  0.13,  1.76]))
    """
    skewness = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    root = np.cbrt(np.maximum(1.0 + skewness * x / 2.0, 0.0))
    score: FloatArray = 6.0 / skewness * (root - 1.0) + skewness / 6.0
    return score


def compatible(score: FloatArray, above: FloatArray, level: float) -> AnyArray:
    """Say whether a score is within its limits, for a mean ``above`` deviations over its bound.

    Examples
    --------
    >>> compatible(np.array([-9.0, 1.0, -9.0, 1.0]), np.array([0.5, 0.5, 3.0, 3.0]), 0.8)
    array([ True, False, False,  True])
    """
    one_side, each_side = ndtri(level), ndtri((1.0 + level) / 2.0)
    within: AnyArray = np.where(above < each_side, score <= one_side, np.abs(score) <= each_side)
    return within
