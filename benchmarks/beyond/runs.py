"""Learners through streams, by the runner of the experiments, with results that a store has."""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from sklearn.exceptions import ConvergenceWarning

from priorshift.datasets import Dataset, OrderedData, load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.description import BUNDLED, Data, StreamRun
from priorshift.experiments.perform import Prepared
from priorshift.experiments.progress import Progress
from priorshift.experiments.runner import Runner
from priorshift.experiments.store import Store
from priorshift.source import Source

SHIFTS = ("lin", "squ", "sin", "ber")
# What a problem's name stands for: a change of how sources are built here needs another number.
_KIND = "beyond, 2"

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Problem(Data):
    """Data that are loaded, and an f that is made from them, in ways of one's own.

    A result in the store knows a problem by its name, and its file by the content.
    """

    make: Callable[[str], Dataset | OrderedData] = load_dataset
    build: Callable[[Dataset], Source] = offline_stage

    def settings(self) -> dict[str, Any]:
        """What names its results."""
        in_a_file = self.dataset not in BUNDLED and self.is_here
        content = super().settings()["content"] if in_a_file else None
        return {"kind": _KIND, "problem": self.name, "content": content}

    def load(self) -> Dataset | OrderedData:
        """The data set."""
        return self.make(self.dataset)

    def fit(self, dataset: Dataset, loss: str) -> Source:
        """Make f."""
        return self.build(dataset)


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


class Measurer:
    """Measures runs, or finds them in a store.

    ``learner`` is the one that claims are about; ``quick`` asks for a few rounds, ``light`` for no
    ATLAS-ADA.
    """

    def __init__(
        self, learner: str, jobs: int, store: Store | None, quick: bool, light: bool = False
    ) -> None:
        self.learner, self.quick, self.light = learner, quick, light
        self._runner = Runner(store, jobs, Progress(quiet=quick))
        self._prepared: dict[Data, Prepared] = {}

    def measure(self, runs: Mapping[Name, StreamRun], seeds: int = 1) -> dict[Name, Numbers]:
        """Return the numbers of every run; f is made only where something has to be run."""
        rows = {
            name: [replace(run, seed=seed, safety="on") for seed in range(seeds)]
            for name, run in runs.items()
        }
        every = [run for row in rows.values() for run in row]
        ready = self._runner.ready(every)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for run in every:
                if run not in ready:
                    self.prepared(run)
            found = self._runner.results(every, prepared=self._prepared)
        return {name: _mean([found[run] for run in row]) for name, row in rows.items()}

    def prepared(self, run: StreamRun) -> Prepared:
        """The data and f of a run, made once for all runs that share them."""
        if run.data not in self._prepared:
            if not self.quick:
                print(f"{run.data.name}: the offline stage", file=sys.stderr)
            self._prepared[run.data] = Prepared(run.data)
        self._prepared[run.data].add([run])
        return self._prepared[run.data]


def _mean(records: list[dict[str, Any]]) -> Numbers:
    names = ("error", "fix_error", "oracle_error", "calibrated_oracle_error", "seconds")
    means = [statistics.fmean(one[name] for one in records) for name in names]
    return Numbers(*means, records[0]["calibration_map"])
