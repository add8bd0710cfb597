"""A fleet: many streams of one deployed classifier, served together."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from priorshift._threads import usable_cores
from priorshift._validation import check_integer, check_path
from priorshift.classifier import LabelShiftClassifier
from priorshift.classifier import load as load_classifier
from priorshift.errors import FileFormatError, InputError, InputTypeError
from priorshift.fleet.folder import Files, is_fleet, read_main, read_names, write_fleet
from priorshift.fleet.forms import PlainForm, form_of
from priorshift.fleet.ids import Key, Names, as_keys, grouped
from priorshift.fleet.log import entries
from priorshift.fleet.mapped import Mapped
from priorshift.fleet.memory import Live, Memory
from priorshift.fleet.shared import SAMPLE
from priorshift.fleet.together import Common, evidence, follow
from priorshift.monitoring import prior_interval
from priorshift.risk.compiled import interruptible
from priorshift.saving import refusing, stream_to_bytes
from priorshift.saving.stream_bytes import deployment_digest
from priorshift.source import Batch
from priorshift.stream import Stream
from priorshift.typing import AnyArray, FloatArray, IntArray


class Moved(NamedTuple):
    """A stream of a summary: its id, its rounds, its class prior, and how far it has moved.

    ``distance`` is the total variation from the source's class prior, 0 to 1; ``changed`` how
    likely it is that the stream has changed at all, 1 where safety is off.
    """

    id: Key
    rounds: int
    prior: FloatArray
    distance: float
    changed: float


class Summary(NamedTuple):
    """A fleet at a glance.

    ``streams`` and ``rounds`` are numbers of them, ``prior`` (K,) the mean class prior of the
    streams, ``changed`` how many streams have more likely changed than not, ``moved`` those that
    have moved furthest.
    """

    streams: int
    rounds: int
    prior: FloatArray
    changed: int
    moved: tuple[Moved, ...]


class Fleet:
    """Many streams of one classifier: one for each shop, device or user.

    Every stream learns and predicts exactly as the classifier would if it had seen the stream's
    batches alone, to the last bit, whatever other streams there are. Streams are born when they are
    first seen. All rows of an id in one call are one batch, in their order.

    Parameters
    ----------
    classifier : LabelShiftClassifier
        A fitted one. Its own stream is left as it is, and is none of the fleet's.
    shared_prior : bool
        Let new streams start from what others have shown, in the place of the source's prior: then
        what a stream is depends on the streams before it. For many streams of few rows.
    together : bool
        Let streams that move together (a common season) learn from each other: then what a stream
        is depends on all others. Where they do not, nothing is passed on. See docs/fleet.md.
    n_jobs : int, optional
        Threads; by default one for each core.
    forget_after : int, optional
        A stream without rows in so many calls of ``adapt`` is forgotten: it starts anew when it
        comes again. By default none is.

    Notes
    -----
    A fleet has no guard, no batches that wait for labels and no history: each would be larger than
    what a tracker knows of a stream. See docs/fleet.md.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker", safety="off")
    >>> fleet = Fleet(clf)
    >>> shops = ["north", "south", "south"]
    >>> fleet.adapt_predict(shops, [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]).tolist()
    ['no', 'yes', 'yes']
    >>> len(fleet), fleet.priors(["south"]).shape
    (2, (1, 2))
    """

    def __init__(
        self,
        classifier: LabelShiftClassifier,
        *,
        shared_prior: bool = False,
        together: bool = False,
        n_jobs: int | None = None,
        forget_after: int | None = None,
    ) -> None:
        if not isinstance(classifier, LabelShiftClassifier):
            raise InputTypeError(
                f"classifier is {type(classifier).__name__}: give a fitted LabelShiftClassifier"
            )
        self.deployment = classifier._fitted().deployment_
        self.classifier = classifier
        self.n_jobs = usable_cores() if n_jobs is None else check_integer(n_jobs, "n_jobs", least=1)
        self.forget_after = forget_after
        if forget_after is not None:
            check_integer(forget_after, "forget_after", least=1)
        self._form, self.shared_prior = form_of(self.deployment), bool(shared_prior)
        self._start, self._fitted = self._form.start, 0
        if shared_prior:  # or a refusal
            self._start = self._form.shared_start(np.empty((0, self._form.width)))
        self._common: Common | None = None
        if together:
            if isinstance(self._form, PlainForm):
                raise InputError(
                    "together=True needs a tracker and its compiled step: fit with learner='auto' "
                    "without features, 'tracker', 'em' or 'regimes', and install numba"
                )
            self._common = Common(self._form, self._form.start)
        self._then = self._now()  # what the start was fitted under
        self._names = Names()
        self.lost: list[Key] = []
        # One number more: the call that a stream was last seen in.
        width = self._form.width + len(self._then) + 1
        self._store: Memory | Mapped = Memory(width, self._form.compiled)
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(self.n_jobs) if self.n_jobs > 1 else None

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        clf, kept = self.classifier, "mapped" if isinstance(self._store, Mapped) else "in memory"
        return (
            f"<Fleet of {type(clf).__name__}(learner={clf.learner!r}, safety={clf.safety!r}): "
            f"{len(self):,} streams, {len(self.classes_)} classes, {kept}>"
        )

    def __contains__(self, key: object) -> bool:
        return key in self._names

    @property
    def classes_(self) -> AnyArray:
        """Class labels, sorted.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.classes_.tolist()
        ['no', 'yes']
        """
        return self.deployment.source.classes

    @property
    def ids(self) -> list[Key]:
        """The ids of all streams.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.ids
        ['north', 'south']
        """
        return self._names.keys()

    def adapt(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Let streams learn from rows; a call that is refused changes nothing.

        Parameters
        ----------
        ids : array-like of shape (n,)
            The stream of every row: whole numbers or strings.
        X : whatever the model reads
            Rows. The model runs once over all of them.
        y : array-like of shape (n,) or dict, optional
            Labels, where there are some, as in ``LabelShiftClassifier.adapt``.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="em", safety="off")
        >>> fleet = Fleet(clf).adapt([7, 8], [[0.1, 0.9], [0.9, 0.1]])
        >>> bool(fleet.priors([7])[0, 1] > fleet.priors([8])[0, 1])
        True
        """
        self._learn_batch(ids, self.classifier._read(X, y, self._pool), predict=False)
        return self

    def adapt_predict_proba(self, ids: Any, X: Any, y: Any = None) -> FloatArray:
        """Let streams learn from rows; return the rows' class probabilities (n, K).

        Each row is left out of the evidence for its own prediction.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.adapt_predict_proba(["south"], [0.6]).argmax(axis=1).tolist()
        [0]
        """
        return self._learn_batch(ids, self.classifier._read(X, y, self._pool), predict=True)

    def adapt_predict(self, ids: Any, X: Any, y: Any = None) -> AnyArray:
        """Let streams learn from rows; return the most probable class of each row.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.adapt_predict(["north", "south"], [0.4, 0.4]).tolist()
        ['yes', 'no']
        """
        proba = self.adapt_predict_proba(ids, X, y)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_proba(self, ids: Any, X: Any) -> FloatArray:
        """Class probabilities (n, K) of rows under what their streams know; changes nothing.

        A stream that was never seen predicts as a new one.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.predict_proba(["north", "south"], [0.5, 0.5]).argmax(axis=1).tolist()
        [1, 0]
        """
        batch = self.classifier._read(X, pool=self._pool)
        keys = as_keys(ids, len(batch.proba))
        with self._lock:
            order, starts, slots = grouped(self._current(keys))
            rows = self._rows(slots)
        of = np.empty(len(keys), dtype=np.int64)
        of[order] = np.repeat(np.arange(len(slots)), np.diff(starts))
        with interruptible():
            return self._form.predict(rows, of, batch)

    def predict(self, ids: Any, X: Any) -> AnyArray:
        """The most probable class of each row; changes nothing.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.predict(["north", "south"], [0.5, 0.5]).tolist()
        ['yes', 'no']
        """
        return np.asarray(self.classes_[self.predict_proba(ids, X).argmax(axis=1)])

    def priors(self, ids: Any) -> FloatArray:
        """The class priors (n, K) that streams believe in now; of a new one where there is none.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> (fleet.priors(["north", "south"])[:, 1] > 0.5).tolist()
        [True, False]
        """
        keys = as_keys(ids)
        with self._lock:
            return self._form.priors(self._rows(self._current(keys)))

    def intervals(self, ids: Any, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """The ends (n, K) of confidence intervals around the class priors of streams.

        A stream that rests on no rows has the interval from 0 to 1. They rest on the class prior
        and on how many rows it is of. A classifier's ``prior_interval`` holds it against the latest
        rows as well, which a fleet does not keep: its intervals are closer to the truth while a
        stream is changing.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> low, high = fleet.intervals(["north", "south"])
        >>> bool((low <= fleet.priors(["north", "south"])).all()), high.shape
        (True, (2, 2))
        """
        keys, source = as_keys(ids), self.deployment.source
        with self._lock:
            rows = self._rows(self._current(keys))
            priors, sizes = self._form.priors(rows), self._form.sizes(rows)
        low, high = np.zeros_like(priors), np.ones_like(priors)
        for place, (prior, size) in enumerate(zip(priors, sizes, strict=True)):
            if size > 0.0:
                ends = prior_interval(source, prior, float(size), level)
                low[place] = np.minimum(ends[0], prior)
                high[place] = np.maximum(ends[1], prior)
        return low, high

    def stream(self, key: Key) -> Stream:
        """What one stream has learned, as a ``Stream`` of the classifier's.

        A classifier whose ``stream_`` it becomes goes on where the fleet's stream is. Its guard,
        its history and its test of a shift begin there: a fleet keeps none.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
        >>> fleet = Fleet(clf).adapt([7, 7, 8], P[:3])
        >>> clf.stream_ = fleet.stream(7)
        >>> clf.n_rounds_, bool((clf.prior_ == fleet.priors([7])[0]).all())
        (1, True)
        """
        (name,) = as_keys([key])
        with self._lock:
            slots = self._current([name])
            if slots[0] < 0:
                raise InputError(f"there is no stream {name!r} in this fleet of {len(self)}")
            row = self._rows(slots)[0]
        return self.deployment.start()._replace(state=self._form.from_record(row[:-1]))

    def put(self, key: Key, stream: Stream) -> None:
        """Take a stream in, in the place of the one of that id if there is one.

        Of a guard and of a history nothing is kept.

        Examples
        --------
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker").adapt(P)
        >>> fleet = Fleet(clf)
        >>> fleet.put("old shop", clf.stream_)
        >>> bool((fleet.priors(["old shop"])[0] == clf.prior_).all())
        True
        """
        (name,) = as_keys([key])
        if stream.memory:
            raise InputError(
                f"the stream has {len(stream.memory)} batches that wait for labels, which a fleet "
                "does not keep: put(id, stream._replace(memory=()))"
            )
        stream_to_bytes(self.deployment, stream)  # refuses what is no stream of this deployment
        row = self._form.to_record(stream.state)
        with self._lock:
            row = np.concatenate([row, self._now(), [self._store.live.calls]])
            slots, new = self._names.places([name])
            self._store.write(slots, row[None], self._after(new))
            self._names.add(new)

    def forget(self, ids: Any) -> Self:
        """Forget streams: they start anew when they come again.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.forget(["north"]).ids
        ['south']
        """
        keys = as_keys(ids)
        with self._lock:
            slots = np.unique(self._names.slots(keys))
            self._drop(slots[slots >= 0])
        return self

    def _drop(self, slots: IntArray) -> None:
        """Forget streams; their records become empty."""
        if len(slots):
            live = self._store.live._replace(names=self._store.log(slots.tolist(), None))
            nothing = np.broadcast_to(0.0, (len(slots), self._store.width))
            self._store.write(slots, nothing, live)
            self._names.drop(slots.tolist())

    def _after(self, new: dict[Key, int], calls: int = 0) -> Live:
        """What is noted with a change that brings new streams, after so many calls more."""
        live, slots = self._store.live, list(new.values())
        length = self._store.log(slots, list(new))
        return Live(
            live.calls + calls, max(live.size, *slots, -1) + 1 if slots else live.size, length
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fleet to a folder; a fleet that is there stays until the new one is whole.

        Read it back with ``priorshift.load``, in memory or, with ``mapped=True``, record by record.

        Examples
        --------
        >>> import tempfile
        >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], [0, 0, 1, 1]
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
        >>> fleet = Fleet(clf).adapt(["a", "b", "a"], P[:3])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fleet.save(f"{folder}/shops")
        ...     again = load(f"{folder}/shops")
        >>> len(again), bool((again.priors(["a", "b"]) == fleet.priors(["a", "b"])).all())
        (2, True)
        """
        with self._lock:
            slots, store = self._names.taken(), self._store
            settings: dict[str, Any] = {
                "forget_after": self.forget_after,
                "shared_prior": self.shared_prior,
            }
            if self._common is not None:
                settings["together"] = True
            write_fleet(
                path,
                self.classifier.save,
                deployment_digest(self.deployment),
                store.width,
                self._names,
                store.live.calls,
                (store.read(slots[a : a + _AT_ONCE]) for a in range(0, len(slots), _AT_ONCE)),
                settings,
                self._common_row(),
            )

    def close(self) -> None:
        """Give the files of a memory-mapped fleet back; others may open them then.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> fleet.close()
        """
        with self._lock:
            if isinstance(self._store, Mapped):
                self._store.close()

    def summary(self, most: int = 10) -> Summary:
        """Say in one pass over all streams which have moved furthest from the source's prior.

        Examples
        --------
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 5, ["no", "no", "yes", "yes"] * 5
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "em", safety="off")
        >>> fleet = Fleet(clf).adapt(["north", "north", "south"], [0.9, 0.8, 0.1])
        >>> found = fleet.summary(most=1)
        >>> found.streams, found.moved[0].id
        (2, 'north')
        """
        check_integer(most, "most", least=0)
        with self._lock:
            slots = self._names.taken()
            return self._summary(slots, most)

    def _summary(self, slots: IntArray, most: int) -> Summary:
        form, source, K = self._form, self.deployment.source, self.deployment.source.n_classes
        distance, changed = np.empty(len(slots)), np.empty(len(slots))
        total, rounds = np.zeros(K), 0
        for a in range(0, len(slots), _AT_ONCE):
            rows = self._rows(slots[a : a + _AT_ONCE])
            own = slice(a, a + len(rows))
            priors = form.priors(rows)
            distance[own] = 0.5 * np.abs(priors - source.prior).sum(axis=1)
            changed[own] = form.changed(rows)
            total += priors.sum(axis=0)
            rounds += int(form.rounds(rows).sum())
        top = np.argsort(-distance, kind="stable")[:most]
        rows = self._rows(slots[top])
        moved = zip(
            self._names.of(slots[top]),
            form.rounds(rows).tolist(),
            form.priors(rows),
            distance[top].tolist(),
            changed[top].tolist(),
            strict=True,
        )
        return Summary(
            len(slots),
            rounds,
            total / max(len(slots), 1),
            int((changed > 0.5).sum()),
            tuple(Moved(key, *rest) for key, *rest in moved if key is not None),
        )

    def _attach(self, files: Files, mapped: bool, sync: bool) -> None:
        """Go on with the streams of a folder: in memory, or where they are."""
        digest = deployment_digest(self.deployment)
        with refusing(os.fspath(files.records)):
            store = Mapped(files.records, files.journal, files.names, digest, sync)
            try:
                names, tail = store.named()
                self._names = read_names(names)
                self.lost = _lost(self._names, store.lost, tail)
                size = self._names.size + len(self._common_row())
                if store.width != self._store.width or size > store.live.size:
                    raise FileFormatError("its parts do not fit together")
                if not mapped:
                    slots = self._names.taken()
                    for a in range(0, len(slots), _AT_ONCE):
                        part = slots[a : a + _AT_ONCE]
                        self._store.write(part, store.read(part), store.live)
                if self._common is not None:
                    row, width = store.read(np.array([self._names.size]))[0], self._form.width
                    if not row.any():  # never written
                        raise FileFormatError("the record of the common stream is missing")
                    self._common = self._common._replace(record=row[:width], odds=float(row[width]))
                    self._then = self._now()
            except BaseException:
                store.close()
                raise
        if mapped:
            self._store = store
        else:
            self._store.live = store.live._replace(names=0)
            if self._common is not None:
                self._store.live = self._store.live._replace(size=self._names.size)
            store.close()

    def _current(self, keys: list[Key]) -> IntArray:
        """Slots (n,) of streams; -1 for those never seen, and for those that are forgotten."""
        slots = self._names.slots(keys)
        if self.forget_after is None:
            return slots
        there = np.flatnonzero(slots >= 0)
        slots[there[self._idle(slots[there])]] = -1
        return slots

    def _idle(self, slots: IntArray) -> AnyArray:
        """Which (n,) of these streams have gone without rows for too long."""
        if self.forget_after is None:
            return np.zeros(len(slots), dtype=bool)
        return np.asarray(self._store.live.calls - self._store.seen(slots) >= self.forget_after)

    def _rows(self, slots: IntArray) -> FloatArray:
        """Records of streams as they are now; that of a new stream where the slot is -1."""
        found = np.empty((len(slots), self._store.width))
        there = slots >= 0
        found[there] = self._store.read(slots[there])
        found[~there] = self._first()
        if self._common is not None:
            follow(self._common, found, np.arange(len(found)))
        return found

    def _first(self) -> FloatArray:
        """The record of a stream that has seen nothing."""
        then = self._then if self.shared_prior else self._now()
        return np.concatenate([self._start, then, [self._store.live.calls]])

    def _now(self) -> FloatArray:
        """The common class prior (K,); nothing where streams do not learn together."""
        return np.empty(0) if self._common is None else self._common.prior()

    def _common_row(self) -> FloatArray:
        """The common stream as the record that is saved after all others; none where it is not."""
        found = np.zeros((0 if self._common is None else 1, self._store.width))
        if self._common is not None:
            found[0, : self._form.width + 1] = np.append(*self._common[1:])
        return found

    def _learn_start(self) -> None:
        """Fit what new streams start from, each time that there were a tenth more calls."""
        calls = self._store.live.calls
        if not self.shared_prior or calls < 1.1 * self._fitted:
            return
        self._fitted = max(calls, 1)
        slots = self._names.taken()
        # Spread over all streams: old and new ones alike.
        some = slots[np.unique(np.linspace(0, len(slots) - 1, SAMPLE).astype(int))[: len(slots)]]
        self._start, self._then = self._form.shared_start(self._rows(some)), self._now()

    def _learn_batch(self, ids: Any, batch: Batch, predict: bool) -> FloatArray:
        """Learn from rows that the model has read; their probabilities, where asked for."""
        keys = as_keys(ids, len(batch.proba))
        proba = np.empty_like(batch.proba) if predict else None
        with self._lock, interruptible():
            places, new = self._names.places(keys)
            if new:
                self._learn_start()
            order, starts, slots = grouped(places)
            sorted_ = bool((order[1:] > order[:-1]).all())  # as they often are: nothing to copy
            self._advance(slots, new, starts, batch if sorted_ else batch.rows(order), proba)
        if proba is None or sorted_:
            return np.empty((0, 0)) if proba is None else proba
        found = np.empty_like(proba)
        found[order] = proba
        return found

    def _advance(
        self,
        slots: IntArray,
        new: dict[Key, int],
        starts: IntArray,
        batch: Batch,
        proba: FloatArray | None,
    ) -> None:
        """Let streams learn from the rows of a call, sorted by stream."""
        live = self._after(new, calls=1)
        fresh = np.isin(slots, np.fromiter(new.values(), np.int64, len(new)))
        old = np.flatnonzero(~fresh)
        fresh[old[self._idle(slots[old])]] = True

        common, nats = self._common, np.zeros(len(batch.proba))

        def step(records: FloatArray, which: IntArray, a: int, b: int) -> None:
            own = slice(int(starts[a]), int(starts[b]))
            part = None if proba is None else proba[own]
            shifted = starts[a : b + 1] - starts[a]
            if common is not None:
                told = records[which], shifted, batch.rows(own)
                nats[own] = evidence(common, *told)
                follow(common, records, which)
            self._form.learn(records, which, shifted, batch.rows(own), part, self._pool)
            records[which, -1] = live.calls

        self._store.update(slots, np.flatnonzero(fresh), self._first(), step, live)
        if common is not None:
            self._common = common.learned(batch, nats)
        self._names.add(new)
        if self.forget_after is not None and live.calls % self.forget_after == 0:
            there = self._names.taken()
            for a in range(0, len(there), _AT_ONCE):
                part = there[a : a + _AT_ONCE]
                self._drop(part[self._idle(part)])


def load(
    path: str | os.PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    learner: Any = None,
    mapped: bool = False,
    sync: bool = False,
    n_jobs: int | None = None,
) -> Any:
    """Read back what ``save`` of a classifier or of a fleet wrote, to the last bit.

    Parameters
    ----------
    path : path
        A file that holds a classifier, or a folder that holds a fleet.
    estimator, features, learner
        The objects that the file only refers to; see ``LabelShiftClassifier.save``.
    mapped : bool
        Leave the records of a fleet on the disk, and read those that are needed. Every call then
        changes the folder: a process that is killed loses the call that it was in and nothing else
        (``fleet.lost`` are the ids of that call).
    sync : bool
        Wait for the disk in every call of a mapped fleet, so that the same holds for the power.
    n_jobs : int, optional
        Threads of a fleet.

    Examples
    --------
    >>> load("no-such-file.priorshift")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no-such-file.priorshift: no such file
    """
    check_path(path)
    given = {"estimator": estimator, "features": features, "learner": learner}
    if not is_fleet(path):
        if mapped or sync:
            raise InputError(f"{os.fspath(path)}: holds no fleet, and only those can be mapped")
        return load_classifier(path, **given)
    files, settings = read_main(Path(os.fsdecode(path)))
    if mapped and settings.get("together"):
        raise InputError(
            f"{os.fspath(path)}: streams of this fleet learn together, and only in memory: load "
            "without mapped=True"
        )
    classifier = load_classifier(files.model, **given)
    fleet = Fleet(classifier, n_jobs=n_jobs, **settings)
    fleet._attach(files, mapped, sync)
    return fleet


# Records that a summary looks at together.
_AT_ONCE = 4096


def _lost(names: Names, slots: IntArray, tail: bytes) -> list[Key]:
    """The ids of a call that was lost: those of streams that were there, and of new ones."""
    known = set(slots.tolist())
    found = [key for slot in sorted(known) if slot < names.size for key in names.of([slot])]
    with suppress(FileFormatError):  # it may have been killed while it wrote them
        for new, keys in entries(tail):
            found += [key for slot, key in zip(new, keys or [], strict=False) if slot in known]
    return [key for key in found if key is not None]
