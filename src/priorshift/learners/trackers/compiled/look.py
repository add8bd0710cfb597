"""What components make of a batch, and of each of its rows; the twin of ``components.py``."""

from __future__ import annotations

import math
from typing import Any

from priorshift.learners.trackers.compiled.sums import dot, dot_squares, log_rising, total
from priorshift.risk.compiled._njit import inlined, strict

_NEGLIGIBLE = 1e-6
_TINY = 1e-300


@inlined
def look_at_row(alpha: Any, sums: Any, row: Any, h: int, K: int, counts: Any) -> Any:
    """Weigh component h by one row; return the row's likelihood under it."""
    a = h * K
    fit = dot(alpha, a, row, 0, K)
    scale = 1.0 / fit
    for k in range(K):
        counts[a + k] = alpha[a + k] * (row[k] * scale)
    return fit / sums[h]


@strict
def _expected(ratios: Any, a: int, K: int, counts: Any, centre: Any, weighed: Any) -> float:
    """Expected rows of each class under ``centre``; return the log-likelihood of the rows."""
    nats = 0.0
    for k in range(K):
        weighed[k] = 0.0
    for i in range(len(ratios)):
        row = ratios[i]
        fit = dot(centre, a, row, 0, K)
        nats += math.log(fit)
        scale = 1.0 / fit
        for k in range(K):
            weighed[k] += scale * row[k]
    for k in range(K):
        counts[a + k] = centre[a + k] * weighed[k]
    return nats


@strict
def look_at_rows(
    alpha: Any, sums: Any, ratios: Any, h: int, K: int, counts: Any, centre: Any, weighed: Any
) -> Any:
    """Weigh component h by several rows; return the bound of its log evidence."""
    a, rows = h * K, len(ratios)
    for k in range(K):
        centre[a + k] = alpha[a + k] / sums[h]
    _expected(ratios, a, K, counts, centre, weighed)
    for k in range(K):
        centre[a + k] = (alpha[a + k] + counts[a + k]) / (sums[h] + rows)
    nats = _expected(ratios, a, K, counts, centre, weighed)
    for k in range(a, a + K):
        whole = math.floor(counts[k])
        nats += (counts[k] - whole) * math.log(alpha[k] + whole)
        nats -= counts[k] * math.log(centre[k])
        if whole > 0.0:
            nats += log_rising(alpha[k], whole)
    return nats + math.lgamma(sums[h]) - math.lgamma(sums[h] + rows)


@strict
def left_out(
    ratios: Any, weights: Any, posterior: Any, centre: Any, K: int, proba: Any, first: int
) -> None:
    """Probabilities of a batch's rows, each left out of the evidence for its own class prior."""
    for i in range(len(ratios)):
        row, found = ratios[i], proba[first + i]
        for k in range(K):
            found[k] = 0.0
        for h in range(len(weights)):
            if weights[h] <= _NEGLIGIBLE:
                continue
            a = h * K
            fit = dot(centre, a, row, 0, K)
            alone = dot(posterior, a, row, 0, K) - dot_squares(centre, a, row, 0, K) / fit
            share = weights[h] / max(alone, _TINY)
            again = share / fit
            for k in range(K):
                found[k] += share * posterior[a + k] - again * centre[a + k] * row[k]
        for k in range(K):
            found[k] = max(found[k] * row[k], _TINY)
        whole = total(found, 0, K)
        for k in range(K):
            found[k] /= whole
