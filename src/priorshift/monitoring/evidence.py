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

**All views together.** Mean scores of the block's rows, in `scores.py`.

**What each block may spend.** Blocks of level i hold about ``32 * 4**i`` rows and follow each
other. Block number j of level i may raise a false alarm with a chance of at most
``alpha / ((i+1)(i+2) j(j+1))``; all of these sum to less than ``alpha``, whatever the stream's
length.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from priorshift._numerics import TINY
from priorshift.monitoring.regions import COUNTS, Regions
from priorshift.monitoring.scores import LEAST_ROWS
from priorshift.risk import compiled
from priorshift.typing import AnyArray, FloatArray, IntArray

LEVELS = 12
FIRST_ROWS = 32
BLOCK_ROWS = FIRST_ROWS * 4 ** np.arange(LEVELS, dtype=np.int64)
"""Rows that end a block of each level."""

SCORES_SHARE = 1.0 / 3.0
"""The part of a block's error probability that is spent on its mean scores."""
_LEFT = np.log1p(-SCORES_SHARE)

# Where the Chernoff bound is tried, as shares of the largest theta.
_THETAS = np.concatenate([np.geomspace(1e-5, 0.5, 30), 1.0 - np.geomspace(0.4, 0.005, 10)])
# Of a share that nothing tells: its variance is at most 1 / 4.
_LEAST_PRECISION = 4.0
_EM_STEPS = 5
# The two p-values are expansions: the one without errors may be a little the larger one.
_SLACK = 2.0
# Regions of a block whose p-value is worked out: those that would be the most surprising ones
# without the errors.
_LOOKED_AT = 32


class Verdict(NamedTuple):
    """The most surprising region of each of B blocks.

    Attributes
    ----------
    log_p : (B,) array
        Logarithms of p-values, corrected for all other regions and blocks; 0 if none surprises.
    region : (B,) array
        Which; -1 if none; J and more: all scores together, of which J + d is the furthest.
    seen, expected : (B,) arrays
        The share of rows in that region (of a score: its mean, from 0 to 1), and that which the
        block's class prior explains.

    Examples
    --------
    >>> Verdict.quiet(1).region.tolist()
    [-1]
    """

    log_p: FloatArray
    region: IntArray
    seen: FloatArray
    expected: FloatArray

    @classmethod
    def quiet(cls, blocks: int) -> Verdict:
        """Nothing surprises."""
        return cls(np.zeros(blocks), np.full(blocks, -1), np.zeros(blocks), np.zeros(blocks))


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


def judge(regions: Regions, cells: AnyArray, calls: AnyArray, share: FloatArray) -> Verdict:
    """Find what is most surprising in each of B finished blocks: a region, or all scores together.

    Parameters
    ----------
    cells, calls : (B, V, E - 1) and (B, K) arrays
        Rows of each block in each cell of each view, and called each class.
    share : (B,) array
        Logarithm of the part of alpha that each block may spend.
    """
    rows = calls.sum(axis=1)
    asked = (rows >= LEAST_ROWS) & (regions.scores.size > 0)
    verdict = judge_regions(regions, cells, calls, share + np.where(asked, _LEFT, 0.0))
    for b in asked.nonzero()[0].tolist():
        sums, guess = regions.scores.sums(cells[b]), _called_prior(calls[b], regions.confusion)
        spent = float(share[b]) + math.log(SCORES_SHARE)
        found = regions.scores.judge(sums, int(rows[b]), regions.rows, guess, spent)
        log_p = found.log_p - spent
        if log_p < verdict.log_p[b]:
            verdict.log_p[b], verdict.region[b] = log_p, regions.size + found.column
            verdict.seen[b], verdict.expected[b] = found.mean / 2 + 0.5, found.explained / 2 + 0.5
    return verdict


def end_block(
    regions: Regions, cells: AnyArray, calls: AnyArray, number: IntArray, done: AnyArray
) -> bool:
    """Join the block of the first level to those of all levels, (L, ...) each, by compiled code.

    Say which (L,) are ``done``, in place, and whether ``judge`` could find any of them surprising.
    """
    scored = LEAST_ROWS if regions.scores.size else sys.maxsize
    parts = cells, calls, number, done, BLOCK_ROWS, scored
    return bool(compiled.monitoring.end_block(*parts, *_plain(regions), _SLACK))


def _plain(regions: Regions) -> Iterator[AnyArray]:
    """What compiled code has to know of the regions."""
    known: tuple[AnyArray, ...] = regions.view, regions.first, regions.last, regions.share
    return map(compiled.plain, (*known, regions.counts, regions.confusion, regions.rows))


