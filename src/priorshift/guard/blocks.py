"""Blocks of the stream and what each may spend: the guard's error probability, shared out.

Blocks of level i hold about ``128 * 4**i`` rows and follow each other. Block number j of level i
may raise a false alarm with a chance of at most ``alpha / ((i+1)(i+2) j(j+1))``; all of these sum
to less than ``alpha``, however long the stream is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.guard.bound import largest_mean, log_p_value, mix_upper_bounds, poisson_log_p
from priorshift.guard.regions import Regions
from priorshift.typing import FloatArray, IntArray

LEVELS = 12
FIRST_ROWS = 128
# The part of alpha that is spent on the bounds of the mix; no p-value can be below it.
MIX_PART = 0.1

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
        The largest share of rows in that region that a class mix explains.

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
    alpha: float,
    best: float = 0.0,
) -> Verdict:
    """Find the most surprising region of B finished blocks.

    Parameters
    ----------
    hits, calls : (B, J) and (B, K) arrays
        Rows of each block in each region, and called each class.
    share : (B,) array
        Logarithm of the part of alpha that each block may spend.
    alpha : float
        For the bounds of the mix.
    best : float
        Only verdicts with a smaller log p-value are looked for.
    """
    rates = regions.counts / regions.rows
    order = np.argsort(-rates, axis=1)
    rows = calls.sum(axis=1)
    part = MIX_PART * alpha / 2.0
    bounds = mix_upper_bounds(regions, calls, part * np.exp(share), part)
    mean = largest_mean(rates, order, bounds)
    spent = share[:, None] + np.log(regions.share)
    # Without the hold-out's error the p-value would be smaller still: most regions end here.
    block, region = np.nonzero(poisson_log_p(hits, rows[:, None] * mean) - spent < best)
    verdict = Verdict(best, -1, -1, 0.0)
    if len(block) == 0:
        return verdict
    scale = rows[block, None] / regions.rows
    logs = log_p_value(
        hits[block, region].astype(float), regions.counts[region], scale, bounds[block]
    )
    logs = logs - spent[block, region]
    i = int(logs.argmin())
    if logs[i] >= best:
        return verdict
    b, j = int(block[i]), int(region[i])
    return Verdict(float(logs[i]), b, j, float(mean[b, j]))
