"""Which features the linear learners get: made only for who reads them, and only if they can be."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import Pipeline

from priorshift._rows import column_names, n_rows
from priorshift._validation import check_finite
from priorshift.errors import InputError, InputTypeError, PriorshiftError
from priorshift.risk import LARGEST, check_magnitude
from priorshift.source.model import FeatureMap, log_probabilities
from priorshift.typing import FloatArray

PROBABILITIES = "probabilities"
"""``features=`` of this name: the logarithms of f0's probabilities."""
NEEDS = ("must", "may", "no")
# Sparse features with more columns than the first are multiplied with so many singular vectors.
_WIDE = 256
_COMPONENTS = 64

_log = logging.getLogger(__name__)


class Features(NamedTuple):
    """A feature map with what it makes of the held-out set.

    Attributes
    ----------
    map : FeatureMap
    matrix : (n, d) array
        The held-out set's features, finite.
    n_features : int
        Columns that X must have: where X itself is the features. -1 where a map makes them, 0 where
        there are none; then ``matrix`` is one column of ones.

    Examples
    --------
    >>> Features._fields
    ('map', 'matrix', 'n_features')
    """

    map: FeatureMap
    matrix: FloatArray
    n_features: int


def held_out_features(
    features: Any,
    intercept: bool,
    X: Any,
    need: str,
    proba: FloatArray | None = None,
    estimator: Any = None,
) -> Features:
    """Make the features of the held-out set, if they are needed and can be made.

    Parameters
    ----------
    features : transformer, callable, str or None
        None is X itself; a name is that of a step of a pipeline (what comes out of it), or
        "probabilities".
    intercept : bool
    X : rows
        The held-out set.
    need : {"must", "may", "no"}
        "must" refuses what no features can be made of; "may" goes on without, and tells the log.
    proba, estimator
        f0's probabilities on X, and the fitted pipeline: for features that go by a name.

    Examples
    --------
    >>> found = held_out_features(None, True, ["a text"], "may")
    >>> found.n_features, found.matrix.tolist()
    (0, [[1.0]])
    """
    given = _by_name(features, estimator)
    if need != "no":
        if features is not None:  # who gives them wants them read
            need = "must"
        try:
            return _made(given, intercept, X, proba)
        except PriorshiftError as error:
            if need == "must":
                raise _with_way_out(error, features) from None
            _log.info("goes without features, on the model's probabilities alone: %s", error)
    return Features(FeatureMap(None, intercept), np.ones((n_rows(X), 1)), 0)


def _by_name(features: Any, estimator: Any) -> Any:
    """The map that a name stands for."""
    if not isinstance(features, str):
        return features
    if features == PROBABILITIES:
        return log_probabilities
    if not isinstance(estimator, Pipeline):
        raise InputTypeError(
            f"features is {features!r}, but the model is {type(estimator).__name__} and no "
            "Pipeline with a step of that name: pass a transformer, a function of X, or "
            f"{PROBABILITIES!r}"
        )
    names = [name for name, _ in estimator.steps[:-1]]
    if features not in names:
        raise InputError(
            f"features is {features!r}: the pipeline has the steps {', '.join(map(repr, names))} "
            f"before its classifier; name one of them, or {PROBABILITIES!r}"
        )
    return estimator[: names.index(features) + 1]


def _made(given: Any, intercept: bool, X: Any, proba: FloatArray | None) -> Features:
    if given is log_probabilities:
        X = proba
    plain = FeatureMap(given, intercept)
    rows = plain.mapped(X)
    projection = _projection(rows)
    found = FeatureMap(given, intercept, projection)
    ready = FeatureMap(None, intercept)  # the map has run already, and may take long
    where = "X" if given is None else "features(X)"
    matrix = ready(found.projected(rows))
    if len(matrix) != n_rows(X):
        raise InputError(f"features(X) has {len(matrix)} rows, X has {n_rows(X)}: one for each")
    check_finite(matrix, where, column_names(rows))
    if matrix.shape[1] == intercept:
        raise InputError(
            f"{where} has 0 feature(s) (shape=({len(matrix)}, 0)) while a minimum of 1 is required."
        )
    check_magnitude(matrix, "of the held-out set")
    itself = given is None and projection is None
    return Features(found, matrix, matrix.shape[1] - intercept if itself else -1)


def _projection(rows: Any) -> FloatArray | None:
    """Singular vectors (d, m) of wide sparse features; None where they can be dense as they are."""
    if not sparse.issparse(rows) or rows.shape[1] <= _WIDE:
        return None
    if not np.isfinite(rows.data).all():
        raise InputError("X is sparse and has NaN or infinity in it: fill or drop it first")
    number = max(1, min(_COMPONENTS, rows.shape[0] - 1))
    found = TruncatedSVD(number, random_state=0).fit(rows)
    return np.ascontiguousarray(found.components_.T)


def _with_way_out(error: PriorshiftError, features: Any) -> PriorshiftError:
    """The same refusal, with what else can be done about it."""
    if features is not None:
        return error
    return type(error)(
        f"{error}; or pass features=, a transformer or function that makes numbers of X for the "
        f"linear learners (for a pipeline the name of a step, or {PROBABILITIES!r})"
    )


def filled(features: FloatArray, means: FloatArray) -> FloatArray:
    """Features of a batch with the held-out set's means where there is none, or too large a one.

    For who can do without features: the model has read the row, and one missing number is no reason
    to refuse it.

    Examples
    --------
    >>> filled(np.array([[1.0, np.nan]]), np.array([5.0, 7.0])).tolist()
    [[1.0, 7.0]]
    """
    bad = ~(np.abs(features) <= LARGEST)
    if not bad.any():
        return features
    _log.info("%d features of a batch are missing or too large: read as their means", bad.sum())
    return np.where(bad, means, features)
