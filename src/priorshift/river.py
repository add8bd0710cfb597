"""River's face: one row at a time, as a dict. River itself is needed only by those who use it."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from priorshift._validation import check_integer, known_classes
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

    Parameters
    ----------
    classifier : LabelShiftClassifier
        Fitted.
    batch_size : int
        Rows that make a round: ``learn_one`` keeps them until so many have come.
    features : list, optional
        Feature names in the order of the columns that the classifier was fitted on. By default its
        ``feature_names_in_``. One that was fitted on an array has none: then the first row names
        the columns, but only if it has them in sorted order (numbers in them as numbers), so that
        there is one order to think of. Any other row is refused: the answers would be wrong.

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
        self._names = self._known_names()
        self._waiting: tuple[Batch, ...] = ()

    def learn_one(self, x: dict[Any, Any], y: Any = None) -> None:
        """Learn from a row, and from its label where there is one.

        A row that is refused is not kept; those that wait for their batch stay.
        """
        names = self._order(x)
        batch = self._read(x, names)
        known = known_classes([y], 1, self.classifier_.classes_)
        waiting = (*self._waiting, batch._replace(known=known))
        if len(waiting) == self.batch_size:
            clf = self.classifier_
            clf.stream_, outcome = clf.deployment_.step(clf.stream_, joined(waiting))
            if outcome.alarm:
                clf._tell()
            waiting = ()
        self._waiting, self._names = waiting, names

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Probability of each class; changes nothing."""
        clf, batch = self.classifier_, self._read(x, self._order(x))
        (row,) = clf.deployment_.predict_proba(clf.stream_, batch).tolist()
        return dict(zip(self.classifier_.classes_.tolist(), row, strict=True))

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """The most probable class; changes nothing."""
        proba = self.predict_proba_one(x)
        return max(proba, key=lambda label: proba[label])

    @property
    def _multiclass(self) -> bool:
        return len(self.classifier.classes_) > 2

    def _known_names(self) -> list[Any] | None:
        names = self.features
        if names is None:
            names = getattr(self.classifier, "feature_names_in_", None)
        if names is None:
            return None
        names = list(names)
        width = getattr(self.classifier, "n_features_in_", len(names))
        if len(names) != width:
            raise InputError(f"features has {len(names)} names, the classifier {width} columns")
        return names

    def _order(self, x: dict[Any, Any]) -> list[Any]:
        """Names in the order of the columns; before the first row, its own if they are sorted."""
        if not hasattr(x, "keys"):
            raise InputTypeError(f"x is {type(x).__name__}: pass a dict of features")
        names = list(x) if self._names is None else self._names
        if self._names is None and names != sorted(names, key=natural):
            raise InputError(
                f"the classifier was fitted on columns without names, and x has {names[:5]}: pass "
                "features=, the names in the order of its columns"
            )
        missing = [name for name in names if name not in x]
        if missing:
            raise InputError(f"x has no feature {missing[0]!r}; it has {list(x)[:5]}")
        return names

    def _read(self, x: dict[Any, Any], names: list[Any]) -> Batch:
        """The row as the classifier sees it, validated."""
        row = [[x[name] for name in names]]
        named = hasattr(self.classifier, "feature_names_in_")
        return self.classifier_._read(as_frame(row, names) if named else row)


def natural(name: Any) -> list[int | str]:
    """A key that sorts numbers within names as numbers.

    Examples
    --------
    >>> sorted(["x10", "x2", "a"], key=natural), sorted([10, 2], key=natural)
    (['a', 'x2', 'x10'], [2, 10])
    """
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(name))]


def as_frame(rows: list[list[Any]], names: list[Any]) -> Any:
    """A pandas frame, as models that were fitted on one expect; without pandas, the rows.

    Examples
    --------
    >>> np.asarray(as_frame([[1.0, 2.0]], ["a", "b"])).tolist()
    [[1.0, 2.0]]
    """
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=names)


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
