"""Run jobs one after the other, or in several processes, with the same numbers either way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool

from threadpoolctl import threadpool_limits

from priorshift.errors import InputError
from priorshift.experiments.processes import usable_cores
from priorshift.experiments.running.jobs import Bench, Job, Measure, measure
from priorshift.experiments.running.pool import Task, working
from priorshift.experiments.running.progress import Meter, Progress

_POLL = 0.2
# Multiplications; below this, processes take longer to start than they save.
_SHORT_RUN = 2_000_000_000


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
    ready: Mapping[Task, Measure] | None = None,
    keep: Callable[[int, int, Measure], None] | None = None,
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
        Worker processes; with 1 the work is done right here. 0 stands for one on each core, and
        for 1 where the work is too short to be worth the start of others.
    progress : Progress, optional
    ready : mapping, optional
        Results that are known, by the number of their job and their seed; they are not measured.
    keep : callable, optional
        Called with the number of a job, a seed and the result, as soon as it is there.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FIX
    >>> from priorshift.datasets.offline import offline_stage
    >>> from priorshift.simulation.shifts import Linear
    >>> data = load_dataset("digits")
    >>> bench = Bench(data.world, offline_stage(data), data.mu1, data.mu2, 40, 20)
    >>> job = Job("lin", Linear(), "fix", None, FIX(), "predict-first")
    >>> found = run_jobs(bench, [job], seeds=2)
    >>> len(found), len(found[0])
    (1, 2)
    """
    if progress is None:
        progress = Progress([job.label for job in jobs], bench.rounds * seeds, quiet=True)
    rows = _Rows(bench, jobs, seeds, progress, keep)
    try:
        rows.take_ready(ready or {})
        tasks = rows.missing()
        costs = {} if processes == 1 else _costs(bench, jobs, tasks)
        if processes == 0:
            processes = usable_cores() if sum(costs.values()) > _SHORT_RUN else 1
        processes = min(processes, len(tasks))
        if processes > 1:
            # The longest first: one that is begun last keeps all other cores waiting.
            tasks.sort(key=lambda task: -costs[task])
            _run_in_workers(bench, jobs, tasks, processes, rows, progress)
        else:
            _run_here(bench, jobs, tasks, rows, progress)
        return rows.in_order()
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


class _Rows:
    """Results in their places, in whatever order they come."""

    def __init__(
        self,
        bench: Bench,
        jobs: Sequence[Job],
        seeds: int,
        progress: Progress,
        keep: Callable[[int, int, Measure], None] | None,
    ) -> None:
        self._bench, self._seeds, self._progress, self._keep = bench, seeds, progress, keep
        self._found: list[dict[int, Measure]] = [{} for _ in jobs]

    def take_ready(self, ready: Mapping[Task, Measure]) -> None:
        for (number, seed), result in ready.items():
            self._found[number][seed] = result
        for number, row in enumerate(self._found):
            if len(row) == self._seeds:
                self._finish(number, ", found ready")

    def put(self, number: int, seed: int, result: Measure) -> None:
        if self._keep is not None:
            self._keep(number, seed, result)
        self._found[number][seed] = result
        if len(self._found[number]) == self._seeds:
            self._finish(number)

    def missing(self) -> list[Task]:
        return [
            (number, seed)
            for number, row in enumerate(self._found)
            for seed in range(self._seeds)
            if seed not in row
        ]

    def in_order(self) -> list[list[Measure]]:
        return [[row[seed] for seed in range(self._seeds)] for row in self._found]

    def _finish(self, number: int, note: str = "") -> None:
        row = list(self._found[number].values())
        self._progress.finish(number, summary(row, self._bench.rounds) + note)


def _costs(bench: Bench, jobs: Sequence[Job], tasks: Sequence[Task]) -> dict[Task, int]:
    """About how many multiplications each task takes."""
    by_job = {}
    for number, seed in tasks:
        if number not in by_job:
            with _named(jobs[number], seed):
                learner = jobs[number].learner
                state = learner.start(bench.source)
            by_job[number] = bench.rounds * learner.cost(bench.source, state)
    return {task: by_job[task[0]] for task in tasks}


def _run_here(
    bench: Bench, jobs: Sequence[Job], tasks: Sequence[Task], rows: _Rows, progress: Progress
) -> None:
    meters = [Meter(0, 0) for _ in jobs]

    def meter(number: int, before: int) -> Callable[[int], None]:
        def advance(rounds: int) -> None:
            meters[number] = Meter(before + rounds, 1)
            progress.advance(meters)

        return advance

    with threadpool_limits(limits=1):
        for number, seed in tasks:
            advance = meter(number, meters[number].rounds)
            advance(0)
            with _named(jobs[number], seed):
                found = measure(bench, jobs[number], seed, advance)
            rows.put(number, seed, found)


def _run_in_workers(
    bench: Bench,
    jobs: Sequence[Job],
    tasks: Sequence[Task],
    processes: int,
    rows: _Rows,
    progress: Progress,
) -> None:
    with working(bench, jobs, tasks, processes) as running:
        pending = set(running.futures)
        while pending:
            finished, pending = wait(pending, timeout=_POLL, return_when=FIRST_COMPLETED)
            # What is done is kept before a failure is told.
            for future in sorted(finished, key=lambda one: one.exception() is not None):
                number, seed = running.futures[future]
                with _named(jobs[number], seed):
                    found = future.result()
                rows.put(number, seed, found)
            progress.advance(running.meters())


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
