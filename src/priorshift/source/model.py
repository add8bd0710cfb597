"""What f0 and the linear learners see of a row: class probabilities in a fixed order, features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from priorshift._numerics import log_floored, one_hot, row_softmax
from priorshift._rows import is_frame, missing_text
from priorshift._validation import (
    SUM_TOLERANCE,
    as_floats,
    as_matrix,
    as_numbers,
    as_probabilities,
    class_indices,
    two_columns,
)
from priorshift.errors import InputError, InputTypeError
from priorshift.risk import compiled
from priorshift.typing import AnyArray, FloatArray, IntArray

# Of more classes NumPy adds up in another order.
_FEW = 32


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

    Parameters
    ----------
    classes : list
        Labels, in the order of the columns.
    logits : bool
        The rows are logits: class probabilities are their softmax.

    Of two classes one column (n,) or (n, 1) is enough, that of the second.

    Examples
    --------
    >>> ProbabilityModel(classes=[0, 1]).predict_proba([[0.2, 0.8]]).tolist()
    [[0.2, 0.8]]
    >>> ProbabilityModel(classes=["no", "yes"]).predict_proba([0.75]).tolist()
    [[0.25, 0.75]]
    >>> ProbabilityModel(classes=[0, 1], logits=True).predict_proba([[3.0, 3.0]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, classes: Any, logits: bool = False) -> None:
        self.classes = classes
        self.logits = logits

    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``X``, checked to be probabilities, or the softmax of ``X``."""
        number = len(self.classes)
        what = "logits" if self.logits else "class probabilities"
        values = as_floats(X, what)
        if self.logits and values.ndim == 1 and number == 2:
            values = values[:, None]
        if self.logits and values.shape[1:] == (1,) and number == 2:
            values = np.column_stack([np.zeros(len(values)), values])
        elif not self.logits:
            values = two_columns(values, number)
        if self.logits:
            return row_softmax(as_matrix(values, number, what))
        try:
            return _as_probabilities(as_numbers(values, number, what), what)
        except InputError:
            as_matrix(values, number, what)  # has a clearer word for NaN and infinity
            raise


def _as_probabilities(values: FloatArray, what: str) -> FloatArray:
    """The same as NumPy's, compiled for rows that there is nothing to say about."""
    if values.shape[1] <= _FEW and compiled.available():
        found = np.empty(values.shape)
        if compiled.calibration.divide_by_sums(compiled.plain(values), SUM_TOLERANCE, found):
            return found
    return as_probabilities(values, what)


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
    return log_floored(as_numbers(P), 1e-6)


@dataclass(frozen=True)
class FeatureMap:
    """What the linear learners see of a row: X itself, or a transformer's or callable's output.

    Parameters
    ----------
    map : transformer, callable or None
        None is X itself. ``log_probabilities`` is given f0's probabilities in the place of X.
    intercept : bool
        Add a last column of ones.
    projection : (d, m) array, optional
        What wide sparse features are multiplied with.

    Examples
    --------
    >>> FeatureMap(np.square, intercept=True)(np.array([[3.0]])).tolist()
    [[9.0, 1.0]]
    """

    map: Any = None
    intercept: bool = True
    projection: FloatArray | None = None

    def __call__(self, X: Any, width: int | None = None) -> FloatArray:
        """Return the features (n, d), with a last column of ones if there is an intercept.

        ``width`` is the number of columns that X itself must have, where X is the features. Entries
        may be NaN or infinite.
        """
        where = "X" if self.map is None else "features(X)"
        wanted = width if self.map is None and self.projection is None else None
        features = as_numbers(self.projected(self.mapped(X)), wanted, where)
        if not self.intercept:
            return features
        with_ones = np.ones((len(features), features.shape[1] + 1))
        with_ones[:, :-1] = features
        return with_ones

    def mapped(self, X: Any) -> Any:
        """What the map makes of X, as it comes."""
        if self.map is None:
            return X.tocsr() if sparse.issparse(X) else X
        transform = getattr(self.map, "transform", self.map)
        if not callable(transform):
            raise InputTypeError(
                f"features is {self.map!r}: pass a transformer, or a function of X"
            )
        found = transform(X)
        return found.tocsr() if sparse.issparse(found) else found

    def projected(self, features: Any) -> Any:
        """Sparse features times the projection; all others as they are."""
        if self.projection is None:
            return features
        if features.shape[1] != len(self.projection):
            raise InputError(
                f"the features have {features.shape[1]} columns, but those of the held-out set had "
                f"{len(self.projection)}: pass the same columns in the same order"
            )
        return features @ self.projection


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted classifier: `predict_proba`, `decision_function`, only `predict`, or a function.

    Parameters
    ----------
    estimator : object
        The classifier; it is never changed. A bare function returns class probabilities.
    classes : (K,) array
        All labels, sorted: the order of the columns of ``predict_proba``.
    columns : (K,) array, optional
        Labels in the order of the estimator's columns, where it has no ``classes_`` to say so; by
        default ``classes``.

    Examples
    --------
    >>> import numpy as np
    >>> model = Model(ProbabilityModel(classes=[0, 1]), np.array([0, 1]))
    >>> model.predict_proba(np.array([[0.9, 0.1]])).tolist()
    [[0.9, 0.1]]
    >>> Model(lambda X: X[:, 0], np.array([0, 1])).predict_proba(np.array([[0.75]])).tolist()
    [[0.25, 0.75]]
    """

    estimator: Any
    classes: AnyArray
    columns: AnyArray | None = None

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (n, K) probabilities; hard predictions become one-hot rows."""
        estimator = self.estimator
        if type(estimator) is ProbabilityModel and self._places is None:
            found: FloatArray = _ask(estimator, "predict_proba", X)
            return found  # has been looked at
        if is_frame(X) and _was_fitted_on_arrays(estimator):
            X = np.asarray(X)
        if hasattr(estimator, "predict_proba"):
            return self._align(_call(estimator, "predict_proba", X), "predict_proba")
        if hasattr(estimator, "decision_function"):
            return self._scored(_call(estimator, "decision_function", X))
        if hasattr(estimator, "predict"):
            labels = np.asarray(_ask(estimator, "predict", X))
            where = name_of(estimator, "predict")
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = labels[:, 0]
            if labels.ndim != 1:
                raise InputError(
                    f"{where} returned shape {labels.shape}: one label a row is needed"
                )
            return one_hot(class_indices(labels, self.classes, where), len(self.classes))
        return self._align(_call(estimator, "", X), "")

    def _scored(self, scores: FloatArray) -> FloatArray:
        """Probabilities of the scores of ``decision_function``."""
        if (
            getattr(self.estimator, "decision_function_shape", "") == "ovo"
            and len(self.classes) > 2
        ):
            raise InputError(
                f"{type(self.estimator).__name__} scores pairs of classes, not classes: set "
                "decision_function_shape='ovr', or give it predict_proba"
            )
        if scores.ndim == 1 or scores.shape[1:] == (1,):
            proba = np.column_stack([expit(-scores.ravel()), expit(scores.ravel())])
        else:
            proba = row_softmax(scores)
        return self._align(proba, "decision_function")

    def _align(self, proba: FloatArray, method: str) -> FloatArray:
        """Put the estimator's columns into the order of ``classes``."""
        name = name_of(self.estimator, method)
        own = getattr(self.estimator, "classes_", self.columns)
        number = len(self.classes) if own is None else len(np.asarray(own))
        proba = two_columns(proba, number)
        if proba.ndim != 2 or proba.shape[1] != number:
            raise InputError(
                f"{name} returned shape {proba.shape}, but there are {number} classes: it must "
                "return one column for each (of two classes the second is enough); name them all, "
                "in the order of the columns, with classes="
            )
        if own is not None and self._places is not None:
            aligned = np.zeros((len(proba), len(self.classes)))
            aligned[:, self._places] = proba
            proba = aligned
        # What is given as probabilities has just been looked at.
        given = type(self.estimator) is ProbabilityModel
        return proba if given else as_probabilities(proba, name)

    @cached_property
    def _places(self) -> IntArray | None:
        """The place among ``classes`` of each of the estimator's own; None where all are alike."""
        own = np.asarray(getattr(self.estimator, "classes_", self.columns))
        places = class_indices(own, self.classes, name_of(self.estimator, "classes_"))
        return None if places.tolist() == list(range(len(self.classes))) else places


