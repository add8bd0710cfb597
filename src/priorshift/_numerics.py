"""Sums, largest entries and softmax along rows that are short: many rows, few columns.

NumPy reduces each row by itself, which for a handful of columns costs more than laying the columns
out first. The order of the operations within a row does not depend on how many rows there are.
"""

from __future__ import annotations

import numpy as np

from priorshift.typing import FloatArray, IntArray

_SHORT = 32


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
