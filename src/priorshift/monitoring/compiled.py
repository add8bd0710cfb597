"""What runs in every round, compiled where numba is installed.

``follow_bets`` is the twin of a part of ``shift.py``, ``find_cells`` and ``count_few`` of parts of
``regions.py``, ``end_block`` of one of ``guard.py``, ``may_surprise`` of one of ``evidence.py``:
numbers are those of NumPy up to rounding, and edges between cells lie where that does not matter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift._numerics import TINY
from priorshift.risk.compiled._njit import strict

# As in evidence.py, and in regions.py.
_EM_STEPS = 5
_CANCELLED = 1e-5


@strict
def _dot(x: Any, y: Any) -> float:
    found = 0.0
    for k in range(len(x)):
        found += x[k] * y[k]
    return found


@strict
def follow_bets(
    proba: Any,
    ratios: Any,
    spread: Any,
    means: Any,
    z: float,
    bets: Any,
    before: Any,
    t: int,
    wealth: Any,
) -> Any:
    """Bet on a batch (n, K): put the logarithms of the wealth (2, B) after it into ``wealth``.

    ``ratios`` (3, K) are importance weights, ``spread`` (3, K) those, less their means, times the
    covariance of what is read, ``means`` (K,) its means. Return the logarithm of all wealth, that
    which is not bet yet included, and by how many nats the third of the importance weights leads.
    """
    n, lead, most = len(proba), 0.0, -math.inf
    later = -math.log(t * (t + 1.0))
    for g in range(3):
        mean = _dot(ratios[g], means)
        slack = z * math.sqrt(max(_dot(spread[g], ratios[g]), 0.0)) / mean
        if g == 2:
            for i in range(n):
                lead += math.log1p(0.5 * max(_dot(proba[i], ratios[g]) / mean - 1.0, -1.0))
            lead -= n * math.log1p(0.5 * slack)
            break
        for b in range(len(bets)):
            top, low = max(before[g, b], later), min(before[g, b], later)
            wealth[g, b] = top + math.log1p(math.exp(low - top)) - n * math.log1p(slack * bets[b])
        for i in range(n):
            gain = max(_dot(proba[i], ratios[g]) / mean - 1.0, -1.0)
            for b in range(len(bets)):
                wealth[g, b] += math.log1p(gain * bets[b])
        for b in range(len(bets)):
            most = max(most, wealth[g, b])
    total = 0.0
    for g in range(2):
        for b in range(len(bets)):
            total += math.exp(wealth[g, b] - most)
    total = total / (2.0 * len(bets)) + math.exp(-math.log(t + 1.0) - most)
    return most + math.log(total), lead


@strict
def _nearest(coordinates: Any, points: Any, gaps: Any) -> Any:
    """The smallest squared distance to points (p + 1, m), less what all have in common."""
    p, m = len(coordinates), points.shape[1]
    for j in range(m):
        gaps[j] = points[p, j]
    for i in range(p):
        for j in range(m):
            gaps[j] += coordinates[i] * points[i, j]
    first = gaps[0]
    for j in range(m):  # what is no number is never the smallest
        gaps[j] = gaps[j] if gaps[j] == gaps[j] else first
    # Halves side by side are vectors for the compiler, where one after the other is not.
    while m > 1:
        half = m // 2
        one, two = gaps[:half], gaps[m - half : m]
        for j in range(half):
            one[j] = two[j] if two[j] < one[j] else one[j]
        m -= half
    return gaps[0]


@strict
def _root(square: float, whole: float) -> float:
    """The square root of what is left of a whole, 0 if that is rounding; of no number, none."""
    return 0.0 if square < _CANCELLED * whole else math.sqrt(square)


@strict
def find_cells(
    rows: Any,
    proba: Any,
    mean: Any,
    axes: Any,
    scales: Any,
    centres: Any,
    references: Any,
    columns: Any,
    summaries: int,
    edges: Any,
    cells: Any,
) -> None:
    """Between which two edges every view of every row lies, into ``cells`` (n, V).

    Arguments are those of ``Shape`` and ``Views`` in ``regions.py``.
    """
    (V, E), (d, p) = edges.shape, axes.shape
    coordinates, values = np.empty(p, dtype=np.float32), np.empty(V)
    gaps = np.empty(max(centres.shape[1], references.shape[1]), dtype=np.float32)
    for i in range(len(rows)):
        coordinates[:] = 0.0
        length, white, span, near = 0.0, 0.0, 0.0, 0.0
        for k in range(d):
            gap = rows[i, k] - mean[k]
            if gap != gap:  # what is missing is taken to be at the mean
                continue
            length += gap * gap
            for j in range(p):
                coordinates[j] += gap * axes[k, j]
        for j in range(p):
            square = coordinates[j] * coordinates[j]
            white += square * scales[j, 0]
            span += square * scales[j, 1]
            near += square * scales[j, 2]
        values[0] = proba[i].max()
        values[1] = _root(white + _nearest(coordinates, centres, gaps), white)
        values[2] = _root(length - span, length)  # which stays where the axes do not span all
        values[summaries - 1] = _root(near + _nearest(coordinates, references, gaps), near)
        for v in range(summaries, V):
            values[v] = rows[i, columns[v - summaries]]
        for v in range(V):
            place, value = E - 2, values[v]
            for e in range(1, E - 1):
                place -= value <= edges[v, e]
            cells[i, v] = place


@strict
def count_few(
    rows: Any,
    proba: Any,
    mean: Any,
    axes: Any,
    scales: Any,
    centres: Any,
    references: Any,
    columns: Any,
    summaries: int,
    edges: Any,
    counts: Any,
    called: Any,
) -> Any:
    """Add rows to the counts of their cells (V, E - 1), and of the classes they are called (K,).

    Return how many rows have been counted. The other arguments are those of ``find_cells``.
    """
    cells = np.empty((len(rows), len(edges)), dtype=np.int64)
    shape = (mean, axes, scales, centres, references)
    find_cells(rows, proba, *shape, columns, summaries, edges, cells)
    for i in range(len(cells)):
        for v in range(len(counts)):
            counts[v, cells[i, v]] += 1
        called[proba[i].argmax()] += 1
    return called.sum()


@strict
def called_prior(calls: Any, total: int, confusion: Any) -> Any:
    """The class prior (K,) of one block; the twin of ``block_prior``."""
    K = len(confusion)
    share, prior = calls / total, np.full(K, 1.0 / K)
    for _ in range(_EM_STEPS):
        prior *= (share / (confusion @ prior)) @ confusion
    prior = (prior + 1.0 / (total + K)) / (1.0 + K / (total + K))
    expected = confusion @ prior
    scaled = np.ascontiguousarray(confusion.T) / expected
    sides = np.ones((K, 2))
    sides[:, 0] = total * (scaled @ (share - expected))
    both = np.linalg.solve(total * (scaled @ confusion) + K * (K + 1.0) * np.eye(K), sides)
    step, along = both[:, 0], both[:, 1]
    prior = np.maximum(prior + step - along * (step.sum() / along.sum()), 0.0)
    return prior / prior.sum()


@strict
def may_surprise(
    cells: Any,
    calls: Any,
    spent: Any,
    view: Any,
    first: Any,
    last: Any,
    share: Any,
    counts: Any,
    confusion: Any,
    rows: Any,
    slack: float,
) -> bool:
    """Whether any region (J,) of any block (B,) is worth a look; the first part of ``judge``.

    ``spent`` (B,) are logarithms of what each block may spend, of which regions get a ``share``
    (J,) each.
    """
    for b in range(len(calls)):
        total = calls[b].sum()
        weights = total * called_prior(calls[b], total, confusion) / rows
        for j in range(len(counts)):
            mean, seen = max(_dot(weights, counts[j]), TINY), 0
            for cell in range(first[j], last[j]):
                seen += cells[b, view[j], cell]
            if seen > mean:
                log_p = seen - mean - seen * math.log(seen / mean)
                more = math.log1p(-mean / seen) + 0.5 * math.log(2.0 * math.pi * seen)
                log_p -= max(more, 0.0)
                if log_p < 0.0 and log_p - spent[b] - math.log(share[j]) < slack:
                    return True
    return False


@strict
def end_block(
    cells: Any,
    called: Any,
    number: Any,
    done: Any,
    sizes: Any,
    scored: int,
    view: Any,
    first: Any,
    last: Any,
    share: Any,
    counts: Any,
    confusion: Any,
    rows: Any,
    slack: float,
) -> bool:
    """Add the block of the first level to the others (L, ...); say which (L,) are ``done``.

    These are counted in ``number`` (L,). Return whether any of them has to be judged: those of so
    many rows that they are ``scored``, and those that may surprise.
    """
    longest = 0
    for level in range(len(called)):
        if level > 0:
            for k in range(called.shape[1]):
                called[level, k] += called[0, k]
            for v in range(cells.shape[1]):
                for e in range(cells.shape[2]):
                    cells[level, v, e] += cells[0, v, e]
        size = called[level].sum()
        done[level] = size >= sizes[level]
        if done[level]:
            number[level] += 1
            longest = max(longest, size)
    if longest >= scored:
        return True
    spent = np.empty(1)
    for level in range(len(called)):
        if done[level]:
            spent[0] = -math.log((level + 1.0) * (level + 2.0))
            spent[0] -= math.log(number[level] * (number[level] + 1.0))
            block = cells[level : level + 1], called[level : level + 1], spent
            if may_surprise(*block, view, first, last, share, counts, confusion, rows, slack):
                return True
    return False
