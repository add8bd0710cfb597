"""What f0 and the linear learners see of a row: class probabilities in a fixed order, features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from priorshift._numerics import log_floored, one_hot, row_softmax
from priorshift._validation import as_matrix, as_probabilities, class_indices, is_frame
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, FloatArray, IntArray


class _GivenModel(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A model with nothing left to learn: ``classes`` holds its labels, in the order of columns."""

    classes: Any

    @property
    def classes_(self) -> AnyArray:
        """Class labels, in the order of the columns of ``predict_proba``."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: there is nothing to learn."""
        return self

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities (n, K)."""

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class ProbabilityModel(_GivenModel):
    """A model whose rows already are class probabilities: for when only those can be had.

    Examples
    --------
    >>> ProbabilityModel(classes=[0, 1]).predict_proba([[0.2, 0.8]]).tolist()
    [[0.2, 0.8]]
    """

    def __init__(self, classes: Any) -> None:
        self.classes = classes

    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``X``, checked to be probabilities."""
        return as_probabilities(as_matrix(X, len(self.classes_)), "class probabilities")


class LinearModel(_GivenModel):
    """Multinomial logistic regression with given weights (K, d) and no intercept.

    Examples
    --------
    >>> LinearModel(coef=[[0.0], [0.0]], classes=[0, 1]).predict_proba([[3.0]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, coef: Any, classes: Any) -> None:
        self.coef = coef
        self.classes = classes

    @property
    def coef_(self) -> FloatArray:
        """The weights."""
        return np.asarray(self.coef, dtype=np.float64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Softmax of the linear scores."""
        return row_softmax(as_matrix(X, self.coef_.shape[1]) @ self.coef_.T)


def log_probabilities(P: Any) -> FloatArray:
    """Logarithms of class probabilities: the features, where probabilities are all there is.

    Examples
    --------
    >>> log_probabilities([[1.0, 0.0]]).round(2).tolist()
    [[0.0, -13.82]]
    """
    return log_floored(as_matrix(P), 1e-6)


@dataclass(frozen=True)
class FeatureMap:
    """What the linear learners see of a row: X itself, or a transformer's or callable's output.

    Examples
    --------
    >>> FeatureMap(np.square, intercept=True)(np.array([[3.0]])).tolist()
    [[9.0, 1.0]]
    """

    map: Any = None
    intercept: bool = True

    def __call__(self, X: Any, width: int | None = None) -> FloatArray:
        """Return the features (n, d), with a last column of ones if there is an intercept.

        ``width`` is the number of columns that X itself must have, where X is the features.
        """
        if self.map is None:
            features = as_matrix(X, width)
        else:
            transform = getattr(self.map, "transform", self.map)
            if not callable(transform):
                raise InputTypeError(
                    f"features is {self.map!r}: pass a transformer, or a function of X"
                )
            features = as_matrix(transform(X), where="features(X)")
        if not self.intercept:
            return features
        return np.column_stack([features, np.ones(len(features))])


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted classifier with `predict_proba`, `decision_function`, or only `predict`.

    Parameters
    ----------
    estimator : object
        The classifier; it is never changed.
    classes : (K,) array
        Labels of the held-out set, sorted: the order of the columns of ``predict_proba``.

    Examples
    --------
    >>> import numpy as np
    >>> model = Model(ProbabilityModel(classes=[0, 1]), np.array([0, 1]))
    >>> model.predict_proba(np.array([[0.9, 0.1]])).tolist()
    [[0.9, 0.1]]
    """

    estimator: Any
    classes: AnyArray

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, K) probabilities; hard predictions become one-hot rows."""
        estimator = self.estimator
        if not isinstance(X, np.ndarray) and is_frame(X) and _was_fitted_on_arrays(estimator):
            X = np.asarray(X)
        if hasattr(estimator, "predict_proba"):
            return self._align(_call(estimator.predict_proba, X), "predict_proba")
        if hasattr(estimator, "decision_function"):
            if getattr(estimator, "decision_function_shape", "") == "ovo" and len(self.classes) > 2:
                raise InputError(
                    f"{type(estimator).__name__} scores pairs of classes, not classes: set "
                    "decision_function_shape='ovr', or give it predict_proba"
                )
            scores = _call(estimator.decision_function, X)
            if scores.ndim == 1:
                proba = np.column_stack([expit(-scores), expit(scores)])
                return self._align(proba, "decision_function")
            return self._align(row_softmax(scores), "decision_function")
        where = f"{type(estimator).__name__}.predict"
        predicted = class_indices(np.asarray(estimator.predict(X)), self.classes, where)
        return one_hot(predicted, len(self.classes))

    def _align(self, proba: FloatArray, method: str) -> FloatArray:
        """Put the estimator's columns into the order of ``classes``."""
        name = f"{type(self.estimator).__name__}.{method}"
        own = getattr(self.estimator, "classes_", None)
        if own is None or len(np.asarray(own)) != proba.shape[-1]:
            if proba.ndim != 2 or proba.shape[1] != len(self.classes):
                raise InputError(
                    f"{name} returned shape {proba.shape}, the held-out set has "
                    f"{len(self.classes)} classes: give the estimator a classes_ attribute, "
                    "or labels of all its classes"
                )
            return as_probabilities(proba, name)
        aligned = np.zeros((len(proba), len(self.classes)))
        aligned[:, self._places] = proba
        return as_probabilities(aligned, name)

    @cached_property
    def _places(self) -> IntArray:
        """The place among ``classes`` of each of the estimator's own."""
        own = np.asarray(self.estimator.classes_)
        return class_indices(own, self.classes, f"{type(self.estimator).__name__}.classes_")


def _was_fitted_on_arrays(estimator: Any) -> bool:
    ours = isinstance(estimator, BaseEstimator)
    return ours and not hasattr(estimator, "feature_names_in_")


def _call(method: Any, X: Any) -> FloatArray:
    return np.asarray(method(X), dtype=np.float64)


def check_estimator_object(estimator: Any) -> None:
    """Refuse objects that cannot be a classifier.

    Examples
    --------
    >>> check_estimator_object(3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: estimator is an int: pass a classifier with predict_proba, \
decision_function or predict
    """
    kind = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputTypeError(f"estimator is the class {estimator.__name__}: pass an instance of it")
    if not any(hasattr(estimator, m) for m in ("predict_proba", "decision_function", "predict")):
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise InputTypeError(
            f"estimator is {article} {kind}: pass a classifier with predict_proba, "
            "decision_function or predict"
        )


def is_fitted(estimator: Any) -> bool:
    """Say whether ``estimator`` can predict as it is.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> is_fitted(LogisticRegression()), is_fitted(ProbabilityModel(classes=[0, 1]))
    (False, True)
    """
    if hasattr(estimator, "classes_") or not hasattr(estimator, "fit"):
        return True
    if not hasattr(estimator, "get_params"):
        return True  # it cannot be cloned and fitted here, so it is taken as it is
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
