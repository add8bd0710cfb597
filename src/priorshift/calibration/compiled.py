"""Rows of few classes, compiled: twins of ``as_probabilities``, ``MatrixMap`` and ``bounded``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import strict


@strict
def divide_by_sums(proba: Any, tolerance: float, found: Any) -> bool:
    """Make rows (n, K) add up exactly, into ``found``, if they are nearly probabilities.

    Say whether they are: no entry below 0, no sum further from 1 than the tolerance.
    """
    for i in range(len(proba)):
        row, kept, whole, least = proba[i], found[i], 0.0, 0.0
        for k in range(len(row)):
            whole += row[k]
            least = min(least, row[k])
        if not (least >= 0.0 and abs(whole - 1.0) <= tolerance):
            return False
        for k in range(len(row)):
            kept[k] = row[k] / whole
    return True


@strict
def bound(proba: Any, prior: Any, bounds: Any, found: Any) -> None:
    """Probabilities (n, K) into ``found``; ``bounds`` (1, K) are those of all rows, or (n, K)."""
    K = proba.shape[1]
    for i in range(len(proba)):
        row, kept, least = proba[i], found[i], bounds[i if len(bounds) > 1 else 0]
        top, whole = 0.0, 0.0
        for k in range(K):
            kept[k] = row[k] / prior[k]
            top = max(top, kept[k])
        if top <= 0.0:
            top = 1.0
        for k in range(K):
            kept[k] /= top
            if kept[k] < least[k]:
                kept[k] = np.cbrt(least[k] * least[k] * kept[k])
            kept[k] *= prior[k]
            whole += kept[k]
        for k in range(K):
            kept[k] /= whole


@strict
def multiply(proba: Any, floor: float, weights: Any, bias: Any, found: Any) -> None:
    """Softmax of ``weights`` times the logarithms of probabilities (n, K), and ``bias``."""
    K = len(bias)
    logs = np.empty(K)
    for i in range(len(proba)):
        row, kept, top, whole = proba[i], found[i], -math.inf, 0.0
        for k in range(K):
            logs[k] = math.log(max(row[k], floor))
        for j in range(K):
            score, own = 0.0, weights[j]
            for k in range(K):
                score += own[k] * logs[k]
            kept[j] = score + bias[j]
            top = max(top, kept[j])
        for j in range(K):
            kept[j] = math.exp(kept[j] - top)
            whole += kept[j]
        for j in range(K):
            kept[j] /= whole
