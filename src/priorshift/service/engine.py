"""One thread that steps streams and commits them in groups, and what reads see.

Whoever writes hands a job to the writer's queue. The writer takes what waits there, up to a limit,
begins one transaction, lets every job do its steps in it, writes each changed stream once, and
commits; then it publishes the new versions and answers. While a commit waits for the disk the next
jobs gather: that is the next group. Memory is replaced only after a commit, so that a commit that
fails leaves memory as it was, and reads see committed versions only.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from priorshift.errors import FileFormatError
from priorshift.service import tracing
from priorshift.service.glances import Glance, Glances, stands
from priorshift.service.logs import log_alarm
from priorshift.service.models import Model, Models
from priorshift.service.parts import Committed, opened_stream, state_bytes, store_parts
from priorshift.service.problems import Problem, StorageProblem, as_problem
from priorshift.service.store import Connection, Store, StreamRow
from priorshift.stream import Stream

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
# A transaction that met another process' is begun again; more often than this is no chance.
_ATTEMPTS = 5
NEW = -1
"""The number of a stream that is not stored yet."""
_SWEEP = 32


class Limits(NamedTuple):
    """How much is kept, and how much may wait.

    Attributes
    ----------
    answers, ids : int
        Of how many of a stream's last batches the answer, or the batch id, is kept.
    streams : int
        How many streams there may be.
    waiting : int
        How many changes may wait for the writer before more are refused.
    group : int
        How many are committed at once, at most.
    cached : int
        How many streams are kept in memory.
    """

    answers: int = 256
    ids: int = 100_000
    streams: int = 10_000
    waiting: int = 1_000
    group: int = 32
    cached: int = 10_000


class News(NamedTuple):
    """What became of a batch: for counters, and for who watches."""

    stream: str
    rows: int
    seconds: float
    alarm: bool


@dataclass
class Group:
    """The changes of one transaction: what jobs read and write.

    ``tips`` are streams as the transaction sees them, ``changed`` what became others as they were.
    """

    connection: Connection
    engine: Engine
    tips: dict[str, Committed | None] = field(default_factory=dict)
    changed: dict[str, Committed] = field(default_factory=dict)
    news: list[News] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)

    def look(self, id: str) -> None:
        """Read a stream, and keep others from changing it; a damaged one waits to be asked for."""
        try:
            self.find(id)
        except StorageProblem:
            raise
        except (FileFormatError, Problem):
            return

    def find(self, id: str) -> Committed | None:
        """A stream as the transaction sees it."""
        if id not in self.tips:
            self.tips[id] = self.engine.fetch(self.connection, id)
        return self.tips[id]

    def begin(self, id: str, model: Model) -> Committed:
        """A stream that is not there yet, as the source's file says that it begins."""
        most = self.engine.limits.streams
        if self.connection.count_streams() + len(self.begun - {id}) >= most:
            raise Problem(
                "invalid_input",
                f"there are {most} streams already: delete some, or raise --max-streams",
            )
        self.begun.add(id)
        now = time.time()
        return Committed(StreamRow(NEW, id, model.key, 0, now, now), model, model.begun)

    def create(self, new: Committed) -> Committed:
        """Store a stream that ``begin`` made."""
        row, deployment = new.row, new.model.deployment
        state = state_bytes(new.model, new.stream)
        number = self.connection.add_stream(row.id, row.model, row.version, state)
        if number is None:
            message = f"another process has just made the stream {row.id!r}: send it again"
            raise StorageProblem("storage_unavailable", message, passing=True)
        self.begun.discard(row.id)
        row = row._replace(number=number)
        nothing, begun = Committed(row, new.model, deployment.start()), new._replace(row=row)
        self.tips[row.id] = found = store_parts(self.connection, nothing, begun)
        return found

    def need(self, id: str) -> Committed:
        """A stream that has to be there."""
        found = self.find(id)
        if found is None:
            raise Problem("not_found", f"there is no stream {id!r}")
        return found

    def replace(self, old: Committed, stream: Stream, step: bool = False) -> Committed:
        """The next version of a stream; ``step``: by one batch, and nothing else."""
        if old.row.number == NEW:
            old = self.create(old)
        row = old.row._replace(version=old.row.version + 1, updated=time.time())
        new = Committed(row, old.model, stream)
        self.tips[row.id] = found = store_parts(self.connection, old, new, step)
        self.changed.setdefault(row.id, old)
        return found

    def delete(self, old: Committed) -> None:
        """Forget a stream."""
        self.connection.delete_stream(old.row.number)
        self.tips[old.row.id] = None
        self.changed.pop(old.row.id, None)

    def flush(self) -> None:
        """Write every stream that has changed, once."""
        limits = self.engine.limits
        # What may be forgotten is swept out every few batches: that is cheaper than each time.
        sweep = max(1, min(_SWEEP, limits.answers // 4))
        for id in sorted(self.changed):
            tip = self.tips[id]
            if tip is None:
                continue
            row = tip.row
            state = state_bytes(tip.model, tip.stream)
            self.connection.put_stream(row.number, row.version, state, row.updated)
            if row.version // sweep > self.changed[id].row.version // sweep:
                self.connection.forget(row.number, row.version, limits.answers, limits.ids)


class Job(NamedTuple):
    """What is to be done in a transaction, and the streams that it changes.

    ``run`` works everything out before it writes anything: if it fails, it alone has failed.
    ``span`` is that of the request.
    """

    streams: tuple[str, ...]
    run: Callable[[Group], Any]
    span: Any = None


class _Reader:
    """A connection that asks one question at a time, and is made anew where it was lost."""

    def __init__(self, store: Store) -> None:
        self.store, self.connection, self.lock = store, store.connect(), threading.Lock()

    def read(self, question: Callable[[Connection], Result]) -> Result:
        with self.lock:
            return self._ask(question)

    def read_if_free(self, question: Callable[[Connection], None]) -> None:
        if self.lock.acquire(blocking=False):
            try:
                self._ask(question)
            finally:
                self.lock.release()

    def _ask(self, question: Callable[[Connection], Result]) -> Result:
        try:
            with self.connection.reading():
                return question(self.connection)
        except StorageProblem:  # the connection may be gone: once more, with another
            self.connection.close()
            self.connection = self.store.connect()
            with self.connection.reading():
                return question(self.connection)

    def close(self) -> None:
        self.connection.close()


class Engine:
    """Streams that change in one thread, and are read in any.

    Parameters
    ----------
    models : Models
    store : Store
    limits : Limits, optional
    watch : function, optional
        Called in the writer's thread after each commit, with the news of its batches and the
        seconds that the commit took.
    glances : Glances, optional
        What was seen of the streams already.
    """

    def __init__(
        self,
        models: Models,
        store: Store,
        limits: Limits | None = None,
        watch: Callable[[Sequence[News], float], None] | None = None,
        glances: Glances | None = None,
    ) -> None:
        self.models, self.store, self.limits = models, store, limits or Limits()
        self.watch = watch
        self._cache: OrderedDict[str, Committed] = OrderedDict()
        self._cache_lock, self._commits = threading.Lock(), 0
        self._queue: queue.SimpleQueue[tuple[Job, _Promise] | None] = queue.SimpleQueue()
        # Looking at thousands of streams that others have changed takes a while: reads go on.
        self._reader, self._looker = _Reader(store), _Reader(store)
        self._glances = glances or Glances(models)
        self._looker.read(self._glances.read)  # later on commits keep it up to date
        self._writer: Connection | None = store.connect()
        self._thread = threading.Thread(target=self._run, name="priorshift-writer", daemon=True)
        self._thread.start()

    # reads
    def read(self, question: Callable[[Connection], Result]) -> Result:
        """Ask the database as it is at one moment; at once, in the caller's thread."""
        return self._reader.read(question)

    def committed(self, id: str) -> Committed:
        """The last committed version of a stream."""
        found = None if self.store.shared else self._cached(id)
        if found is not None:
            return found
        commits = self._commits
        found = self.read(lambda connection: self.fetch(connection, id))
        if found is None:
            raise Problem("not_found", f"there is no stream {id!r}")
        with self._cache_lock:
            # What was read before a commit may be old by now, or deleted.
            if self._commits == commits:
                self._keep(found)
        return found

    def glances(self) -> list[Glance]:
        """Every stream at a glance, in no order."""
        if self.store.shared:  # who comes during a look gets what is known, and holds no thread
            self._looker.read_if_free(self._glances.read)
        return self._glances.all()

    def fetch(self, connection: Connection, id: str) -> Committed | None:
        """A stream as a connection sees it: from memory, where that is of the same version."""
        found = self._cached(id)
        if found is not None and not self.store.shared:
            return found  # nobody else writes
        now = connection.find_version(id, lock=connection is self._writer)
        if now is None:
            return None
        if found is not None and (found.row.number, found.row.version) == now:
            return found
        row = connection.find_stream(id)
        if row is None:
            return None
        model = self.models.of_stream(row.model)
        return opened_stream(model, row, connection)

    def _cached(self, id: str) -> Committed | None:
        with self._cache_lock:
            found = self._cache.get(id)
            if found is not None:
                self._cache.move_to_end(id)
            return found

    def _keep(self, found: Committed) -> None:
        self._cache[found.row.id] = found
        self._cache.move_to_end(found.row.id)
        while len(self._cache) > self.limits.cached:
            self._cache.popitem(last=False)

    def _publish(self, tips: dict[str, Committed | None]) -> None:
        """Let everybody see what was committed."""
        with self._cache_lock:
            self._commits += 1
            for id, tip in tips.items():
                if tip is None:
                    self._cache.pop(id, None)
                else:
                    self._keep(tip)

    # writes
    async def write(self, streams: Sequence[str], run: Callable[[Group], Result]) -> Result:
        """Do something in the writer's thread, and return when it is durable."""
        if self._queue.qsize() >= self.limits.waiting:
            raise Problem(
                "busy", "too much waits to be written: send it again", {"retry-after": "1"}
            )
        promise = _Promise(asyncio.get_running_loop())
        self._queue.put((Job(tuple(streams), run, tracing.here()), promise))
        found: Result = await promise.future
        return found

    def close(self) -> None:
        """Finish what waits, and stop."""
        self._queue.put(None)
        self._thread.join()
        for connection in (self._reader, self._looker, self._writer):
            if connection is not None:
                connection.close()

    def _run(self) -> None:
        going = True
        while going:
            first = self._queue.get()
            jobs = [] if first is None else [first]
            going = first is not None
            while going and len(jobs) < self.limits.group:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    going = False
                else:
                    jobs.append(following)
            if jobs:
                self._commit(jobs)

    def _commit(self, jobs: list[tuple[Job, _Promise]]) -> None:
        """One group: all of it becomes durable, or none."""
        outcomes: list[Any] = []
        for attempt in range(_ATTEMPTS):
            try:
                outcomes = self._transaction([job for job, _ in jobs])
                break
            except Exception as error:
                self._undo()
                if isinstance(error, StorageProblem) and error.passing and attempt < _ATTEMPTS - 1:
                    continue  # another process held what this one needed: nothing was changed
                _log.error(
                    "a group of %d changes was not stored: %s", len(jobs), error, exc_info=error
                )
                outcomes = [as_problem(error)] * len(jobs)
                break
        _settle([promise for _, promise in jobs], outcomes)

    def _undo(self) -> None:
        if self._writer is not None:
            self._writer.rollback()
            if self.store.shared:  # the connection itself may be gone
                self._writer.close()
                self._writer = None

    def _transaction(self, jobs: list[Job]) -> list[Any]:
        if self._writer is None:
            self._writer = self.store.connect()
        connection = self._writer
        connection.begin()
        group = Group(connection, self)
        # In one order for all processes, so that none waits for another that waits for it.
        for id in sorted({id for job in jobs for id in job.streams}):
            group.look(id)
        outcomes = [_attempt(job, group) for job in jobs]
        group.flush()
        at, start = time.time_ns(), time.perf_counter()
        connection.commit()
        seconds = time.perf_counter() - start
        self._publish(group.tips)
        try:
            self._tell(group, jobs, at, seconds)
        except Exception:  # it is durable all the same, and has to be said so
            _log.exception("a group of %d changes was stored, but not all was told", len(jobs))
        return outcomes

    def _tell(self, group: Group, jobs: list[Job], at: int, seconds: float) -> None:
        """Let overview, log, traces and counters know of what was committed."""
        self._glances.publish(group.tips)
        for id, old in group.changed.items():
            _say_alarm(old, group.tips[id])
        tracing.past_span("commit", (job.span for job in jobs), at, seconds)
        if self.watch is not None:
            self.watch(group.news, seconds)


def _say_alarm(old: Committed, new: Committed | None) -> None:
    """A line in the log where an alarm of the guard begins or ends."""
    if new is None or stands(old.stream) == stands(new.stream):
        return
    guard, counted = new.model.deployment.guard, new.stream.guard
    if guard is not None and counted is not None:
        report = guard.report(new.model.deployment.source, counted)
        log_alarm(new.row.id, int(new.stream.state.t), report)


class _Promise:
    """A future of an event loop that another thread fulfils."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.future = loop, loop.create_future()

    def settle(self, outcome: Any) -> None:
        if self.future.done():  # who asked has gone away
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


def _settle(promises: list[_Promise], outcomes: list[Any]) -> None:
    def all_of_them() -> None:
        for promise, outcome in zip(promises, outcomes, strict=True):
            promise.settle(outcome)

    promises[0].loop.call_soon_threadsafe(all_of_them)


def _attempt(job: Job, group: Group) -> Any:
    """A job's result, or why it was refused: the others of the group go on."""
    try:
        with tracing.span("adapt", job.span, streams=job.streams):
            return job.run(group)
    except StorageProblem:
        raise
    except Exception as error:
        group.begun.clear()  # what it would have made is not there
        problem = as_problem(error)
        if problem.code == "internal":
            _log.error("a change failed: %s", error, exc_info=error)
        return problem
