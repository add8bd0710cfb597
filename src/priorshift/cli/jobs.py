"""The work of ``priorshift run``: learners through streams, here or in worker processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from priorshift.cli.progress import Progress
from priorshift.errors import InputError
from priorshift.evaluate import evaluate
from priorshift.learners import Learner
from priorshift.shifts import Shift
from priorshift.source import Source
from priorshift.streams import Stream, World
from priorshift.typing import FloatArray

_POLL = 0.2


@dataclass(frozen=True, eq=False)
class Bench:
    """What all jobs of a run share. Built once, and sent to every worker once.

    Examples
    --------
    >>> Bench.__name__
    'Bench'
    """

    world: World
    source: Source
    mu1: FloatArray
    mu2: FloatArray
    rounds: int
    batch_size: int


@dataclass(frozen=True, eq=False)
class Job:
    """One learner under one shift, for every seed.

    Examples
    --------
    >>> from priorshift.learners import FIX
    >>> from priorshift.shifts import Linear
    >>> Job("lin", Linear(), "fix", None, FIX(), "predict-first").label
    'lin fix'
    """

    shift_name: str
    shift: Shift
    learner_name: str
    hint: str | None
    learner: Learner
    protocol: str

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        return " ".join(filter(None, (self.shift_name, self.learner_name, self.hint)))


class Measure(NamedTuple):
    """What one seed of a job gave; errors in percent.

    Examples
    --------
    >>> Measure(5.4, 7.8, 2.0, 0.1, 3.0, 1.5).error
    5.4
    """

    error: float
    fix_error: float
    oracle_error: float
    prior_error: float
    variation: float
    seconds: float
    warnings: tuple[str, ...] = ()


class JobError(RuntimeError):
    """A job failed for a reason that is not the user's.

    Examples
    --------
    >>> issubclass(JobError, ValueError)
    False
    """


def measure(bench: Bench, job: Job, seed: int, progress: Callable[[int], None]) -> Measure:
    """Send a job's learner through the stream of one seed.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FTH
    >>> from priorshift.offline import offline_stage
    >>> from priorshift.shifts import Linear
    >>> data = load_dataset("digits")
    >>> bench = Bench(data.world, offline_stage(data), data.mu1, data.mu2, 40, 20)
    >>> job = Job("lin", Linear(), "fth", None, FTH(), "predict-first")
    >>> found = measure(bench, job, seed=0, progress=lambda rounds: None)
    >>> 0 <= found.oracle_error <= found.fix_error <= 100
    True
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        priors = job.shift.priors(
            bench.mu1, bench.mu2, bench.rounds, np.random.default_rng(seed)
        )
        stream = Stream(bench.world, priors, bench.batch_size, seed)
        result = evaluate(
            job.learner, bench.source, stream, protocol=job.protocol, progress=progress
        )
    return Measure(
        error=result.error,
        fix_error=result.fix_error,
        oracle_error=result.oracle_error,
        prior_error=float(result.prior_errors.mean()),
        variation=result.variation,
        seconds=result.seconds,
        warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


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
    >>> found = run_jobs(bench, [Job("lin", Linear(), "fix", None, FIX(), "predict-first")], seeds=2)
    >>> len(found), len(found[0])
    (1, 2)
    """
    labels = [job.label for job in jobs]
    progress = progress or Progress(labels, bench.rounds * seeds, quiet=True)
    try:
        if processes == 1:
            return _run_here(bench, jobs, seeds, progress)
        return _run_in_workers(bench, jobs, seeds, min(processes, len(jobs) * seeds), progress)
    finally:
        progress.clear()


def _run_here(
    bench: Bench, jobs: Sequence[Job], seeds: int, progress: Progress
) -> list[list[Measure]]:
    done = [0] * len(jobs)
    found: list[list[Measure]] = []

    def advance(rounds: int) -> None:
        done[-1 if number is None else number] = seed * bench.rounds + rounds
        progress.advance(done)

    number: int | None = None
    with threadpool_limits(limits=1):
        for number, job in enumerate(jobs):
            progress.advance(done)
            row = []
            for seed in range(seeds):
                with _named(job, seed):
                    row.append(measure(bench, job, seed, advance))
            progress.finish(number, summary(row, bench.rounds))
            found.append(row)
    return found
