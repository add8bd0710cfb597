"""Tasks in several processes; what is done is in the store at once and never done again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from priorshift._threads import usable_cores
from priorshift.errors import InputError
from priorshift.experiments.cache import key_of
from priorshift.experiments.description import Task
from priorshift.experiments.perform import prepare_kernels
from priorshift.experiments.progress import Estimate, Progress, Running, Status
from priorshift.experiments.store import Store

_MOST_WORKERS = 61 if sys.platform == "win32" else 1024  # what Windows can wait for
# Seconds of work; below this, processes take longer to start than they save.
_SHORT_RUN = 5.0
_POLL = 0.2
_NOT_BEGUN = -1


class TaskError(RuntimeError):
    """A task failed for a reason that is not the user's."""


class Done(NamedTuple):
    """A task with its record, and whether the record was found ready."""

    task: Task
    record: dict[str, Any]
    ready: bool


class Runner:
    """Tasks through workers and a store.

    The numbers do not depend on ``jobs``: each task has generators of its own, and BLAS uses one
    thread everywhere.

    Parameters
    ----------
    store : Store, optional
        Where records are looked for, and put as soon as they are measured.
    jobs : int
        Worker processes; 1 stands for this process alone, 0 for one on each core, or 1 where the
        work is too short to be worth the start of others.
    progress : Progress, optional
        Shows how far the tasks have come.

    Attributes
    ----------
    warnings : list of str
        What was warned of while the data were prepared.

    Examples
    --------
    >>> from priorshift.experiments.description import Data, StreamRun
    >>> data = Data("digits", "digits")
    >>> runs = [StreamRun(data, "fix", "predict-first", 20, 40, n, shift="lin") for n in (0, 1)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runner = Runner(Store(f"{folder}/results.db"), jobs=1)
    ...     first = runner.results(runs)
    ...     first == runner.results(runs), len(first)
    (True, 2)
    """

    def __init__(
        self, store: Store | None = None, jobs: int = 0, progress: Progress | None = None
    ) -> None:
        self._store, self._jobs = store, jobs
        self.jobs = min(jobs or usable_cores(), _MOST_WORKERS)
        self.warnings: list[str] = []
        self._progress = progress or Progress(quiet=True)

    def ready(self, tasks: Iterable[Task]) -> dict[Task, dict[str, Any]]:
        """Return the records that need no work."""
        if self._store is None:
            return {}
        found = {task: self._store.find(key_of(task)) for task in tasks}
        return {task: record for task, record in found.items() if record is not None}

    def results(
        self,
        tasks: Iterable[Task],
        tell: Callable[[Done], None] | None = None,
        prepared: Mapping[Any, Any] | None = None,
    ) -> dict[Task, dict[str, Any]]:
        """Return the record of every task; only those that the store does not know are done.

        ``tell`` is called with each record as soon as it is there, those found ready first;
        ``prepared`` is what some groups of tasks share, where it was made before.
        """
        wanted = list(dict.fromkeys(tasks))
        found = self.ready(wanted)
        tell = tell or (lambda done: None)
        for task, record in found.items():
            tell(Done(task, record, ready=True))
        missing = [task for task in wanted if task not in found]
        if missing:
            board = _Board(missing, len(wanted), self.jobs, self._progress)
            prepare_kernels((task.kernels for task in missing), self._say)
            try:
                for task, record in self._measured(missing, board, prepared or {}):
                    found[task] = self._keep(task, record)
                    tell(Done(task, found[task], ready=False))
            finally:
                self._progress.stop()
        return {task: found[task] for task in wanted}

    def _say(self, text: str) -> None:
        self._progress.say(f"priorshift: {text}")

    def _keep(self, task: Task, record: dict[str, Any]) -> dict[str, Any]:
        if self._store is None:
            return record
        with _named(task):
            self._store.add(key_of(task), record)
            # What the store gives back, so that new and old records do not differ.
            stored: dict[str, Any] = self._store.find(key_of(task)) or {}
            return stored

    def _measured(
        self, missing: Sequence[Task], board: _Board, prepared: Mapping[Any, Any]
    ) -> Iterator[tuple[Task, dict[str, Any]]]:
        groups: dict[Any, list[Task]] = {}
        for task in missing:
            groups.setdefault(task.group, []).append(task)
        for group, tasks in groups.items():
            shared = prepared[group] if group in prepared else self._prepare(tasks, board)
            ordered, jobs = self._order(tasks, shared, board.estimate)
            work = _in_workers if jobs > 1 else _here
            with contextlib.closing(work(ordered, shared, jobs, board)) as done:
                yield from done

    def _prepare(self, tasks: Sequence[Task], board: _Board) -> Any:
        where = getattr(tasks[0].group, "dataset", "simulated data")
        board.show(f"{where}: the offline stage")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            with _named(tasks[0]), threadpool_limits(limits=1):
                shared = tasks[0].prepare(tasks)
        found = (str(one.message).strip().splitlines() for one in caught)
        self.warnings += dict.fromkeys(f"{where}: {lines[0]}" for lines in found if lines)
        return shared

    def _order(
        self, tasks: Sequence[Task], shared: Any, estimate: Estimate
    ) -> tuple[list[Task], int]:
        """The longest first: one that is begun last keeps all other cores waiting."""
        jobs = min(self.jobs, len(tasks))
        if jobs == 1:
            return list(tasks), 1
        examples = {task.alike: task for task in tasks}
        guesses = {}
        for alike, task in examples.items():
            with _named(task):
                guesses[alike] = max(task.guess(shared), estimate.of(task))
        if self._jobs == 0 and sum(guesses[task.alike] for task in tasks) < _SHORT_RUN:
            return list(tasks), 1
        return sorted(tasks, key=lambda task: -guesses[task.alike]), jobs


