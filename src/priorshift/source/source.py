"""The offline stage: everything that is known before the stream begins, and never changes after.

A ``Source`` holds f0, the labelled held-out set as the risk needs it, the class prior, the
confusion matrix and the constants of the theorems. It is built once, shared by every stream, and
read-only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from priorshift._rows import as_rows, column_names, n_rows, take_rows, wrong_rows
from priorshift._validation import (
    as_floats,
    as_labels,
    by_label,
    check_choice,
    check_finite,
    check_number,
    class_indices,
    plain_labels,
)
from priorshift.calibration import (
    Calibration,
    CalibrationMap,
    NoCalibration,
    as_calibration,
    calibrate,
)
from priorshift.errors import InputError, InputTypeError, PriorshiftWarning, SourceError
from priorshift.risk import (
    Blocks,
    Loss,
    RiskData,
    Sketch,
    Softmax,
    as_sketch,
    check_magnitude,
    class_sums,
    loss_by_name,
    norms,
    project_ball,
)
from priorshift.source.bounds import Bounds, estimate_bounds, head_curvature
from priorshift.source.confusion import confusion_inverse, cross_fit
from priorshift.source.features import NEEDS, Features, filled, held_out_features
from priorshift.source.head import fit_head, linear_weights
from priorshift.source.model import (
    FeatureMap,
    Model,
    check_estimator_object,
    is_fitted,
    log_probabilities,
)
from priorshift.typing import AnyArray, Float32Array, FloatArray, IntArray

# Balls that float32 can hold with gradients of any size that features may have.
_DIAMETERS = (1e-6, 1e12)
# What stands for the share of a class that has no rows, and that the model never names.
_SMALLEST_SHARE = 1e-6
# Rows that are kept as they came.
SAMPLE = 16
# Fewer rows are not worth a second thread.
_MANY_ROWS = 4096
# Standard errors below what guesses would be right, and above which columns are swapped.
_SURE = 3.0
_SWAPPED = 5.0
# Rows without an error that are no accident of a few.
_NEVER_WRONG = 200


class Batch(NamedTuple):
    """One batch of the stream, validated: class probabilities (n, K) and the features (n, d).

    ``proba`` is what learners read: f0's probabilities, calibrated where the source has a
    calibration. Then ``raw`` holds f0's own; ``f0_proba`` finds them in either case. ``known`` (n,)
    holds the class index of each row whose label has come, -1 for all others; None: of no row.
    Learners adapt to it and predict without looking at it; what they have learned from it stays in
    the mix, also when the same batch is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> Batch(np.array([[0.2, 0.8]]), np.zeros((1, 3))).labels.tolist()
    [1]
    """

    proba: FloatArray
    features: FloatArray
    raw: FloatArray | None = None
    known: IntArray | None = None

    @property
    def labels(self) -> IntArray:
        """Hard predictions by ``proba``, as class indices."""
        return np.asarray(self.proba.argmax(axis=1))

    @property
    def f0_proba(self) -> FloatArray:
        """The probabilities of f0 itself, never calibrated."""
        return self.proba if self.raw is None else self.raw

    def rows(self, part: slice | AnyArray) -> Batch:
        """The same of some of its rows."""
        raw = None if self.raw is None else self.raw[part]
        known = None if self.known is None else self.known[part]
        return Batch(self.proba[part], self.features[part], raw, known)


@dataclass(frozen=True, eq=False)
class Source:
    """What the offline stage knows. Build it with ``build_source``.

    Attributes
    ----------
    classes : (K,) array
        Class labels, sorted; class indices everywhere else refer to this order.
    prior : (K,) array
        Class prior of the held-out set, D_0(y). A class without rows there has the share that the
        model gives it on the mean.
    confusion, soft_confusion : (K, K) arrays
        Column ``j``: how f0 spreads class ``j`` over its predictions (hard), or its mean
        probability vector (soft). Equation "definition-C", with the denominator summed.
    proba, labels : (n, K), (n,) arrays
        f0's honest probabilities on the held-out set, and its classes, rows sorted by class. With a
        calibration, calibrated: each row by a map that was fitted on other rows.
    risk : RiskData
        Class-wise features of the held-out set, or of the sketch that has replaced them.
    head : (K, d) float32 array
        Linear model that UOGD and ATLAS start from.
    diameter, gradient_bound, loss_bound : float
        The constants Gamma (D), G and B of the theorems, from the data and the ball.
    estimated_bounds : Bounds
        G and B as gradients and losses on the way to the head show them.
    calibration : CalibrationMap or None
        The map from f0's probabilities to those that learners read; None: there is none.
    recipe : Calibration or None
        What that map was fitted with, nothing left to choose. None in a source of a file, which
        has what was worked out with it in ``derived``.
    cross_fitted : bool
        Whether other models than f0 itself, fitted to parts of the held-out set, gave ``proba``.
    row_weights : (n,) array or None
        How much each held-out row counts within its class; None: all alike.
    n_features : int
        Columns of X, where X itself is the features; -1 where a map makes them; 0 where there are
        none, and ``risk`` holds one column of ones.
    sample : rows, or None
        A few rows of the held-out set as they came, by which a saved model is known again.
    derived : dict
        What learners and the guard have worked out of the source once, by name. It is saved with
        the source, so that a state means the same on every machine.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> source = build_source(LogisticRegression().fit(X, y), X, y)
    >>> source.classes.tolist(), source.prior.tolist(), source.sigma_min
    (['no', 'yes'], [0.5, 0.5], 1.0)
    """

    model: Model
    features: FeatureMap
    loss: Loss
    prior: FloatArray
    proba: FloatArray
    labels: IntArray
    risk: RiskData
    head: Float32Array
    diameter: float
    n_features: int
    honest: bool = True
    calibration: CalibrationMap | None = None
    raw: FloatArray | None = None
    cross_fitted: bool = False
    row_weights: FloatArray | None = None
    recipe: Calibration | None = field(default=None, repr=False)
    sample: Any = field(default=None, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        whole = (self.prior, self.proba, self.labels, self.head, self.risk.XT)
        for array in (*whole, self.raw, self.row_weights, self.risk.weights):
            if array is not None:
                array.setflags(write=False)  # states may share them, and many streams do

    @property
    def classes(self) -> AnyArray:
        """Class labels, sorted."""
        return self.model.classes

    @property
    def f0_proba(self) -> FloatArray:
        """f0's own probabilities on the held-out set, without calibration."""
        return self.proba if self.raw is None else self.raw

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.model.classes)

    @property
    def held_out(self) -> Batch:
        """The held-out set as a batch: honest probabilities, sorted by class.

        Its features are empty (n, 0) where a sketch has replaced them.
        """
        whole = self.risk.XT.shape[1] == len(self.labels) and not self.risk.shuffled
        features: Any = self.risk.XT.T if whole else np.empty((len(self.labels), 0))
        return Batch(self.proba, features, self.raw)

    @cached_property
    def counts(self) -> IntArray:
        """Held-out rows of each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    def sketched(self, sketch: str | Sketch) -> Source:
        """Return a source that keeps a sketch in the place of the held-out set's features.

        Memory falls in proportion. All else, f0's probabilities on the held-out set and the
        constants of the theorems included, stays that of the whole held-out set. ``Blocks`` needs
        every row: it keeps them in the order that its blocks are cut from, without a second copy.

        Parameters
        ----------
        sketch : str or Sketch
            "coreset:1000", "herding:1000", "blocks:1000", or an object.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(2000, 2))
        >>> y = (X[:, 0] > 0).astype(int)
        >>> source = build_source(LogisticRegression().fit(X, y), X, y)
        >>> small = source.sketched("coreset:100")
        >>> small.risk.XT.shape, small.counts.tolist() == source.counts.tolist()
        ((3, 100), True)
        """
        sketch = as_sketch(sketch)
        if isinstance(sketch, Blocks):
            return replace(self, risk=sketch.shuffled(self.risk))
        if not sketch.fixed:
            raise InputError(
                f"{sketch!r} is another one each round and cannot replace the held-out set: give "
                "it to the learner, ATLAS(sketch=...)"
            )
        return replace(self, risk=sketch.at(self.risk, 0))

    @cached_property
    def confusion(self) -> FloatArray:
        """C[i, j]: the share of class j that f0 calls i.

        Of a class without rows nothing is known: f0 is taken to call it by its name.
        """
        C = np.zeros((self.n_classes, self.n_classes))
        weights = 1.0 if self.row_weights is None else self.row_weights
        np.add.at(C, (self.proba.argmax(axis=1), self.labels), weights)
        return self._columns(C)

    @cached_property
    def soft_confusion(self) -> FloatArray:
        """Column j is the mean of f0's probability vector over class j."""
        weighted = self.proba
        if self.row_weights is not None:
            weighted = self.proba * self.row_weights[:, None]
        offsets = np.concatenate([[0], np.cumsum(self.counts)])
        return self._columns(class_sums(weighted, offsets, axis=0).T)

    def _columns(self, sums: FloatArray) -> FloatArray:
        """Sums over the rows of each class as shares; of a class without rows, all its own."""
        C = np.array(sums / np.maximum(self.counts, 1))
        empty = self.counts == 0
        C[empty, empty] = 1.0
        return C

    @cached_property
    def sigma_min(self) -> float:
        """Smallest singular value of C: the sigma of the theorems."""
        return float(np.linalg.svd(self.confusion, compute_uv=False)[-1])

    @cached_property
    def confusion_inverse(self) -> FloatArray:
        """C^-1, or an error that names the classes f0 cannot tell apart."""
        return confusion_inverse(self.confusion, self.classes, "the confusion matrix of f0")

    @cached_property
    def soft_confusion_inverse(self) -> FloatArray:
        """Inverse of the soft confusion matrix."""
        return confusion_inverse(
            self.soft_confusion, self.classes, "the soft confusion matrix of f0"
        )

    @property
    def radius(self) -> float:
        """Radius of the ball W."""
        return self.diameter / 2.0

    @cached_property
    def gradient_bound(self) -> float:
        """G = sup ||grad loss||: ``||(p - e_y) x^T|| <= sqrt(2) max ||x||`` for both losses."""
        return float(np.sqrt(2.0)) * self.risk.largest_norm

    @cached_property
    def loss_bound(self) -> float:
        """B = sup |loss| over the ball: two rows of W differ by at most ``sqrt(2)`` radii."""
        gap = float(np.sqrt(2.0)) * self.radius * self.risk.largest_norm
        return self.loss.largest(gap, self.n_classes)

    @cached_property
    def estimated_bounds(self) -> Bounds:
        """G and B estimated on the held-out set, or on the sketch that has replaced it."""
        return estimate_bounds(self.risk, self.loss, self.head, self.prior)

    @cached_property
    def head_curvature(self) -> float | None:
        """The largest curvature of a class's risk at the head; None for a loss that is not smooth.

        See ``head_curvature`` of ``source/bounds.py``.
        """
        return head_curvature(self.risk, self.head) if isinstance(self.loss, Softmax) else None

    @property
    def has_features(self) -> bool:
        """Whether there are features beside f0's probabilities."""
        return self.n_features != 0

    def read(
        self, X: Any, *, lenient: bool = False, pool: ThreadPoolExecutor | None = None
    ) -> Batch:
        """Validate a batch and compute all that any learner needs of it.

        Raises before any state changes if ``X`` is not usable. ``lenient`` is for learners that can
        do without features: a missing one is read as the held-out set's mean. The threads of a
        ``pool`` share the calibration of many rows.
        """
        X = as_rows(X)
        if self.features.map is log_probabilities:
            proba = self._f0(X)
            features = self._features(proba, lenient)
        else:
            features = self._features(X, lenient)
            proba = self._f0(X)
        if len(proba) != len(features):
            raise InputError(f"features(X) has {len(features)} rows for {len(proba)} rows of X")
        if self.calibration is None:
            return Batch(proba, features)
        if pool is None or len(proba) < _MANY_ROWS:
            return Batch(self.calibration(proba), features, proba)
        # A row's bits do not depend on the rows that come with it.
        parts = np.array_split(proba, pool._max_workers)
        return Batch(np.concatenate(list(pool.map(self.calibration, parts))), features, proba)

    def _f0(self, X: Any) -> FloatArray:
        proba = self.model.predict_proba(X)
        if len(proba) != n_rows(X):
            raise InputError(wrong_rows(len(proba), X))
        return proba

    def _features(self, X: Any, lenient: bool) -> FloatArray:
        if not self.has_features:
            return np.ones((n_rows(X), 1))
        features = self.features(X, self.n_features)
        if self.features.map is log_probabilities:  # of what has been looked at
            return features
        if features.shape[1] != self.risk.XT.shape[0]:
            raise InputError(
                f"features(X) has {features.shape[1] - self.features.intercept} columns, the "
                f"held-out set had {self.risk.XT.shape[0] - self.features.intercept}"
            )
        if lenient:
            return filled(features, self._feature_means)
        check_finite(features, "X" if self.features.map is None else "features(X)", column_names(X))
        check_magnitude(features, "of the batch")
        return features

    @cached_property
    def _feature_means(self) -> FloatArray:
        return np.asarray(self.prior @ self.risk.means)

    def calibrated(
        self, calibration: str | Calibration | None, *, cv: int = 5, random_state: int = 0
    ) -> Source:
        """Return a source like this one whose f0 is calibrated on the held-out set.

        Learners read the probabilities of the fitted map; those of the held-out set are
        cross-fitted in ``cv`` folds, so that confusion matrices stay honest. "none" and None change
        nothing.
        """
        recipe = as_calibration(calibration)
        if isinstance(recipe, NoCalibration):
            return self
        if self.calibration is not None:
            raise InputError(
                f"the source is calibrated already ({self.calibration.name}): calibrate the one "
                "that it was made from"
            )
        found = calibrate(
            recipe,
            self.proba,
            self.labels,
            prior=self.prior,
            classes=self.classes,
            folds=cv,
            seed=random_state,
        )
        return replace(
            self, proba=found.proba, calibration=found.map, recipe=found.recipe, raw=self.proba
        )


