"""Blocks of the stream and what each may spend: the guard's error probability, shared out.

Blocks of level i hold about ``128 * 4**i`` rows and follow each other. Block number j of level i
may raise a false alarm with a chance of at most ``alpha / ((i+1)(i+2) j(j+1))``; all of these sum
to less than ``alpha``, however long the stream is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.monitoring.guard.bound import block_mix, log_p_value, poisson_log_p
from priorshift.monitoring.guard.regions import Regions
from priorshift.typing import FloatArray, IntArray

LEVELS = 12
FIRST_ROWS = 128
# The two p-values are expansions: the one without errors may be a little the larger one.
_SLACK = 2.0

BLOCK_ROWS = FIRST_ROWS * 4 ** np.arange(LEVELS, dtype=np.int64)
"""Rows that end a block of each level."""


class Verdict(NamedTuple):
    """The most surprising region of the most surprising block.

    Attributes
    ----------
    log_p : float
        Logarithm of its p-value, corrected for all other regions and blocks; 0 if none surprises.
    block, region : int
        Which; -1 if none.
    expected : float
        The share of rows in that region that the block's class mix explains.

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
    mix, covariance = block_mix(calls, regions.confusion, regions.rows)
    mean = mix @ rates.T
    spent = share[:, None] + np.log(regions.share)
    # Without the errors of hold-out and mix the p-value would be smaller: most regions end here.
    least = poisson_log_p(hits, rows[:, None] * mean)
    block, region = np.nonzero((least < 0.0) & (least - spent - _SLACK < best))
    verdict = Verdict(best, -1, -1, 0.0)
    if len(block) == 0:
        return verdict
    size, rate = rows[block], rates[region]
    error = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
    largest = rows * (np.minimum(mix + error, 1.0) / regions.rows).max(axis=1)
    variance = np.einsum("mi,mij,mj->m", rate, covariance[block], rate)
    logs = log_p_value(
        hits[block, region].astype(float),
        regions.counts[region],
        size[:, None] * mix[block] / regions.rows,
        largest[block],
        size**2 * variance,
    )
    logs = logs - spent[block, region]
    i = int(logs.argmin())
    if logs[i] >= best:
        return verdict
    b, j = int(block[i]), int(region[i])
    return Verdict(float(logs[i]), b, j, float(mean[b, j]))
