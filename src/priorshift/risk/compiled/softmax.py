"""One pass of the softmax risk over the held-out set, compiled: logits, weights, moments by blocks.

All base learners share a block of samples that stays in the first-level cache. As in the NumPy
kernel the products run over K - 1 classes: ``D`` (R, d) holds the rows of W minus those of class
0, class-major, so row ``k * N + i`` belongs to class ``k + 1`` of learner i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact, summing
from priorshift.risk.compiled.maths import dot, exp32, log32

_f = np.float32
_BLOCK_FLOATS = 12288


@exact
def softmax_pass(
    X: Any,
    weights: Any,
    first: int,
    last: int,
    D: Any,
    n_learners: int,
    safe: bool,
    value: Any,
    moments: Any,
) -> None:
    """Add ``w_s log(1 + sum exp)`` to ``value`` (N,), and ``w_s p_s x_s`` to ``moments`` (R, d).

    The sums run over the samples ``first:last`` of ``X`` (d, n), which have the ``weights``; both
    are float32. With ``safe`` no logit can overflow ``exp``.
    """
    rows = D.shape[0]
    size = max(64, min(512, _BLOCK_FLOATS // rows // 16 * 16))
    Z = np.empty((rows, size), np.float32)
    top, total = np.zeros(size, np.float32), np.empty(size, np.float32)
    a = first
    while a < last:
        m = min(size, last - a)
        logits(D, X, a, m, Z, 0)
        weigh(Z, n_learners, weights[a - first : a - first + m], m, safe, top, total, value)
        add_moments(Z, 0, X, a, m, moments)
        a += m


@exact
def logits(D: Any, X: Any, a: int, m: int, Z: Any, b: int) -> None:
    """``Z[:, b:b + m] = D @ X[:, a:a + m]``: two rows and six features at a time."""
    rows, width = D.shape
    rest, paired = width % 6, rows // 2 * 2
    for r in range(rows):
        _start_row(D[r], X, a, m, rest, Z[r, b : b + m])
    for r in range(0, paired, 2):
        y, z = Z[r, b : b + m], Z[r + 1, b : b + m]
        for j in range(rest, width, 6):
            u0, u1, u2 = D[r, j], D[r, j + 1], D[r, j + 2]
            u3, u4, u5 = D[r, j + 3], D[r, j + 4], D[r, j + 5]
            v0, v1, v2 = D[r + 1, j], D[r + 1, j + 1], D[r + 1, j + 2]
            v3, v4, v5 = D[r + 1, j + 3], D[r + 1, j + 4], D[r + 1, j + 5]
            x0, x1, x2 = X[j, a : a + m], X[j + 1, a : a + m], X[j + 2, a : a + m]
            x3, x4, x5 = X[j + 3, a : a + m], X[j + 4, a : a + m], X[j + 5, a : a + m]
            for s in range(m):
                y[s] += u0 * x0[s] + u1 * x1[s] + u2 * x2[s] + u3 * x3[s] + u4 * x4[s] + u5 * x5[s]
                z[s] += v0 * x0[s] + v1 * x1[s] + v2 * x2[s] + v3 * x3[s] + v4 * x4[s] + v5 * x5[s]
    for r in range(paired, rows):
        z = Z[r, b : b + m]
        for j in range(rest, width, 6):
            u0, u1, u2 = D[r, j], D[r, j + 1], D[r, j + 2]
            u3, u4, u5 = D[r, j + 3], D[r, j + 4], D[r, j + 5]
            x0, x1, x2 = X[j, a : a + m], X[j + 1, a : a + m], X[j + 2, a : a + m]
            x3, x4, x5 = X[j + 3, a : a + m], X[j + 4, a : a + m], X[j + 5, a : a + m]
            for s in range(m):
                z[s] += u0 * x0[s] + u1 * x1[s] + u2 * x2[s] + u3 * x3[s] + u4 * x4[s] + u5 * x5[s]


@exact
def _start_row(weights: Any, X: Any, a: int, m: int, rest: int, z: Any) -> None:
    """Begin one row of logits with its first ``rest`` features."""
    for s in range(m):
        z[s] = _f(0.0)
    for j in range(rest):
        u, x = weights[j], X[j, a : a + m]
        for s in range(m):
            z[s] += u * x[s]


@exact
def _exponentials(
    Z: Any, n_learners: int, i: int, m: int, safe: bool, top: Any, total: Any
) -> None:
    """Exponentials of learner i's logits in place, less ``top``; their sums into ``total``."""
    classes = Z.shape[0] // n_learners
    if safe:
        for s in range(m):
            total[s] = _f(1.0)
    else:
        for s in range(m):
            top[s] = _f(0.0)
        for k in range(classes):
            z = Z[k * n_learners + i]
            for s in range(m):
                top[s] = max(top[s], z[s])
        for k in range(classes):
            z = Z[k * n_learners + i]
            for s in range(m):
                z[s] -= top[s]
        for s in range(m):
            total[s] = exp32(-top[s])
    for k in range(classes):
        z = Z[k * n_learners + i]
        for s in range(m):
            e = exp32(z[s])
            z[s] = e
            total[s] += e


