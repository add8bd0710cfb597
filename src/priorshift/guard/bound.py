r"""How surprising a count is, whatever the class mix: the p-value behind the guard.

A block of the stream has ``n`` rows; ``S`` of them are in a region that held ``c_k`` of the
``n_k`` rows of the hold-out's class k. Two things are not known: the block's mean class mix
``mu``, and the region's true share of each class.

*The shares.* For one class, "S of n against c of m" is compared exactly by conditioning on S + c:
the chance of S or more is that of a negative binomial variable with c + 1 successes and odds
``n / m``. For a mix the expected count is :math:`\sum_k w_k g_k` with weights
``w_k = n mu_k / n_k`` and gamma variables ``g_k`` of shape ``c_k``, one more in the class of the
largest weight (the gamma interval of Fay and Feuer, 1997, for weighted sums of counts). Its
Chernoff bound is

.. math:: \log p \le \min_\theta\ -S \log(1+\theta) - \sum_k c_k \log(1-\theta w_k)
    - \log(1-\theta \max_k w_k).

Hold-out and block are both random here: the finite hold-out is part of the p-value.

*The mix.* Rows of class k are called k by f0 with a probability of at least its lower confidence
bound, so the number of rows called k bounds ``mu_k <= u_k`` from above (Clopper and Pearson).
The bound above is taken at the worst mix with ``mu_k <= u_k``: each term is convex in ``mu_k``,
lies below its chord from 0 to ``u_k``, and a linear function has its maximum where the classes
with the steepest chords are full. A mix that changes within the block does no harm: by concavity
of the logarithm the count is most variable when all rows share the mean mix.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from priorshift.guard.regions import Regions
from priorshift.typing import FloatArray, IntArray

# Where the Chernoff bound is tried, as shares of the largest theta.
_THETAS = np.concatenate([np.geomspace(1e-5, 0.5, 30), 1.0 - np.geomspace(0.4, 0.005, 10)])
_TINY = 1e-300


def recall_lower_bounds(regions: Regions, error: float) -> FloatArray:
    """Lower bounds (K,) of how often f0 calls each class right; any is wrong with that chance.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> regions = SimpleNamespace(recalled=np.array([100, 0]), rows=np.array([100, 10]))
    >>> recall_lower_bounds(regions, 0.1).round(2)
    array([0.97, 0.  ])
    """
    share = error / len(regions.rows)
    missed = regions.rows - regions.recalled
    recall = betaincinv(np.maximum(regions.recalled, 1), missed + 1.0, share)
    return np.where(regions.recalled > 0, recall, 0.0)


def mix_upper_bounds(
    regions: Regions, calls: IntArray, error: FloatArray, recall_error: float
) -> FloatArray:
    """Upper bounds ``u`` (B, K) of the mean mix of B blocks, each wrong with chance ``error``.

    Parameters
    ----------
    regions : Regions
        Knows how often f0 calls each class right.
    calls : (B, K) array
        Rows of each block that f0 calls each class.
    error : (B,) array
        Chance that any bound of the block is too low.
    recall_error : float
        Chance that f0 is worse than thought at any class: the same event for all blocks.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> perfect = SimpleNamespace(recalled=np.array([10**6] * 2), rows=np.array([10**6] * 2))
    >>> mix_upper_bounds(perfect, np.array([[50, 50]]), np.array([0.05]), 0.05).round(2)
    array([[0.6, 0.6]])
    """
    size = calls.shape[1]
    share = np.maximum(np.asarray(error, dtype=np.float64)[:, None] / size, _TINY)
    recall = recall_lower_bounds(regions, recall_error)
    total = calls.sum(axis=1, keepdims=True)
    # The complement's lower quantile: one minus a tiny number would lose it.
    others = betaincinv(np.maximum(total - calls, 1), calls + 1.0, share)
    called = np.where(calls < total, 1.0 - others, 1.0)
    bounds = np.ones(calls.shape)
    np.divide(called, recall, out=bounds, where=called < recall)
    return bounds


def largest_mean(rates: FloatArray, order: IntArray, bounds: FloatArray) -> FloatArray:
    r"""Largest :math:`\sum_k \mu_k q_{jk}` over mixes below the bounds, (B, J).

    Examples
    --------
    >>> rates = np.array([[0.5, 0.1]])
    >>> largest_mean(rates, np.argsort(-rates, axis=1), np.array([[0.25, 1.0]]))
    array([[0.2]])
    """
    ordered = bounds[:, order]
    before = np.cumsum(ordered, axis=2) - ordered
    taken = np.clip(1.0 - before, 0.0, ordered)
    means: FloatArray = (taken * np.take_along_axis(rates, order, axis=1)).sum(axis=2)
    return means


def log_p_value(
    seen: FloatArray, counts: FloatArray, scale: FloatArray, bounds: FloatArray
) -> FloatArray:
    """Chernoff bound of the log p-value of M counts, at the worst mix below the bounds.

    Parameters
    ----------
    seen : (M,) array
        S, rows in the region.
    counts : (M, K) array
        c_k, rows of the hold-out in the region.
    scale : (M, K) array
        n / n_k, rows of the block for each row of the hold-out.
    bounds : (M, K) array
        u_k, largest share of each class in the block.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> bool(log_p_value(np.array([30.0]), 0 * one, 0.1 * one, one)[0] < -50)
    True
    >>> log_p_value(np.array([1.0]), 10 * one, one, one).tolist()
    [0.0]
    """
    weights = scale * bounds
    top = 1.0 / weights.max(axis=1)
    theta = _THETAS * top[:, None]
    full = -counts[:, None, :] * np.log1p(-theta[:, :, None] * weights[:, None, :])
    slope = full / bounds[:, None, :]
    order = np.argsort(-slope, axis=2)
    ordered = np.take_along_axis(
        np.broadcast_to(bounds[:, None, :], slope.shape), order, axis=2
    )
    taken = np.clip(1.0 - (np.cumsum(ordered, axis=2) - ordered), 0.0, ordered)
    worst = (taken * np.take_along_axis(slope, order, axis=2)).sum(axis=2)
    logs = -seen[:, None] * np.log1p(theta) + worst - np.log1p(-_THETAS)
    return np.minimum(logs.min(axis=1), 0.0)


def poisson_log_p(seen: FloatArray, mean: FloatArray) -> FloatArray:
    """Chernoff bound of a Poisson count: what `log_p_value` cannot be below.

    Examples
    --------
    >>> poisson_log_p(np.array([2.0, 1.0]), np.array([1.0, 3.0])).round(4)
    array([-0.3863,  0.    ])
    """
    mean = np.maximum(mean, _TINY)
    ratio = np.maximum(seen / mean, 1.0)
    logs: FloatArray = np.where(seen > mean, seen - mean - seen * np.log(ratio), 0.0)
    return logs
