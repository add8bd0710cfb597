"""The scikit-learn face: one estimator that predicts, and adapts to an unlabelled stream."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from threading import Lock
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priorshift import insight
from priorshift._numerics import reweight
from priorshift._rows import as_rows, column_names, from_arrow
from priorshift._validation import (
    by_label,
    check_chance,
    check_choice,
    check_integer,
    check_labelled,
    json_labels,
    known_classes,
    plain_labels,
)
from priorshift.calibration import expected_mix
from priorshift.decisions import (
    COVERAGES,
    Costs,
    abstained,
    as_costs,
    best_threshold,
    doubt,
    exact_sets,
    held_out_now,
    needed_confidence,
    prediction_sets,
)
from priorshift.decisions.costs import costs_from_plain, costs_to_plain
from priorshift.decisions.thresholds import check_metric
from priorshift.errors import (
    FileFormatError,
    InputError,
    InputTypeError,
    PriorshiftWarning,
    SourceError,
)
from priorshift.learners import Careful, Learner, as_learner
from priorshift.learners.trackers.late import check_key, find
from priorshift.learners.trackers.regimes import RegimesSeen
from priorshift.learners.trackers.rehearsal import Rehearsal, rehearse, too_few
from priorshift.monitoring.believed import known
from priorshift.monitoring.ellipse import PriorRegion
from priorshift.monitoring.guard import (
    Guard,
    GuardReport,
    as_guard,
    can_watch,
    check_on_alarm,
    check_safety,
)
from priorshift.monitoring.history import NO_TIME, as_seconds
from priorshift.monitoring.metrics import Weighed
from priorshift.monitoring.performance import Performance
from priorshift.monitoring.plots import PriorDisplay
from priorshift.monitoring.shift import Shift
from priorshift.risk.compiled import interruptible
from priorshift.saving import (
    Saved,
    decode_setting,
    encode_setting,
    load_parts,
    refusing,
    save_parts,
)
from priorshift.source import Batch, Source, build_source
from priorshift.source.features import PROBABILITIES
from priorshift.source.model import ProbabilityModel
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray, FloatArray

_log = logging.getLogger(__name__)
# What fit learns of the columns of X: as scikit-learn does, names that are no strings, and what
# kind of thing a row comes in.
_COLUMNS = ("n_features_in_", "feature_names_in_", "_names_in", "_kind_in")
# Settings that a file holds as they were given.
_SAVED = (
    *("cv", "random_state", "diameter", "calibration", "sketch", "safety", "on_alarm"),
    *("classes", "prior", "costs", "abstain"),
)
# Standard deviations of features that differ by more than this make gradient steps slow.
_UNEVEN = 100.0


class LabelShiftClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that follows the class prior of an unlabelled stream.

    Parameters
    ----------
    estimator : classifier or function, optional
        Your model, with ``predict_proba``, ``decision_function`` or only ``predict``; or a function
        of X that returns class probabilities. It gets X as it is: an array, a frame, a sparse
        matrix, a list of texts. If it is fitted it stays as it is; if not, a clone of it is fitted
        in ``fit``. None is a logistic regression. Without a model, see ``from_probabilities``.
        (``sklearn.base.clone``, and so ``GridSearchCV``, forgets a fit: wrap a fitted model in
        ``sklearn.frozen.FrozenEstimator`` there.)
    learner : str or Learner
        "auto", which chooses among trackers and a linear model by itself; "fix", "fth", "ftfwh",
        "rogd", "uogd", "atlas", "atlas-ada", "tracker", "em", "regimes", "flh-ftl",
        "window-hedge", "wavelet"; or a learner object with its own settings.
    hint : str or Hint, optional
        For a learner by name that takes one: "fwd", "win", "peri", "okm" (the default) or "none".
    features : transformer, callable or str, optional
        What the linear learners see of X, for example the last layer of a network; None is X
        itself, where it is a table of numbers. A name is that of a step of a pipeline, for what
        comes out of it; "probabilities" are the logarithms of the model's own.
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
    safety : {"on", "off"}
        With "on" the learners that reweight your model by likelihoods ("auto", "tracker", "em",
        "regimes") adapt only as far as the stream shows that something has changed, as carefully
        as a rehearsal in ``fit`` finds necessary; and a guard lets your model answer where label
        shift does not hold. See docs/safety.md. All others are as with "off", which gives what you
        ask for and nothing else.
    guard : bool or Guard, optional
        Test in ``adapt`` whether the stream still is a mix of the known classes; True is
        ``Guard(alpha=0.01)``, False is none, None is what ``safety`` says.
    on_alarm : {"fall-back", "warn", "ignore"}, optional
        At the guard's alarm warn once, and let your model as it is have a share of the predictions
        that goes by the evidence, all of them at an alarm, none when its cause is gone; or only
        warn once; or only keep it in ``guard_report_``. None is "fall-back" with safety, "warn"
        without.
    sketch : str or Sketch, optional
        Keep a sketch of the held-out set's features in their place, such as "coreset:1000": less
        memory and less to read each round.
    label_memory : int
        How many batches that got a ``batch_id`` are remembered, for labels that come late.
    history : int
        Places of the record of past batches behind ``history_``: when all are taken, old records
        are merged in pairs. 0 keeps none, and there is no ``shift_``.
    classes : array-like of shape (K,), optional
        All labels, where model and held-out set do not name them; of a function in the order of its
        columns (by default sorted). A class without rows in the held-out set keeps what the model
        says of it.
    prior : array-like of shape (K,) or dict, optional
        The class mix that predictions start from, in the order of ``classes`` (by default sorted),
        or by label. By default that of the held-out set. Give that of the model's training rows
        where held-out rows were chosen class by class; see docs/inputs.md.
    costs : array-like of shape (A, K) or dict, optional
        What each of A actions costs when a row is of each class, for ``decide`` and
        ``threshold_for("cost")``: actions in rows, classes in columns in the order of ``classes_``.
        With K rows the actions are the classes, else they go by their row number; a dict names
        them, ``{action: costs}``, with costs a sequence or ``{label: cost}``. See
        docs/decisions.md.
    abstain : float, optional
        The share of wrong answers that ``decide`` may give among its answers, such as 0.02: it
        gives none, None, to rows that it is not sure enough of.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels.
    prior_ : (K,) array
        The class prior that the learner believes in now: what the rows of the last batch were drawn
        with, not how many of them are of each class. For that, see ``batch_shares``.
    n_rounds_ : int
        Batches adapted to.
    rehearsal_ : Rehearsal
        What adapting gained or cost when ``fit`` played the held-out set as streams.
    guard_report_ : GuardReport
        What the guard has to say, where there is one.
    deployment_ : Deployment
        What all streams of this model share: source, learner, guard.
    stream_ : Stream
        What this stream has learned; ``source_``, ``learner_`` and ``state_`` are parts of the two.

    Notes
    -----
    One object may be used by several threads. They adapt it one after the other; who predicts
    meanwhile sees the state before or after a batch, never a part of it.

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
        safety: str = "on",
        guard: Any = None,
        on_alarm: str | None = None,
        sketch: Any = None,
        label_memory: int = 100,
        history: int = 512,
        classes: Any = None,
        prior: Any = None,
        costs: Any = None,
        abstain: float | None = None,
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
        self.safety = safety
        self.guard = guard
        self.on_alarm = on_alarm
        self.sketch = sketch
        self.label_memory = label_memory
        self.history = history
        self.classes = classes
        self.prior = prior
        self.costs = costs
        self.abstain = abstain

    @classmethod
    def from_probabilities(cls, P: Any, y: Any, learner: Any = "auto", **settings: Any) -> Self:
        """A classifier without a model: class probabilities are the X of all calls.

        Parameters
        ----------
        P : array-like of shape (n, K)
            Class probabilities of the held-out set, by any model; of two classes (n,) is enough,
            those of the second.
        y : array-like of shape (n,)
            Its labels.
        learner, **settings
            As for the class; ``classes`` are the labels in the order of the columns, by default
            that of the names of a frame's columns where these are the labels, else sorted.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
        >>> clf.adapt([[0.2, 0.8], [0.1, 0.9]]).predict([[0.6, 0.4]]).tolist()
        ['yes']
        >>> scores = LabelShiftClassifier.from_probabilities([0.1, 0.2, 0.8, 0.6], y, learner="fth")
        >>> scores.adapt([0.8, 0.9]).predict([0.4]).tolist()
        ['yes']
        """
        return cls._without_model(P, y, learner, settings, logits=False)

    @classmethod
    def from_logits(cls, Z: Any, y: Any, learner: Any = "auto", **settings: Any) -> Self:
        """A classifier without a model: logits are the X of all calls.

        As ``from_probabilities``, with class probabilities the softmax of the rows; of two classes
        (n,) is enough, the logit of the second against the first.

        Examples
        --------
        >>> Z, y = [[2.0, 0.0], [1.5, 0.0], [0.0, 1.5], [0.0, 0.5]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier.from_logits(Z, y, learner="fth")
        >>> clf.predict([[0.0, 3.0]]).tolist()
        ['yes']
        """
        return cls._without_model(Z, y, learner, settings, logits=True)

    @classmethod
    def _without_model(
        cls, rows: Any, y: Any, learner: Any, settings: dict[str, Any], logits: bool
    ) -> Self:
        rows = as_rows(rows, "logits" if logits else "probabilities")
        check_labelled(y)
        classes = settings.get("classes")
        if classes is None:
            classes = _column_labels(np.unique(y), np.shape(rows)[1:])
            classes = _as_named(classes, column_names(rows))
        elif (named := _as_named(classes, column_names(rows))) is not classes:
            raise InputError(
                f"the columns are named {plain_labels(named)}, and classes= has these labels in "
                "another order: leave classes= out, or put the columns into its order"
            )
        model = ProbabilityModel(classes=plain_labels(np.asarray(classes)), logits=logits)
        settings = {"features": PROBABILITIES, **settings}
        return cls(model, learner, **settings).fit(rows, y)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Run the offline stage on the labelled held-out set (X, y), and start a stream.

        Parameters
        ----------
        X : whatever the model reads
            An array, a frame, a sparse matrix, a list with one entry a row.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            How much each row counts: in the fit of a model that is not fitted yet, in the class
            prior, the confusion matrix and the linear learners' risk.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> LabelShiftClassifier(learner="uogd", cv=2).fit(X, y).predict([[0.9]]).tolist()
        ['yes']
        """
        before = {name: self.__dict__.get(name) for name in _COLUMNS}
        try:
            with interruptible():
                return self._fit(self._validate(X, reset=True), y, sample_weight)
        except BaseException:
            self._keep_columns(before)  # a refused fit leaves the old one as it was
            raise

    def _keep_columns(self, columns: dict[str, Any]) -> None:
        """Set what is known of the columns of X; None where nothing is."""
        for name in _COLUMNS:
            value = columns.get(name)
            if value is not None:
                setattr(self, name, value)
            elif name in self.__dict__:
                delattr(self, name)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if y is not None:
            check_labelled(y)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        learner = self._make_learner()
        on_alarm = check_on_alarm(self.on_alarm, check_safety(self.safety))
        watched = self.safety == "on" and learner.guarded
        guard = as_guard(self.guard, default=Guard() if watched else None)
        check_integer(self.label_memory, "label_memory", least=0)
        check_integer(self.history, "history", least=0)
        _check_abstain(self.abstain)
        may = learner.reads_features or guard is not None
        source = build_source(
            LogisticRegression() if self.estimator is None else self.estimator,
            X,
            y,
            features=self.features,
            intercept=self.intercept,
            loss=self.loss,
            diameter=self.diameter,
            prior=self.prior,
            classes=self.classes,
            sample_weight=sample_weight,
            cv=self.cv,
            random_state=self.random_state,
            calibration=learner.calibration if self.calibration is None else self.calibration,
            sketch=self.sketch,
            need="must" if learner.needs_features else "may" if may else "no",
        )
        _check_decisions(self.costs, self.abstain, source.classes)
        self._look_at_confusion(source, learner)
        self._look_at_scales(source, learner)
        if self.prior is None and sample_weight is None and learner.name != "fix":
            self._look_at_mix(source)
        if self.guard is None and guard is not None and not can_watch(source):
            why = "there are neither features nor a fitted model to compare the held-out set by"
            if self.sketch is not None:
                why = f"a sketch has replaced the held-out set ({self.sketch})"
            elif source.row_weights is not None:
                why = "the guard counts rows, and these have a sample_weight"
            _log.info("no guard watches this stream: %s", why)
            guard = None
        rehearsal = None
        if watched and learner.weighs_batches:
            learner, rehearsal = rehearse(source, learner)
            if np.isinf(rehearsal.caution):
                why = too_few(source, learner.learner) or (
                    "streams made of the held-out set came to harm, and so might this one. See "
                    "rehearsal_; a larger held-out set, or a model that tells the classes apart "
                    "better, would do"
                )
                warnings.warn(f"nothing will be adapted: {why}", PriorshiftWarning, stacklevel=3)
        deployment = Deployment(source, learner, guard, on_alarm, self.label_memory, self.history)
        stream = deployment.start()
        with self._turn():
            self.deployment_, self.stream_, self._rehearsal = deployment, stream, rehearsal
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
        self._fitted()
        with self._turn():
            self.stream_ = self.deployment_.start()
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

    def _look_at_mix(self, source: Source) -> None:
        """Say so when the held-out set has another class mix than the model surely expects."""
        if source.cross_fitted:  # it was trained on these rows, and expects what they are
            return
        found = expected_mix(source.f0_proba, source.labels)
        if not found.differs:
            return
        labels, gaps = plain_labels(source.classes), found.shares - found.prior
        which = sorted(np.argsort(-np.abs(gaps), kind="stable")[:2].tolist())
        said = "; ".join(
            f"class {labels[k]!r}: {100 * found.shares[k]:.3g} % of the held-out rows, about "
            f"{100 * found.prior[k]:.2g} % expected"
            for k in which
        )
        warnings.warn(
            f"the held-out set has another class mix than the model expects ({said}). Predictions "
            "start from the mix of the held-out set. If its rows were chosen class by class, give "
            "prior= the mix that the stream starts with, as a rule that of the model's training "
            "rows. If they came as the stream's rows come, and the model was trained on a mix made "
            "even (class_weight='balanced', or rows drawn so), nothing is to be done",
            PriorshiftWarning,
            stacklevel=4,
        )

    def adapt(
        self,
        X: Any,
        y: Any = None,
        *,
        batch_id: int | str | None = None,
        timestamp: Any = None,
    ) -> Self:
        """Learn from one batch. A batch that is refused leaves everything as it was.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The batch.
        y : array-like of shape (n,) or dict, optional
            Labels, where there are some: None, NaN, ``pandas.NA`` or a masked entry for a row whose
            label is not known; or a dict ``{row: label}``. Which rows have labels should be chance,
            or follow from what they look like (those that the model calls positive, say), and not
            from their class: where frauds alone get labels, trackers believe in more of them than
            there are. For "fth" and its likes it is the other way around: see docs/labels.md.
        batch_id : int or str, optional
            A name under which ``learn_labels`` finds the batch when labels come later.
        timestamp : float, datetime or str, optional
            When the batch came, for ``history_``: seconds, or a time, also as text in ISO 8601,
            which without a time zone is taken as UTC.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt([[0.9], [1.1]]).prior_.tolist()
        [0.0, 1.0]
        >>> clf.adapt([[0.9], [1.1]], {0: 0}).prior_.tolist()
        [0.25, 0.75]
        """
        self._step(X, y, batch_id, timestamp)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        batch_id: int | str | None = None,
        timestamp: Any = None,
    ) -> Self:
        """Learn from one batch: ``adapt`` by the name that scikit-learn gives it.

        Parameters
        ----------
        X, y, batch_id, timestamp
            As in ``adapt``. The first call on an object that is not fitted is ``fit``, and needs
            all labels: those rows are the held-out set.
        classes : array-like of shape (K,), optional
            All labels, as other classifiers want them; they must be those that are known.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).partial_fit(X, y, classes=[0, 1])
        >>> clf.partial_fit([[0.9], [1.1]]).prior_.tolist(), clf.n_rounds_
        ([0.0, 1.0], 1)
        """
        if not self.__sklearn_is_fitted__():
            given = self.classes if self.classes is not None else y
            _check_classes(classes, () if given is None else np.unique(given))
            return self.fit(X, y)
        _check_classes(classes, self.classes_)
        return self.adapt(X, y, batch_id=batch_id, timestamp=timestamp)

    def adapt_predict_proba(
        self,
        X: Any,
        y: Any = None,
        *,
        batch_id: int | str | None = None,
        timestamp: Any = None,
    ) -> FloatArray:
        """Learn from one batch and return the class probabilities (n, K) of its rows.

        The model runs once. Each row is left out of the evidence for its own prediction; calling
        ``adapt`` and then ``predict_proba`` with the same rows would count them twice.

        Parameters
        ----------
        X, y, batch_id, timestamp
            As in ``adapt``.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt_predict_proba([[0.9], [1.1]]).round(3).tolist(), clf.n_rounds_
        ([[0.0, 1.0], [0.0, 1.0]], 1)
        """
        return self._step(X, y, batch_id, timestamp, predict=True)

    def adapt_predict(
        self,
        X: Any,
        y: Any = None,
        *,
        batch_id: int | str | None = None,
        timestamp: Any = None,
    ) -> AnyArray:
        """Learn from one batch and return the most probable class of each of its rows.

        Parameters
        ----------
        X, y, batch_id, timestamp
            As in ``adapt``.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt_predict([[0.9], [1.1]]).tolist()
        ['yes', 'yes']
        """
        proba = self._step(X, y, batch_id, timestamp, predict=True)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def _step(
        self, X: Any, y: Any, batch_id: int | str | None, timestamp: Any, predict: bool = False
    ) -> FloatArray:
        """Read a batch and learn from it; its probabilities, where they are asked for."""
        key = None if batch_id is None else check_key(batch_id)
        time = as_seconds(timestamp)
        return self._learn(self._read(X, y), key, predict, time)

    def _learn(
        self, batch: Batch, key: int | str | None, predict: bool, time: float = NO_TIME
    ) -> FloatArray:
        """Learn from a batch that was read."""
        with self._turn(), interruptible():
            self.stream_, outcome = self.deployment_.step(
                self.stream_, batch, key=key, predict=predict, time=time
            )
        if outcome.alarm:
            self._tell()
        return np.empty((0, 0)) if outcome.proba is None else outcome.proba

    def _turn(self) -> Lock:
        """The lock of this object: threads change it one after the other, and predict at any time.

        A stream is replaced as a whole, so that who predicts sees one whole state.
        """
        lock: Lock = self.__dict__.setdefault("_lock", Lock())  # one atomic step
        return lock

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_lock", "_held_out"):  # no lock goes into a copy or a pickle
            state.pop(name, None)
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
        with self._turn(), interruptible():
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
        instead = " (predictions are those of your model as it is, until the cause is gone)"
        warnings.warn(
            f"this stream is no mix of the known classes (p = {report.p_value:.2g}): "
            f"{report.evidence}{instead if self.deployment_.on_alarm == 'fall-back' else ''}",
            PriorshiftWarning,
            stacklevel=4,
        )

    def predict_proba(self, X: Any, prior: Any = None) -> FloatArray:
        """Class probabilities (n, K) under the present class prior; changes nothing.

        Parameters
        ----------
        X : rows
        prior : array-like of shape (K,) or dict by label, optional
            A class prior that you know, in the place of the learner's: your model, calibrated as
            for the learner, reweighted to it. What the stream has shown is then left aside.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt([[0.9], [1.1], [-0.9]]).predict_proba([[0.1]]).round(2).tolist()
        [[0.31, 0.69]]
        >>> clf.predict_proba([[0.1]], prior={"no": 0.9, "yes": 0.1}).round(2).tolist()
        [[0.89, 0.11]]
        """
        batch = self._read(X)
        if prior is None:
            with interruptible():
                return self.deployment_.predict_proba(self.stream_, batch)
        source = self.source_
        if isinstance(prior, Mapping):
            prior = by_label(prior, source.classes, "prior")
        told = known(source, prior).prior
        return reweight(self.learner_.read(source, batch).proba, told / source.prior)

    def batch_shares(self, X: Any, y: Any = None) -> FloatArray:
        """The shares (K,) of the classes among these rows themselves; changes nothing.

        ``prior_`` estimates what rows are drawn with; of the rows that were drawn, chance has taken
        more of one class and fewer of another. Here the rows are counted: the mean of their class
        probabilities, adapted as if they were the next batch, each row by the others and itself.
        Where both are asked for, ask for this before ``adapt``.

        Parameters
        ----------
        X : rows
        y : array-like of shape (n,) or dict, optional
            Labels, where there are some, as in ``adapt``: those rows count as what they are.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="em", safety="off")
        >>> clf.batch_shares([[0.01, 0.99]] * 9 + [[0.99, 0.01]]).round(1).tolist(), clf.n_rounds_
        ([0.1, 0.9], 0)
        """
        batch = self._read(X, y)
        with interruptible():
            return self.deployment_.batch_shares(self.stream_, batch)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row; changes nothing.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.adapt([[0.9], [1.1], [0.8]]).predict([[0.1], [-0.9]]).tolist()
        ['yes', 'yes']
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def decide(self, X: Any, **settings: Any) -> AnyArray:
        """The action of least expected cost for each row, under the present class prior.

        Without ``costs`` that is the most probable class. With ``abstain`` the array holds objects,
        and None for a row without an answer: as many rows are answered as can be while the share of
        wrong answers among them stays within ``abstain`` on the held-out rows, weighed by the
        present class prior, one more wrong one counted. Changes nothing.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
        >>> costs = [[0, 10], [1, 0]]  # "no" costs 10 where "yes" is true, "yes" 1 where "no" is
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth", costs=costs)
        >>> clf.predict([[0.8, 0.2]]).tolist(), clf.decide([[0.8, 0.2]]).tolist()
        (['no'], ['yes'])
        """
        if settings:
            name = next(iter(settings))
            raise InputTypeError(
                f"decide takes rows alone, not {name}=: costs and abstain belong to the "
                "classifier, as LabelShiftClassifier(..., costs=) or clf.set_params(costs=)"
            )
        costs = _check_decisions(self.costs, self.abstain, self.classes_)
        stream = self.stream_
        proba = self.deployment_.predict_proba(stream, self._read(X))
        best = proba.argmax(axis=1) if costs is None else costs.cheapest(proba)
        actions = np.asarray((self.classes_ if costs is None else costs.actions)[best])
        if self.abstain is None:
            return actions
        today = self._today(stream)
        answer = today.proba.argmax(axis=1) if costs is None else costs.cheapest(today.proba)
        least = needed_confidence(
            today.proba[np.arange(len(answer)), answer],
            answer != today.labels,
            today.weights,
            float(self.abstain),
        )
        return abstained(actions, proba[np.arange(len(best)), best] < least)

    def threshold_for(
        self,
        metric: str = "f1",
        *,
        pos_label: Any = None,
        beta: float | None = None,
        recall: float | None = None,
        precision: float | None = None,
        share: float | None = None,
    ) -> float:
        """The threshold on ``predict_proba`` of one class that is best under the present prior.

        Found on the labelled held-out rows, weighed by the present class prior: no label of the
        stream is needed. Rows at or above it are the positive ones; it is infinite where the best
        is that none is, as when no threshold keeps the precision that is asked for.

        Parameters
        ----------
        metric : str
            "f1"; "f-beta" with ``beta``; "cost", by ``costs``; "precision", the most of it while at
            least ``recall`` is kept; "recall", the most of it while ``precision`` is kept; "top-k",
            at most this ``share`` of the rows.
        pos_label : label, optional
            The positive class; of two classes by default the second of ``classes_``. With more than
            two it stands against all others.

        Examples
        --------
        >>> P, y = [0.1, 0.2, 0.8, 0.6, 0.4, 0.3], [0, 0, 1, 1, 0, 1]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
        >>> round(clf.threshold_for("f1"), 2), round(clf.threshold_for("top-k", share=0.5), 2)
        (0.33, 0.35)
        """
        place = _positive(pos_label, self.classes_)
        given = {"beta": beta, "recall": recall, "precision": precision, "share": share}
        check_metric(metric, given)
        table = None
        if metric == "cost":
            costs = _check_decisions(self.costs, None, self.classes_)
            if len(self.classes_) != 2 or costs is None or not costs.answers:
                raise InputError(
                    "the metric 'cost' needs costs= of two answers for two classes: what each "
                    "answer (row, in the order of classes_, or of a dict by its label) costs for "
                    "each true class (column)"
                )
            order = [1 - place, place]
            table = costs.table[np.ix_(order, order)]
        today = self._today(self.stream_)
        score, positive = today.proba[:, place], today.labels == place
        found = best_threshold(score, positive, today.weights, metric, costs=table, **given)
        if precision is not None:
            odd = doubt(score, positive, today.weights, found, precision)
            if odd is not None:
                warnings.warn(odd, PriorshiftWarning, stacklevel=2)
        return found

    def predict_set(self, X: Any, level: float = 0.9, *, coverage: str = "per-class") -> AnyArray:
        """Which classes each row may be of, (n, K) of bool, the true one among them at this level.

        Classes with too few held-out rows for the level are in every set. A set may be empty: at
        that level the row looks like no class. Changes nothing.

        Parameters
        ----------
        X : rows
        level : float
            The chance that the true class is in the set.
        coverage : {"per-class", "exact", "marginal"}
            "per-class": for the rows of each class, whatever their share of today, with adapted
            probabilities as scores. "exact" is the same with the model's own: larger sets, whose
            coverage rests on label shift alone, however few rows there are. "marginal": for all
            rows of today together, which is as good as the estimate of the class prior; common
            classes pay for rare ones, and sets are smaller. See docs/decisions.md.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 400)
        >>> P = np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0.0, 1.0)
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
        >>> clf.predict_set([0.05, 0.5, 0.95], level=0.95).tolist()
        [[True, False], [True, True], [False, True]]
        """
        check_choice("coverage", coverage, COVERAGES)
        stream, batch = self._fitted().stream_, self._read(X)
        if coverage == "exact":
            return exact_sets(self.source_, batch.f0_proba, level)
        return prediction_sets(
            self.source_,
            self._today(stream),
            self.deployment_.predict_proba(stream, batch),
            batch.f0_proba,
            level,
            coverage,
        )

    def _today(self, stream: Stream) -> Weighed:
        """The held-out set as a stream sees it now; kept until the stream has moved on."""
        known: tuple[Stream, Weighed] | None = self.__dict__.get("_held_out")
        if known is None or known[0] is not stream:
            known = self._held_out = (stream, held_out_now(self.deployment_, stream))
        return known[1]

    def transform(self, X: Any) -> FloatArray:
        """``predict_proba``, for pipelines that go on with it; ``set_output`` makes it a frame.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y).set_output(transform="pandas")
        >>> clf.transform([[0.9], [-0.9]]).idxmax(axis=1).tolist()
        ['p_yes', 'p_no']
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns of ``transform``: ``p_`` and the label of each class.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.get_feature_names_out().tolist()
        ['p_no', 'p_yes']
        """
        return np.array([f"p_{label}" for label in plain_labels(self.classes_)], dtype=object)

    @property
    def classes_(self) -> AnyArray:
        """Class labels, sorted.

        Examples
        --------
        >>> clf = LabelShiftClassifier.from_probabilities([0.2, 0.9], ["no", "yes"], "fth")
        >>> clf.classes_.tolist()
        ['no', 'yes']
        """
        return self._fitted().source_.classes

    @property
    def prior_(self) -> FloatArray:
        """The class prior that the learner believes in now.

        Examples
        --------
        >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
        >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
        >>> clf.prior_.tolist(), clf.adapt([[0.9], [1.1], [0.8], [-0.7]]).prior_.tolist()
        ([0.5, 0.5], [0.25, 0.75])
        """
        return np.array(self._fitted().deployment_.prior(self.stream_))

    @property
    def source_(self) -> Source:
        """What the offline stage knows.

        Examples
        --------
        >>> clf = LabelShiftClassifier.from_probabilities([0.2, 0.9], [0, 1], "fth")
        >>> clf.source_.prior.tolist()
        [0.5, 0.5]
        """
        return self._fitted().deployment_.source

    @property
    def learner_(self) -> Learner:
        """The learner that adapts.

        Examples
        --------
        >>> LabelShiftClassifier.from_probabilities([0.2, 0.9], [0, 1], "fth").learner_.name
        'fth'
        """
        return self._fitted().deployment_.learner

    @property
    def state_(self) -> Any:
        """What the learner has learned of this stream.

        Examples
        --------
        >>> LabelShiftClassifier.from_probabilities([0.2, 0.9], [0, 1], "fix").adapt([0.8]).state_
        FixState(t=1)
        """
        return self._fitted().stream_.state

    @property
    def n_rounds_(self) -> int:
        """Batches adapted to.

        Examples
        --------
        >>> clf = LabelShiftClassifier.from_probabilities([0.2, 0.9], [0, 1], "fth")
        >>> clf.adapt([0.8]).adapt([0.7, 0.4]).n_rounds_
        2
        """
        return int(self._fitted().state_.t)

    @property
    def rehearsal_(self) -> Rehearsal:
        """What adapting gained or cost when the held-out set was played as streams, in ``fit``.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> found = LabelShiftClassifier.from_probabilities(P, y, learner="tracker").rehearsal_
        >>> sorted({row.shift for row in found.rows})
        ['half', 'nearly all', 'none']
        """
        found: Rehearsal | None = self._fitted()._rehearsal
        if found is None:
            raise insight.NotKeptError("there was no rehearsal: it takes safety='on' and a tracker")
        return found

    @property
    def guard_report_(self) -> GuardReport:
        """What the guard has found so far.

        Without a guard (``guard=False``, ``safety="off"``, a learner by name that has none, or a
        held-out set that none can watch, which the log says) it is an ``AttributeError`` that says
        so, so that ``hasattr`` is False.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
        >>> clf.adapt([[0.2, 0.8], [0.9, 0.1]]).guard_report_.alarm
        False
        """
        guard, counted = self._fitted().deployment_.guard, self.stream_.guard
        if guard is None or counted is None:
            raise insight.NotKeptError("there is no guard: make the classifier with guard=True")
        return guard.report(self.source_, counted)

    def prior_interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Ends (K,) of confidence intervals around ``prior_``, one for each class.

        They allow for the rows that the class prior rests on, as the learner knows them, and for
        the finite held-out set. They hold while the class prior stands still for as long as the
        learner remembers. The newest row of ``history_`` has those of the level 0.9, as they were
        right after the newest batch; its older rows have rougher ones.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y).adapt([[0.2, 0.8]] * 30)
        >>> low, high = clf.prior_interval(0.9)
        >>> bool((low <= clf.prior_).all() and (clf.prior_ <= high).all())
        True
        """
        self._fitted()
        return insight.prior_interval(self.deployment_, self.stream_, level)

    def prior_region(self, level: float = 0.9) -> PriorRegion:
        """The class priors that are not contradicted, all shares together: an ellipse.

        ``prior_interval`` holds each share on its own, this one all of them at once. See
        docs/insight.md.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "tracker").adapt([[0.2, 0.8]] * 30)
        >>> region = clf.prior_region(0.9)
        >>> region.contains([region.centre, [0.9, 0.1]]).tolist()
        [True, False]
        """
        self._fitted()
        return insight.prior_region(self.deployment_, self.stream_, level)

    def performance(
        self,
        level: float = 0.9,
        *,
        last: int | None = None,
        prior: Any = None,
        rows: float | None = None,
    ) -> Performance:
        """What predictions are worth now, estimated without labels, adapted and as they were.

        Held-out rows have labels, and under label shift each class looks today as it did there:
        they are weighed by today's class prior. See docs/insight.md.

        Parameters
        ----------
        level : float
            Of the intervals.
        last : int, optional
            Ask for the last so many batches together, as far as the history tells them apart; by
            default for the present state.
        prior : array-like of shape (K,) or dict by label, optional
            Ask for another class prior, adapted to it: "what if". It is taken as known.
        rows : float, optional
            By default intervals are for expected values. Give a number of rows, and they are for
            what labels of so many rows would show, whose draw makes them wider.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.6, 0.4]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
        >>> found = clf.adapt([[0.2, 0.8]] * 9 + [[0.9, 0.1]]).performance()
        >>> found.accuracy.value > found.unadapted.accuracy.value
        True
        >>> found.f1.value.shape, found.positive
        ((2,), 1)
        """
        self._fitted()
        return insight.performance(
            self.deployment_, self.stream_, level, last=last, prior=prior, rows=rows
        )

    @property
    def shift_(self) -> Shift:
        """How far the class prior is from the source prior, since when, and how sure that is.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
        >>> for _ in range(4):
        ...     clf = clf.adapt([[0.2, 0.8]] * 100)
        >>> clf.shift_.p_value < 0.05, clf.shift_.since
        (True, 1)
        """
        self._fitted()
        return insight.shift(self.deployment_, self.stream_)

    @property
    def regimes_(self) -> RegimesSeen:
        """The class priors that the stream returns to, oldest first, as a tracker sees them.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker", safety="off")
        >>> for row in [[0.2, 0.8], [0.9, 0.1]]:
        ...     for _ in range(5):
        ...         clf = clf.adapt([row] * 40)
        >>> clf.regimes_.priors.argmax(axis=1).tolist()
        [1, 0]
        """
        found: RegimesSeen | None = self._fitted().learner_.regimes_seen(self.source_, self.state_)
        if found is None:
            raise insight.NotKeptError(f"the learner {self.learner_.name!r} keeps no regimes")
        return found

    @property
    def history_(self) -> Any:
        """What the stream has been through, as a pandas frame with one row a record.

        The index is the number of a record's last batch. Columns: ``time`` (seconds, as given),
        ``batches`` and ``rows`` that it covers, ``labels`` that came; ``prior_``, ``low_`` and
        ``high_`` with the label of each class, the ends being those of a 90 % interval, in the
        newest row that of ``prior_interval()``, in older rows a rougher one that costs less,
        ``rough_interval`` saying which; ``size``, the rows that the class prior rests on;
        ``accuracy`` and ``accuracy_unadapted``, estimated;
        ``guard``, the share that the source model as it is has in every prediction at
        ``on_alarm="fall-back"``, and ``guard_p_value``; ``unchanged``, the share that it has as
        nothing may have changed; ``shift_p_value``; ``regime``, the round that saw it first.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 50, [0, 0, 1, 1] * 50
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
        >>> clf = clf.adapt([[0.2, 0.8]] * 30, timestamp=60.0).adapt([[0.9, 0.1]] * 20)
        >>> clf.history_[["time", "rows"]].values.tolist()
        [[60.0, 30.0], [nan, 20.0]]
        """
        self._fitted()
        return insight.history(self.deployment_, self.stream_)

    def plot(self, **settings: Any) -> PriorDisplay:
        """Draw the history: class prior with its band, regimes, estimated accuracy, guard.

        Parameters
        ----------
        **settings
            As in ``PriorDisplay.from_history``.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 9, [0, 0, 1, 1] * 9
        >>> clf = LabelShiftClassifier.from_probabilities(P, y)
        >>> for _ in range(3):
        ...     clf = clf.adapt([[0.2, 0.8]] * 30)
        >>> display = clf.plot()
        >>> len(display.axes_)
        3
        """
        return PriorDisplay.from_history(self.history_, **settings)

    @property
    def _repr_html_(self) -> Any:
        """How a notebook shows it: what the stream is doing, once there is one."""
        inner = super()._repr_html_  # no attribute where scikit-learn's display is "text"
        fitted = self.__sklearn_is_fitted__()
        return (lambda: insight.card(self.deployment_, self.stream_)) if fitted else inner

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, str]:
        page = {"text/html": self._repr_html_()} if hasattr(self, "_repr_html_") else {}
        return {"text/plain": repr(self), **page}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file, without pickle; the old file stays until the new one is whole.

        A model, features map or learner that is not in the closed list of docs/saving.md is only
        referred to, with a warning: hand it to `load` again, which compares its answers on 16
        held-out rows. A new file can be read by its owner alone; one that is replaced keeps its
        mode. A ``random_state`` that is a generator is not kept.

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
            "named": self.learner if isinstance(self.learner, str) else None,
            "safety": check_safety(self.safety),
            # The guard itself is in the deployment; here is what the user asked for.
            "guard": self.guard if self.guard in (None, False) else "given",
            "on_alarm": self.on_alarm,
            "rehearsal": None if self._rehearsal is None else self._rehearsal.to_lists(),
            "cv": int(self.cv),
            # A generator has moved on since the fit: nothing that it was used for can be repeated.
            "random_state": int(self.random_state) if _is_whole(self.random_state) else None,
            "diameter": None if self.diameter is None else float(self.diameter),
            "calibration": encode_setting(self.calibration),
            "sketch": encode_setting(self.sketch, refuse=False),
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": None if names is None else [str(name) for name in names],
            "names_in": _plain(self.__dict__.get("_names_in")),
            "kind_in": self.__dict__.get("_kind_in"),
            "features": self.features if isinstance(self.features, str) else None,
            "classes": _plain(self.classes, self.classes_),
            "prior": _plain(self.prior, self.classes_),
            "costs": costs_to_plain(self.costs),
            "abstain": None if self.abstain is None else float(self.abstain),
        }
        save_parts(path, Saved(self.deployment_, self.stream_, extra))

    def _fitted(self) -> Self:
        if "stream_" not in self.__dict__:
            check_is_fitted(self, "stream_")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stream_")

    def _read(self, X: Any, y: Any = None, pool: Any = None) -> Batch:
        """Validate a batch, and run the model on it; labels where there are some."""
        deployment = self._fitted().deployment_
        source, lenient = deployment.source, not deployment.learner.needs_features
        batch = source.read(self._validate(X, reset=False), lenient=lenient, pool=pool)
        if y is None:
            return batch
        return batch._replace(known=known_classes(y, len(batch.proba), source.classes))

    def _validate(self, X: Any, reset: bool) -> Any:
        """Look at X, and keep scikit-learn's books of its columns; it goes on as it is."""
        X = as_rows(from_arrow(X, None if reset else self.__dict__.get("_kind_in")))
        if not reset and self._fits(X):
            return X
        if reset:
            self._keep_columns({})
            self._kind_in = _kind(X)
        names = column_names(X)
        if names is not None and not all(isinstance(name, str) for name in names):
            # Scikit-learn knows the names only of columns that are all strings.
            if reset:
                self._names_in = names
            elif self.__dict__.get("_names_in", names) != names:
                raise InputError(
                    f"X has the columns {names[:5]}, the held-out set had {self._names_in[:5]}: "
                    "pass the same columns in the same order"
                )
        if not reset:
            _check_dimensions(X, self.__dict__.get("_kind_in"), hasattr(self, "n_features_in_"))
        if _dimensions(X) == 2:  # all else has no columns to keep books of
            validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _fits(self, X: Any) -> bool:
        """Whether X is an array that scikit-learn's books have nothing to say about."""
        known = self.__dict__
        if type(X) is not np.ndarray or X.ndim != 2 or X.shape[1] != known.get("n_features_in_"):
            return False
        if "feature_names_in_" not in known:
            return True
        if type(self.estimator) is not ProbabilityModel:
            return False
        # Columns of class probabilities go by the labels: in their order they need no names.
        labels = self.estimator.classes_
        if not (labels[:-1] < labels[1:]).all():
            warnings.warn(
                f"X has no names, and is read as the columns {list(self.feature_names_in_[:5])}, "
                "which are not in the order of classes_",
                PriorshiftWarning,
                stacklevel=4,
            )
        return True

    def __sklearn_tags__(self) -> Any:
        """The input that the model takes, as far as the learner can do with it."""
        tags = super().__sklearn_tags__()
        if self.estimator is None or isinstance(self.estimator, BaseEstimator):
            model = LogisticRegression() if self.estimator is None else self.estimator
            tags.input_tags = get_tags(model).input_tags
            if self.features is None and self._needs_features():
                tags.input_tags.allow_nan = False
        return tags

    def _needs_features(self) -> bool:
        if hasattr(self, "deployment_"):  # every batch asks for the tags
            return self.deployment_.learner.needs_features
        try:
            return self._make_learner().needs_features
        except (TypeError, ValueError):  # tags are asked of any object; fit is where it is refused
            return False