def build_source(
    estimator: Any,
    X0: Any,
    y0: Any,
    *,
    features: Any = None,
    intercept: bool = True,
    loss: str = "softmax",
    diameter: float | None = None,
    head: FloatArray | None = None,
    prior: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    cv: int = 5,
    random_state: int = 0,
    calibration: str | Calibration | None = None,
    sketch: str | Sketch | None = None,
    need: str = "must",
) -> Source:
    """Run the offline stage.

    Parameters
    ----------
    estimator : classifier or function
        With ``predict_proba``, ``decision_function`` or only ``predict``; or a function of X that
        returns class probabilities. A fitted one is left as it is, and the held-out set measures
        it. An unfitted one is cloned, fitted on all of the held-out set, and measured by
        cross-fitting, so that the confusion matrix is honest.
    X0, y0 : whatever the model reads, and labels
        The labelled held-out set.
    features : transformer, callable, str or None
        What the linear learners see; None is X itself, a name that of a step of a pipeline, or
        "probabilities" for the logarithms of f0's.
    intercept : bool
        Give the linear learners a constant feature.
    loss : {"softmax", "hinge"}
        Loss of the linear learners.
    diameter : float, optional
        Gamma. By default twice the norm of f0's weights, or of a fit on the held-out set.
    head : (K, d) array, optional
        Start of the linear learners. By default f0's weights where f0 is linear in the features,
        else a fit on the held-out set, in the ball. One outside a ball of given diameter is
        replaced by such a fit.
    prior : (K,) array or dict, optional
        D_0(y) where it is known, in the order of ``classes`` (by default sorted), or by label; by
        default the shares of the held-out set.
    classes : (K,) array, optional
        All labels; of a function in the order of its columns. By default those of the model and of
        ``y0``. A class without rows keeps what the model says of it.
    sample_weight : (n,) array, optional
        How much each row of the held-out set counts.
    cv, random_state : int
        Folds of the cross-fitting, and their seed.
    calibration : str or Calibration, optional
        How f0's probabilities are calibrated on the held-out set: "none", "temperature",
        "bias-temperature", "vector", "matrix", "isotonic", "auto", or a recipe with settings.
    sketch : str or Sketch, optional
        Keep a sketch of the features in their place, such as "coreset:1000".
    need : {"must", "may", "no"}
        Whether features are read: "may" goes without where none can be made of X.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 2)) + 2 * y[:, None]
    >>> source = build_source(LogisticRegression(), X, y)      # unfitted: cross-fitted
    >>> source.confusion.sum(axis=0).tolist(), bool(source.sigma_min > 0.5)
    ([1.0, 1.0], True)
    """
    check_estimator_object(estimator)
    if not isinstance(intercept, bool | np.bool_):
        raise InputTypeError(f"intercept is {intercept!r}: give True or False")
    intercept = bool(intercept)
    check_choice("need", need, NEEDS)
    recipe = as_calibration(calibration)
    if sketch is not None:
        as_sketch(sketch)
    X0 = as_rows(X0, "X")
    labels = as_labels(y0, n_rows(X0), "y")
    weights = _row_weights(sample_weight, len(labels))
    if weights is not None and (weights == 0).any():  # a row that counts nothing is not there
        counted = np.flatnonzero(weights)
        X0, labels, weights = take_rows(X0, counted), labels[counted], weights[counted]
    # What is read of X itself is looked at before the model takes its time.
    late = isinstance(features, str) or features is log_probabilities
    found = None if late else held_out_features(features, intercept, X0, need)
    fitted = is_fitted(estimator)
    names, columns = _check_classes(estimator, fitted, labels, classes)
    indices = class_indices(labels, names, "y")
    if fitted:
        model, honest = Model(estimator, names, columns), True
        proba = model.predict_proba(X0)
        if len(proba) != len(labels):
            raise InputError(wrong_rows(len(proba), X0))
    else:
        model, proba, honest = cross_fit(
            estimator, X0, labels, indices, cv, random_state, names, weights
        )
    if found is None:
        found = held_out_features(features, intercept, X0, need, proba, model.estimator)
    order = np.argsort(indices, kind="stable")
    within = _within_classes(weights, indices)
    data = RiskData.of(found.matrix, indices, len(names))
    if within is not None and need == "must":
        shares = within[order] / np.bincount(indices)[indices[order]]
        data = replace(data, weights=shares.astype(np.float32))
    if fitted:
        _warn_of_no_errors(proba, indices)
    if not _warn_of_guesses(proba, indices, names):
        _warn_of_swapped(proba, indices, names)
    loss_object = loss_by_name(loss)
    prior = _prior(prior, names, classes, indices, proba, weights)
    W, width = _head(model.estimator, found, data, loss_object, prior, head, diameter)
    source = Source(
        model=model,
        features=found.map,
        loss=loss_object,
        prior=prior,
        proba=proba[order],
        labels=indices[order],
        risk=data,
        head=W,
        diameter=width,
        n_features=found.n_features,
        honest=honest,
        cross_fitted=not fitted,
        row_weights=None if within is None else within[order],
        sample=_sample(X0, order),
    )
    source = source.calibrated(recipe, cv=cv, random_state=random_state)
    return source if sketch is None or not source.has_features else source.sketched(sketch)


