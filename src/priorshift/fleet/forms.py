"""Streams of a deployment as rows of numbers: how they learn, predict, and are told apart.

``form_of`` finds the form for a deployment. Trackers, and ``auto`` where it has no linear model,
have a compiled step for many rows at once. Every other learner whose states keep their size is
served by its own step, one stream after the other.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakSet

import numpy as np

from priorshift._numerics import TINY
from priorshift.errors import InputError, PriorshiftWarning
from priorshift.fleet.shared import shared_start
from priorshift.learners import Auto, Careful
from priorshift.learners.trackers.calls import calls_of
from priorshift.learners.trackers.careful import (
    CarefulState,
    Held,
    answered,
    unchanged_of,
)
from priorshift.learners.trackers.compiled import fields
from priorshift.learners.trackers.components import (
    ComponentLearner,
    likelihoods,
    reweight_by,
    with_labels,
)
from priorshift.learners.trackers.records import (
    Plan,
    careful_parts,
    from_row,
    packed,
    plan_of,
    to_row,
    unpacked,
    with_caution,
)
from priorshift.learners.trackers.tracker import Tracker
from priorshift.risk import compiled
from priorshift.saving.stream_bytes import leaves_of, shaped_like
from priorshift.source import Batch, Source
from priorshift.stream import Deployment
from priorshift.typing import FloatArray, IntArray

# Fewer streams than this are not worth a second thread.
_FEW = 512
# Deployments of which it was said that they are slow: once is enough.
_TOLD: WeakSet[Deployment] = WeakSet()
_NOTHING, _NOTHING_CALLED = np.empty((0, 0)), np.empty(0, dtype=np.int64)
_UNCHANGED_PARTS = len(careful_parts(2, 2))


def form_of(deployment: Deployment) -> TrackerForm | PlainForm:
    """The form of a deployment's streams, or a refusal that says what can be served."""
    learner, source = deployment.learner, deployment.source
    if learner.grows:
        raise InputError(
            f"the states of {learner.name!r} grow with the stream, and a fleet keeps records of "
            "one size: fit with learner='auto', 'tracker', 'em' or 'regimes'"
        )
    careful = learner if isinstance(learner, Careful) else None
    held = None if careful is None else careful.held(source)
    inner = learner if careful is None else careful.learner
    reading = source if held is None else held.source
    auto = type(inner) is Auto
    core = inner
    if isinstance(inner, Auto) and auto and inner.online(reading) is None:
        core = Tracker()
    if isinstance(core, ComponentLearner) and core.has_plan and compiled.available():
        return TrackerForm(deployment, core, reading, careful, held, auto)
    plain = PlainForm(deployment)
    if type(core) is Auto and deployment not in _TOLD:
        _TOLD.add(deployment)
        warnings.warn(
            "'auto' reads features here: every stream takes a step of its own, and "
            f"{8 * plain.width:,} bytes. With learner='tracker', or Auto(linear=False), all of "
            "them take one compiled step",
            PriorshiftWarning,
            stacklevel=3,
        )
    return plain


