r"""Confidence intervals for the class mix of a batch, a window or a tracker.

With the influence functions h of `priorshift.monitoring.influence`, the estimate of class k is the
mean of h_k. If its true share is m, and the other classes keep their proportions
:math:`\nu_j`, the variance of that estimate is

.. math:: \sigma_k^2(m) = \frac{m s_{kk} + (1-m) \sum_{j \ne k} \nu_j s_{kj} - m^2}{N}
    + \frac{m^2 v_{kk}}{n_k} + (1-m)^2 \sum_{j \ne k} \frac{\nu_j^2 v_{kj}}{n_j},

the first part from the N rows, the second from the finite hold-out. The interval holds every m
that the estimate does not contradict, with the deviation measured by the variance *at m*, as in
Wilson's interval for a share; skewness and the ends of [0, 1] are in ``scores.py``.
"""

from __future__ import annotations

import warnings

import numpy as np

from priorshift.errors import InputError, PriorshiftWarning
from priorshift.monitoring.influence import (
    Influence,
    check_level,
    check_mix,
    check_proba,
    influence_at,
    recentred,
)
from priorshift.monitoring.scores import Moments, accepts
from priorshift.priors import project_simplex
from priorshift.priors.mlls import MLLS
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

_BISECTIONS = 20
# Rows of a class below which a tracked mix is taken to lie on the edge of the simplex.
_SEEN = 0.5
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
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> sure = np.repeat(np.eye(2), 10**5, axis=0)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), sure, sure.argmax(axis=1))
    >>> low, high = mix_interval(source, np.repeat(np.eye(2), [30, 70], axis=0))
    >>> low.round(3), high.round(3)
    (array([0.229, 0.621]), array([0.379, 0.771]))
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
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4)  # f0 is right, and does not know it
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 4 + [1] * 4)
    >>> estimate_mix(source, np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])).round(3)
    array([0.25, 0.75])
    """
    return project_simplex(_estimate(source, check_proba(rows, source.n_classes))[1])


def _estimate(source: Source, proba: FloatArray) -> tuple[Influence, FloatArray]:
    """Influence functions at a mix near the rows' own, and their means, which add up to 1.

    Any mix gives an unbiased estimate, and one near the truth a sharp one. The likeliest mix may
    be far off where f0 is not calibrated; so a second step starts from where the first one ended,
    and the one with the smaller error to be expected is taken.
    """
    with warnings.catch_warnings():
        # It is where one step starts from: near the maximum is near enough.
        warnings.simplefilter("ignore", PriorshiftWarning)
        mix = _ESTIMATOR.raw(source, Batch(proba, proba))
    first = _step(source, proba, mix)
    second = _step(source, proba, project_simplex(first[1]))
    return min(first, second, key=lambda one: _expected_error(source, one[0], one[1], len(proba)))


def _step(source: Source, proba: FloatArray, mix: FloatArray) -> tuple[Influence, FloatArray]:
    influence = influence_at(source, mix, len(proba))
    return influence, influence.of(source, proba).mean(axis=0)


def _expected_error(
    source: Source, influence: Influence, estimate: FloatArray, size: float
) -> float:
    """Squared error of the estimates, summed over classes, if the mix is what they say."""
    mix = project_simplex(estimate)
    rows = (influence.squares @ mix - mix**2) / size
    return float((rows + influence.variances @ (mix**2 / source.counts)).sum())


def prior_interval(
    source: Source,
    mix: FloatArray,
    size: float,
    level: float = 0.9,
    *,
    corrected: bool = False,
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
    corrected : bool
        False for a mix that makes the evidence likely under f0, as trackers find it: where f0 is
        wrong on the hold-out, so is the mix, and the interval is moved by that error. True for a
        mix that allows for f0's errors already, as those of `estimate_mix` and of confusion
        matrices do.

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
    mix = check_mix(mix, source.n_classes)
    if not (np.isfinite(size) and size > 0):
        raise InputError(f"size is {size}: give the number of rows behind the mix, above 0")
    influence = influence_at(source, mix, size)
    centre = mix if corrected else recentred(source, mix, size * mix >= _SEEN)
    return _interval(source, influence, centre, float(size), check_level(level))


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
    moments = Moments(influence, source.counts, size)
    outer = np.array([np.zeros(len(estimate)), np.ones(len(estimate))])
    inside, outside = np.clip([estimate, estimate], 0.0, 1.0), outer
    reached = accepts(estimate, outer, moments, level)
    for _ in range(_BISECTIONS):
        half = (inside + outside) / 2.0
        good = accepts(estimate, half, moments, level)
        inside, outside = np.where(good, half, inside), np.where(good, outside, half)
    low, high = np.where(reached, outer, inside)
    return low, high