def _kind(X: Any) -> str:
    """What rows come in: "array", "array-3" (images), ..., "rows" (a list), a frame's library."""
    if column_names(X) is not None:
        return type(X).__module__.split(".")[0]
    number = _dimensions(X)
    return "rows" if number < 2 else "array" if number == 2 else f"array-{number}"


def _dimensions(X: Any) -> int:
    return len(getattr(X, "shape", ()))


def _check_dimensions(X: Any, kind: str | None, table: bool) -> None:
    """Refuse one image where rows are images, and the like: rows have the dimensions they had."""
    images = (kind or "").removeprefix("array-")
    had = 2 if table else int(images) if images.isdecimal() else 0
    has = _dimensions(X)
    if had and has and has != had:
        raise InputError(
            f"X has {has} dimension{'s' * (has > 1)}, the held-out set had {had}"
            f"{' (rows, columns)' if had == 2 else ''}. Reshape your data with "
            + (
                "X.reshape(1, -1) if it is one row, with X.reshape(-1, 1) if it is one column"
                if had == 2
                else "X[None] if it is one row"
            )
        )


def _check_classes(classes: Any, known: Any) -> None:
    """Refuse labels, where they are given, that are others than those that are known."""
    if classes is not None and not np.iterable(classes):
        raise InputTypeError(
            f"classes is {classes!r}: give a list of all labels, {list(known)[:5]}"
        )
    known = np.asarray(known)
    if classes is not None and known.dtype.kind == "M":
        classes = plain_labels(classes, known)
    if classes is not None and sorted(map(str, classes)) != sorted(map(str, known)):
        raise InputError(
            f"classes is {list(classes)[:5]}, the classifier knows {list(known)[:5]}: it learns no "
            "new classes; name all of them in classes= when it is made"
        )