class _Board:
    """What is done and what is left, for all to see."""

    def __init__(self, missing: Sequence[Task], total: int, jobs: int, progress: Progress) -> None:
        self.estimate = Estimate(jobs)
        self._left = dict.fromkeys(missing)
        self._total, self._ready, self._progress = total, total - len(missing), progress
        self._tasks: Sequence[Task] = ()
        self._rounds: Any = ()
        self._began: dict[Task, float] = {}
        self._now = ""

    def begin(self, tasks: Sequence[Task], rounds: Any) -> None:
        """These tasks are next; how far they have come will be in ``rounds``."""
        self._tasks, self._rounds = tasks, rounds

    def finish(self, task: Task, seconds: float) -> None:
        self.estimate.learn(task, seconds)
        del self._left[task]
        self.show(task.label)

    def show(self, now: str | None = None) -> None:
        self._now = self._now if now is None else now
        self._progress.show(self._status)

    def _status(self) -> Status:
        clock = time.monotonic()
        running = [
            Running(
                task.label, count, task.total_rounds, clock - self._began.setdefault(task, clock)
            )
            for task, count in zip(self._tasks, self._rounds, strict=True)
            if count != _NOT_BEGUN and task in self._left
        ]
        done = self._total - self._ready - len(self._left)
        left = self.estimate.left(self._left)
        return Status(done, self._ready, self._total, left, self._now, tuple(running))


Measured = Generator[tuple[Task, dict[str, Any]]]


def _here(tasks: Sequence[Task], shared: Any, jobs: int, board: _Board) -> Measured:
    rounds = [_NOT_BEGUN] * len(tasks)
    board.begin(tasks, rounds)
    with threadpool_limits(limits=1):
        for number, task in enumerate(tasks):
            record, seconds = _do(task, number, shared, rounds, board.show)
            board.finish(task, seconds)
            yield task, record


