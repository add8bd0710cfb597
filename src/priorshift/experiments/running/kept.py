"""Results of ``priorshift run`` that a store keeps from one run to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from priorshift import __version__
from priorshift.datasets import Dataset
from priorshift.experiments.running.jobs import Bench, Job, Measure
from priorshift.experiments.store import Store, code_digest, describe, digest, package_versions
from priorshift.risk.compiled import available

# What is measured and how (cli/jobs.py): a change there needs another number here.
_KIND = "priorshift run, 3"


def data_digest(dataset: Dataset) -> str:
    """Identify a data set by what is in it; where it lies does not matter.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> data = load_dataset("digits")
    >>> data_digest(data) == data_digest(dataclasses.replace(data, name="copy.npz"))
    True
    """
    # The one name that the offline stage looks at.
    name = "synthetic" if dataset.name == "synthetic" else ""
    return digest(dataclasses.replace(dataset, name=name))


def settings_of(bench: Bench, job: Job, preset: str, seed: int) -> dict[str, Any]:
    """Return everything that the result of one seed of a job depends on.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> from priorshift.experiments.running.plan import make_plan
    >>> words = "run --learner uogd --shift squ --sketch blocks:500 --store results.db"
    >>> bench, (job,) = make_plan(build_parser().parse_args(words.split()))
    >>> found = settings_of(bench, job, "paper", seed=3)
    >>> found["shift"], found["learner"]["sketch"]["size"], found["seed"]
    ({'type': 'Square', 'period': 40}, 500, 3)
    """
    return {
        "kind": _KIND,
        "priorshift": __version__,
        "code": code_digest(),
        "compiled": available(),  # the same numbers up to rounding only
        "versions": package_versions(),
        "data": bench.data,
        "loss": bench.source.loss.name,
        "mu1": bench.mu1.tolist(),
        "mu2": bench.mu2.tolist(),
        "rounds": bench.rounds,
        "batch_size": bench.batch_size,
        "shift": describe(job.shift),
        "learner": describe(job.learner),
        "calibration": describe(job.calibration),
        "preset": preset,
        "protocol": job.protocol,
        "seed": seed,
    }


class Kept:
    """What a store holds of a run's results, and where new ones go.

    Parameters
    ----------
    store : Store
    bench : Bench
        With the digest of its data.
    jobs : sequence of Job
    preset : str

    Examples
    --------
    >>> Kept.__name__
    'Kept'
    """

    def __init__(self, store: Store, bench: Bench, jobs: Sequence[Job], preset: str) -> None:
        if bench.data is None:
            raise ValueError("a bench without the digest of its data has results of its own only")
        self._store, self._bench, self._jobs, self._preset = store, bench, jobs, preset

    def ready(self, seeds: int) -> dict[tuple[int, int], Measure]:
        """Return the results that need no work, by the number of their job and their seed."""
        found = {}
        for number in range(len(self._jobs)):
            for seed in range(seeds):
                result = self._store.find(self._settings(number, seed))
                if result is not None:
                    result["warnings"] = tuple(result["warnings"])
                    found[number, seed] = Measure(**result)
        return found

    def keep(self, number: int, seed: int, found: Measure) -> None:
        """Put a new result into the store."""
        self._store.add(self._settings(number, seed), found._asdict())

    def _settings(self, number: int, seed: int) -> dict[str, Any]:
        return settings_of(self._bench, self._jobs[number], self._preset, seed)
