"""Sums, largest entries and softmax along rows that are short: many rows, few columns.

NumPy reduces each row by itself, which for a handful of columns costs more than laying the columns
out first. The order of the operations within a row does not depend on how many rows there are.
"""

from __future__ import annotations

import numpy as np

from priorshift.typing import FloatArray, IntArray

_SHORT = 32
# A multiple of the rows that the kernels of BLAS take at once on common machines.
_ROWS_AT_ONCE = 16


def row_sums(P: FloatArray) -> FloatArray:
    """Return the sum of each row.

    Examples
    --------
    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    if P.shape[1] > _SHORT:
        return np.asarray(P.sum(axis=1))
    return np.asarray(np.add.reduce(np.ascontiguousarray(P.T), axis=0))


def row_softmax(Z: FloatArray) -> FloatArray:
    """Return the softmax of each row of ``Z`` (n, K).

    Examples
    --------
    >>> row_softmax(np.array([[0.0, 0.0], [1000.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    columns = np.array(Z.T, dtype=np.float64, order="C")
    columns -= np.maximum.reduce(columns, axis=0)
    np.exp(columns, out=columns)
    columns /= np.add.reduce(columns, axis=0)
    return np.ascontiguousarray(columns.T)


def row_argmax(P: FloatArray) -> IntArray:
    """Return the place of each row's largest entry, the first of several.

    Examples
    --------
    >>> row_argmax(np.array([[0.2, 0.5, 0.5], [0.7, 0.1, 0.2]])).tolist()
    [1, 0]
    """
    if P.shape[1] > _SHORT:
        return np.asarray(P.argmax(axis=1))
    columns = np.ascontiguousarray(P.T)
    best, top = np.zeros(len(P), dtype=np.intp), columns[0]
    for k, column in enumerate(columns[1:], start=1):
        best[column > top] = k
        top = np.maximum(top, column)
    return best


def reweight(proba: FloatArray, ratio: FloatArray) -> FloatArray:
    """Turn f0's probabilities into those under another class mix (equation "0-1-estimate").

    ``ratio`` is the new prior over the old. Rows whose every possible class has ratio 0 keep f0's
    probabilities: the new prior says nothing about them.

    Examples
    --------
    >>> reweight(np.array([[0.5, 0.5]]), np.array([3.0, 1.0])).tolist()
    [[0.75, 0.25]]
    """
    weighted = proba * ratio
    total = weighted.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 0.0
    if lost.any():
        weighted[lost], total[lost] = proba[lost], 1.0
    return np.asarray(weighted / total)


def row_products(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return ``A @ B.T`` (n, k) with the same bits for a row of A whatever other rows there are.

    BLAS chooses its loops by the number of rows, and adds up in another order in some of them.
    Here it always sees the same number of rows, the last of them padded.

    Examples
    --------
    >>> A, B = np.random.default_rng(0).normal(size=(2, 33, 5))
    >>> whole = row_products(A, B[:3])
    >>> bool((row_products(A[:7], B[:3]) == whole[:7]).all())
    True
    """
    n, width = A.shape
    missing = -n % _ROWS_AT_ONCE
    if missing:
        A = np.concatenate([A, np.zeros((missing, width))])
    pieces = np.ascontiguousarray(A, dtype=np.float64).reshape(-1, _ROWS_AT_ONCE, width)
    return np.asarray((pieces @ B.T).reshape(-1, len(B))[:n])
