"""What one stream has learned, and the one step that every batch of it takes.

A ``Deployment`` is what all streams of a model share: the source, the learner, the guard. A
``Stream`` is what one of them has learned: one record of arrays and numbers, never changed, only
replaced. The classifier holds one stream; whoever holds many holds many records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from priorshift._numerics import one_hot
from priorshift._validation import check_choice, check_integer
from priorshift.calibration.bounded import BoundedMap
from priorshift.errors import InputError
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import evidence_rows, reweight_by
from priorshift.learners.trackers.late import Remembered, find, merged, remembered_batch
from priorshift.monitoring.guard import ON_ALARM, Guard, GuardState
from priorshift.monitoring.history import NO_TIME, History, Record
from priorshift.monitoring.shift import ShiftState, follow_shift, start_shift
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# EM steps from the class prior that rows are drawn with to the rows themselves: so many, and one
# more for so many rows, up to a most. Few rows say little: with many steps each ends at its
# likeliest class.
_STEPS, _ROWS_A_STEP, _MOST_STEPS = 3, 4, 40
# What a row of the past counts beside one of the batch: the class prior may have changed since.
_PAST = 0.5


class Stream(NamedTuple):
    """What one stream has learned.

    Attributes
    ----------
    state : NamedTuple
        The learner's state.
    guard : GuardState or None
        What the guard has counted, where there is one.
    memory : tuple of Remembered
        Batches whose labels may still come.
    shift : ShiftState or None
        What the test of a shift has seen, where a history is kept.
    history : History or None
        A bounded record of the batches so far, where one is kept.

    Examples
    --------
    >>> Stream(state=None).memory
    ()
    """

    state: Any
    guard: GuardState | None = None
    memory: tuple[Remembered, ...] = ()
    shift: ShiftState | None = None
    history: History | None = None


class Outcome(NamedTuple):
    """What a step has to say besides the new stream.

    ``proba`` (n, K) are the batch's class probabilities, where they were asked for; ``alarm``
    whether the guard raised its alarm at this batch; ``prior`` (K,) the class prior that the
    learner believes in after it.
    """

    proba: FloatArray | None
    alarm: bool
    prior: FloatArray


@dataclass(frozen=True, eq=False)
class Deployment:
    """Everything that the streams of one model share.

    Parameters
    ----------
    source : Source
        What the offline stage knows.
    learner : Learner
        The recipe that adapts.
    guard : Guard, optional
        The test of label shift that runs along.
    on_alarm : {"warn", "fall-back", "ignore"}
        With "fall-back", f0 as it is has the guard's present share of every prediction: all of it
        while an alarm stands.
    label_memory : int
        How many batches that got a key are remembered, for labels that come late.
    history : int
        Places of the record of past batches that every stream keeps, see
        ``monitoring/history.py``; 0 keeps none, and runs no test of a shift.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.learners import FTH
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), [0, 0, 1, 1]
    >>> deployment = Deployment(build_source(ProbabilityModel(classes=[0, 1]), P, y), FTH())
    >>> stream = deployment.start()
    >>> batch = deployment.source.read(P[2:])
    >>> after, outcome = deployment.step(stream, batch, predict=True)
    >>> after.state.t, stream.state.t, outcome.proba.argmax(axis=1).tolist()
    (1, 0, [1, 1])
    """

    source: Source
    learner: Learner
    guard: Guard | None = None
    on_alarm: str = "warn"
    label_memory: int = 100
    history: int = 0

    def __post_init__(self) -> None:
        check_choice("on_alarm", self.on_alarm, ON_ALARM)
        for name in ("label_memory", "history"):  # an int of NumPy cannot be saved
            object.__setattr__(self, name, check_integer(getattr(self, name), name, least=0))

    def start(self) -> Stream:
        """Return a stream that has seen nothing."""
        source = self.source
        guard = None if self.guard is None else self.guard.start(source)
        state = self.learner.start(source)
        if not self.history:
            return Stream(state, guard)
        return Stream(state, guard, (), start_shift(source), History.start(source.n_classes))

    def step(
        self,
        stream: Stream,
        batch: Batch,
        *,
        key: int | str | None = None,
        predict: bool = False,
        time: float = NO_TIME,
    ) -> tuple[Stream, Outcome]:
        """Learn from a batch, and predict its rows if asked to; a pure step.

        Parameters
        ----------
        stream : Stream
        batch : Batch
            From ``source.read``; with ``known`` where labels have come.
        key : int or str, optional
            The name under which ``learn_labels`` will find the batch.
        predict : bool
            Also return the class probabilities of its rows, each left out of its own evidence.
        time : float
            Seconds, for the history; minus infinity where nobody has told the time.
        """
        if key is not None and any(record.key == key for record in stream.memory):
            raise InputError(f"batch_id={key!r} names a batch that is remembered: give another")
        if (self.guard is None) != (stream.guard is None):
            raise InputError(
                "the stream was started with a guard and goes on without, or the other way"
            )
        source, learner, before = self.source, self.learner, stream.state
        proba = None
        with learner.threads(source, before):
            if predict:
                state, proba = learner.adapt_predict(source, before, batch)
            else:
                state = learner.adapt(source, before, batch)
        memory = stream.memory
        if key is not None and self.label_memory:
            record = remembered_batch(learner, source, before, state, batch, key)
            memory = (*memory, record)[-self.label_memory :]
        counted = stream.guard
        if self.guard is not None and counted is not None:  # both or neither
            counted = self.guard.update(source, counted, batch)
        prior = learner.prior(source, state)
        shift, history = self._recorded(stream, state, counted, batch, prior, time)
        after = Stream(state, counted, memory, shift, history)
        if proba is not None:
            proba = self._mixed(after, batch.f0_proba, proba)
        news = counted is not None and counted.alarm > 0
        news = news and stream.guard is not None and not stream.guard.alarm
        return after, Outcome(proba, news, prior)

    def _recorded(
        self,
        before: Stream,
        state: Any,
        counted: GuardState | None,
        batch: Batch,
        prior: FloatArray,
        time: float,
    ) -> tuple[ShiftState | None, History | None]:
        """The test of a shift gone on by a batch, and the history with its record."""
        if before.shift is None or before.history is None:
            return None, None
        source, learner, rows = self.source, self.learner, len(batch.proba)
        shift = follow_shift(source, before.shift, batch.proba, prior)
        record = Record(
            time=time,
            round=shift.t,
            batches=1,
            rows=rows,
            labels=0 if batch.known is None else int((batch.known >= 0).sum()),
            size=learner.effective_size(source, state) or rows,
            unchanged=learner.unchanged(source, state),
            guard=0.0 if counted is None else counted.share,
            guard_log_p=0.0 if counted is None else counted.log_p,
            shift_log_p=math.log(shift.p_value),
            regime=learner.regime(source, state),
        )
        read = np.add.reduce(batch.proba, axis=0) / rows
        return shift, before.history.with_record(record, prior, read, self.history)

    def predict_proba(self, stream: Stream, batch: Batch) -> FloatArray:
        """Class probabilities (n, K); each row's depend on no other row. Change nothing."""
        if self.fallen_back(stream) >= 1.0:
            return batch.f0_proba
        adapted = self.learner.predict_proba(self.source, stream.state, batch)
        return self._mixed(stream, batch.f0_proba, adapted)

    def batch_shares(self, stream: Stream, batch: Batch) -> FloatArray:
        """The shares (K,) of the classes among the rows of a batch themselves; changes nothing.

        The mean of the probabilities that the rows would have if the batch were the stream's next,
        each row counted once. Learners that go by likelihoods speak of what rows are drawn with:
        from there some EM steps lead on to these rows, as far as something has changed, and are
        held back by half as many rows as the class prior rested on before. They read
        f0 as its calibration has it before ``BoundedMap`` draws small likelihood ratios up: that
        keeps one answer from being too bold, and would be an error that all rows have in common. A
        row whose label is known (``batch.known``) counts as that.
        """
        state, learner, source = stream.state, self.learner, self.source
        with learner.threads(source, state):
            after, proba = learner.adapt_predict(source, state, batch)
            if learner.guarded:
                ratios = evidence_rows(source, learner.read(source, _unbounded(source, batch)))
                likely, now = learner.unchanged(source, after), learner.prior(source, after)
                before = (learner.effective_size(source, after) or 0.0) - len(ratios)
                counted = _counted(ratios, now, _PAST * max(before, 0.0))
                proba = likely * proba + (1.0 - likely) * counted
        proba = self._mixed(stream, batch.f0_proba, proba)
        if batch.known is not None:
            known = batch.known >= 0
            proba = np.where(known[:, None], one_hot(batch.known, proba.shape[1]), proba)
        return np.asarray(proba.mean(axis=0))

    def predict_held_out(self, stream: Stream) -> FloatArray:
        """Class probabilities (n, K) of the held-out set, as new rows of its classes have them now.

        Rows are in the order of ``source.labels``. Calibration and correction of each row were
        fitted without it; a cross-fitted f0 as well.
        """
        if self.fallen_back(stream) >= 1.0:
            return self.source.f0_proba
        adapted = self.learner.predict_held_out(self.source, stream.state)
        return self._mixed(stream, self.source.f0_proba, adapted)

    def fallen_back(self, stream: Stream) -> float:
        """The share of f0 as it is in the stream's predictions, 0 to 1."""
        if stream.guard is None or self.on_alarm != "fall-back":
            return 0.0
        return float(stream.guard.share)

    def _mixed(self, stream: Stream, f0_proba: FloatArray, adapted: FloatArray) -> FloatArray:
        """Probabilities of the learner and of f0, by what the guard has to say."""
        share = self.fallen_back(stream)
        if share <= 0.0 or share >= 1.0:
            return adapted if share <= 0.0 else f0_proba
        return (1.0 - share) * adapted + share * f0_proba

    def learn_labels(self, stream: Stream, key: int | str, known: IntArray) -> Stream:
        """Return the stream with labels of a remembered batch counted; ``known`` has -1 for none.

        A learner that has no use for late labels leaves the stream as it is, and so do labels that
        are known already.
        """
        record = find(stream.memory, key)
        after, late = merged(record, known, int(stream.state.t))
        if not self.learner.uses_late_labels or np.array_equal(after.known, record.known):
            return stream
        memory = tuple(after if old is record else old for old in stream.memory)
        history = stream.history
        if history is not None:
            new = int((after.known >= 0).sum() - (record.known >= 0).sum())
            history = history.with_labels(record.round, new)
        return stream._replace(
            state=self.learner.correct(self.source, stream.state, late),
            memory=memory,
            history=history,
        )

    def prior(self, stream: Stream) -> FloatArray:
        """The class prior (K,) that the learner believes in now."""
        return self.learner.prior(self.source, stream.state)


def _counted(ratios: FloatArray, prior: FloatArray, before: float) -> FloatArray:
    """Class probabilities (n, K) after EM steps from a class prior towards that of these rows.

    ``ratios`` (n, K) are likelihood ratios, labels that are known included; so many
    rows ``before`` them speak for the class prior.
    """
    n, shares = len(ratios), prior
    for _ in range(min(_STEPS + n // _ROWS_A_STEP, _MOST_STEPS)):
        mean = reweight_by(ratios, shares).mean(axis=0)
        shares = (n * mean + before * prior) / (n + before)
    return reweight_by(ratios, shares)


def _unbounded(source: Source, batch: Batch) -> Batch:
    """The batch with f0's calibration before its bounds, where it has some."""
    if not isinstance(source.calibration, BoundedMap):
        return batch
    return batch._replace(proba=source.calibration.inner(batch.f0_proba))