def _row_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    try:
        weights = as_floats(sample_weight, "sample_weight")
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"sample_weight cannot be used: {error}") from None
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1:
        raise InputError("Sample weights must be 1D array or scalar: one for each row")
    if weights.shape != (rows,):
        raise InputError(f"sample_weight.shape == {weights.shape}, expected {(rows,)}")
    if not weights.any():
        raise InputError("sample_weight is zero everywhere: some row must count")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError("sample_weight must hold finite numbers, none of them negative")
    return weights


def _within_classes(weights: FloatArray | None, indices: IntArray) -> FloatArray | None:
    """Weights whose mean is 1 in every class; None where the rows of a class count alike."""
    if weights is None:
        return None
    means = np.bincount(indices, weights) / np.maximum(np.bincount(indices), 1)
    within = weights / means[indices]
    return None if np.allclose(within, 1.0, rtol=0, atol=1e-9) else within


def _sample(X: Any, order: IntArray) -> Any:
    """A few rows of every kind of X, spread over the classes; None where it has no rows to take."""
    places = np.linspace(0, len(order) - 1, min(SAMPLE, len(order))).astype(np.intp)
    try:
        return take_rows(X, order[places])
    except Exception:  # what only the model understands may not know how to give a part of itself
        return None


def _check_classes(
    estimator: Any, fitted: bool, labels: AnyArray, classes: Any
) -> tuple[AnyArray, AnyArray | None]:
    """All labels, sorted; and those of the columns, where only the user can know them."""
    held = np.unique(labels)
    known = getattr(estimator, "classes_", None) if fitted else None
    columns = None
    if classes is not None:
        columns = _named_classes(classes)
        if known is not None:
            _refuse_strange(np.asarray(known), columns, "the model knows", "classes= does not name")
        known, columns = columns, columns if known is None and fitted else None
    if known is None:
        names = held
    else:
        _refuse_strange(held, np.asarray(known), "y has", "the model does not know")
        names = np.unique(np.asarray(known))
        _warn_of_missing(np.setdiff1d(names, held))
    if len(names) < 2 or len(held) < 2:
        raise SourceError(
            f"the held-out set has {len(held)} class, at least 2 classes are needed: "
            "check that y is the right column"
        )
    return names, columns


