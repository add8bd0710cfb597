"""Run jobs one after the other, or in several processes, with the same numbers either way."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from threadpoolctl import threadpool_limits

from priorshift.cli.jobs import Bench, Job, Measure, measure
from priorshift.cli.progress import Progress
from priorshift.errors import InputError

_POLL = 0.2


class JobError(RuntimeError):
    """A job failed for a reason that is not the user's.

    Examples
    --------
    >>> issubclass(JobError, ValueError)
    False
    """


def run_jobs(
    bench: Bench,
    jobs: Sequence[Job],
    seeds: int,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[list[Measure]]:
    """Run every job for seeds 0..S-1; the answer has a row for each job, in their order.

    The numbers do not depend on ``processes``: each seed of a job has generators of its own, and
    BLAS uses one thread everywhere.

    Parameters
    ----------
    bench : Bench
    jobs : sequence of Job
    seeds : int
        S.
    processes : int
        Worker processes; with 1 the work is done right here.
    progress : Progress, optional

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FIX
    >>> from priorshift.offline import offline_stage
    >>> from priorshift.shifts import Linear
    >>> data = load_dataset("digits")
    >>> bench = Bench(data.world, offline_stage(data), data.mu1, data.mu2, 40, 20)
    >>> job = Job("lin", Linear(), "fix", None, FIX(), "predict-first")
    >>> found = run_jobs(bench, [job], seeds=2)
    >>> len(found), len(found[0])
    (1, 2)
    """
    if progress is None:
        progress = Progress([job.label for job in jobs], bench.rounds * seeds, quiet=True)
    try:
        if processes == 1:
            return _run_here(bench, jobs, seeds, progress)
        return _run_in_workers(bench, jobs, seeds, min(processes, len(jobs) * seeds), progress)
    finally:
        progress.clear()


def summary(row: Sequence[Measure], rounds: int) -> str:
    """Say in one line what all seeds of a job gave.

    Examples
    --------
    >>> summary([Measure(5.4, 7.8, 2.0, 2.0, 0.1, 3.0, 0.5)], rounds=1000)
    '5.40 % error, 1 seed, 0.5 s, 2,000 rounds/s'
    """
    seconds = max(sum(one.seconds for one in row), 1e-9)
    error = sum(one.error for one in row) / len(row)
    seeds = f"{len(row)} seed{'s' * (len(row) > 1)}"
    speed = len(row) * rounds / seconds
    return f"{error:.2f} % error, {seeds}, {seconds:.1f} s, {speed:,.0f} rounds/s"


def _run_here(
    bench: Bench, jobs: Sequence[Job], seeds: int, progress: Progress
) -> list[list[Measure]]:
    done = [0] * len(jobs)
    found = []
    with threadpool_limits(limits=1):
        for number, job in enumerate(jobs):
            row = []
            for seed in range(seeds):
                progress.advance(done)
                with _named(job, seed):
                    advance = _meter(done, number, seed * bench.rounds, progress)
                    row.append(measure(bench, job, seed, advance))
            progress.finish(number, summary(row, bench.rounds))
            found.append(row)
    return found


def _meter(
    done: MutableSequence[int], number: int, before: int, progress: Progress
) -> Callable[[int], None]:
    def advance(rounds: int) -> None:
        done[number] = before + rounds
        progress.advance(done)

    return advance


def _run_in_workers(
    bench: Bench, jobs: Sequence[Job], seeds: int, processes: int, progress: Progress
) -> list[list[Measure]]:
    context = multiprocessing.get_context("spawn")
    done = context.Array("q", len(jobs))
    others = set(multiprocessing.active_children())
    with _in_a_file(bench) as path:
        pool = ProcessPoolExecutor(processes, context, _begin_worker, (path, done))
        try:
            with _interrupts_held():
                tasks = {
                    pool.submit(_work, job, seed, number): (number, seed)
                    for number, job in enumerate(jobs)
                    for seed in range(seeds)
                }
            found = _collect(tasks, bench, jobs, seeds, done, progress)
        except BaseException:
            # Nobody will look at the rest of the work: do not wait for it.
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        pool.shutdown()
    return found


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


def _collect(
    tasks: dict[Future[Measure], tuple[int, int]],
    bench: Bench,
    jobs: Sequence[Job],
    seeds: int,
    done: Any,
    progress: Progress,
) -> list[list[Measure]]:
    """Put results in their places as they come, in whatever order."""
    found: list[dict[int, Measure]] = [{} for _ in jobs]
    pending = set(tasks)
    while pending:
        finished, pending = wait(pending, timeout=_POLL, return_when=FIRST_COMPLETED)
        for task in finished:
            number, seed = tasks[task]
            with _named(jobs[number], seed):
                found[number][seed] = task.result()
            if len(found[number]) == seeds:
                progress.finish(number, summary(list(found[number].values()), bench.rounds))
        progress.advance(done[:])
    return [[row[seed] for seed in range(seeds)] for row in found]


@contextlib.contextmanager
def _named(job: Job, seed: int) -> Iterator[None]:
    """Say which job an error comes from."""
    where = f"{job.label}, seed {seed}"
    try:
        yield
    except BrokenProcessPool as error:
        raise BrokenProcessPool(
            f"{where}: a worker process died, maybe for want of memory; try fewer --jobs"
        ) from error
    except MemoryError as error:
        raise MemoryError(f"{where}: {error}") from error
    except (ValueError, OSError) as error:
        raise InputError(f"{where}: {error}") from error
    except Exception as error:
        raise JobError(f"{where}: {type(error).__name__}: {error}") from error


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


def _begin_worker(path: str, done: Any) -> None:
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with open(path, "rb") as file:
        bench = pickle.load(file)
    threadpool_limits(limits=1)
    _given = (bench, done)


def _end_with_parent() -> None:
    """A worker that waits for work would outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(job: Job, seed: int, number: int) -> Measure:
    assert _given is not None, "the worker was not begun"
    bench, done = _given
    last = 0

    def advance(rounds: int) -> None:
        nonlocal last
        with done.get_lock():
            done[number] += rounds - last
        last = rounds

    return measure(bench, job, seed, advance)
