"""The scikit-learn face: one estimator that predicts, and adapts to an unlabelled stream."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priorshift._numerics import threads_for
from priorshift._validation import check_integer, is_frame, known_classes
from priorshift.errors import FileFormatError, InputError, PriorshiftWarning, SourceError
from priorshift.learners import Learner, as_learner
from priorshift.learners.settings import round_cost
from priorshift.learners.trackers.late import Remembered, check_key, find, merged, remembered_batch
from priorshift.monitoring.guard import Guard, GuardReport, as_guard, check_on_alarm
from priorshift.risk.sketches.named import from_setting, sketch_setting
from priorshift.saving import Saved, decode_recipe, encode_recipe, load_parts, save_parts
from priorshift.source import Batch, build_source
from priorshift.typing import AnyArray, FloatArray

_COLUMNS = ("n_features_in_", "feature_names_in_")
# Standard deviations of features that differ by more than this make gradient steps slow.
_UNEVEN = 100.0


class LabelShiftClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that follows the class mix of an unlabelled stream.

    Parameters
    ----------
    estimator : classifier, optional
        Your model, with ``predict_proba``, ``decision_function`` or only ``predict``. If it is
        fitted it stays as it is; if not, a clone of it is fitted in ``fit``. None is a logistic
        regression. (``sklearn.base.clone``, and so ``GridSearchCV``, forgets a fit: wrap a fitted
        model in ``sklearn.frozen.FrozenEstimator`` there.)
    learner : str or Learner
        "auto", which chooses among trackers and a linear model by itself; "fix", "fth", "ftfwh",
        "rogd", "uogd", "atlas", "atlas-ada", "tracker", "em", "regimes", "flh-ftl",
        "window-hedge", "wavelet"; or a learner object with its own settings.
    hint : str or Hint, optional
        For a learner by name that takes one: "fwd", "win", "peri", "okm" (the default) or "none".
    features : transformer or callable, optional
        What the linear learners see of X, for example the last layer of a network; None is X
        itself.
    intercept : bool
        Give the linear learners an intercept.
    loss : {"softmax", "hinge"}
        Their loss.
    diameter : float, optional
        Diameter of the ball that their weights stay in.
    cv, random_state : int
        Folds, and their seed, of the cross-fitting that measures an unfitted estimator.
    calibration : str or Calibration, optional
        How the model's probabilities are calibrated on the hold-out, for whatever the learner reads
        of them: "none", "temperature", "bias-temperature", "vector", "matrix", "isotonic", "auto",
        or a recipe with settings of its own. None is what the learner asks for, "none" for most.
        ("fix" stays your model to the last bit.)
    guard : bool or Guard, optional
        Test in ``adapt`` whether the stream still is a mix of the known classes; True is
        ``Guard(alpha=0.01)``.
    on_alarm : {"warn", "fall-back", "ignore"}
        At the guard's alarm warn once; or also predict with your model as it is from then on; or
        only keep it in ``guard_report_``.
    sketch : str or Sketch, optional
        Keep a sketch of the hold-out's features in their place, such as "coreset:1000": less memory
        and less to read each round.
    label_memory : int
        How many batches that got a ``batch_id`` are remembered, for labels that come late.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels.
    prior_ : (K,) array
        The class mix that the learner believes in now.
    n_rounds_ : int
        Batches adapted to.
    guard_report_ : GuardReport
        What the guard has to say, where there is one.
    source_, learner_, state_
        The three things that everything above is made of.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 2)) + y[:, None]
    >>> model = LogisticRegression().fit(X[:300], y[:300])
    >>> clf = LabelShiftClassifier(model, learner="fth").fit(X[300:], y[300:])
    >>> only_ones = rng.normal(size=(500, 2)) + 1
    >>> clf = clf.adapt(only_ones)
    >>> bool(clf.prior_[1] > 0.9), clf.n_rounds_
    (True, 1)
    """

    def __init__(
        self,
        estimator: Any = None,
        learner: Any = "auto",
        *,
        hint: Any = None,
        features: Any = None,
        intercept: bool = True,
        loss: str = "softmax",
        diameter: float | None = None,
        cv: int = 5,
        random_state: int = 0,
        calibration: Any = None,
        guard: Any = None,
        on_alarm: str = "warn",
        sketch: Any = None,
        label_memory: int = 100,
    ) -> None:
        self.estimator = estimator
        self.learner = learner
        self.hint = hint
        self.features = features
        self.intercept = intercept
        self.loss = loss
        self.diameter = diameter
        self.cv = cv
        self.random_state = random_state
        self.calibration = calibration
        self.guard = guard
        self.on_alarm = on_alarm
        self.sketch = sketch
        self.label_memory = label_memory

    def fit(self, X: Any, y: Any) -> Self:
        """Run the offline stage on the labelled hold-out (X, y), and start a stream.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> LabelShiftClassifier(learner="uogd", cv=2).fit(X, y).predict([[0.9]]).tolist()
        ['yes']
        """
        before = {name: getattr(self, name, None) for name in _COLUMNS}
        try:
            return self._fit(self._validate(X, reset=True), y)
        except Exception:
            for name, value in before.items():  # a refused fit leaves the old one as it was
                if value is not None:
                    setattr(self, name, value)
                elif hasattr(self, name):
                    delattr(self, name)
            raise

    def _fit(self, X: Any, y: Any) -> Self:
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        learner, guard = self._make_learner(), as_guard(self.guard)
        check_on_alarm(self.on_alarm)
        check_integer(self.label_memory, "label_memory", least=0)
        source = build_source(
            LogisticRegression() if self.estimator is None else self.estimator,
            X,
            y,
            features=self.features,
            intercept=self.intercept,
            loss=self.loss,
            diameter=self.diameter,
            cv=self.cv,
            random_state=self.random_state,
            calibration=learner.calibration if self.calibration is None else self.calibration,
            sketch=self.sketch,
        )
        self._look_at_confusion(source, learner)
        self._look_at_scales(source, learner)
        self.source_, self.learner_ = source, learner
        self.state_ = learner.start(source)
        self.memory_: tuple[Remembered, ...] = ()
        self.guard_: Guard | None = guard
        self.guard_state_: Any = None if guard is None else guard.start(source)
        return self

    def _make_learner(self) -> Learner:
        if self.hint is not None and (
            not isinstance(self.learner, str) or self.learner != "atlas-ada"
        ):
            raise InputError(
                f"hint={self.hint!r} goes with learner='atlas-ada'; a learner object takes its own"
            )
        return as_learner(self.learner, hint=self.hint)

    def _look_at_confusion(self, source: Any, learner: Any) -> None:
        """Refuse a C without inverse now, not in the middle of a stream.

        When a hold-out with very few rows of some class was cross-fitted, C may have no inverse by
        chance: then the refusal waits for the first batch, and a warning says so.
        """
        if not hasattr(learner, "check"):
            return
        try:
            learner.check(source)
        except SourceError as error:
            if source.honest:
                raise
            message = f"{error} (some class has very few rows; adapt() will refuse)"
            warnings.warn(message, PriorshiftWarning, stacklevel=4)

    def _look_at_scales(self, source: Any, learner: Any) -> None:
        """Say so when gradient steps would be taken on features of very different size."""
        if not hasattr(learner, "model"):
            return
        spread = source.risk.XT.std(axis=1)
        spread = spread[spread > 0]
        if len(spread) and spread.max() > _UNEVEN * spread.min():
            warnings.warn(
                f"the features of the linear learner {learner.name!r} differ in scale by a factor "
                f"of {spread.max() / spread.min():.0f}: scale them, or pass features=, a "
                "transformer that does",
                PriorshiftWarning,
                stacklevel=4,
            )

    def adapt(self, X: Any, y: Any = None, *, batch_id: int | str | None = None) -> Self:
        """Learn from one batch. A batch that is refused leaves everything as it was.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The batch.
        y : array-like of shape (n,) or dict, optional
            Labels, where there are some: None, NaN, ``pandas.NA`` or a masked entry for a row whose
            label is not known; or a dict ``{row: label}``. Which rows have labels should not depend
            on what they look like: see docs/labels.md.
        batch_id : int or str, optional
            A name under which ``learn_labels`` finds the batch when labels come later.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt([[0.9], [1.1]]).prior_.tolist()
        [0.0, 1.0]
        >>> clf.adapt([[0.9], [1.1]], {0: 0}).prior_.tolist()
        [0.25, 0.75]
        """
        batch = self._read(X)
        if y is not None:
            batch = batch._replace(known=known_classes(y, len(batch.proba), self.classes_))
        return self._learn(batch, None if batch_id is None else check_key(batch_id))

    def _learn(self, batch: Batch, key: int | str | None = None) -> Self:
        """Learn from a batch that has been read."""
        if any(record.key == key for record in self.memory_):
            raise InputError(f"batch_id={key!r} names a batch that is remembered: give another")
        with threads_for(round_cost(self.source_, self.state_, self.learner_)):
            state = self.learner_.adapt(self.source_, self.state_, batch)
        memory = self.memory_
        if key is not None and self.label_memory:
            record = remembered_batch(self.learner_, state, batch, key)
            memory = (*memory, record)[-self.label_memory :]
        guard_state = self._watched(batch)
        alarm = guard_state is not None and guard_state.alarm and not self.guard_state_.alarm
        self.state_, self.memory_, self.guard_state_ = state, memory, guard_state
        if alarm and self.on_alarm != "ignore":
            self._tell()
        return self

    def learn_labels(self, batch_id: int | str, y: Any) -> Self:
        """Learn labels of a past batch, all or some of them; may be called again for more.

        "fth", "ftfwh", "em", "regimes", "tracker" and "auto" use them. Of the others labels must
        come with their batch: late ones are checked, and change nothing, with a warning.

        Parameters
        ----------
        batch_id : int or str
            The name that ``adapt`` was given. The last ``label_memory`` of them are remembered.
        y : array-like of shape (n,) or dict
            As in ``adapt``.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf = clf.adapt([[0.9], [1.1]], batch_id="monday").adapt([[0.8], [0.9]])
        >>> clf.learn_labels("monday", [None, 0]).prior_.tolist()
        [0.25, 0.75]
        """
        self._fitted()
        record = find(self.memory_, check_key(batch_id))
        known = known_classes(y, len(record.proba), self.classes_)
        after, late = merged(record, known, int(self.state_.t))
        correct = getattr(self.learner_, "correct", None)
        if correct is None:
            warnings.warn(
                f"the learner {self.learner_.name!r} has no use for labels that come after their "
                "batch: give adapt(X, y) those that are there in time",
                PriorshiftWarning,
                stacklevel=2,
            )
            return self
        self.state_ = correct(self.source_, self.state_, late)
        self.memory_ = tuple(after if kept is record else kept for kept in self.memory_)
        return self

    def _watched(self, batch: Batch) -> Any:
        """What the guard knows once it has seen the batch."""
        if self.guard_ is None:
            return None
        return self.guard_.update(self.source_, self.guard_state_, batch)

    def _tell(self) -> None:
        """Warn of the guard's alarm, after everything has been learned."""
        report = self.guard_report_
        warnings.warn(
            f"this stream is no mix of the known classes (p = {report.p_value:.2g}): "
            f"{report.evidence}",
            PriorshiftWarning,
            stacklevel=4,
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities (n, K) under the present class mix; changes nothing."""
        return self._predict_read(self._read(X))

    def _predict_read(self, batch: Batch) -> FloatArray:
        """Class probabilities of a batch that has been read."""
        if self.on_alarm == "fall-back" and self.guard_ is not None and self.guard_state_.alarm:
            return batch.f0_proba
        return self.learner_.predict_proba(self.source_, self.state_, batch)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row; changes nothing."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @property
    def classes_(self) -> AnyArray:
        """Class labels, sorted."""
        return self._fitted().source_.classes

    @property
    def prior_(self) -> FloatArray:
        """The class mix that the learner believes in now."""
        self._fitted()
        return np.array(self.learner_.prior(self.source_, self.state_))

    @property
    def n_rounds_(self) -> int:
        """Batches adapted to."""
        return int(self._fitted().state_.t)

    @property
    def guard_report_(self) -> GuardReport:
        """What the guard has found so far."""
        guard = self._fitted().guard_
        if guard is None:
            raise AttributeError("there is no guard: make the classifier with guard=True")
        return guard.report(self.source_, self.guard_state_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file, without pickle; the old file stays until the new one is whole.

        A model, features map or learner that is neither scikit-learn's nor ours is only referred
        to, with a warning: hand it to `load` again.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y).adapt([[0.9]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.save(pathlib.Path(folder) / "model.priorshift")
        ...     again = load(pathlib.Path(folder) / "model.priorshift")
        >>> again.n_rounds_, bool((again.prior_ == clf.prior_).all())
        (1, True)
        """
        self._fitted()
        names = getattr(self, "feature_names_in_", None)
        extra = {
            "cv": int(self.cv),
            "random_state": int(self.random_state),
            "diameter": None if self.diameter is None else float(self.diameter),
            "calibration": encode_recipe(self.calibration),
            "sketch": sketch_setting(self.sketch),
            "on_alarm": self.on_alarm,
            "label_memory": int(self.label_memory),
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": None if names is None else [str(name) for name in names],
        }
        save_parts(
            path,
            Saved(
                self.source_,
                self.learner_,
                self.state_,
                extra,
                self.guard_,
                self.guard_state_,
                self.memory_,
            ),
        )

    def _fitted(self) -> Self:
        check_is_fitted(self, "state_")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "state_")

    def _read(self, X: Any) -> Batch:
        self._fitted()
        return self.source_.read(self._validate(X, reset=False))

    def _validate(self, X: Any, reset: bool) -> Any:
        """Scikit-learn's bookkeeping of columns; frames go on as frames, if a model wants them."""
        if self.features is not None:
            if reset and hasattr(X, "shape") and len(X.shape) == 2:
                self.n_features_in_ = int(X.shape[1])
            return X
        try:
            array = validate_data(
                self, X, reset=reset, ensure_all_finite=False, dtype="numeric", ensure_min_samples=1
            )
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise InputError(
                f"X has text where numbers are needed ({error}): encode it first, or pass "
                "features=, a transformer that turns X into numbers for the linear learners"
            ) from None
        return X if is_frame(X) else array