def _was_fitted_on_arrays(estimator: Any) -> bool:
    """Whether a frame would only make scikit-learn warn that it has names."""
    return (
        type(estimator).__module__.startswith("sklearn.")
        and hasattr(estimator, "n_features_in_")
        and not hasattr(estimator, "feature_names_in_")
    )


def name_of(estimator: Any, method: str = "") -> str:
    """What errors call an estimator, or one of its methods.

    Examples
    --------
    >>> name_of(ProbabilityModel(classes=[0, 1]), "predict"), name_of(np.tanh)
    ('ProbabilityModel.predict', 'tanh')
    """
    name = type(estimator).__name__ if method else getattr(estimator, "__name__", None)
    return f"{name or type(estimator).__name__}{'.' if method else ''}{method}"


def _ask(estimator: Any, method: str, X: Any) -> Any:
    """Call the model. What bad rows provoke in it is a refusal; all other errors are its own."""
    try:
        found = (getattr(estimator, method) if method else estimator)(X)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        row = missing_text(X)
        if row is not None:
            raise InputError(
                f"X has no text in row {row}: give it an empty one (''), or leave the row out",
                row=row,
                problem="has no text: give it an empty one, or leave the row out",
            ) from error
        if isinstance(error, ValueError):
            raise
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(
            f"{name_of(estimator, method)} cannot read X ({type(error).__name__}: {error}): pass "
            "rows of the kind that the model was trained on"
        ) from error
    if found is None:
        raise InputError(
            f"{name_of(estimator, method)} returned None: it must return one row for each row of X"
        )
    return found


def _call(estimator: Any, method: str, X: Any) -> FloatArray:
    found = _ask(estimator, method, X)
    try:
        return as_floats(found, name_of(estimator, method))
    except Exception as error:  # an object of any library, that NumPy cannot read
        raise InputError(
            f"{name_of(estimator, method)} returned {type(found).__name__}, which cannot be read "
            f"as an array of numbers: {error}"
        ) from error


def check_estimator_object(estimator: Any) -> None:
    """Refuse objects that cannot be a classifier.

    Examples
    --------
    >>> check_estimator_object(3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: estimator is an int: pass a classifier with predict_proba, \
decision_function or predict, or a function of X that returns class probabilities
    """
    kind = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputTypeError(f"estimator is the class {estimator.__name__}: pass an instance of it")
    methods = ("predict_proba", "decision_function", "predict")
    if not callable(estimator) and not any(hasattr(estimator, m) for m in methods):
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise InputTypeError(
            f"estimator is {article} {kind}: pass a classifier with predict_proba, "
            "decision_function or predict, or a function of X that returns class probabilities"
        )
    if isinstance(estimator, BaseEstimator) and is_regressor(estimator):
        raise InputTypeError(
            f"estimator is {kind}, which predicts numbers and not classes: pass a classifier, such "
            "as LogisticRegression, whose labels are those of the held-out set"
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