class TrackerForm:
    """Streams as records of ``width`` numbers, for trackers: compiled, on several threads at once.

    ``start`` (R,) is the record of a stream that has seen nothing. Its numbers are those of the
    learner's own step, to the last bit: it is the same compiled function. See ``records.py``.
    """

    compiled = True

    def __init__(
        self,
        deployment: Deployment,
        core: ComponentLearner,
        source: Source,
        careful: Careful | None,
        held: Held | None,
        auto: bool,
    ) -> None:
        self._core, self._source, self._outer = core, source, deployment.source
        self._careful, self._held, self._auto = careful, held, auto
        self._reads: Any = deployment.learner if careful is None else careful.learner
        self._fresh = deployment.learner.start(deployment.source)
        self._plan: Plan = plan_of(core, source)
        if careful is not None and held is not None:
            self._plan = with_caution(self._plan, *careful.weighing(deployment.source))
        self.width = self._plan.record
        self.start = self.to_record(self._fresh)

    def to_record(self, state: Any) -> FloatArray:
        """The record (R,) of a learner's state."""
        inner = state.inner if self._careful is not None else state
        row = to_row(inner.tracker if self._auto else inner)
        if self._careful is not None:
            row = np.concatenate([row, to_row(state.unchanged)])
        if len(row) != self._plan.width:
            raise InputError("the state has other sizes than those of this fleet's learner")
        return np.asarray(packed(self._plan, row[None])[0])

    def from_record(self, record: FloatArray) -> Any:
        """The learner's state of a record (R,)."""
        leaves = from_row(self._plan.parts, unpacked(self._plan, record[None])[0])
        rest = leaves[-_UNCHANGED_PARTS:] if self._careful is not None else []
        core: Any = self._core
        state = core.shaped(leaves[: len(leaves) - len(rest)])
        t = state.t
        if self._auto:
            fresh = self._fresh.inner if rest else self._fresh
            state = fresh._replace(t=t, tracker=state)
        return CarefulState(t, state, unchanged_of(rest)) if rest else state

    def learn(
        self,
        records: FloatArray,
        which: IntArray,
        starts: IntArray,
        batch: Batch,
        proba: FloatArray | None,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Let the rows ``which`` (M,) of ``records`` learn, in place.

        Stream m has the rows from ``starts[m]`` to ``starts[m + 1]`` of the batch; their class
        probabilities are put into ``proba`` (n, K), where it is given.
        """

        def work(a: int, b: int) -> None:
            own = slice(int(starts[a]), int(starts[b]))
            said = None if proba is None else proba[own]
            self._learn(records, which[a:b], starts[a : b + 1] - own.start, batch.rows(own), said)

        number = len(which)
        if pool is None or number < _FEW:
            work(0, number)
        else:
            ends = np.linspace(0, number, 4 * pool._max_workers + 1).astype(int)
            list(pool.map(work, ends[:-1], ends[1:]))

    def _learn(
        self,
        records: FloatArray,
        which: IntArray,
        starts: IntArray,
        batch: Batch,
        proba: FloatArray | None,
    ) -> None:
        """The same on one thread."""
        read = self._read(batch)
        plain = likelihoods(self._source, read)
        ratios = with_labels(plain, batch.known)
        called = _NOTHING_CALLED
        if self._careful is not None:
            called = calls_of(batch.f0_proba)
        tracked = _NOTHING if proba is None else np.empty_like(plain)
        tables, arguments = (records, records.view(np.float32)), self._plan.arguments
        compiled.trackers.advance(
            *tables, which, starts, ratios, plain, called, tracked, *arguments
        )
        if proba is None:
            return
        if self._careful is None:
            proba[...] = tracked
            return
        belief = records[which, self._plan.place(fields.UNCHANGED)]
        proba[...] = self._mixed(np.repeat(belief, np.diff(starts)), read, tracked)

    def _read(self, batch: Batch) -> Batch:
        """The batch as the trackers read it."""
        read: Batch = self._reads.read(self._source, batch)
        return read

    def _mixed(self, belief: FloatArray, read: Batch, tracked: FloatArray) -> FloatArray:
        """Probabilities of f0 as far as nothing has changed, of the tracker for the rest."""
        assert self._held is not None
        return answered(self._held, belief, read.proba, read.f0_proba, tracked)

    def forecasts(self, records: FloatArray) -> FloatArray:
        """The class priors (M, K) that streams expect of their next batch."""
        found = np.empty((len(records), len(self._plan.prior)))
        rows = unpacked(self._plan, records)
        compiled.trackers.forecasts(rows, found, *self._plan.arguments[1:5])
        return found

    def predict(self, records: FloatArray, of: IntArray, batch: Batch) -> FloatArray:
        """Class probabilities (n, K) of rows of a batch; row i belongs to the stream ``of[i]``."""
        batch = self._read(batch)
        proba = reweight_by(likelihoods(self._source, batch), self.forecasts(records)[of])
        if self._careful is None or self._held is None:
            return proba
        belief = self._numbers(records, fields.UNCHANGED)
        belief = self._careful.next_belief(self._held, belief)
        return self._mixed(belief[of], batch, proba)

    def _numbers(self, records: FloatArray, field: int) -> FloatArray:
        """A number (M,) of records, one of those in float64."""
        return np.asarray(records[:, self._plan.place(field)])

    def priors(self, records: FloatArray) -> FloatArray:
        """The class priors (M, K) that streams believe in now."""
        first = self._plan.place(fields.MASS)
        mass = np.maximum(records[:, first : first + len(self._plan.prior)], 0.0)
        prior = np.asarray(mass / mass.sum(axis=-1, keepdims=True))
        if self._careful is None or self._held is None:
            return prior
        belief = self._unchanged(records)[:, None]
        told = self._careful.told(self._held, self._outer, prior)
        return np.asarray((1.0 - belief) * told + belief * self._outer.prior)

    def _unchanged(self, records: FloatArray) -> FloatArray:
        """How likely (M,) it is that nothing has changed in streams."""
        witnesses = (self._numbers(records, by) for by in (fields.BY_EVIDENCE, fields.BY_CALLS))
        return np.asarray(np.maximum(*witnesses))

    def changed(self, records: FloatArray) -> FloatArray:
        """How likely (M,) streams are to have changed; 1 where safety is off."""
        return np.ones(len(records)) if self._careful is None else 1.0 - self._unchanged(records)

    def shared_start(self, records: FloatArray) -> FloatArray:
        """The record (R,) of a new stream, after what streams with these records have shown."""
        start, rows = (unpacked(self._plan, part) for part in (self.start[None], records))
        return np.asarray(packed(self._plan, shared_start(self._plan, start[0], rows)[None])[0])

    def ratios(self, batch: Batch) -> FloatArray:
        """The likelihood ratios (n, K) that streams learn from."""
        return with_labels(likelihoods(self._source, self._read(batch)), batch.known)

    def tilt(self, records: FloatArray, factors: FloatArray) -> None:
        """Multiply what records (M, W) have counted by factors (M, K), in place; sums stay."""
        rows, at, K = unpacked(self._plan, records), self._plan.at, len(self._plan.prior)
        sizes = len(self._plan.keep), int(at[fields.SLOTS]), 1
        for field, size in zip(
            (fields.EXPERT_COUNTS, fields.COUNTS, fields.MASS), sizes, strict=True
        ):
            if size:
                part = rows[:, at[field] : at[field] + size * K].reshape(-1, size, K)
                tilted = part * factors[:, None]
                sums = np.maximum(tilted.sum(axis=-1, keepdims=True), TINY)
                part[...] = tilted * (part.sum(axis=-1, keepdims=True) / sums)
        records[:, : self.width] = packed(self._plan, rows)

    def sizes(self, records: FloatArray) -> FloatArray:
        """How many data rows (M,) the present class priors rest on."""
        return self._numbers(records, fields.SIZE)

    def rounds(self, records: FloatArray) -> IntArray:
        """Batches (M,) that streams have learned from."""
        return self._numbers(records, fields.T).astype(np.int64)


class PlainForm:
    """The same for any learner whose states keep their size: each stream takes its own step."""

    compiled = False

    def __init__(self, deployment: Deployment) -> None:
        self._source, self._learner = deployment.source, deployment.learner
        self._template = self._learner.start(self._source)
        self._leaves = [np.asarray(leaf) for leaf in leaves_of(self._template)]
        bad = {leaf.dtype for leaf in self._leaves if leaf.dtype.kind not in "iuf"}
        if bad:
            raise InputError(f"the states of {self._learner.name!r} hold {bad}, and not numbers")
        self._ends = np.cumsum([leaf.size for leaf in self._leaves])
        self.width = int(self._ends[-1])
        self.start = self.to_record(self._template)

    def to_record(self, state: Any) -> FloatArray:
        """The record (R,) of a learner's state."""
        row = np.concatenate(leaves_of(state), axis=None, dtype=np.float64)
        if len(row) != self.width:
            raise InputError("the state has other sizes than those of this fleet's learner")
        return row

    def from_record(self, row: FloatArray) -> Any:
        """The learner's state of a record (R,)."""
        parts = np.split(np.asarray(row), self._ends[:-1])
        values: list[Any] = []
        for part, leaf, fresh in zip(parts, self._leaves, leaves_of(self._template), strict=True):
            value = part.astype(leaf.dtype).reshape(leaf.shape)
            values.append(value if isinstance(fresh, np.ndarray) else type(fresh)(value[()]))
        return shaped_like(self._template, iter(values))

    def learn(
        self,
        records: FloatArray,
        which: IntArray,
        starts: IntArray,
        batch: Batch,
        proba: FloatArray | None,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Let the rows ``which`` (M,) of ``records`` learn, one after the other."""
        source, learner = self._source, self._learner
        after = []
        for m, place in enumerate(which):
            state = self.from_record(records[place, : self.width])
            own = slice(int(starts[m]), int(starts[m + 1]))
            with learner.threads(source, state):
                if proba is None:
                    state = learner.adapt(source, state, batch.rows(own))
                else:
                    state, proba[own] = learner.adapt_predict(source, state, batch.rows(own))
            after.append(self.to_record(state))
        for place, row in zip(which, after, strict=True):
            records[place, : self.width] = row

    def predict(self, rows: FloatArray, of: IntArray, batch: Batch) -> FloatArray:
        """Class probabilities (n, K) of rows of a batch; row i belongs to the stream ``of[i]``."""
        found = np.empty_like(batch.proba)
        for m, row in enumerate(rows):
            own = np.flatnonzero(of == m)
            state = self.from_record(row[: self.width])
            found[own] = self._learner.predict_proba(self._source, state, batch.rows(own))
        return found

    def priors(self, rows: FloatArray) -> FloatArray:
        """The class priors (M, K) that streams believe in now."""
        states = map(self.from_record, rows[:, : self.width])
        found = [self._learner.prior(self._source, state) for state in states]
        return np.array(found).reshape(-1, self._source.n_classes)

    def sizes(self, rows: FloatArray) -> FloatArray:
        """How many data rows (M,) the present class priors rest on; NaN where that is not known."""
        states = map(self.from_record, rows[:, : self.width])
        found = [self._learner.effective_size(self._source, state) for state in states]
        return np.array([math.nan if size is None else size for size in found])

    def changed(self, rows: FloatArray) -> FloatArray:
        """How likely (M,) streams are to have changed; 1, as nobody asks."""
        return np.ones(len(rows))

    def shared_start(self, rows: FloatArray) -> FloatArray:
        """Refuse: rows of any learner say nothing of new streams."""
        raise InputError(
            "shared_prior=True needs a learner that follows regimes, and its compiled step: fit "
            "with learner='auto' without features, 'tracker', 'em' or 'regimes', and install numba"
        )

    def rounds(self, rows: FloatArray) -> IntArray:
        """Batches (M,) that streams have learned from."""
        return np.array([self.from_record(row[: self.width]).t for row in rows], dtype=np.int64)