def judge_regions(regions: Regions, cells: AnyArray, calls: AnyArray, share: FloatArray) -> Verdict:
    """Find the most surprising region of each of B finished blocks; arguments as in `judge`."""
    verdict = Verdict.quiet(len(calls))
    if compiled.available():  # of most blocks that is all
        counted = (part.astype(COUNTS, copy=False) for part in (cells, calls))
        if not compiled.monitoring.may_surprise(*counted, share, *_plain(regions), _SLACK):
            return verdict
    hits, rows = regions.hits(cells), calls.sum(axis=1)
    found = block_prior(calls, regions.confusion)
    mean = (found.prior / regions.rows) @ regions.counts.T
    spent = share[:, None] + np.log(regions.share)
    # Without the errors of held-out set and prior the p-value would be smaller: most regions end
    # here.
    least = poisson_log_p(hits, rows[:, None] * mean)
    doubtful = (least < 0.0) & (least - spent < _SLACK)
    for b in np.flatnonzero(doubtful.any(axis=1)).tolist():
        (some,) = np.nonzero(doubtful[b])
        some = some[np.argsort((least - spent)[b, some], kind="stable")[:_LOOKED_AT]]
        covariance = found.covariance(b, regions.confusion, regions.rows)
        error = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        largest = rows[b] * (np.minimum(found.prior[b] + error, 1.0) / regions.rows).max()
        rates = regions.counts[some] / regions.rows
        logs = log_p_value(
            hits[b, some].astype(float),
            regions.counts[some],
            (rows[b] * found.prior[b] / regions.rows)[None],
            np.array([largest]),
            rows[b] ** 2 * ((rates @ covariance) * rates).sum(axis=1),
        )
        logs = logs - spent[b, some]
        best = int(logs.argmin())
        if logs[best] < 0.0:
            verdict.log_p[b], verdict.region[b] = logs[best], some[best]
            verdict.seen[b] = hits[b, some[best]] / rows[b]
            verdict.expected[b] = mean[b, some[best]]
    return verdict


class BlockPrior(NamedTuple):
    """Mean class priors of B blocks, and what their covariance is made of.

    ``prior`` (B, K), ``information`` (B, K, K) of the calls, ``scaled`` (B, K, K), which is the
    confusion matrix turned and divided by the calls to expect, and ``rows`` (B,) of each block.
    """

    prior: FloatArray
    information: FloatArray
    scaled: FloatArray
    rows: IntArray

    def covariance(self, block: int, confusion: FloatArray, rows: IntArray) -> FloatArray:
        """Covariance (K, K) of a block's prior, the error of the confusion matrix included.

        ``rows`` (K,) are the held-out rows of each class, of which ``confusion`` was made.
        """
        # What calls do not tell may be anything: a stream of one class alone, too.
        inverse = np.linalg.inv(self.information[block] + _LEAST_PRECISION * np.eye(len(rows)))
        # Along the simplex: the shares add up to 1.
        along = inverse.sum(axis=1)
        covariance = inverse - np.outer(along, along) / along.sum()
        gain = self.rows[block] * (covariance @ self.scaled[block])
        weight = self.prior[block] ** 2 / rows
        spread = np.diag(confusion @ weight) - (confusion * weight) @ confusion.T
        return np.asarray(covariance + gain @ spread @ gain.T)


def _called_prior(calls: AnyArray, confusion: FloatArray) -> FloatArray:
    """The class prior (K,) of one block from f0's calls (K,)."""
    if not compiled.available():
        return np.asarray(block_prior(calls[None], confusion).prior[0])
    calls = calls.astype(COUNTS, copy=False)
    return np.asarray(
        compiled.monitoring.called_prior(calls, calls.sum(), compiled.plain(confusion))
    )


def block_prior(calls: AnyArray, confusion: FloatArray) -> BlockPrior:
    r"""Mean class prior of B blocks from f0's calls.

    One step of Fisher scoring with the information of the calls,
    :math:`J = n\, C^\top \mathrm{diag}(1/C\mu)\, C` along the simplex, and the precision of a
    uniform draw from the simplex, K(K+1), added. For the covariance 4 is added in its place, as no
    share varies by more than 1 / 4: a prior that the calls do not tell has a large covariance, not
    an infinite one.

    Parameters
    ----------
    calls : (B, K) array
        Rows of each block that f0 calls each class.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k.

    Examples
    --------
    >>> found = block_prior(np.array([[30, 70]]), np.eye(2))
    >>> covariance = found.covariance(0, np.eye(2), np.array([10**6, 10**6]))
    >>> found.prior.round(2).tolist(), float((covariance[0, 0] * 100).round(2))
    ([[0.3, 0.7]], 0.21)
    """
    size = len(confusion)
    total = calls.sum(axis=1)
    share = calls / total[:, None]
    prior = np.full(share.shape, 1.0 / size)
    for _ in range(_EM_STEPS):
        prior = prior * ((share / (prior @ confusion.T)) @ confusion)
    prior = (prior + 1.0 / (total[:, None] + size)) / (1.0 + size / (total[:, None] + size))
    expected = prior @ confusion.T
    scaled = confusion.T / expected[:, None, :]
    information = total[:, None, None] * (scaled @ confusion)
    slope = total[:, None] * (scaled @ (share - expected)[:, :, None])[:, :, 0]
    sides = np.ones((*slope.shape, 2))
    sides[:, :, 0] = slope
    both = np.linalg.solve(information + size * (size + 1.0) * np.eye(size), sides)
    step, along = both[:, :, 0], both[:, :, 1]
    step = step - along * (step.sum(axis=1) / along.sum(axis=1))[:, None]  # shares add up to 1
    prior = np.maximum(prior + step, 0.0)
    return BlockPrior(prior / prior.sum(axis=1, keepdims=True), information, scaled, total)


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
        w_k = n mu_k / n_k; (1, K) where they are those of all.
    largest : (M,) array
        The weight of the one count more; at least all of ``weights``; (1,) with (1, K) weights.
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
    theta, share = np.broadcast_to(theta, logs.shape)[np.arange(len(logs)), best], _THETAS[best]
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
    result = np.zeros(np.shape(mean))
    above = np.nonzero(seen > mean)
    mean, count = np.maximum(mean[above], TINY), np.asarray(seen[above], dtype=np.float64)
    logs = count - mean - count * np.log(count / mean)
    logs -= np.maximum(np.log1p(-mean / count) + 0.5 * np.log(2.0 * np.pi * count), 0.0)
    result[above] = np.minimum(logs, 0.0)
    return result
