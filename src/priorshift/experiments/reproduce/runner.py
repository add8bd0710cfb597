"""Do tasks in several processes; what is done is in the store at once and never done again."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from priorshift.errors import InputError
from priorshift.experiments.processes import (
    begin_worker,
    interrupts_held,
    start_method,
    usable_cores,
)
from priorshift.experiments.reproduce.estimate import Estimate
from priorshift.experiments.reproduce.kept import key_of
from priorshift.experiments.reproduce.tasks import Task
from priorshift.experiments.store import Store
from priorshift.risk import compiled

_POLL = 0.5
_MOST_WORKERS = 61 if sys.platform == "win32" else 1024  # what Windows can wait for


class TaskError(RuntimeError):
    """A task failed for a reason that is not the user's.

    Examples
    --------
    >>> issubclass(TaskError, ValueError)
    False
    """


class Standing(NamedTuple):
    """How far a run has come.

    Examples
    --------
    >>> Standing(done=3, ready=1, total=10, left=70.0, now="mnist").total
    10
    """

    done: int
    ready: int
    total: int
    left: float
    now: str


class Runner:
    """Tasks through workers and a store.

    Parameters
    ----------
    store : Store
    jobs : int
        Worker processes; 0 stands for one on each core, 1 for this process alone.
    tell : callable, optional
        Called with a ``Standing`` now and then.
    timed : callable, optional
        Called with a task and its seconds when it is done.

    Attributes
    ----------
    warnings : list of str
        What the offline stages warned of.

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> from priorshift.experiments.reproduce.tasks import StreamTask
    >>> tasks = [StreamTask(run) for run in plan("table1", quick=True, seeds=1).runs["cell"][:2]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runner = Runner(Store(f"{folder}/results.db"), jobs=1)
    ...     first = runner.results(tasks)
    ...     first == runner.results(tasks), len(first)
    (True, 2)
    """

    def __init__(
        self,
        store: Store,
        jobs: int = 0,
        tell: Callable[[Standing], None] | None = None,
        timed: Callable[[Task, float], None] | None = None,
    ) -> None:
        self._store = store
        self.jobs = min(usable_cores() if jobs == 0 else jobs, _MOST_WORKERS)
        self.warnings: list[str] = []
        self._tell = tell or (lambda standing: None)
        self._timed = timed or (lambda task, seconds: None)

    def results(self, tasks: Iterable[Task]) -> dict[Task, Any]:
        """Return what every task gives; only those that the store does not know are done."""
        wanted = list(dict.fromkeys(tasks))
        found = {task: self._store.find(key_of(task)) for task in wanted}
        missing = [task for task in wanted if found[task] is None]
        if missing:
            board = _Board(missing, len(wanted), self.jobs, self._tell)
            _compile_kernels(
                lambda: board.show("compiling the kernels, once on this machine"),
                implicit=any("atlas-ada" in task.kin for task in missing),
            )
            for group in _by_data(missing):
                board.begin_group(group)
                for task, result, seconds in self._done(group, board):
                    with _named(task):
                        self._store.add(key_of(task), result)
                    self._timed(task, seconds)
                    board.finish(task, seconds)
                    # What the store gives back, so that new and old results do not differ.
                    found[task] = self._store.find(key_of(task))
        return found

    def _done(self, group: Sequence[Task], board: _Board) -> Iterator[tuple[Task, Any, float]]:
        with threadpool_limits(limits=1):
            self._prepare(group)
            # The longest first: one that is begun last keeps all other cores waiting.
            ordered = sorted(group, key=lambda task: -board.estimate.of(task))
            jobs = min(self.jobs, len(ordered))
            if jobs > 1:
                yield from _in_workers(ordered, jobs, board.show)
                return
            for task in ordered:
                board.show()
                with _named(task):
                    result, seconds = _do(task)
                yield task, result, seconds

    def _prepare(self, group: Sequence[Task]) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            for task in group:
                with _named(task):
                    task.prepare()
        found = (str(one.message).strip().splitlines() for one in caught)
        where = group[0].data or "simulated data"
        self.warnings += dict.fromkeys(f"{where}: {lines[0]}" for lines in found if lines)


class _Board:
    """What is done and what is left, for all to see."""

    def __init__(
        self, missing: Sequence[Task], total: int, jobs: int, tell: Callable[[Standing], None]
    ) -> None:
        self.estimate = Estimate(jobs)
        self._left = dict.fromkeys(missing)
        self._total, self._ready, self._tell = total, total - len(missing), tell
        self._now = ""

    def begin_group(self, group: Sequence[Task]) -> None:
        self._now = group[0].data or "simulated data"
        self.show(f"{self._now}: the offline stage")

    def finish(self, task: Task, seconds: float) -> None:
        self.estimate.learn(task, seconds)
        del self._left[task]
        self._now = task.label
        self.show()

    def show(self, now: str | None = None) -> None:
        done = self._total - self._ready - len(self._left)
        left = self.estimate.left(self._left)
        self._tell(Standing(done, self._ready, self._total, left, now or self._now))


def _by_data(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks on the same data together: its offline stage is run once, before workers start."""
    groups: dict[str | None, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.data, []).append(task)
    return list(groups.values())


def _compile_kernels(say: Callable[[], None], implicit: bool) -> None:
    """Compile once, before several processes would do so each."""
    if compiled.available():
        from priorshift.risk.compiled.warm import warm_up

        warm_up(say, implicit=implicit)


def _do(task: Task) -> tuple[Any, float]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = task.do()
    return result, time.perf_counter() - began


def _in_workers(
    tasks: Sequence[Task], jobs: int, show: Callable[[], None]
) -> Iterator[tuple[Task, Any, float]]:
    context: Any = multiprocessing.get_context(start_method())
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, begin_worker)
    try:
        with interrupts_held():
            futures: dict[Future[Any], Task] = {pool.submit(_do, task): task for task in tasks}
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_POLL, return_when=FIRST_COMPLETED)
            # What is done is kept before a failure is told.
            for future in sorted(finished, key=lambda one: one.exception() is not None):
                with _named(futures[future]):
                    result, seconds = future.result()
                yield futures[future], result, seconds
            show()
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


@contextlib.contextmanager
def _named(task: Task) -> Iterator[None]:
    """Say which task an error comes from."""
    try:
        yield
    except BrokenProcessPool as error:
        raise BrokenProcessPool(
            f"{task.label}: a worker process died, maybe for want of memory; try fewer --jobs"
        ) from error
    except MemoryError as error:
        raise MemoryError(f"{task.label}: {error}") from error
    except (ValueError, OSError) as error:
        raise InputError(f"{task.label}: {error}") from error
    except Exception as error:
        raise TaskError(f"{task.label}: {type(error).__name__}: {error}") from error
