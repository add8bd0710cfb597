"""Each small computation on rows once: sums, softmax, reweighting, one-hot rows, folds.

There are many rows, and they are short: few columns. NumPy reduces each row by itself, which for a
handful of columns costs more than laying the columns out first. The order of the operations within
a row does not depend on how many rows there are.
"""

from __future__ import annotations

import numpy as np

from priorshift.typing import FloatArray, IntArray

# Keeps quotients by nothing, and logarithms of nothing, finite.
TINY = 1e-300
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
        return np.asarray(np.ascontiguousarray(P).sum(axis=1))
    return _sum_of_columns(np.ascontiguousarray(P.T))


def _sum_of_columns(columns: FloatArray) -> FloatArray:
    """Add columns (K, n) in their order."""
    if columns.shape[1] == 1:  # which NumPy would see as one long row, and add up in pairs
        return np.asarray(np.add.accumulate(columns, axis=0)[-1])
    return np.asarray(np.add.reduce(columns, axis=0))


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
    columns /= _sum_of_columns(columns)
    return np.ascontiguousarray(columns.T)


def log_floored(proba: FloatArray, floor: float) -> FloatArray:
    """Logarithms of probabilities, none below that of ``floor``.

    Examples
    --------
    >>> log_floored(np.array([[0.0, 1.0]]), 1e-12).round(2).tolist()
    [[-27.63, 0.0]]
    """
    return np.log(np.maximum(proba, floor))


def times_exp(proba: FloatArray, logits: FloatArray, floor: float) -> FloatArray:
    """Return probabilities (n, K) proportional to ``proba * exp(logits)``, none taken to be 0.

    Examples
    --------
    >>> times_exp(np.array([[0.5, 0.5]]), np.log([[3.0, 1.0]]), 1e-12).round(6).tolist()
    [[0.75, 0.25]]
    """
    return row_softmax(log_floored(proba, floor) + logits)


def one_hot(classes: IntArray, n_classes: int) -> FloatArray:
    """Return rows (n, K) that are 1 at the class and 0 elsewhere.

    Examples
    --------
    >>> one_hot(np.array([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    return np.asarray(np.eye(n_classes)[classes])


def stratified_folds(labels: IntArray, folds: int, seed: int) -> IntArray:
    """Give each row a fold, such that every fold has its part of every class.

    The c rows of a class are dealt out in turn: with c at least 2, no fold holds them all.
    Scikit-learn's ``StratifiedKFold`` draws other folds, with which fits would change.

    Examples
    --------
    >>> sorted(stratified_folds(np.array([0, 0, 1, 1, 1, 1]), 2, seed=0)[2:].tolist())
    [0, 0, 1, 1]
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    numbers = np.empty(len(labels), dtype=np.intp)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def class_shares(labels: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """What each row (n,) counts for among the rows of its class; of a class they add up to 1.

    Examples
    --------
    >>> class_shares(np.array([0, 0, 1]), np.array([3.0, 1.0, 2.0])).tolist()
    [0.75, 0.25, 1.0]
    >>> class_shares(np.array([0, 0, 1])).tolist()
    [0.5, 0.5, 1.0]
    """
    sums = np.bincount(labels, weights)
    return np.asarray((1.0 if weights is None else weights) / sums[labels])


def stretch_means(rows: FloatArray, number: int) -> FloatArray:
    """Means of at most ``number`` equal stretches of rows (T, ...).

    Examples
    --------
    >>> stretch_means(np.arange(6.0), 3).tolist()
    [0.5, 2.5, 4.5]
    """
    parts = np.array_split(rows, min(number, len(rows)))
    return np.array([part.mean(axis=0) for part in parts])


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
    """Turn f0's probabilities into those under another class prior (equation "0-1-estimate").

    ``ratio`` holds the importance weights, the new prior over the old. Rows whose every possible
    class has weight 0 keep f0's probabilities: the new prior says nothing about them.

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
    padded = A
    if n % _ROWS_AT_ONCE:
        padded = np.zeros((n + -n % _ROWS_AT_ONCE, width))
        padded[:n] = A
    pieces = np.ascontiguousarray(padded, dtype=np.float64).reshape(-1, _ROWS_AT_ONCE, width)
    return np.asarray((pieces @ B.T).reshape(-1, len(B))[:n])