def _in_workers(tasks: Sequence[Task], shared: Any, jobs: int, board: _Board) -> Measured:
    """Let processes work, and hand over what is done as soon as it is.

    joblib's workers would each import everything anew and load the compiled kernels, which takes
    longer than many a run; a forked one is at work at once.
    """
    method = start_method()
    context: Any = multiprocessing.get_context(method)
    rounds = context.RawArray("q", [_NOT_BEGUN] * len(tasks))
    board.begin(tasks, rounds)
    others = set(multiprocessing.active_children())
    # A forked worker has all that its parent has.
    with contextlib.nullcontext(shared) if method == "fork" else _in_a_file(shared) as given:
        pool = ProcessPoolExecutor(jobs, context, _begin_worker, (given, rounds))
        try:
            with _interrupts_held():
                futures = {pool.submit(_work, task, n): task for n, task in enumerate(tasks)}
            for future in _as_they_end(futures, board):
                record, seconds = _answer(future, futures[future])
                board.finish(futures[future], seconds)
                yield futures[future], record
        except BaseException:
            # Nobody will look at the rest of the work: do not wait for it.
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        pool.shutdown()


def _as_they_end(pending: Iterable[Future[Any]], board: _Board) -> Iterator[Future[Any]]:
    pending = set(pending)
    while pending:
        finished, pending = wait(pending, timeout=_POLL, return_when=FIRST_COMPLETED)
        # What is done is stored before a failure is told.
        yield from sorted(finished, key=lambda future: future.exception() is not None)
        board.show()


def _answer(future: Future[Any], task: Task) -> Any:
    """What a worker answered; an error in a task names the task."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise BrokenProcessPool(
            f"{task.label}: a worker process died, maybe for want of memory; try fewer --jobs"
        ) from error


def start_method() -> str:
    """Choose how workers come into being.

    A forked one is at work at once; any other has to import everything anew, which takes longer
    than many a run. To fork is safe where no other thread could be caught holding a lock, and while
    BLAS and OpenMP are kept to one thread as they are here.
    """
    alone = threading.active_count() == 1
    return "fork" if sys.platform == "linux" and alone else "spawn"


@contextlib.contextmanager
def _in_a_file(shared: Any) -> Iterator[Path]:
    """Lay it down where workers can fetch it.

    Sent along with a process, it would not fit the pipe, and each process would have to be up and
    running before the next could start.
    """
    number, name = tempfile.mkstemp(prefix="priorshift-")
    try:
        with open(number, "wb") as file:
            pickle.dump(shared, file, protocol=pickle.HIGHEST_PROTOCOL)
        yield Path(name)
    finally:
        os.unlink(name)


# What a worker process was given at its start; None in every other process.
_given: tuple[Any, Any] | None = None


def _begin_worker(shared: Any, rounds: Any) -> None:
    """Prepare a new worker: one BLAS thread, deaf to Ctrl-C, gone when its parent is."""
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked one has its parent's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(limits=1)
    _given = (pickle.loads(shared.read_bytes()) if isinstance(shared, Path) else shared, rounds)


def _end_with_parent() -> None:
    """A worker that waits for work would outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let processes that start here inherit a blocked Ctrl-C: only their parent acts on it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(task: Task, number: int) -> tuple[dict[str, Any], float]:
    assert _given is not None, "the worker was not begun"
    return _do(task, number, *_given)


def _do(
    task: Task,
    number: int,
    shared: Any,
    rounds: Any,
    show: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], float]:
    """Do a task; its rounds are counted where all can see them."""

    def advance(count: int) -> None:
        rounds[number] = count
        show()

    began = time.perf_counter()
    advance(0)
    with _named(task), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = task.perform(shared, advance)
    return record, time.perf_counter() - began


@contextlib.contextmanager
def _named(task: Task) -> Iterator[None]:
    """Say which task an error comes from."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{task.label}: {error}") from error
    except (ValueError, OSError) as error:
        raise InputError(f"{task.label}: {error}") from error
    except Exception as error:
        raise TaskError(f"{task.label}: {type(error).__name__}: {error}") from error
