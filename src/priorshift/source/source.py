"""The offline stage: everything that is known before the stream begins, and never changes after.

A ``Source`` holds f0, the labelled held-out set as the risk needs it, the class prior, the
confusion matrix and the constants of the theorems. It is built once, shared by every stream, and
read-only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from priorshift._validation import as_labels, class_indices
from priorshift.calibration import (
    Calibration,
    CalibrationMap,
    NoCalibration,
    as_calibration,
    calibrate,
)
from priorshift.errors import InputError, SourceError
from priorshift.risk import (
    Blocks,
    Loss,
    RiskData,
    Sketch,
    as_sketch,
    loss_by_name,
    norms,
    project_ball,
)
from priorshift.source.bounds import Bounds, estimate_bounds
from priorshift.source.confusion import confusion_inverse, cross_fit
from priorshift.source.head import fit_head, linear_weights
from priorshift.source.model import FeatureMap, Model, check_estimator_object, is_fitted
from priorshift.typing import AnyArray, Float32Array, FloatArray, IntArray


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
        Class prior of the held-out set, D_0(y).
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
    derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.prior, self.proba, self.labels, self.head, self.risk.XT):
            array.setflags(write=False)  # states may share them, and many streams do
        if self.raw is not None:
            self.raw.setflags(write=False)
        if self.risk.weights is not None:
            self.risk.weights.setflags(write=False)

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
        """C[i, j]: the share of class j that f0 calls i."""
        C = np.zeros((self.n_classes, self.n_classes))
        np.add.at(C, (self.proba.argmax(axis=1), self.labels), 1.0)
        return C / self.counts

    @cached_property
    def soft_confusion(self) -> FloatArray:
        """Column j is the mean of f0's probability vector over class j."""
        starts = np.cumsum(self.counts) - self.counts
        sums = np.add.reduceat(self.proba, starts, axis=0)
        return (sums / self.counts[:, None]).T

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

    def read(self, X: Any) -> Batch:
        """Validate a batch and compute all that any learner needs of it.

        Raises before any state changes if ``X`` is not usable.
        """
        features = self.features(X, self.n_features)
        if features.shape[1] != self.risk.XT.shape[0]:
            raise InputError(
                f"features(X) has {features.shape[1] - self.features.intercept} columns, the "
                f"held-out set had {self.risk.XT.shape[0] - self.features.intercept}"
            )
        proba = self.model.predict_proba(X)
        if len(proba) != len(features):
            raise InputError(f"the model returned {len(proba)} rows for {len(features)} rows of X")
        if self.calibration is None:
            return Batch(proba, features)
        return Batch(self.calibration(proba), features, proba)

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
        return replace(self, proba=found.proba, calibration=found.map, raw=self.proba)


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
    prior: FloatArray | None = None,
    cv: int = 5,
    random_state: int = 0,
    calibration: str | Calibration | None = None,
    sketch: str | Sketch | None = None,
) -> Source:
    """Run the offline stage.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``, ``decision_function`` or only ``predict``. A fitted one is left as
        it is, and the held-out set measures it. An unfitted one is cloned, fitted on all of the
        held-out set, and measured by cross-fitting, so that the confusion matrix is honest.
    X0, y0 : array-likes
        The labelled held-out set.
    features : transformer, callable or None
        What the linear learners see; None is X itself.
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
    prior : (K,) array, optional
        D_0(y) where it is known; by default the shares of the held-out set.
    cv, random_state : int
        Folds of the cross-fitting, and their seed.
    calibration : str or Calibration, optional
        How f0's probabilities are calibrated on the held-out set: "none", "temperature",
        "bias-temperature", "vector", "matrix", "isotonic", "auto", or a recipe with settings.
    sketch : str or Sketch, optional
        Keep a sketch of the features in their place, such as "coreset:1000".

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
    recipe = as_calibration(calibration)
    if sketch is not None:
        as_sketch(sketch)
    feature_map = FeatureMap(features, intercept)
    matrix = feature_map(X0)
    n_features = matrix.shape[1] - intercept if features is None else -1
    if hasattr(X0, "__len__") and len(X0) != len(matrix):
        raise InputError(f"features(X0) has {len(matrix)} rows, X0 has {len(X0)}: one for each")
    labels = as_labels(y0, len(matrix), "y0")
    fitted = is_fitted(estimator)
    classes = _check_classes(estimator if fitted else None, labels)
    indices = class_indices(labels, classes, "y0")
    if fitted:
        model, honest = Model(estimator, classes), True
        proba = model.predict_proba(X0)
    else:
        model, proba, honest = cross_fit(estimator, X0, labels, indices, cv, random_state)
    order = np.argsort(indices, kind="stable")
    data = RiskData.of(matrix, indices, len(classes))
    loss_object = loss_by_name(loss)
    prior = _prior(prior, data)
    W, width = _head(model.estimator, feature_map, data, loss_object, prior, head, diameter)
    source = Source(
        model=model,
        features=feature_map,
        loss=loss_object,
        prior=prior,
        proba=proba[order],
        labels=indices[order],
        risk=data,
        head=W,
        diameter=width,
        n_features=n_features,
        honest=honest,
    )
    source = source.calibrated(recipe, cv=cv, random_state=random_state)
    return source if sketch is None else source.sketched(sketch)


def _check_classes(fitted: Any | None, labels: AnyArray) -> AnyArray:
    classes = np.unique(labels)
    known = getattr(fitted, "classes_", None) if fitted is not None else None
    if known is not None:
        known = np.asarray(known)
        names = set(known.tolist())
        strange = [label for label in classes.tolist() if label not in names]
        if strange:
            raise SourceError(
                f"y0 has class {strange[0]!r}, which the model does not know; it knows "
                f"{known[:5].tolist()} ({len(known)} in all): label the held-out "
                "set as the model was"
            )
        missing = np.setdiff1d(known, classes)
        if len(missing):
            raise SourceError(
                f"the held-out set has no row of class {missing[0]!s}, which the model knows "
                f"({len(missing)} class(es) missing): add labelled rows of every class"
            )
    if len(classes) < 2:
        raise SourceError(
            f"the held-out set has {len(classes)} class, at least 2 classes are needed: "
            "check that y0 is the right column"
        )
    return classes


def _prior(prior: FloatArray | None, data: RiskData) -> FloatArray:
    if prior is None:
        return np.asarray(data.counts / data.counts.sum())
    prior = np.array(prior, dtype=np.float64)
    if prior.shape != (data.n_classes,) or not (prior > 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise InputError(
            f"prior must hold {data.n_classes} positive shares that add up to 1, got {prior}"
        )
    return prior


def _head(
    estimator: Any,
    features: FeatureMap,
    data: RiskData,
    loss: Loss,
    prior: FloatArray,
    head: FloatArray | None,
    diameter: float | None,
) -> tuple[Float32Array, float]:
    if diameter is not None and not (np.isfinite(diameter) and diameter > 0):
        raise InputError(f"diameter is {diameter}: it must be a positive number")
    shape = (data.n_classes, data.XT.shape[0])
    if head is None and features.map is None:
        head = linear_weights(estimator, data.n_classes, features.intercept)
    if head is not None and (np.shape(head) != shape or not np.isfinite(head).all()):
        raise InputError(f"head must be a finite array of shape {shape}, got {np.shape(head)}")
    radius = None if diameter is None else diameter / 2.0
    if head is None or (radius is not None and np.linalg.norm(head) > radius * (1 + 1e-6)):
        head = fit_head(data, loss, prior, radius)
    W = np.asarray(head, dtype=np.float32)[None]
    if diameter is None:
        diameter = 2.0 * max(float(norms(W)[0]), 1e-3)
    return project_ball(W, diameter / 2.0)[0], float(diameter)