def _named_classes(classes: Any) -> AnyArray:
    if not hasattr(classes, "__len__"):
        raise InputTypeError(f"classes is {classes!r}: give all labels, such as ['no', 'yes']")
    names = as_labels(classes, len(classes), "classes")
    if len(np.unique(names)) != len(names):
        raise InputError("classes names a label twice")
    return names


def _refuse_strange(some: AnyArray, known: AnyArray, who: str, why: str) -> None:
    names = set(plain_labels(known))
    like = known if some.dtype.kind == "M" else None
    strange = [label for label in plain_labels(some, like) if label not in names]
    if strange:
        raise SourceError(
            f"{who} class {strange[0]!r}, which {why}; known are {plain_labels(known[:5])} "
            f"({len(known)} in all): label the held-out set as the model was"
        )


def _warn_of_missing(missing: AnyArray) -> None:
    if len(missing):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        warnings.warn(
            f"the held-out set has no row of {', '.join(map(str, missing[:5]))}{more}: what the "
            "model says of such a class is taken as it is. Add labelled rows of it",
            PriorshiftWarning,
            stacklevel=5,
        )


def _warn_of_no_errors(proba: FloatArray, indices: IntArray) -> None:
    """Warn of a model that is never wrong: it may have been trained on these rows."""
    if len(indices) >= _NEVER_WRONG and (proba.argmax(axis=1) == indices).all():
        warnings.warn(
            f"the model is right on all {len(indices)} held-out rows: if it was trained on them, "
            "nothing is known of its errors. Hold out rows that it has not seen",
            PriorshiftWarning,
            stacklevel=3,
        )


