"""What components make of a batch, and of each of its rows; the twin of ``components.py``."""

from __future__ import annotations

import math
from typing import Any

from priorshift.learners.trackers.compiled.sums import dot, dots, log_rising, total
from priorshift.risk.compiled._njit import inlined, strict

_NEGLIGIBLE = 1e-6
_LARGE, _MOST_STEPS = 256, 10
_TINY = 1e-300


@strict
def scale(proba: Any, prior: Any, least: float, found: Any) -> None:
    """Likelihood ratios (n, K), each row scaled to a largest entry of 1, none below ``least``."""
    K = proba.shape[1]
    for i in range(len(proba)):
        row, ratios, top = proba[i], found[i], _TINY
        for k in range(K):
            ratios[k] = row[k] / prior[k]
            top = max(top, ratios[k])
        for k in range(K):
            ratios[k] = max(ratios[k] / top, least)


@inlined
def look_at_row(alpha: Any, sums: Any, row: Any, h: int, K: int, counts: Any) -> Any:
    """Weigh component h by one row; return the row's likelihood under it."""
    a = h * K
    fit = dot(alpha, a, row, 0, K)
    scale = 1.0 / fit
    for k in range(K):
        counts[a + k] = alpha[a + k] * (row[k] * scale)
    return fit / sums[h]


@inlined
def turn(ratios: Any, columns: Any) -> None:
    """Put rows (n, K) side by side: their columns, and the squares of them, (2, K, n)."""
    for i in range(len(ratios)):
        for k in range(ratios.shape[1]):
            columns[0, k, i] = ratios[i, k]
            columns[1, k, i] = ratios[i, k] * ratios[i, k]


@strict
def _expected(
    ratios: Any, columns: Any, a: int, K: int, counts: Any, centre: Any, weighed: Any, sums: Any
) -> Any:
    """Expected rows of each class under ``centre``; return the likelihoods of the rows."""
    dots(centre, a, columns, K, len(ratios), sums)
    fits, scales = sums[0], sums[1]
    for i in range(len(ratios)):
        scales[i] = 1.0 / fits[i]
    for k in range(K):
        weighed[k] = 0.0
    for i in range(len(ratios)):
        row, scale = ratios[i], scales[i]
        for k in range(K):
            weighed[k] += scale * row[k]
    for k in range(K):
        counts[a + k] = centre[a + k] * weighed[k]
    return fits


@strict
def look_at_rows(
    alpha: Any,
    totals: Any,
    ratios: Any,
    columns: Any,
    h: int,
    K: int,
    counts: Any,
    centre: Any,
    weighed: Any,
    sums: Any,
) -> Any:
    """Weigh component h by several rows; return the bound of its log evidence."""
    a, rows, nats = h * K, len(ratios), 0.0
    for k in range(K):
        centre[a + k] = alpha[a + k] / totals[h]
    fits = _expected(ratios, columns, a, K, counts, centre, weighed, sums)
    for _ in range(min(2 + rows // _LARGE, _MOST_STEPS) - 1):
        for k in range(K):
            centre[a + k] = (alpha[a + k] + counts[a + k]) / (totals[h] + rows)
        fits = _expected(ratios, columns, a, K, counts, centre, weighed, sums)
    for i in range(rows):
        nats += math.log(fits[i])
    for k in range(a, a + K):
        whole = math.floor(counts[k])
        nats += (counts[k] - whole) * math.log(alpha[k] + whole)
        nats -= counts[k] * math.log(centre[k])
        if whole > 0.0:
            nats += log_rising(alpha[k], whole)
    return nats + math.lgamma(totals[h]) - math.lgamma(totals[h] + rows)


@strict
def left_out(
    ratios: Any,
    columns: Any,
    weights: Any,
    posterior: Any,
    centre: Any,
    K: int,
    proba: Any,
    sums: Any,
) -> None:
    """Probabilities of a batch's rows, each left out of the evidence for its own class prior."""
    rows = len(ratios)
    fits, both, squares = sums[0:4], sums[4:8], sums[8:12]
    proba[:] = 0.0
    for h in range(len(weights)):
        if weights[h] <= _NEGLIGIBLE:
            continue
        a = h * K
        dots(centre, a, columns[0], K, rows, fits)
        dots(posterior, a, columns[0], K, rows, both)
        dots(centre, a, columns[1], K, rows, squares)
        for i in range(rows):
            alone = both[0, i] - squares[0, i] / fits[0, i]
            both[0, i] = weights[h] / max(alone, _TINY)
            squares[0, i] = both[0, i] / fits[0, i]
        for i in range(rows):
            row, found, share, again = ratios[i], proba[i], both[0, i], squares[0, i]
            for k in range(K):
                found[k] += share * posterior[a + k] - again * centre[a + k] * row[k]
    for i in range(rows):
        row, found = ratios[i], proba[i]
        for k in range(K):
            found[k] = max(found[k] * row[k], _TINY)
        whole = total(found, 0, K)
        for k in range(K):
            found[k] /= whole
