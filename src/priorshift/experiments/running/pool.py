"""Processes that work on jobs, each with one BLAS thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, cast

from priorshift.experiments.processes import begin_worker, interrupts_held, start_method
from priorshift.experiments.running.jobs import Bench, Job, Measure, measure
from priorshift.experiments.running.progress import Meter

# A task: the number of a job, and a seed.
Task = tuple[int, int]


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
            with interrupts_held():
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


# What a worker process was given at its start; None in every other process.
_given: tuple[Bench, Any] | None = None


def _begin_worker(bench: Bench | str, counts: Any) -> None:
    global _given
    begin_worker()
    if isinstance(bench, str):
        with open(bench, "rb") as file:
            bench = pickle.load(file)
    _given = (cast("Bench", bench), counts)


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
