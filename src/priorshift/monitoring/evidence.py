r"""How surprising the counts of a block are, whatever its class prior: the guard's statistics.

**The p-value of a count.** A block of the stream has ``n`` rows; ``S`` of them are in a region that
held ``c_k`` of the ``n_k`` rows of class k in the held-out set. Two things are not known: the
region's true rate in each class, and the block's mean class prior ``mu``.

*The rates.* For one class, "S of n against c of m" is compared exactly by conditioning on S + c:
the chance of S or more is that of a negative binomial variable with c + 1 successes and odds
``n / m``. For several classes the expected count is :math:`\sum_k w_k g_k` with weights
``w_k = n mu_k / n_k`` and gamma variables ``g_k`` of shape ``c_k``, one more at the largest
weight (the gamma interval of Fay and Feuer, 1997, for weighted sums of counts). Held-out set and
block are both random here: the finite held-out set is part of the p-value.

*The class prior* is estimated from what f0 calls the rows of the block; its error is taken as
normal with the covariance V of `block_prior`. So the Chernoff bound of the p-value is

.. math:: \log p \le \min_\theta\ -S \log(1+\theta) - \sum_k c_k \log(1-\theta w_k)
    - \log(1-\theta \max_k w_k) + \tfrac12 \theta^2 n^2\, q^\top V q, \qquad q_k = c_k / n_k,

and the first factor of the saddlepoint expansion (Bahadur and Rao, 1960) takes it to the tail
itself: with :math:`\lambda = \log(1+\theta)` and the second derivative K'' of the
cumulant generating function in :math:`\lambda`, :math:`1 / ((1-e^{-\lambda})\sqrt{2\pi K''})`.

A class prior that changes within the block does no harm: by concavity of the logarithm, the count
is most variable when all rows share the mean prior.

**What each block may spend.** Blocks of level i hold about ``128 * 4**i`` rows and follow each
other. Block number j of level i may raise a false alarm with a chance of at most
``alpha / ((i+1)(i+2) j(j+1))``; all of these sum to less than ``alpha``, whatever the stream's
length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.monitoring.regions import Regions
from priorshift.typing import AnyArray, FloatArray, IntArray

LEVELS = 12
FIRST_ROWS = 128
BLOCK_ROWS = FIRST_ROWS * 4 ** np.arange(LEVELS, dtype=np.int64)
"""Rows that end a block of each level."""

# Where the Chernoff bound is tried, as shares of the largest theta.
_THETAS = np.concatenate([np.geomspace(1e-5, 0.5, 30), 1.0 - np.geomspace(0.4, 0.005, 10)])
_TINY = 1e-300
_EM_STEPS = 5
# The two p-values are expansions: the one without errors may be a little the larger one.
_SLACK = 2.0


class Verdict(NamedTuple):
    """The most surprising region of the most surprising block.

    Attributes
    ----------
    log_p : float
        Logarithm of its p-value, corrected for all other regions and blocks; 0 if none surprises.
    block, region : int
        Which; -1 if none.
    expected : float
        The share of rows in that region that the block's class prior explains.

    Examples
    --------
    >>> Verdict(0.0, -1, -1, 0.0).region
    -1
    """

    log_p: float
    block: int
    region: int
    expected: float


def log_share(level: IntArray, number: IntArray) -> FloatArray:
    """Logarithm of the part of alpha that block ``number`` (from 1) of ``level`` may spend.

    Examples
    --------
    >>> numbers = np.arange(1, 10_000)
    >>> levels = np.arange(100)
    >>> float(np.exp(log_share(levels[:, None], numbers)).sum().round(3))
    0.99
    """
    level, number = np.asarray(level, dtype=float), np.asarray(number, dtype=float)
    share: FloatArray = -np.log((level + 1) * (level + 2)) - np.log(number * (number + 1))
    return share


def judge(
    regions: Regions,
    hits: IntArray,
    calls: IntArray,
    share: FloatArray,
    best: float = 0.0,
) -> Verdict:
    """Find the most surprising region of B finished blocks.

    Parameters
    ----------
    hits, calls : (B, J) and (B, K) arrays
        Rows of each block in each region, and called each class.
    share : (B,) array
        Logarithm of the part of alpha that each block may spend.
    best : float
        Only verdicts with a smaller log p-value are looked for.
    """
    rows = calls.sum(axis=1)
    rates = regions.counts / regions.rows
    prior, covariance = block_prior(calls, regions.confusion, regions.rows)
    mean = prior @ rates.T
    spent = share[:, None] + np.log(regions.share)
    # Without the errors of held-out set and prior the p-value would be smaller: most regions end
    # here.
    least = poisson_log_p(hits, rows[:, None] * mean)
    block, region = np.nonzero((least < 0.0) & (least - spent - _SLACK < best))
    verdict = Verdict(best, -1, -1, 0.0)
    if len(block) == 0:
        return verdict
    size, rate = rows[block], rates[region]
    error = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
    largest = rows * (np.minimum(prior + error, 1.0) / regions.rows).max(axis=1)
    variance = np.einsum("mi,mij,mj->m", rate, covariance[block], rate)
    logs = log_p_value(
        hits[block, region].astype(float),
        regions.counts[region],
        size[:, None] * prior[block] / regions.rows,
        largest[block],
        size**2 * variance,
    )
    logs = logs - spent[block, region]
    i = int(logs.argmin())
    if logs[i] >= best:
        return verdict
    b, j = int(block[i]), int(region[i])
    return Verdict(float(logs[i]), b, j, float(mean[b, j]))


def block_prior(
    calls: IntArray, confusion: FloatArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""Mean class prior of B blocks from f0's calls, and its covariance, held-out set included.

    One step of Fisher scoring with the information of the calls,
    :math:`J = n\, C^\top \mathrm{diag}(1/C\mu)\, C` along the simplex, and the precision of a
    uniform draw from the simplex, K(K+1), added: a prior that the calls do not tell has a large
    covariance, not an infinite one.

    Parameters
    ----------
    calls : (B, K) array
        Rows of each block that f0 calls each class.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k.
    rows : (K,) array
        Held-out rows of each class, of which ``confusion`` was made.

    Returns
    -------
    prior : (B, K) array
    covariance : (B, K, K) array

    Examples
    --------
    >>> prior, covariance = block_prior(np.array([[30, 70]]), np.eye(2), np.array([10**6, 10**6]))
    >>> prior.round(2).tolist(), float((covariance[0, 0, 0] * 100).round(2))
    ([[0.3, 0.7]], 0.21)
    """
    size = len(rows)
    total = calls.sum(axis=1)
    share = calls / total[:, None]
    prior = np.full(share.shape, 1.0 / size)
    for _ in range(_EM_STEPS):
        prior = prior * ((share / (prior @ confusion.T)) @ confusion)
    prior = (prior + 1.0 / (total[:, None] + size)) / (1.0 + size / (total[:, None] + size))
    scaled = confusion.T / (prior @ confusion.T)[:, None, :]
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    information = total[:, None, None] * (scaled @ confusion)
    inner = basis.T @ information @ basis + size * (size + 1.0) * np.eye(size - 1)
    covariance = basis @ np.linalg.inv(inner) @ basis.T
    gain = total[:, None, None] * (covariance @ scaled)
    prior = prior + (gain @ (share - prior @ confusion.T)[:, :, None])[:, :, 0]
    prior = np.maximum(prior, 0.0)
    prior /= prior.sum(axis=1, keepdims=True)
    weight = prior**2 / rows
    spread = np.eye(size) * (weight @ confusion.T)[:, None, :]
    spread = spread - (confusion * weight[:, None, :]) @ confusion.T
    return prior, covariance + gain @ spread @ np.swapaxes(gain, 1, 2)


