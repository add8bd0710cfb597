"""River's face: one row at a time, as a dict. River itself is needed only by those who use it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priorshift._rows import frame_library
from priorshift._validation import check_integer, known_classes, plain_labels
from priorshift.classifier import LabelShiftClassifier
from priorshift.errors import InputError, InputTypeError
from priorshift.source import Batch

if TYPE_CHECKING:
    Base: Any = object
else:
    try:
        from river.base import Classifier as Base
    except ImportError:
        Base = object


class LabelShiftStream(Base):  # type: ignore[misc]
    """A stream of single rows for a fitted ``LabelShiftClassifier``, with River's methods.

    Where River is installed it is one of its classifiers, for its pipelines, metrics and
    ``evaluate.progressive_val_score``. The classifier that it is given stays as it is: many streams
    may start from one.

    A row reaches the model as the rows of the held-out set did. Of a classifier that was fitted on
    a frame, ``x`` is a dict, and becomes a frame of one row with the columns in their order;
    fitted on an array, ``x`` is a dict with the names of ``features``; fitted on a list (of texts,
    of dicts), ``x`` is what the list holds.

    Parameters
    ----------
    classifier : LabelShiftClassifier
        Fitted.
    batch_size : int
        Rows that make a round: ``learn_one`` keeps them until so many have come.
    features : list, optional
        Feature names in the order of the columns that the classifier was fitted on. By default
        those of the frame. One that was fitted on an array has none, and needs them here, unless
        rows have the numbers 0, 1, ... for names, or there is one column.

    Attributes
    ----------
    classifier_ : LabelShiftClassifier
        The classifier of this stream: ``prior_``, ``n_rounds_``, ``save`` and all else are there.

    Examples
    --------
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
    >>> stream = LabelShiftStream(clf)
    >>> stream.learn_one({"height": 0.9})  # no label
    >>> stream.learn_one({"height": -0.7}, "yes")  # a label
    >>> stream.classifier_.prior_.tolist(), clf.n_rounds_
    ([0.0, 1.0], 0)
    >>> stream.predict_one({"height": 0.7})
    'yes'
    >>> stream.predict_one({"width": 0.7})
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: x has no feature 'height'; it has ['width']
    """

    def __init__(
        self,
        classifier: LabelShiftClassifier,
        batch_size: int = 1,
        features: list[Any] | None = None,
    ) -> None:
        if not isinstance(classifier, LabelShiftClassifier):
            raise InputTypeError(
                f"classifier is {type(classifier).__name__}: pass a LabelShiftClassifier"
            )
        check_is_fitted(classifier)
        check_integer(batch_size, "batch_size", least=1)
        self.classifier = classifier
        self.batch_size = batch_size
        self.features = features
        # Its parts are never changed, only replaced: a shallow copy has a stream of its own.
        self.classifier_ = copy(classifier)
        self._kind = row_kind(classifier)
        self._names = self._known_names()
        self._waiting: tuple[Batch, ...] = ()

    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn from a row, and from its label where there is one.

        A row that is refused is not kept; those that wait for their batch stay.
        """
        names = self._order(x)
        batch = self._read(x, names)
        known = known_classes([y], 1, self.classifier_.classes_)
        waiting = (*self._waiting, batch._replace(known=known))
        if len(waiting) == self.batch_size:
            self.classifier_._learn(joined(waiting), None, predict=False)
            waiting = ()
        self._waiting, self._names = waiting, names

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each class; changes nothing."""
        clf, batch = self.classifier_, self._read(x, self._order(x))
        (row,) = clf.deployment_.predict_proba(clf.stream_, batch).tolist()
        return dict(zip(plain_labels(self.classifier_.classes_), row, strict=True))

    def predict_one(self, x: Any) -> Any:
        """The most probable class; changes nothing."""
        proba = self.predict_proba_one(x)
        return max(proba, key=lambda label: proba[label])

    def reset(self) -> None:
        """Start a new stream on the same source: forget all rows."""
        self.classifier_.reset()
        self._waiting = ()

    @property
    def _multiclass(self) -> bool:
        return len(self.classifier.classes_) > 2

    def _known_names(self) -> list[Any] | None:
        """Names of the columns; None where the first row has to show that it needs none."""
        if self._kind == "rows":
            if self.features is not None:
                raise InputError(
                    "features names columns, but the classifier was fitted on a list, whose rows "
                    "have none: leave it out"
                )
            return None
        names = self.features
        for attribute in ("feature_names_in_", "_names_in"):
            names = getattr(self.classifier, attribute, None) if names is None else names
        if names is None:
            return None
        names = list(names)
        width = getattr(self.classifier, "n_features_in_", len(names))
        if len(set(names)) != width:
            raise InputError(
                f"features has {len(set(names))} names, the classifier {width} columns: name each "
                "once, in their order"
            )
        return names

    def _order(self, x: Any) -> list[Any] | None:
        """Names in the order of the columns; None for rows that have no columns."""
        if self._kind == "rows":
            return None
        if not hasattr(x, "keys"):
            raise InputTypeError(f"x is {type(x).__name__}: pass a dict of features")
        names = self._names
        if names is None:
            width = getattr(self.classifier, "n_features_in_", len(x))
            names = list(x) if len(x) == width == 1 else list(range(width))
            if set(x) != set(names):
                raise InputError(
                    f"the classifier was fitted on columns without names, and x has {list(x)[:5]}: "
                    "pass features=, the names in the order of its columns, or fit it on a frame"
                )
        missing = [name for name in names if name not in x]
        if missing:
            raise InputError(f"x has no feature {missing[0]!r}; it has {list(x)[:5]}")
        return names

    def _read(self, x: Any, names: list[Any] | None) -> Batch:
        """The row as the classifier sees it, validated."""
        if names is None:
            return self.classifier_._read([x])
        own = getattr(self.classifier, "feature_names_in_", None)
        return self.classifier_._read(
            as_frame(x, names, self._kind) if own is not None else [[x[name] for name in names]]
        )


def row_kind(classifier: LabelShiftClassifier) -> str:
    """What the rows of the held-out set came in: "array", "rows", or the library of a frame.

    Examples
    --------
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
    >>> row_kind(LabelShiftClassifier(learner="fth", cv=2).fit(X, y))
    'array'
    """
    kind = classifier.__dict__.get("_kind_in")
    if kind is None:  # a file of before
        kind = "pandas" if hasattr(classifier, "feature_names_in_") else "array"
    return "rows" if str(kind).startswith("array-") else str(kind)


def as_frame(x: dict[Any, Any], names: list[Any], library: str) -> Any:
    """A frame of one row, of the library that the held-out set came from, polars or pandas.

    Examples
    --------
    >>> np.asarray(as_frame({"b": 2.0, "a": 1.0}, ["a", "b"], "pandas")).tolist()
    [[1.0, 2.0]]
    """
    return frame_library(library).DataFrame({name: [x[name]] for name in names})


def joined(batches: tuple[Batch, ...]) -> Batch:
    """One batch of the rows of several, all with labels or marks that there is none.

    Examples
    --------
    >>> row = Batch(np.array([[0.2, 0.8]]), np.zeros((1, 3)), known=np.array([-1]))
    >>> joined((row, row)).proba.shape
    (2, 2)
    """
    raws = [batch.f0_proba for batch in batches]
    return Batch(
        np.concatenate([batch.proba for batch in batches]),
        np.concatenate([batch.features for batch in batches]),
        None if batches[0].raw is None else np.concatenate(raws),
        np.concatenate([np.asarray(batch.known) for batch in batches]),
    )
