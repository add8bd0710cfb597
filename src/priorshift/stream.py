"""What one stream has learned, and the one step that every batch of it takes.

A ``Deployment`` is what all streams of a model share: the source, the learner, the guard. A
``Stream`` is what one of them has learned: one record of arrays and numbers, never changed, only
replaced. The classifier holds one stream; whoever holds many holds many records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from priorshift._validation import check_integer
from priorshift.errors import InputError
from priorshift.learners.base import Learner
from priorshift.learners.trackers.late import Remembered, find, merged, remembered_batch
from priorshift.monitoring.guard import Guard, GuardState, check_on_alarm
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray


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

    Examples
    --------
    >>> Stream(state=None).memory
    ()
    """

    state: Any
    guard: GuardState | None = None
    memory: tuple[Remembered, ...] = ()


class Outcome(NamedTuple):
    """What a step has to say besides the new stream.

    ``proba`` (n, K) are the batch's class probabilities, where they were asked for; ``alarm``
    whether the guard raised its alarm at this batch.
    """

    proba: FloatArray | None
    alarm: bool


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
        With "fall-back", streams whose guard has raised its alarm are predicted with f0 as it is.
    label_memory : int
        How many batches that got a key are remembered, for labels that come late.

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

    def __post_init__(self) -> None:
        check_on_alarm(self.on_alarm)
        check_integer(self.label_memory, "label_memory", least=0)

    def start(self) -> Stream:
        """Return a stream that has seen nothing."""
        guard = None if self.guard is None else self.guard.start(self.source)
        return Stream(self.learner.start(self.source), guard)

    def step(
        self, stream: Stream, batch: Batch, *, key: int | str | None = None, predict: bool = False
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
        alarmed = counted is not None and counted.alarm > 0
        if proba is not None and alarmed and self.on_alarm == "fall-back":
            proba = batch.f0_proba
        news = alarmed and stream.guard is not None and not stream.guard.alarm
        return Stream(state, counted, memory), Outcome(proba, news)

    def predict_proba(self, stream: Stream, batch: Batch) -> FloatArray:
        """Class probabilities (n, K); each row's depend on no other row. Change nothing."""
        alarmed = stream.guard is not None and stream.guard.alarm > 0
        if alarmed and self.on_alarm == "fall-back":
            return batch.f0_proba
        return self.learner.predict_proba(self.source, stream.state, batch)

    def learn_labels(self, stream: Stream, key: int | str, known: IntArray) -> Stream:
        """Return the stream with labels of a remembered batch counted; ``known`` has -1 for none.

        A learner that has no use for late labels leaves the stream as it is.
        """
        record = find(stream.memory, key)
        after, late = merged(record, known, int(stream.state.t))
        if not self.learner.uses_late_labels:
            return stream
        memory = tuple(after if old is record else old for old in stream.memory)
        return stream._replace(
            state=self.learner.correct(self.source, stream.state, late), memory=memory
        )

    def prior(self, stream: Stream) -> FloatArray:
        """The class prior (K,) that the learner believes in now."""
        return self.learner.prior(self.source, stream.state)