def load(
    path: str | os.PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    learner: Any = None,
) -> LabelShiftClassifier:
    """Read back what ``LabelShiftClassifier.save`` wrote, to the last bit.

    Parameters
    ----------
    estimator, features, learner
        The objects that the file only refers to: a model that is not scikit-learn's, a features
        callable, a learner or hint of your own. The error says when one is needed.

    Examples
    --------
    >>> load("no-such-file.priorshift")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no-such-file.priorshift: no such file
    """
    saved = load_parts(path, estimator=estimator, features=features, learner=learner)
    source = saved.source
    if source.n_features != -1 and saved.extra.get("n_features_in") != source.n_features:
        raise FileFormatError(f"{path}: the number of columns disagrees within the file")
    clf = LabelShiftClassifier(
        source.model.estimator,
        saved.learner,
        features=source.features.map,
        intercept=source.features.intercept,
        loss=source.loss.name,
        **{name: saved.extra[name] for name in ("cv", "random_state", "diameter")},
        calibration=decode_recipe(saved.extra.get("calibration")),
        sketch=from_setting(saved.extra.get("sketch")),
        guard=saved.guard,
        on_alarm=check_on_alarm(saved.extra.get("on_alarm", "warn")),
        label_memory=int(saved.extra.get("label_memory", 100)),
    )
    clf.memory_ = saved.memory
    clf.guard_, clf.guard_state_ = saved.guard, saved.guard_state
    clf.source_, clf.learner_, clf.state_ = source, saved.learner, saved.state
    if saved.extra.get("n_features_in") is not None:
        clf.n_features_in_ = int(saved.extra["n_features_in"])
    if saved.extra.get("feature_names_in") is not None:
        clf.feature_names_in_ = np.asarray(saved.extra["feature_names_in"], dtype=object)
    return clf