def below_guesses(proba: FloatArray, indices: IntArray, n_classes: int) -> float | None:
    """Mean recall of a model that surely is right less often than guesses; None of all others.

    Examples
    --------
    >>> turned = np.tile([[0.9, 0.1], [0.1, 0.9]], (20, 1))
    >>> below_guesses(turned, np.tile([1, 0], 20), 2) < 0.1
    True
    """
    rows = np.bincount(indices, minlength=n_classes)
    there = rows > 0
    right = np.bincount(indices[proba.argmax(axis=1) == indices], minlength=n_classes)[there]
    recall = (right + 0.5) / (rows[there] + 1.0)
    noise = math.sqrt(float((recall * (1.0 - recall) / rows[there]).sum())) / len(recall)
    return float(recall.mean()) if recall.mean() + _SURE * noise < 1.0 / n_classes else None


def _warn_of_guesses(proba: FloatArray, indices: IntArray, names: AnyArray) -> bool:
    """Warn of answers that are right less often than guesses: columns may be in another order."""
    recall = below_guesses(proba, indices, len(names))
    if recall is not None:
        warnings.warn(
            f"the model is right less often than guessing would be, on {recall:.0%} of the "
            f"rows of a class in the mean: are its columns in the order {plain_labels(names)[:5]}? "
            "One number a row is the probability of the second class",
            PriorshiftWarning,
            stacklevel=3,
        )
    return recall is not None


