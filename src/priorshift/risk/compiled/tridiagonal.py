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
def shifted_factors(diagonal: Any, beside: Any, shifts: Any, ratios: Any, inverses: Any) -> None:
    """Factors of the positive definite ``T + shift``, a column for each shift, for ``substitute``.

    Fills the ratios of neighbouring pivots, and the inverses of the pivots, both (n, columns).
    """
    for c in range(len(shifts)):
        inverses[0, c] = 1.0 / max(diagonal[0] + shifts[c], 1e-300)
    for r in range(1, len(diagonal)):
        for c in range(len(shifts)):
            ratio = beside[r] * inverses[r - 1, c]
            # A pivot below the shift is rounding: the Hessian itself has no negative direction.
            pivot = max(diagonal[r] + shifts[c] - beside[r] * ratio, 0.5 * shifts[c])
            ratios[r, c], inverses[r, c] = ratio, 1.0 / pivot


@exact
def substitute(ratios: Any, inverses: Any, b: Any, x: Any) -> None:
    """Solve ``(T + shift) x = b``, column by column, with the factors of ``T + shift``.

    Examples
    --------
    >>> d, e, ratios, inverses = np.array([1.0, 2.0]), np.array([0.0, 1.0]), *np.zeros((2, 2, 1))
    >>> shifted_factors(d, e, np.ones(1), ratios, inverses)
    >>> x = np.zeros((2, 1))
    >>> substitute(ratios, inverses, np.array([[3.0], [4.0]]), x)
    >>> x.ravel().round(12).tolist()
    [1.0, 1.0]
    """
    n, columns = b.shape
    for c in range(columns):
        x[0, c] = b[0, c]
    for r in range(1, n):
        for c in range(columns):
            x[r, c] = b[r, c] - ratios[r, c] * x[r - 1, c]
    for c in range(columns):
        x[n - 1, c] *= inverses[n - 1, c]
    for r in range(n - 2, -1, -1):
        for c in range(columns):
            x[r, c] = x[r, c] * inverses[r, c] - ratios[r + 1, c] * x[r + 1, c]
