"""The work of ``priorshift run``, in pieces that can be sent to other processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from priorshift.calibration import Calibration, NoCalibration
from priorshift.cli.messages import first_lines
from priorshift.learners import Learner
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import Shift
from priorshift.simulation.streams import Stream, World
from priorshift.source import Source
from priorshift.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Bench:
    """What all jobs of a run share. Built once, and sent to every worker once.

    ``source`` has f0 as it is; ``calibrated`` the same with f0 calibrated, for those calibrations
    that some job asks for. ``data`` is a digest of the data set, where results are to be
    kept.

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
    data: str | None = None
    calibrated: dict[Calibration, Source] = field(default_factory=dict)

    def source_for(self, job: Job) -> Source:
        """The source that a job's learner reads."""
        if isinstance(job.calibration, NoCalibration):
            return self.source
        return self.calibrated[job.calibration]

    def stream_for(self, job: Job, seed: int) -> Stream:
        """The stream of one seed of a job."""
        priors = job.shift.priors(self.mu1, self.mu2, self.rounds, np.random.default_rng(seed))
        return Stream(self.world, priors, self.batch_size, seed)


@dataclass(frozen=True, eq=False)
class Job:
    """One learner under one shift, for every seed.

    Examples
    --------
    >>> from priorshift.learners import FIX
    >>> from priorshift.simulation.shifts import Linear
    >>> Job("lin", Linear(), "fix", None, FIX(), "predict-first").label
    'lin fix'
    """

    shift_name: str
    shift: Shift
    learner_name: str
    hint: str | None
    learner: Learner
    protocol: str
    calibration: Calibration = field(default_factory=NoCalibration)

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        return " ".join(filter(None, (self.shift_name, self.learner_name, self.hint)))


class Measure(NamedTuple):
    """What one seed of a job gave; errors in percent.

    Examples
    --------
    >>> Measure(5.4, 7.8, 2.0, 2.0, 0.1, 3.0, 1.5).error
    5.4
    """

    error: float
    fix_error: float
    oracle_error: float
    calibrated_oracle_error: float
    prior_error: float
    variation: float
    seconds: float
    warnings: tuple[str, ...] = ()
    calibration_map: str = "none"


def measure(bench: Bench, job: Job, seed: int, progress: Callable[[int], None]) -> Measure:
    """Send a job's learner through the stream of one seed.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.learners import FTH
    >>> from priorshift.datasets.offline import offline_stage
    >>> from priorshift.simulation.shifts import Linear
    >>> data = load_dataset("digits")
    >>> bench = Bench(data.world, offline_stage(data), data.mu1, data.mu2, 40, 20)
    >>> job = Job("lin", Linear(), "fth", None, FTH(), "predict-first")
    >>> found = measure(bench, job, seed=0, progress=lambda rounds: None)
    >>> 0 <= found.error <= 100, round(found.variation, 6)
    (True, 1.755)
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stream = bench.stream_for(job, seed)
        result = evaluate(
            job.learner, bench.source_for(job), stream, protocol=job.protocol, progress=progress
        )
    fitted = bench.source_for(job).calibration
    return Measure(
        error=result.error,
        fix_error=result.fix_error,
        oracle_error=result.oracle_error,
        calibrated_oracle_error=result.calibrated_oracle_error,
        prior_error=float(result.prior_errors.mean()),
        variation=result.variation,
        seconds=result.seconds,
        warnings=first_lines(caught),
        calibration_map="none" if fitted is None else fitted.name,
    )