def _warn_of_swapped(proba: FloatArray, indices: IntArray, names: AnyArray) -> None:
    """Warn of classes that surely would be right more often in each other's columns.

    A model that is biased, or weak, calls the rows of one class by the name of another. That most
    rows of each class are called by the name of the next, round in a circle, is no bias.
    """
    answers, labels = proba.argmax(axis=1), plain_labels(names)
    right = np.bincount(indices[answers == indices], minlength=len(names))
    pairs, counts = np.unique(indices * len(names) + answers, return_counts=True)
    rows = np.bincount(indices, minlength=len(names))
    called: dict[int, tuple[int, int]] = {}  # by class, how many rows are called by another's name
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        own, other = divmod(pair, len(names))
        surely = count - right[own] > _SWAPPED * math.sqrt(count + right[own])
        if surely and 2 * count > rows[own]:
            called[own] = count, other
    for first in called:
        circle = [first]
        while circle[-1] in called and called[circle[-1]][1] not in circle:
            circle.append(called[circle[-1]][1])
        if called.get(circle[-1], (0, -1))[1] != first:
            continue
        told = "; ".join(
            f"of {rows[k]} rows of {labels[k]!r} it calls {called[k][0]} "
            f"{labels[called[k][1]]!r}, and {right[k]} {labels[k]!r}"
            for k in sorted(circle)
        )
        warnings.warn(
            f"the columns of {' and '.join(repr(labels[k]) for k in sorted(circle))} look swapped: "
            f"{told}. Check which label each column is for",
            PriorshiftWarning,
            stacklevel=3,
        )
        return


