"""The scikit-learn face: one estimator that predicts, and adapts to an unlabelled stream."""

from __future__ import annotations

import os
import warnings
from threading import Lock
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priorshift._validation import check_integer, check_labelled, is_frame, known_classes
from priorshift.errors import FileFormatError, InputError, PriorshiftWarning, SourceError
from priorshift.learners import Learner, as_learner
from priorshift.learners.trackers.late import check_key, find
from priorshift.monitoring.guard import GuardReport, as_guard, check_on_alarm
from priorshift.saving import Saved, decode_setting, encode_setting, load_parts, save_parts
from priorshift.source import Batch, Source, build_source
from priorshift.stream import Deployment
from priorshift.typing import AnyArray, FloatArray

_COLUMNS = ("n_features_in_", "feature_names_in_")
# Standard deviations of features that differ by more than this make gradient steps slow.
_UNEVEN = 100.0


class LabelShiftClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that follows the class prior of an unlabelled stream.

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
        How the model's probabilities are calibrated on the held-out set, for whatever the learner
        reads of them: "none", "temperature", "bias-temperature", "vector", "matrix", "isotonic",
        "auto", or a recipe with settings of its own. None is what the learner asks for, "none" for
        most. ("fix" stays your model to the last bit.)
    guard : bool or Guard, optional
        Test in ``adapt`` whether the stream still is a mix of the known classes; True is
        ``Guard(alpha=0.01)``.
    on_alarm : {"warn", "fall-back", "ignore"}
        At the guard's alarm warn once; or also predict with your model as it is from then on; or
        only keep it in ``guard_report_``.
    sketch : str or Sketch, optional
        Keep a sketch of the held-out set's features in their place, such as "coreset:1000": less
        memory and less to read each round.
    label_memory : int
        How many batches that got a ``batch_id`` are remembered, for labels that come late.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels.
    prior_ : (K,) array
        The class prior that the learner believes in now.
    n_rounds_ : int
        Batches adapted to.
    guard_report_ : GuardReport
        What the guard has to say, where there is one.
    deployment_ : Deployment
        What all streams of this model share: source, learner, guard.
    stream_ : Stream
        What this stream has learned; ``source_``, ``learner_`` and ``state_`` are parts of the two.

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
        """Run the offline stage on the labelled held-out set (X, y), and start a stream.

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
            check_labelled(y)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        learner = self._make_learner()
        guard, _ = as_guard(self.guard), check_on_alarm(self.on_alarm)
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
        deployment = Deployment(source, learner, guard, self.on_alarm, self.label_memory)
        stream = deployment.start()
        self.deployment_, self.stream_ = deployment, stream
        return self

    def reset(self) -> Self:
        """Start a new stream: forget all batches, keep what was fitted.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y).adapt([[0.9]])
        >>> clf.reset().n_rounds_, clf.prior_.tolist()
        (0, [0.5, 0.5])
        """
        self.stream_ = self._fitted().deployment_.start()
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

        When a held-out set with very few rows of some class was cross-fitted, C may have no inverse
        by chance: then the refusal waits for the first batch, and a warning says so.
        """
        try:
            learner.check(source)
        except SourceError as error:
            if source.honest:
                raise
            message = f"{error} (some class has very few rows; adapt() will refuse)"
            warnings.warn(message, PriorshiftWarning, stacklevel=4)

    def _look_at_scales(self, source: Any, learner: Any) -> None:
        """Say so when gradient steps would be taken on features of very different size."""
        if not learner.has_model:
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
        self._step(X, y, batch_id)
        return self

    def adapt_predict_proba(
        self, X: Any, y: Any = None, *, batch_id: int | str | None = None
    ) -> FloatArray:
        """Learn from one batch and return the class probabilities (n, K) of its rows.

        The model runs once. Each row is left out of the evidence for its own prediction; calling
        ``adapt`` and then ``predict_proba`` with the same rows would count them twice.

        Parameters
        ----------
        X, y, batch_id
            As in ``adapt``.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt_predict_proba([[0.9], [1.1]]).round(3).tolist(), clf.n_rounds_
        ([[0.0, 1.0], [0.0, 1.0]], 1)
        """
        return self._step(X, y, batch_id, predict=True)

    def adapt_predict(
        self, X: Any, y: Any = None, *, batch_id: int | str | None = None
    ) -> AnyArray:
        """Learn from one batch and return the most probable class of each of its rows.

        Parameters
        ----------
        X, y, batch_id
            As in ``adapt``.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt_predict([[0.9], [1.1]]).tolist()
        ['yes', 'yes']
        """
        proba = self._step(X, y, batch_id, predict=True)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def _step(
        self, X: Any, y: Any, batch_id: int | str | None, predict: bool = False
    ) -> FloatArray:
        """Read a batch and learn from it; its probabilities, where they are asked for."""
        batch = self._read(X, y)
        key = None if batch_id is None else check_key(batch_id)
        with self._turn():
            self.stream_, outcome = self.deployment_.step(
                self.stream_, batch, key=key, predict=predict
            )
        if outcome.alarm:
            self._tell()
        return np.empty((0, 0)) if outcome.proba is None else outcome.proba

    def _turn(self) -> Lock:
        """The lock of this object: threads adapt it one after the other, and predict at any time.

        A stream is replaced as a whole, so that who predicts sees one whole state.
        """
        lock: Lock = self.__dict__.setdefault("_lock", Lock())  # one atomic step
        return lock

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_lock", None)  # no lock goes into a copy or a pickle
        return state

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
        key = check_key(batch_id)
        record = find(self.stream_.memory, key)
        known = known_classes(y, len(record.proba), self.classes_)
        with self._turn():
            self.stream_ = self.deployment_.learn_labels(self.stream_, key, known)
        if not self.learner_.uses_late_labels:
            warnings.warn(
                f"the learner {self.learner_.name!r} has no use for labels that come after their "
                "batch: give adapt(X, y) those that are there in time",
                PriorshiftWarning,
                stacklevel=2,
            )
        return self

    def _tell(self) -> None:
        """Warn of the guard's alarm, after everything has been learned."""
        if self.deployment_.on_alarm == "ignore":
            return
        report = self.guard_report_
        warnings.warn(
            f"this stream is no mix of the known classes (p = {report.p_value:.2g}): "
            f"{report.evidence}",
            PriorshiftWarning,
            stacklevel=4,
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities (n, K) under the present class prior; changes nothing."""
        batch = self._read(X)
        return self.deployment_.predict_proba(self.stream_, batch)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row; changes nothing."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @property
    def classes_(self) -> AnyArray:
        """Class labels, sorted."""
        return self._fitted().source_.classes

    @property
    def prior_(self) -> FloatArray:
        """The class prior that the learner believes in now."""
        return np.array(self._fitted().deployment_.prior(self.stream_))

    @property
    def source_(self) -> Source:
        """What the offline stage knows."""
        return self._fitted().deployment_.source

    @property
    def learner_(self) -> Learner:
        """The learner that adapts."""
        return self._fitted().deployment_.learner

    @property
    def state_(self) -> Any:
        """What the learner has learned of this stream."""
        return self._fitted().stream_.state

    @property
    def n_rounds_(self) -> int:
        """Batches adapted to."""
        return int(self._fitted().state_.t)

    @property
    def guard_report_(self) -> GuardReport:
        """What the guard has found so far."""
        guard, counted = self._fitted().deployment_.guard, self.stream_.guard
        if guard is None or counted is None:
            raise AttributeError("there is no guard: make the classifier with guard=True")
        return guard.report(self.source_, counted)

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
            "random_state": None if self.random_state is None else int(self.random_state),
            "diameter": None if self.diameter is None else float(self.diameter),
            "calibration": encode_setting(self.calibration),
            "sketch": encode_setting(self.sketch, refuse=False),
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": None if names is None else [str(name) for name in names],
        }
        save_parts(path, Saved(self.deployment_, self.stream_, extra))

    def _fitted(self) -> Self:
        check_is_fitted(self, "stream_")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stream_")

    def _read(self, X: Any, y: Any = None) -> Batch:
        """Validate a batch, and run the model on it; labels where there are some."""
        source = self._fitted().deployment_.source
        batch = source.read(self._validate(X, reset=False))
        if y is None:
            return batch
        return batch._replace(known=known_classes(y, len(batch.proba), source.classes))

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
        return array if isinstance(X, np.ndarray) or not is_frame(X) else X


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
    deployment, source = saved.deployment, saved.deployment.source
    if source.n_features != -1 and saved.extra.get("n_features_in") != source.n_features:
        raise FileFormatError(f"{path}: the number of columns disagrees within the file")
    clf = LabelShiftClassifier(
        source.model.estimator,
        deployment.learner,
        features=source.features.map,
        intercept=source.features.intercept,
        loss=source.loss.name,
        **{name: saved.extra[name] for name in ("cv", "random_state", "diameter")},
        calibration=decode_setting(saved.extra["calibration"], "calibration"),
        sketch=decode_setting(saved.extra["sketch"], "sketch"),
        guard=deployment.guard,
        on_alarm=deployment.on_alarm,
        label_memory=deployment.label_memory,
    )
    clf.deployment_, clf.stream_ = deployment, saved.stream
    if saved.extra.get("n_features_in") is not None:
        clf.n_features_in_ = int(saved.extra["n_features_in"])
    if saved.extra.get("feature_names_in") is not None:
        clf.feature_names_in_ = np.asarray(saved.extra["feature_names_in"], dtype=object)
    return clf
