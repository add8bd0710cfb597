"""Sums in one fixed order, long ones four at a time; Bayes' rule and its logarithms.

Functions have one way out: where they are inlined, a second makes the compiler count references to
every array, which takes longer than the sum.
"""

from __future__ import annotations

import math
from typing import Any

from priorshift.risk.compiled._njit import inlined, strict

_RISING = 12.0
# Sums of fewer numbers are quicker one by one.
_SHORT = 24


@inlined
def total(x: Any) -> float:
    """Sum of the entries (n,)."""
    n, k, s0, s1, s2, s3 = len(x), 0, 0.0, 0.0, 0.0, 0.0
    if n >= _SHORT:
        while k < n - 3:
            s0 += x[k]
            s1 += x[k + 1]
            s2 += x[k + 2]
            s3 += x[k + 3]
            k += 4
    while k < n:
        s0 += x[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@inlined
def dot(x: Any, y: Any) -> float:
    """Sum of the products of entries (n,)."""
    n, k, s0, s1, s2, s3 = len(x), 0, 0.0, 0.0, 0.0, 0.0
    if n >= _SHORT:
        while k < n - 3:
            s0 += x[k] * y[k]
            s1 += x[k + 1] * y[k + 1]
            s2 += x[k + 2] * y[k + 2]
            s3 += x[k + 3] * y[k + 3]
            k += 4
    while k < n:
        s0 += x[k] * y[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@strict
def dots(x: Any, columns: Any, n: int, sums: Any) -> None:
    """``dot`` of x with each of n rows, given as columns (K, N), to the last bit, into sums[0].

    Rows side by side are vectors for the compiler, where one sum after the other is not. ``sums``
    (4, N) is space to work in; columns from n on belong to larger batches, and are not read.
    """
    K = len(columns)
    lanes = 1 if K < _SHORT else 4
    whole = 0 if K < _SHORT else K - K % 4
    for lane in range(lanes):
        for i in range(n):
            sums[lane, i] = 0.0
    for k in range(K):
        part, column, factor = sums[k % 4 if k < whole else 0], columns[k], x[k]
        for i in range(n):
            part[i] += factor * column[i]
    if lanes > 1:
        for i in range(n):
            sums[0, i] = (sums[0, i] + sums[1, i]) + (sums[2, i] + sums[3, i])


@inlined
def expit(x: float) -> float:
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> expit(0.0), expit(-1000.0)
    (0.5, 0.0)
    """
    return 1.0 / (1.0 + math.exp(-x))


@inlined
def log_sum(x: float, y: float, one: float, two: float) -> float:
    """log(one * exp(x) + two * exp(y)).

    Examples
    --------
    >>> round(log_sum(-1000.0, -1000.0, 0.5, 1.5) + 1000.0, 6)
    0.693147
    """
    top = max(x, y)
    return top + math.log(one * math.exp(x - top) + two * math.exp(y - top))


@strict
def log_rising(x: float, n: float) -> float:
    """Log Gamma(x + n) - log Gamma(x) for a whole number n.

    Examples
    --------
    >>> round(log_rising(2.0, 3.0), 6) == round(math.log(2 * 3 * 4), 6)
    True
    >>> round(log_rising(2.0, 30.0), 6) == round(math.lgamma(32.0), 6)
    True
    """
    if n > _RISING:
        return math.lgamma(x + n) - math.lgamma(x)
    product, factor = 1.0, x
    for _ in range(int(n)):
        product *= factor
        factor += 1.0
    return math.log(product)


@inlined
def bayes(weights: Any, evidence: Any, one: bool) -> float:
    """Turn prior weights (n,) into posterior ones; return the log evidence of them all.

    ``evidence`` are logarithms, or with ``one`` the likelihoods of one row themselves. A weight of
    0 stays 0.
    """
    top, n = 0.0, len(weights)
    if not one:
        top = -math.inf
        for h in range(n):
            if weights[h] > 0.0:
                weights[h] = math.log(weights[h]) + evidence[h]
                top = max(top, weights[h])
            else:
                weights[h] = -math.inf
        for h in range(n):
            weights[h] = math.exp(weights[h] - top)
    else:
        for h in range(n):
            weights[h] *= evidence[h]
    found = total(weights)
    scale = 1.0 / found
    for h in range(n):
        weights[h] *= scale
    return top + math.log(found)