def _prior(
    prior: Any,
    names: AnyArray,
    classes: Any,
    indices: IntArray,
    proba: FloatArray,
    weights: FloatArray | None,
) -> FloatArray:
    if prior is None:
        return measured_prior(indices, proba, weights)
    if isinstance(prior, Mapping):
        shares = as_floats(by_label(prior, names, "prior"), "prior")
    else:
        shares = np.array(as_floats(prior, "prior"))
        if classes is not None and shares.shape == (len(names),):
            shares = shares[np.argsort(np.asarray(classes))]
    if shares.shape != names.shape or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise InputError(
            f"prior must hold {len(names)} positive shares that add up to 1, got {prior}"
        )
    return shares


def measured_prior(indices: IntArray, proba: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Shares of the held-out set; of a class without rows, what the model gives it on the mean."""
    shares = np.bincount(indices, weights, minlength=proba.shape[1])
    shares = shares / shares.sum()
    empty = shares == 0
    if empty.any():
        shares[empty] = np.maximum(proba[:, empty].mean(axis=0), _SMALLEST_SHARE)
        shares[~empty] *= 1.0 - shares[empty].sum()
    return np.asarray(shares)


def _head(
    estimator: Any,
    features: Features,
    data: RiskData,
    loss: Loss,
    prior: FloatArray,
    head: FloatArray | None,
    diameter: float | None,
) -> tuple[Float32Array, float]:
    if diameter is not None:
        check_number("diameter", diameter, *_DIAMETERS, "[]")
    shape = (data.n_classes, data.XT.shape[0])
    if features.n_features == 0:
        return np.zeros(shape, np.float32), float(diameter or 1.0)
    if head is None and features.n_features > 0:
        head = linear_weights(estimator, data.n_classes, features.map.intercept)
    if head is not None and (np.shape(head) != shape or not np.isfinite(head).all()):
        raise InputError(f"head must be a finite array of shape {shape}, got {np.shape(head)}")
    radius = None if diameter is None else diameter / 2.0
    if head is None or (radius is not None and np.linalg.norm(head) > radius * (1 + 1e-6)):
        head = fit_head(data, loss, prior, radius)
    W = np.asarray(head, dtype=np.float32)[None]
    if diameter is None:
        diameter = 2.0 * max(float(norms(W)[0]), 1e-3)
    return project_ball(W, diameter / 2.0)[0], float(diameter)