def _column_labels(labels: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Labels of the columns of probabilities: those of the held-out set, where they can be.

    ``shape`` is that of a row; a row of one number is the second of two classes.
    """
    alone = shape in ((), (1,))
    columns = 2 if alone else shape[0]
    if len(labels) == columns:
        return labels
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < columns:
        return np.arange(columns)
    if alone and len(labels) > 2:
        raise InputError(
            f"there is one number a row, which tells two classes apart, and {len(labels)} labels "
            "in y: pass a column for each class"
        )
    raise InputError(
        f"there are {columns} columns, and {len(labels)} labels in y: pass classes=, the labels in "
        "the order of the columns"
    )


def _as_named(labels: Any, names: list[Any] | None) -> Any:
    """Labels in the order in which columns are named after them; as they are where none is.

    Examples
    --------
    >>> _as_named(np.array(["lead", "tin"]), ["tin", "lead"]).tolist()
    ['tin', 'lead']
    """
    texts = [str(label) for label in plain_labels(np.asarray(labels))]
    named = [str(name) for name in names or ()]
    if named == texts or sorted(named) != sorted(texts):
        return labels
    return np.asarray(labels)[[texts.index(name) for name in named]]


def load(
    path: str | os.PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    learner: Any = None,
) -> LabelShiftClassifier:
    """Read back what ``LabelShiftClassifier.save`` wrote, to the last bit of every number.

    Predictions are the same to the last bit on a machine of the same kind with the same libraries;
    elsewhere to 1e-4 or better. A file that is not whole, or holds anything else than what the
    closed list of docs/saving.md allows, is refused with a ``FileFormatError``, and runs no code.

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
    with refusing(os.fsdecode(path)):
        extra = _checked_extra(saved.extra, source, deployment.learner)
    clf = LabelShiftClassifier(
        source.model.estimator,
        extra["learner"],
        features=extra["features"] or source.features.map,
        intercept=source.features.intercept,
        loss=source.loss.name,
        guard=deployment.guard if extra["guard"] == "given" else extra["guard"],
        label_memory=deployment.label_memory,
        history=deployment.history,
        **{name: extra[name] for name in _SAVED},
    )
    clf.deployment_, clf.stream_ = deployment, saved.stream
    clf._rehearsal = extra["rehearsal"]
    names, width = extra["feature_names_in"], extra["n_features_in"]
    clf._keep_columns(
        {
            "n_features_in_": width,
            "feature_names_in_": None if names is None else np.asarray(names, dtype=object),
            "_names_in": extra["names_in"],
            "_kind_in": extra["kind_in"],
        }
    )
    return clf


def _plain(setting: Any, classes: AnyArray | None = None) -> Any:
    """A setting of labels or shares as JSON can hold it: a list, or pairs where it is a dict."""
    if setting is None:
        return None
    if isinstance(setting, Mapping):
        labels, shares = json_labels(setting, classes), map(float, setting.values())
        return {"pairs": list(map(list, zip(labels, shares, strict=True)))}
    return json_labels(setting if isinstance(setting, list) else np.asarray(setting), classes)


def _plain_again(setting: Any, classes: AnyArray) -> Any:
    if isinstance(setting, dict):
        labels, shares = zip(*setting["pairs"], strict=True)
        return dict(zip(plain_labels(labels, classes), shares, strict=True))
    return None if setting is None else plain_labels(setting, classes)


def _checked_extra(extra: dict[str, Any], source: Source, learner: Learner) -> dict[str, Any]:
    """The classifier's own settings in a file, if each is of its kind."""
    kinds: dict[str, tuple[type, ...]] = {
        "safety": (str,),
        "cv": (int,),
        "random_state": (int, type(None)),
        "diameter": (float, type(None)),
        "n_features_in": (int, type(None)),
        "feature_names_in": (list, type(None)),
        "names_in": (list, type(None)),
        "kind_in": (str, type(None)),
        "features": (str, type(None)),
        "classes": (list, type(None)),
        "prior": (list, dict, type(None)),
        "rehearsal": (list, type(None)),
        "guard": (str, bool, type(None)),
        "on_alarm": (str, type(None)),
        "costs": (list, dict, type(None)),
        "abstain": (float, type(None)),
    }
    found = {name: extra[name] for name in kinds}
    names, columns = found["feature_names_in"], found["n_features_in"]
    fine = all(type(found[name]) in kind for name, kind in kinds.items())
    if not fine or any(type(name) is not str for name in names or ()):
        raise FileFormatError("holds a setting of another kind")
    if source.n_features > 0 and columns != source.n_features:
        raise FileFormatError("the number of columns disagrees within the file")
    if names is not None and len(names) != columns:
        raise FileFormatError("the names of the columns disagree with their number")
    for name in ("calibration", "sketch"):
        found[name] = decode_setting(extra[name], name)
    check_on_alarm(found["on_alarm"], check_safety(found["safety"]))
    if found["guard"] not in (None, False, "given"):
        raise FileFormatError(f"holds the guard {found['guard']!r}")
    for name in ("classes", "prior"):
        found[name] = _plain_again(found[name], source.classes)
    found["costs"] = costs_from_plain(found["costs"], source.classes)
    _check_decisions(found["costs"], found["abstain"], source.classes)
    found["learner"] = learner
    if found["rehearsal"] is not None:
        if not isinstance(learner, Careful):
            raise FileFormatError("holds a rehearsal of a learner that had none")
        found["rehearsal"] = Rehearsal.from_lists(found["rehearsal"])
        if found["rehearsal"].caution != learner.caution:
            raise FileFormatError("holds a rehearsal of another caution than the learner's")
        # What a rehearsal made careful is rehearsed again when it is fitted again.
        found["learner"] = learner.learner
    named = extra.get("named")  # older files have none
    if isinstance(named, str) and as_learner(named) == found["learner"]:  # not with a hint
        found["learner"] = named
    return found


def _check_abstain(abstain: Any) -> None:
    if abstain is not None:
        check_chance("abstain, the share of wrong answers,", abstain, such_as=0.02)


def _check_decisions(costs: Any, abstain: Any, classes: AnyArray) -> Costs | None:
    """The costs, if they and ``abstain`` are settings that go together; None for no costs."""
    _check_abstain(abstain)
    found = None if costs is None else as_costs(costs, classes)
    if abstain is not None and found is not None and not found.answers:
        raise InputError(
            "abstain= is a share of wrong answers, and the actions of costs= are no answers: give "
            "costs of shape (K, K), or make leaving a row alone an action with costs of its own"
        )
    return found


def _positive(pos_label: Any, classes: AnyArray) -> int:
    """The place of the positive class."""
    if pos_label is None:
        if len(classes) != 2:
            raise InputError(
                f"there are {len(classes)} classes: pass pos_label=, the one that the threshold "
                "is for"
            )
        return 1
    labels = plain_labels(classes)
    wanted = None if np.ndim(pos_label) else plain_labels([pos_label], classes)[0]
    if wanted not in labels:
        raise InputError(f"pos_label is {pos_label!r}, no class: choose one of {labels[:5]}")
    return labels.index(wanted)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
