"""What components make of a batch, and of each of its rows; the twin of ``components.py``."""

from __future__ import annotations

import math
from typing import Any

from priorshift._numerics import TINY
from priorshift.learners.trackers.compiled.sums import dot, dots, log_rising, total
from priorshift.risk.compiled._njit import inlined, strict

_NEGLIGIBLE = 1e-6
_LARGE, _MOST_STEPS = 256, 10


@strict
def scale(proba: Any, prior: Any, least: float, found: Any) -> None:
    """Likelihood ratios (n, K), each row scaled to a largest entry of 1, none below ``least``."""
    K = proba.shape[1]
    for i in range(len(proba)):
        row, ratios, top = proba[i], found[i], TINY
        for k in range(K):
            ratios[k] = row[k] / prior[k]
            top = max(top, ratios[k])
        for k in range(K):
            ratios[k] = max(ratios[k] / top, least)


@inlined
def look_at_row(alpha: Any, whole: float, row: Any, found: Any) -> Any:
    """Weigh a component (K,) by one row; return the row's likelihood under it."""
    fit = dot(alpha, row)
    scale = 1.0 / fit
    for k in range(len(row)):
        found[k] = alpha[k] * (row[k] * scale)
    return fit / whole


@inlined
def turn(ratios: Any, columns: Any) -> None:
    """Put rows (n, K) side by side: their columns, and the squares of them, (2, K, n)."""
    for i in range(len(ratios)):
        for k in range(ratios.shape[1]):
            columns[0, k, i] = ratios[i, k]
            columns[1, k, i] = ratios[i, k] * ratios[i, k]


@strict
def _expected(ratios: Any, columns: Any, centre: Any, found: Any, weighed: Any, lanes: Any) -> None:
    """Expected rows (K,) of each class under ``centre``; likelihoods of the rows go to lanes[0]."""
    dots(centre, columns, len(ratios), lanes)
    fits, scales, K = lanes[0], lanes[1], len(centre)
    for i in range(len(ratios)):
        scales[i] = 1.0 / fits[i]
    for k in range(K):
        weighed[k] = 0.0
    for i in range(len(ratios)):
        row, scale = ratios[i], scales[i]
        for k in range(K):
            weighed[k] += scale * row[k]
    for k in range(K):
        found[k] = centre[k] * weighed[k]


@strict
def look_at_rows(
    alpha: Any,
    whole: float,
    ratios: Any,
    columns: Any,
    found: Any,
    centre: Any,
    weighed: Any,
    lanes: Any,
) -> Any:
    """Weigh a component (K,) by several rows; return the bound of its log evidence."""
    rows, K, nats = len(ratios), len(alpha), 0.0
    for k in range(K):
        centre[k] = alpha[k] / whole
    _expected(ratios, columns, centre, found, weighed, lanes)
    for _ in range(min(2 + rows // _LARGE, _MOST_STEPS) - 1):
        for k in range(K):
            centre[k] = (alpha[k] + found[k]) / (whole + rows)
        _expected(ratios, columns, centre, found, weighed, lanes)
    for i in range(rows):
        nats += math.log(lanes[0, i])
    for k in range(K):
        least = math.floor(found[k])
        nats += (found[k] - least) * math.log(alpha[k] + least)
        nats -= found[k] * math.log(centre[k])
        if least > 0.0:
            nats += log_rising(alpha[k], least)
    return nats + math.lgamma(whole) - math.lgamma(whole + rows)


@strict
def left_out(
    ratios: Any,
    columns: Any,
    weights: Any,
    posterior: Any,
    centre: Any,
    proba: Any,
    lanes: Any,
) -> None:
    """Probabilities of a batch's rows, each left out of the evidence for its own class prior."""
    rows, K = ratios.shape
    fits, both, squares = lanes[0:4], lanes[4:8], lanes[8:12]
    for i in range(rows):
        for k in range(K):
            proba[i, k] = 0.0
    for h in range(len(weights)):
        if weights[h] <= _NEGLIGIBLE:
            continue
        after, before = posterior[h], centre[h]
        dots(before, columns[0], rows, fits)
        dots(after, columns[0], rows, both)
        dots(before, columns[1], rows, squares)
        for i in range(rows):
            alone = both[0, i] - squares[0, i] / fits[0, i]
            both[0, i] = weights[h] / max(alone, TINY)
            squares[0, i] = both[0, i] / fits[0, i]
        for i in range(rows):
            row, said, share, again = ratios[i], proba[i], both[0, i], squares[0, i]
            for k in range(K):
                said[k] += share * after[k] - again * before[k] * row[k]
    for i in range(rows):
        row, said = ratios[i], proba[i]
        for k in range(K):
            said[k] = max(said[k] * row[k], TINY)
        whole = total(said)
        for k in range(K):
            said[k] /= whole
