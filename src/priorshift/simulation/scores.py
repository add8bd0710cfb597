"""What predictions of labelled rows are worth beside their error: log-loss, Brier, F1, AUC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from priorshift._numerics import row_argmax
from priorshift.typing import AnyArray, FloatArray, IntArray

_LEAST = float(np.finfo(np.float64).eps)


class Scores(NamedTuple):
    """Scores of predictions, all rows together.

    Attributes
    ----------
    log_loss : float
        Mean of minus the logarithm of the true class's probability, which is taken to be 2e-16 at
        the least.
    brier : float
        Mean squared error of the probabilities, summed over the classes; of two classes that of
        one of them.
    f1 : float
        Of the second class where there are two, else the mean over the classes.
    auc : float
        Area under the ROC curve: of the second class where there are two, else the mean over
        classes, each against all others; classes without rows, or without others, are left out.

    Examples
    --------
    >>> found = score(np.array([0, 1]), np.array([[0.5, 0.5], [0.2, 0.8]]))
    >>> round(found.log_loss, 4), found.auc, round(found.brier, 4)
    (0.4581, 1.0, 0.145)
    """

    log_loss: float
    brier: float
    f1: float
    auc: float


def score(y: IntArray, proba: FloatArray, *, ranked: bool = True) -> Scores:
    """Return the scores of class probabilities (n, K) for class indices (n,).

    ``ranked=False`` leaves the AUC out, as 0.5: it is no mean over rows, and takes the longest.

    Examples
    --------
    >>> score(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])).f1
    0.666...
    """
    rows, n_classes = np.arange(len(y)), proba.shape[1]
    chance = np.maximum(proba[rows, y], _LEAST)
    gap = np.array(proba, dtype=np.float64)
    gap[rows, y] -= 1.0
    brier = float(np.einsum("ik,ik->", gap, gap)) / len(y) / (2.0 if n_classes == 2 else 1.0)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (y, row_argmax(proba)), 1.0)
    both = counts.sum(axis=0) + counts.sum(axis=1)
    f1 = 2.0 * np.diag(counts) / np.maximum(both, 1.0)
    auc = np.array([roc_auc(y == k, proba[:, k]) for k in range(n_classes) if ranked])
    known = auc[~np.isnan(auc)]
    seen = both > 0
    return Scores(
        log_loss=float(-np.log(chance).mean()),
        brier=brier,
        f1=float(f1[1] if n_classes == 2 else f1[seen].mean()),
        auc=float(known.mean()) if len(known) else 0.5,
    )


def roc_auc(positive: AnyArray, value: FloatArray) -> float:
    """Return the chance that a positive row has the larger value; NaN without rows of both kinds.

    Examples
    --------
    >>> roc_auc(np.array([True, False, True]), np.array([0.9, 0.5, 0.5]))
    0.75
    """
    ones = int(positive.sum())
    others = len(positive) - ones
    if not ones or not others:
        return float("nan")
    ranks = rankdata(value)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * others))
