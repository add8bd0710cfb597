"""Tasks in several processes; what is done is in the store at once and never done again."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from priorshift.errors import InputError
from priorshift.experiments.cache import key_of
from priorshift.experiments.description import Task
from priorshift.experiments.perform import prepare_kernels
from priorshift.experiments.progress import Estimate, Progress, Running, Status
from priorshift.experiments.store import Store

_MOST_WORKERS = 61 if sys.platform == "win32" else 1024  # what Windows can wait for
# Seconds of work; below this, processes take longer to start than they save.
_SHORT_RUN = 5.0
_WATCH = 0.5
_NOT_BEGUN = -1


class TaskError(RuntimeError):
    """A task failed for a reason that is not the user's.

    Examples
    --------
    >>> issubclass(TaskError, ValueError)
    False
    """


class Done(NamedTuple):
    """A task with its record, and whether the record was found ready.

    Examples
    --------
    >>> Done._fields
    ('task', 'record', 'ready')
    """

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

        Parameters
        ----------
        tasks : iterable of Task
        tell : callable, optional
            Called with each record as soon as it is there, those found ready first.
        prepared : mapping, optional
            What some groups of tasks share, where it was made before.
        """
        wanted = list(dict.fromkeys(tasks))
        found = self.ready(wanted)
        tell = tell or (lambda done: None)
        for task, record in found.items():
            tell(Done(task, record, ready=True))
        missing = [task for task in wanted if task not in found]
        if missing:
            board = _Board(missing, len(wanted), self.jobs)
            prepare_kernels((task.kernels for task in missing), self._say)
            self._progress.watch(board.status)
            try:
                for task, record in self._measured(missing, board, prepared or {}):
                    found[task] = self._keep(task, record)
                    tell(Done(task, found[task], ready=False))
                    self._progress.show(board.status())
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
            kept: dict[str, Any] = self._store.find(key_of(task)) or {}
            return kept

    def _measured(
        self, missing: Sequence[Task], board: _Board, prepared: Mapping[Any, Any]
    ) -> Iterator[tuple[Task, dict[str, Any]]]:
        groups: dict[Any, list[Task]] = {}
        for task in missing:
            groups.setdefault(task.group, []).append(task)
        for group, tasks in groups.items():
            self._progress.show(board.status())
            shared = prepared[group] if group in prepared else self._prepare(tasks, board)
            ordered, jobs = self._order(tasks, shared, board.estimate)
            work = _in_workers if jobs > 1 else _here
            with contextlib.closing(work(ordered, shared, jobs, board)) as done:
                yield from done

    def _prepare(self, tasks: Sequence[Task], board: _Board) -> Any:
        where = getattr(tasks[0].group, "dataset", "simulated data")
        board.now = f"{where}: the offline stage"
        self._progress.show(board.status())
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

    def __init__(self, missing: Sequence[Task], total: int, jobs: int) -> None:
        self.estimate = Estimate(jobs)
        self._left = dict.fromkeys(missing)
        self._total, self._ready = total, total - len(missing)
        self._counted: tuple[Sequence[Task], Any] = ((), ())
        self._began: dict[Task, float] = {}
        self.now = ""

    def count(self, tasks: Sequence[Task], rounds: Any) -> None:
        """Read the rounds of running tasks from there."""
        self._counted = (tasks, rounds)

    def running(self) -> dict[Task, int]:
        """Rounds of the tasks that were begun and are not done."""
        tasks, rounds = self._counted
        return {
            task: int(count)
            for task, count in zip(tasks, rounds, strict=True)
            if count != _NOT_BEGUN and task in self._left
        }

    def finish(self, task: Task, seconds: float) -> None:
        self.estimate.learn(task, seconds)
        del self._left[task]
        self.now = task.label

    def status(self) -> Status:
        clock, left = time.monotonic(), list(self._left)
        running = [
            Running(
                task.label, count, task.total_rounds, clock - self._began.setdefault(task, clock)
            )
            for task, count in self.running().items()
        ]
        done = self._total - self._ready - len(left)
        return Status(
            done, self._ready, self._total, self.estimate.left(left), self.now, tuple(running)
        )


Measured = Generator[tuple[Task, dict[str, Any]]]


def _here(tasks: Sequence[Task], shared: Any, jobs: int, board: _Board) -> Measured:
    rounds = np.full(len(tasks), _NOT_BEGUN, np.int64)
    board.count(tasks, rounds)
    with threadpool_limits(limits=1):
        for number, task in enumerate(tasks):
            record, seconds = _do(task, shared, rounds[number : number + 1])
            board.finish(task, seconds)
            yield task, record


def _in_workers(tasks: Sequence[Task], shared: Any, jobs: int, board: _Board) -> Measured:
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory(prefix="priorshift-", ignore_cleanup_errors=True) as folder:
        with open(f"{folder}/shared", "wb") as file:
            pickle.dump(shared, file, protocol=pickle.HIGHEST_PROTOCOL)
        np.full(len(tasks), _NOT_BEGUN, np.int64).tofile(f"{folder}/rounds")
        board.count(tasks, np.memmap(f"{folder}/rounds", np.int64, "r"))
        pool = Parallel(
            jobs, backend="loky", return_as="generator_unordered", pre_dispatch="all", batch_size=1
        )
        try:
            with _interrupts_held():
                done = pool(delayed(_work)(task, n, folder) for n, task in enumerate(tasks))
            with contextlib.closing(done):
                for number, record, seconds in done:
                    board.finish(tasks[number], seconds)
                    yield tasks[number], record
        except BrokenProcessPool as error:
            labels = " or ".join(task.label for task in board.running()) or tasks[0].label
            raise BrokenProcessPool(
                f"{labels}: a worker process died, maybe for want of memory; try fewer --jobs"
            ) from error
        finally:
            board.count((), ())


def _work(task: Task, number: int, folder: str) -> tuple[int, dict[str, Any], float]:
    """Do a task in a worker, which counts its rounds where the parent can see them."""
    _begin_worker(folder)
    counts = np.memmap(f"{folder}/rounds", np.int64, "r+")
    record, seconds = _do(task, _shared(folder), counts[number : number + 1])
    return number, record, seconds


def _do(task: Task, shared: Any, rounds: Any) -> tuple[dict[str, Any], float]:
    def advance(count: int) -> None:
        rounds[0] = count

    began = time.perf_counter()
    advance(0)
    with _named(task), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = task.perform(shared, advance)
    return record, time.perf_counter() - began


@lru_cache(maxsize=1)
def _shared(folder: str) -> Any:
    with open(f"{folder}/shared", "rb") as file:
        return pickle.load(file)


# The folder of the work that this worker does; None in every other process.
_folder: str | None = None


def _begin_worker(folder: str) -> None:
    """Prepare a worker: one BLAS thread, deaf to Ctrl-C, gone when its parent is."""
    global _folder
    if _folder is None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, args=[os.getppid()], daemon=True).start()
        threadpool_limits(limits=1)
    _folder = folder


def _end_with_parent(parent: int) -> None:
    """A worker would outlive a parent that was killed, and so would the folder that they share."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
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


def usable_cores() -> int:
    """Count the cores that this process may use.

    Examples
    --------
    >>> 1 <= usable_cores() <= os.cpu_count()
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
