"""Processes that work on jobs, each with one BLAS thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, cast

from threadpoolctl import threadpool_limits

from priorshift.cli.jobs import Bench, Job, Measure, measure
from priorshift.cli.progress import Meter

# A task: the number of a job, and a seed.
Task = tuple[int, int]


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


def start_method() -> str:
    """Choose how workers come into being.

    A forked one is at work at once; any other has to import everything anew, which takes longer
    than many a job. To fork is safe where no other thread could be caught holding a lock, and while
    BLAS and OpenMP are kept to one thread as they are here.

    Examples
    --------
    >>> start_method() in multiprocessing.get_all_start_methods()
    True
    """
    alone = threading.active_count() == 1
    return "fork" if sys.platform == "linux" and alone else "spawn"


class Running:
    """Tasks under way: their futures, and how far each job has come.

    Examples
    --------
    >>> Running({}, [0, 0, 0, 0]).meters()
    [Meter(rounds=0, begun=0), Meter(rounds=0, begun=0)]
    """

    def __init__(self, futures: dict[Future[Measure], Task], counts: Any) -> None:
        self.futures, self._counts = futures, counts

    def meters(self) -> list[Meter]:
        """Read how far the jobs have come."""
        counts = self._counts[:]
        half = len(counts) // 2
        return [Meter(*pair) for pair in zip(counts[:half], counts[half:], strict=True)]


@contextlib.contextmanager
def working(
    bench: Bench, jobs: Sequence[Job], tasks: Sequence[Task], processes: int
) -> Iterator[Running]:
    """Let processes work on tasks, begun in the given order, while the block collects what is done.

    Examples
    --------
    >>> working.__name__
    'working'
    """
    method = start_method()
    context: Any = multiprocessing.get_context(method)
    counts = context.Array("q", 2 * len(jobs))  # rounds of each job, then seeds begun
    others = set(multiprocessing.active_children())
    # A forked worker has all that its parent has.
    at_hand = contextlib.nullcontext(bench) if method == "fork" else _in_a_file(bench)
    with at_hand as given:
        pool = ProcessPoolExecutor(processes, context, _begin_worker, (given, counts))
        try:
            with _interrupts_held():
                futures = {pool.submit(_work, jobs[task[0]], *task): task for task in tasks}
            yield Running(futures, counts)
        except BaseException:
            # Nobody will look at the rest of the work: do not wait for it.
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        pool.shutdown()


@contextlib.contextmanager
def _in_a_file(bench: Bench) -> Iterator[str]:
    """Lay the bench down where workers can fetch it.

    Sent along with a process, it would not fit the pipe, and each process would have to be up and
    running before the next could start.
    """
    number, path = tempfile.mkstemp(prefix="priorshift-")
    try:
        with open(number, "wb") as file:
            pickle.dump(bench, file, protocol=pickle.HIGHEST_PROTOCOL)
        yield path
    finally:
        os.unlink(path)


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


# What a worker process was given at its start; None in every other process.
_given: tuple[Bench, Any] | None = None


def _begin_worker(bench: Bench | str, counts: Any) -> None:
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked one has its parent's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if isinstance(bench, str):
        with open(bench, "rb") as file:
            bench = pickle.load(file)
    threadpool_limits(limits=1)
    _given = (cast("Bench", bench), counts)


def _end_with_parent() -> None:
    """A worker that waits for work would outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(job: Job, number: int, seed: int) -> Measure:
    assert _given is not None, "the worker was not begun"
    bench, counts = _given
    last = 0

    def advance(rounds: int) -> None:
        nonlocal last
        with counts.get_lock():
            counts[number] += rounds - last
        last = rounds

    with counts.get_lock():
        counts[len(counts) // 2 + number] += 1
    return measure(bench, job, seed, advance)