@exact
def weigh(
    Z: Any, n_learners: int, weights: Any, m: int, safe: bool, top: Any, total: Any, value: Any
) -> None:
    """Turn logits into weighted probabilities, and add the weighted log-sum-exps to ``value``."""
    classes = Z.shape[0] // n_learners
    logs = np.empty(m, np.float32)
    for i in range(n_learners):
        _exponentials(Z, n_learners, i, m, safe, top, total)
        for s in range(m):
            logs[s] = log32(total[s]) + top[s]
        value[i] += dot(weights, logs, m)
        for s in range(m):
            total[s] = weights[s] / total[s]
        for k in range(classes):
            z = Z[k * n_learners + i]
            for s in range(m):
                z[s] *= total[s]


@exact
def weigh_all(Z: Any, weights: Any, safe: bool, value: Any) -> None:
    """``weigh`` for logits (R, m) of any length, in one piece."""
    m = Z.shape[1]
    top, total = np.zeros(m, np.float32), np.empty(m, np.float32)
    weigh(Z, len(value), weights, m, safe, top, total, value)


@summing
def add_moments(Z: Any, first: int, X: Any, a: int, m: int, moments: Any) -> None:
    """``moments += Z[:, first:first + m] @ X[:, a:a + m].T``: two rows, four features at a time."""
    rows, width = moments.shape
    for r in range(0, rows, 2):
        second = min(r + 1, rows - 1)
        share = _f(second - r)  # 0 where the last row is alone
        p, q = Z[r, first : first + m], Z[second, first : first + m]
        j = 0
        while j + 3 < width:
            x0, x1 = X[j, a : a + m], X[j + 1, a : a + m]
            x2, x3 = X[j + 2, a : a + m], X[j + 3, a : a + m]
            p0, p1, p2, p3 = _f(0.0), _f(0.0), _f(0.0), _f(0.0)
            q0, q1, q2, q3 = _f(0.0), _f(0.0), _f(0.0), _f(0.0)
            for s in range(m):
                p0 += p[s] * x0[s]
                p1 += p[s] * x1[s]
                p2 += p[s] * x2[s]
                p3 += p[s] * x3[s]
                q0 += q[s] * x0[s]
                q1 += q[s] * x1[s]
                q2 += q[s] * x2[s]
                q3 += q[s] * x3[s]
            moments[r, j] += p0
            moments[r, j + 1] += p1
            moments[r, j + 2] += p2
            moments[r, j + 3] += p3
            moments[second, j] += share * q0
            moments[second, j + 1] += share * q1
            moments[second, j + 2] += share * q2
            moments[second, j + 3] += share * q3
            j += 4
        while j < width:
            x0 = X[j, a : a + m]
            p0, q0 = _f(0.0), _f(0.0)
            for s in range(m):
                p0 += p[s] * x0[s]
                q0 += q[s] * x0[s]
            moments[r, j] += p0
            moments[second, j] += share * q0
            j += 1
