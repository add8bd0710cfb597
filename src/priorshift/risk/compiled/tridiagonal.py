"""A symmetric matrix made tridiagonal, so that every shift of it is solved in linear time.

For matrices of some ten rows a call of LAPACK costs more than its work, hence the loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact
from priorshift.risk.compiled.maths import dot


@exact
def tridiagonal(A: Any, diagonal: Any, beside: Any) -> None:
    """Reduce ``A`` (n, n) by Householder reflections to a diagonal and its neighbours.

    Row r of ``A`` is overwritten by the unit vector of reflection r, in its first r places;
    ``beside[r]`` stands between r - 1 and r.

    Examples
    --------
    >>> A = np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    >>> d, e = np.zeros(3), np.zeros(3)
    >>> tridiagonal(A.copy(), d, e)
    >>> T = np.diag(d) + np.diag(e[1:], 1) + np.diag(e[1:], -1)
    >>> bool(np.allclose(np.linalg.eigvalsh(T), np.linalg.eigvalsh(A)))
    True
    """
    n = A.shape[0]
    p = np.empty(n)
    for r in range(n - 1, 0, -1):
        row = A[r]
        diagonal[r] = row[r]
        square = dot(row, row, r)
        norm = np.sqrt(square)
        # Reflect the first r entries of row r to (0, ..., 0, beside).
        beside[r] = norm if row[r - 1] < 0.0 else -norm
        if square - row[r - 1] * row[r - 1] <= 1e-30 * square or norm == 0.0:
            beside[r] = row[r - 1]
            for s in range(r):
                row[s] = 0.0
            continue
        row[r - 1] -= beside[r]
        square = dot(row, row, r)
        scale = 1.0 / np.sqrt(square)
        for s in range(r):
            row[s] *= scale
        # A <- (1 - 2 u u') A (1 - 2 u u') on the first r rows and columns.
        for i in range(r):
            p[i] = dot(A[i], row, r)
        along = dot(p, row, r)
        for i in range(r):
            p[i] = 2.0 * (p[i] - along * row[i])
        for i in range(r):
            other = A[i]
            u, q = row[i], p[i]
            for s in range(r):
                other[s] -= u * p[s] + q * row[s]
    diagonal[0] = A[0, 0]
    beside[0] = 0.0


@exact
def accumulate(A: Any, basis: Any) -> None:
    """Write the orthogonal matrix P with ``P T P' = A`` out, from the rows ``tridiagonal`` left.

    Examples
    --------
    >>> A = np.array([[2.0, 0.5, 1.0], [0.5, 2.0, 0.0], [1.0, 0.0, 3.0]])
    >>> d, e, P, rows = np.zeros(3), np.zeros(3), np.zeros((3, 3)), A.copy()
    >>> tridiagonal(rows, d, e)
    >>> accumulate(rows, P)
    >>> T = np.diag(d) + np.diag(e[1:], 1) + np.diag(e[1:], -1)
    >>> bool(np.allclose(P @ T @ P.T, A))
    True
    """
    n = A.shape[0]
    for r in range(n):
        for s in range(n):
            basis[r, s] = 1.0 if r == s else 0.0
    # Reflection r leaves what lies behind r alone, so the last ones, which are short, come first.
    dots = np.empty(n)
    for r in range(1, n):
        u = A[r]
        for s in range(r):
            dots[s] = 0.0
        for i in range(r):
            row, weight = basis[i], 2.0 * u[i]
            for s in range(r):
                dots[s] += weight * row[s]
        for i in range(r):
            row, weight = basis[i], u[i]
            for s in range(r):
                row[s] -= weight * dots[s]


@exact
def shifted_solve(diagonal: Any, beside: Any, shift: float, b: Any, x: Any) -> None:
    """Solve ``(T + shift) x = b`` for a positive definite ``T + shift``.

    Examples
    --------
    >>> x = np.zeros(2)
    >>> shifted_solve(np.array([1.0, 2.0]), np.array([0.0, 1.0]), 1.0, np.array([3.0, 4.0]), x)
    >>> x.round(12).tolist()
    [1.0, 1.0]
    """
    n = len(b)
    ratio = np.empty(n)
    pivot = max(diagonal[0] + shift, 1e-300)
    x[0] = b[0] / pivot
    for r in range(1, n):
        ratio[r] = beside[r] / pivot
        # A pivot below the shift is rounding: the Hessian itself has no negative direction.
        pivot = max(diagonal[r] + shift - beside[r] * ratio[r], 0.5 * shift)
        x[r] = (b[r] - beside[r] * x[r - 1]) / pivot
    for r in range(n - 2, -1, -1):
        x[r] -= ratio[r + 1] * x[r + 1]
