"""Learners through streams, in several processes, with results that a store keeps."""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from priorshift.calibration import Calibration, as_calibration
from priorshift.datasets import Dataset
from priorshift.experiments.running.jobs import Bench, Job, Measure
from priorshift.experiments.running.progress import Progress
from priorshift.experiments.running.workers import run_jobs
from priorshift.experiments.store import Store, code_digest, describe, digest
from priorshift.learners import as_learner
from priorshift.risk.compiled import available
from priorshift.simulation.shifts import shift_by_name
from priorshift.source import Source

SHIFTS = ("lin", "squ", "sin", "ber")
# What a problem's name stands for: a change of how sources are built here needs another number.
_KIND = "beyond, 1"


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set, and how f is made from it.

    ``bench`` turns a Bench's arguments into one: a Bench of one's own may have its own streams.
    ``mu2`` is the mix that shifts go to and come from, by default that of the data set.
    """

    name: str
    dataset: Dataset
    build: Callable[[Dataset], Source]
    rounds: int
    batch_size: int
    mu2: Any = None
    bench: Callable[..., Bench] = Bench


class Run(NamedTuple):
    """One learner, by name, under one shift."""

    learner: str
    shift: str
    protocol: str
    seeds: int = 1
    settings: tuple[tuple[str, Any], ...] = ()
    calibration: str | None = None

    def job(self, rounds: int) -> Job:
        """The same for ``run_jobs``; f is calibrated as the learner asks for, unless told."""
        settings = {"horizon": rounds, "order": self.protocol, **dict(self.settings)}
        learner = as_learner(self.learner, **settings)
        return Job(
            self.shift,
            shift_by_name(self.shift),
            self.learner,
            None,
            learner,
            self.protocol,
            as_calibration(self.calibration or learner.calibration),
        )


class Numbers(NamedTuple):
    """Means over the seeds of a run, errors in percent."""

    error: float
    fix: float
    true_mix: float
    calibrated_true_mix: float
    seconds: float
    calibration: str

    @property
    def share(self) -> float:
        """How much of the gap between f as it is and f with the true mix is closed, in percent."""
        return share(self.error, self.fix, self.true_mix)


def share(error: float, fix: float, floor: float) -> float:
    """How much of the gap between ``fix`` and ``floor`` is closed, in percent."""
    return 100 * (fix - error) / (fix - floor) if fix > floor else float("nan")


class Desk:
    """Measures runs, or finds them in a store.

    ``learner`` is the one that claims are about; ``quick`` asks for a few rounds, ``light`` for no
    ATLAS-ADA.
    """

    def __init__(
        self, learner: str, processes: int, store: Store | None, quick: bool, light: bool = False
    ) -> None:
        self.learner, self.quick, self.light = learner, quick, light
        self._processes, self._store = processes, store
        self._sources: dict[Any, Source] = {}

    def measure(self, problem: Problem, runs: Sequence[Run]) -> dict[Run, Numbers]:
        """Return the numbers of every run; f is made only where something has to be run."""
        found: dict[Run, Numbers] = {}
        for seeds in dict.fromkeys(run.seeds for run in runs):
            some = [run for run in runs if run.seeds == seeds]
            rows = self._rows(problem, some, seeds)
            found.update(zip(some, map(_mean, rows), strict=True))
        return found

    def _rows(self, problem: Problem, runs: Sequence[Run], seeds: int) -> list[list[Measure]]:
        jobs = [run.job(problem.rounds) for run in runs]
        keys = self._keys(problem, jobs, seeds)
        ready = self._ready(keys)
        if len(ready) == len(jobs) * seeds:
            return [[ready[number, seed] for seed in range(seeds)] for number in range(len(jobs))]

        def keep(number: int, seed: int, result: Measure) -> None:
            if self._store is not None:
                self._store.add(keys[number, seed], result._asdict())

        labels = [f"{problem.name} {job.label} {job.protocol}" for job in jobs]
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            bench = self._bench(problem, jobs)
            progress = Progress(labels, problem.rounds * seeds, quiet=self.quick)
            return run_jobs(
                bench,
                jobs,
                seeds,
                processes=self._processes,
                progress=progress,
                ready=ready,
                keep=keep,
            )

    def _bench(self, problem: Problem, jobs: Sequence[Job]) -> Bench:
        dataset = problem.dataset
        recipes = dict.fromkeys(job.calibration for job in jobs)
        return problem.bench(
            world=dataset.world,
            source=self.source(problem, None),
            mu1=dataset.mu1,
            mu2=dataset.mu2 if problem.mu2 is None else problem.mu2,
            rounds=problem.rounds,
            batch_size=problem.batch_size,
            calibrated={recipe: self.source(problem, recipe) for recipe in recipes},
        )

    def source(self, problem: Problem, recipe: Calibration | None) -> Source:
        """Make f, and calibrate it, once for all problems that share it."""
        place = (problem.dataset, problem.build, recipe)
        if place not in self._sources:
            if recipe is None and not self.quick:
                print(f"{problem.name}: the offline stage", file=sys.stderr)
            self._sources[place] = (
                problem.build(problem.dataset)
                if recipe is None
                else self.source(problem, None).calibrated(recipe)
            )
        return self._sources[place]

    def _keys(
        self, problem: Problem, jobs: Sequence[Job], seeds: int
    ) -> dict[tuple[int, int], dict[str, Any]]:
        if self._store is None:
            return {}
        shared = {
            "kind": _KIND,
            "code": code_digest(),
            "compiled": available(),
            "problem": problem.name,
            "data": digest(problem.dataset),
            "rounds": problem.rounds,
            "batch_size": problem.batch_size,
            "mu2": describe(problem.mu2),
        }
        return {
            (number, seed): {
                **shared,
                "learner": describe(job.learner),
                "shift": describe(job.shift),
                "calibration": describe(job.calibration),
                "protocol": job.protocol,
                "seed": seed,
            }
            for number, job in enumerate(jobs)
            for seed in range(seeds)
        }

    def _ready(self, keys: dict[tuple[int, int], dict[str, Any]]) -> dict[Any, Measure]:
        found = {}
        for place, key in keys.items():
            result = None if self._store is None else self._store.find(key)
            if result is not None:
                found[place] = Measure(**{**result, "warnings": tuple(result["warnings"])})
        return found


def _mean(row: Sequence[Measure]) -> Numbers:
    names = ("error", "fix_error", "oracle_error", "calibrated_oracle_error", "seconds")
    means = [statistics.fmean(getattr(one, name) for one in row) for name in names]
    return Numbers(*means, row[0].calibration_map)
