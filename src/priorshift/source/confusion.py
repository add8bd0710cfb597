"""Measuring f0: by folds where it is fitted here, and its confusion matrix C with its inverse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from priorshift._rows import take_rows
from priorshift._validation import check_integer
from priorshift.errors import InputTypeError, PriorshiftWarning, SourceError
from priorshift.source.model import Model
from priorshift.typing import AnyArray, FloatArray, IntArray

_SINGULAR = 1e-8
# With fewer rows of some class a cross-fitted C may have no inverse by chance alone.
_ENOUGH_ROWS = 20


def cross_fit(
    estimator: Any,
    X: Any,
    labels: AnyArray,
    indices: IntArray,
    cv: int,
    random_state: int,
    classes: AnyArray | None = None,
    sample_weight: FloatArray | None = None,
) -> tuple[Model, FloatArray, bool]:
    """Fit on everything; measure each row by a model that did not see it.

    Return the model, the probabilities of every row, and whether there were enough rows of every
    class to judge C by them. ``classes`` are all labels, by default those of the rows.

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
    classes = np.unique(labels) if classes is None else classes
    counts = np.bincount(indices)
    folds = int(min(cv, counts.max()))
    final = Model(_fit(clone(estimator), X, labels, sample_weight), classes)
    proba = np.zeros((len(indices), len(classes)))
    if folds < 2:
        return final, _measured_on_itself(final, X), False
    splitter = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(splitter.split(np.zeros(len(indices)), indices))
    for train, test in splits:
        if len(np.unique(indices[train])) < 2:
            return final, _measured_on_itself(final, X), False
        weights = None if sample_weight is None else sample_weight[train]
        fitted = _fit(clone(estimator), take_rows(X, train), labels[train], weights)
        proba[test] = Model(fitted, classes).predict_proba(take_rows(X, test))
    return final, proba, bool(counts[counts > 0].min() >= _ENOUGH_ROWS)


def _measured_on_itself(model: Model, X: Any) -> FloatArray:
    warnings.warn(
        "the held-out set has too few rows for cross-fitting: the model is measured on the rows "
        "that it was fitted on, and will look better than it is. Give more rows, or a fitted model",
        PriorshiftWarning,
        stacklevel=6,
    )
    return model.predict_proba(X)


def _fit(estimator: Any, X: Any, y: AnyArray, sample_weight: FloatArray | None) -> Any:
    if not hasattr(estimator, "fit"):
        raise InputTypeError(f"{type(estimator).__name__} has no fit method and is not fitted")
    if sample_weight is None:
        return estimator.fit(X, y)
    name, last = "sample_weight", estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        name = f"{step}__{name}"
    if not has_fit_parameter(last, "sample_weight"):
        raise InputTypeError(
            f"{type(last).__name__}.fit takes no sample_weight: give a model whose fit does, or "
            "one that is fitted already"
        )
    return estimator.fit(X, y, **{name: sample_weight})


def closest_classes(C: FloatArray) -> tuple[int, int]:
    """Return the two classes whose columns of C are nearest to each other.

    Examples
    --------
    >>> import numpy as np
    >>> closest_classes(np.array([[1.0, 0.5, 0.5], [0.0, 0.5, 0.4], [0.0, 0.0, 0.1]]))
    (1, 2)
    """
    distance: FloatArray = np.sqrt(((C[:, :, None] - C[:, None, :]) ** 2).sum(axis=0))
    np.fill_diagonal(distance, np.inf)
    first, second = np.unravel_index(int(distance.argmin()), distance.shape)
    return (int(first), int(second)) if first < second else (int(second), int(first))


def confusion_inverse(C: FloatArray, classes: AnyArray, name: str) -> FloatArray:
    """Invert C, or name the two classes that it does not tell apart.

    Examples
    --------
    >>> import numpy as np
    >>> confusion_inverse(np.eye(2), np.array(["a", "b"]), "C").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    sigma = float(np.linalg.svd(C, compute_uv=False)[-1])
    if sigma < _SINGULAR:
        a, b = (classes[k] for k in closest_classes(C))
        raise SourceError(
            f"{name} cannot be inverted (smallest singular value {sigma:.2g}): on the held-out "
            f"set it does not tell class {a!s} from class {b!s}. Merge them, give a larger "
            "held-out set, or use a better model"
        )
    return np.asarray(np.linalg.inv(C), dtype=np.float64)


def warn_if_weak(C: FloatArray, classes: AnyArray, smallest: int) -> None:
    """Warn when C is so near to singular that the held-out set's own noise could have made it so.

    ``smallest`` is the number of rows of the smallest class.

    Examples
    --------
    >>> import numpy as np
    >>> warn_if_weak(np.eye(2), np.array(["a", "b"]), smallest=100)
    """
    sigma = float(np.linalg.svd(C, compute_uv=False)[-1])
    noise = 0.5 / float(np.sqrt(smallest))
    if sigma < 0.1 * noise:
        a, b = (classes[k] for k in closest_classes(C))
        warnings.warn(
            f"f0 hardly tells class {a!s} from class {b!s} (smallest singular value of C "
            f"{sigma:.2g}, its noise about {noise:.2g}): estimates of the class prior "
            "will be very noisy",
            PriorshiftWarning,
            stacklevel=4,
        )
