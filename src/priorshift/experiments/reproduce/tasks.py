"""Work for the runner: a task has settings that name it, and a way to be done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from priorshift.experiments.reproduce import worlds
from priorshift.experiments.reproduce.known_world import clairvoyant_risks, known_source
from priorshift.experiments.reproduce.plan import StreamRun
from priorshift.experiments.reproduce.regret import perform as measure
from priorshift.experiments.reproduce.task import calibration_of, learner_of, perform

# Milliseconds that a round may take, before anything was measured: by learner, on narrow models.
_GUESSES = {
    **{"fix": 0.05, "fth": 0.07, "ftfwh": 0.07, "rogd": 0.3, "uogd": 0.1, "atlas": 0.3},
    **{"atlas-ada": 0.6, "tracker": 0.3, "auto": 0.6},
}
# ATLAS-ADA on wide models, on a sketch; without one it takes so many times as long.
_WIDE_ATLAS_ADA, _EXACT = 1.8, 4.0
_REGRET_GUESSES = {"uogd": 0.05, "atlas": 0.12, "atlas-ada": 1.5}
_LEMMA_SECONDS = 0.3
_START = 0.1  # seconds before the first round


class Task(Protocol):
    """What the runner needs of a task; tasks are hashable, and equal if their results are."""

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        ...

    @property
    def kin(self) -> str:
        """Tasks of one kin take about as long."""
        ...

    @property
    def data(self) -> str | None:
        """Name of the data set that it reads, None for data that it makes itself."""
        ...

    def settings(self) -> dict[str, Any]:
        """Everything that its result depends on but data and code."""
        ...

    def guess(self) -> float:
        """Seconds that it may take."""
        ...

    def prepare(self) -> None:
        """Do what all tasks on the same data share, before workers start."""
        ...

    def do(self) -> dict[str, Any]:
        """Do it."""
        ...


@dataclass(frozen=True)
class StreamTask:
    """A learner through a stream.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> StreamTask(plan("table1", quick=True, seeds=1).runs["cell"][0]).data
    'synthetic'
    """

    run: StreamRun

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        return f"{self.run.label}, seed {self.run.seed}"

    @property
    def kin(self) -> str:
        """Runs of the same learner on the same world."""
        run = self.run
        alone = "" if run.step is None else " alone"
        return f"{run.world.name} {run.learner}{alone} {run.sketch} {run.rounds} {run.batch_size}"

    @property
    def data(self) -> str | None:
        """Name of the data set."""
        return self.run.world.data

    def settings(self) -> dict[str, Any]:
        """Those of the run."""
        return self.run.settings()

    def guess(self) -> float:
        """Seconds that it may take."""
        run = self.run
        unit = _GUESSES.get(run.learner, 0.5)
        if run.learner == "atlas-ada":
            unit = unit if run.world.data == "synthetic" else _WIDE_ATLAS_ADA
            unit *= _EXACT if run.sketch is None else 1.0
        return _START + 1e-3 * run.rounds * unit

    def prepare(self) -> None:
        """Load the data, run the offline stage, calibrate f0 as the learner asks for."""
        learner = learner_of(self.run, worlds.source(self.run.world))
        worlds.source(self.run.world, calibration_of(learner))

    def do(self) -> dict[str, Any]:
        """Send the learner through the stream."""
        return perform(self.run)


@dataclass(frozen=True)
class RegretTask:
    """A measurement of regret, or of a lemma; its settings as JSON text.

    Examples
    --------
    >>> task = RegretTask.of({"kind": "lemma1", "seed": 0})
    >>> task.settings()["seed"]
    0
    """

    text: str

    @classmethod
    def of(cls, settings: dict[str, Any]) -> RegretTask:
        """Make it from settings that ``priorshift.experiments.reproduce.regret`` understands."""
        return cls(json.dumps(settings, sort_keys=True))

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        return "regret: " + ", ".join(f"{k} {v}" for k, v in self.settings().items() if k != "run")

    @property
    def kin(self) -> str:
        """The same measurement with other seeds."""
        found = self.settings()
        found.pop("seed", None)
        return json.dumps(found, sort_keys=True)

    @property
    def data(self) -> None:
        """It makes its own."""
        return None

    def own_settings(self) -> dict[str, Any]:
        """What it was made from."""
        return dict(json.loads(self.text))

    def settings(self) -> dict[str, Any]:
        """Those of the measurement."""
        return {"run": "regret", **self.own_settings()}

    def guess(self) -> float:
        """Seconds that it may take."""
        found = self.own_settings()
        learner = str(found.get("learner", ""))
        known = [name for name in _REGRET_GUESSES if learner.startswith(name)]
        if not known:
            return _LEMMA_SECONDS
        unit = _REGRET_GUESSES[max(known, key=len)]
        return _START + 1e-3 * unit * float(found["rounds"]) * float(found.get("repeats", 1))

    def prepare(self) -> None:
        """Make the known world and its clairvoyant."""
        known_source()
        clairvoyant_risks([0.0])

    def do(self) -> dict[str, Any]:
        """Measure."""
        return measure(self.own_settings())
