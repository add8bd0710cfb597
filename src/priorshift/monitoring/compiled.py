"""What runs in every round, compiled where numba is installed.

``follow_bets`` is the twin of a part of ``shift.py``, ``find_cells`` of one of ``regions.py``:
numbers are those of NumPy up to rounding, and edges between cells lie where that does not matter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import strict


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

    ``ratios`` (3, K) are importance weights, ``spread`` (3, K) those times the covariance of what
    is read, ``means`` (K,) its means. Return the logarithm of all wealth, that which is not bet
    yet included, and by how many nats the third of the importance weights is ahead.
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
    least = gaps[0]
    for j in range(1, m):
        if gaps[j] < least:
            least = gaps[j]
    return least


@strict
def _root(square: float) -> float:
    """The square root; of what is no number, no number."""
    return 0.0 if square < 0.0 else math.sqrt(square)


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
        values[1] = _root(white + _nearest(coordinates, centres, gaps))
        values[2] = _root(length - span)  # which stays where the axes do not span all
        values[summaries - 1] = _root(near + _nearest(coordinates, references, gaps))
        for v in range(summaries, V):
            values[v] = rows[i, columns[v - summaries]]
        for v in range(V):
            cells[i, v] = E - 2
            for e in range(1, E - 1):
                if values[v] <= edges[v, e]:
                    cells[i, v] -= 1
