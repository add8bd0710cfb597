"""Measuring a model that is fitted here: by folds, so that the confusion matrix is honest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from priorshift._validation import check_integer
from priorshift.errors import InputTypeError, PriorshiftWarning
from priorshift.source.model import Model
from priorshift.typing import AnyArray, FloatArray, IntArray

# With fewer rows of some class a cross-fitted C may have no inverse by chance alone.
_ENOUGH_ROWS = 20


def cross_fit(
    estimator: Any,
    X: Any,
    labels: AnyArray,
    indices: IntArray,
    cv: int,
    random_state: int,
) -> tuple[Model, FloatArray, bool]:
    """Fit on everything; measure each row by a model that did not see it.

    Return the model, the probabilities of every row, and whether there were enough rows of every
    class to judge C by them.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, labels = np.array([[0.0], [1.0], [10.0], [11.0]]), np.array(["a", "a", "b", "b"])
    >>> nearest = KNeighborsClassifier(1)
    >>> model, proba, enough = cross_fit(nearest, X, labels, np.array([0, 0, 1, 1]), 2, 0)
    >>> proba.tolist(), enough
    ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], False)
    """
    check_integer(cv, "cv", least=2)
    classes = np.unique(labels)
    smallest, largest = np.bincount(indices).min(), np.bincount(indices).max()
    folds = int(min(cv, largest))
    final = Model(_fit(clone(estimator), X, labels), classes)
    proba = np.zeros((len(indices), len(classes)))
    if folds < 2:
        return final, _measured_on_itself(final, X), False
    rows = X if hasattr(X, "iloc") or hasattr(X, "columns") else np.asarray(X)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(splitter.split(np.zeros(len(indices)), indices))
    for train, test in splits:
        if len(np.unique(indices[train])) < 2:
            return final, _measured_on_itself(final, X), False
        part = Model(_fit(clone(estimator), _take(rows, train), labels[train]), classes)
        proba[test] = part.predict_proba(_take(rows, test))
    return final, proba, bool(smallest >= _ENOUGH_ROWS)


def _measured_on_itself(model: Model, X: Any) -> FloatArray:
    warnings.warn(
        "the hold-out has too few rows for cross-fitting: the model is measured on the rows that "
        "it was fitted on, and will look better than it is. Give more rows, or a fitted model",
        PriorshiftWarning,
        stacklevel=6,
    )
    return model.predict_proba(X)


def _take(X: Any, rows: IntArray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def _fit(estimator: Any, X: Any, y: AnyArray) -> Any:
    if not hasattr(estimator, "fit"):
        raise InputTypeError(f"{type(estimator).__name__} has no fit method and is not fitted")
    return estimator.fit(X, y)