def log_p_value(
    seen: FloatArray,
    counts: AnyArray,
    weights: FloatArray,
    largest: FloatArray,
    variance: FloatArray,
) -> FloatArray:
    """Log p-value of M counts.

    Parameters
    ----------
    seen : (M,) array
        S, rows in the region.
    counts : (M, K) array
        c_k, held-out rows in the region.
    weights : (M, K) array
        w_k = n mu_k / n_k.
    largest : (M,) array
        The weight of the one count more; at least all of ``weights``.
    variance : (M,) array
        Variance of the expected count by the error of the class prior.

    Examples
    --------
    >>> one, none = np.ones((1, 1)), np.zeros(1)
    >>> bool(log_p_value(np.array([30.0]), 0 * one, 0.1 * one, np.array([0.1]), none)[0] < -50)
    True
    >>> log_p_value(np.array([1.0]), 10 * one, one, np.ones(1), none).tolist()
    [0.0]
    """
    theta = _THETAS / largest[:, None]
    mixed = -(counts[:, None, :] * np.log1p(-theta[:, :, None] * weights[:, None, :])).sum(axis=2)
    logs = mixed - seen[:, None] * np.log1p(theta) - np.log1p(-_THETAS)
    logs += 0.5 * theta**2 * variance[:, None]
    best = logs.argmin(axis=1)
    least = np.minimum(logs[np.arange(len(logs)), best], 0.0)
    theta, share = theta[np.arange(len(logs)), best], _THETAS[best]
    terms = weights / (1.0 - theta[:, None] * weights)
    one_more = largest / (1.0 - share)
    slope = (counts * terms).sum(axis=1) + one_more + theta * variance
    bend = (counts * terms**2).sum(axis=1) + one_more**2 + variance
    return np.asarray(np.minimum(least + _lattice(theta, slope, bend), 0.0))


def _lattice(theta: FloatArray, slope: FloatArray, bend: FloatArray) -> FloatArray:
    """Logarithm of the factor between the Chernoff bound and the tail, for whole numbers."""
    spread = bend * (1.0 + theta) ** 2 + slope * (1.0 + theta)
    factor = -np.log(theta / (1.0 + theta)) - 0.5 * np.log(2.0 * np.pi * spread)
    return np.asarray(np.minimum(factor, 0.0))


def poisson_log_p(seen: AnyArray, mean: FloatArray) -> FloatArray:
    """Log p-value of a Poisson count, in the same way: to it the errors only add doubt.

    Examples
    --------
    >>> poisson_log_p(np.array([2.0, 1.0]), np.array([1.0, 3.0])).round(4)
    array([-0.9587,  0.    ])
    """
    mean, seen = np.maximum(mean, _TINY), np.asarray(seen, dtype=np.float64)
    above = seen > mean
    count = np.where(above, seen, 2.0 * mean)
    logs = count - mean - count * np.log(count / mean)
    logs -= np.maximum(np.log1p(-mean / count) + 0.5 * np.log(2.0 * np.pi * count), 0.0)
    return np.where(above, np.minimum(logs, 0.0), 0.0)
