"""One run, from its settings to numbers that a store can keep."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from priorshift.calibration import as_calibration
from priorshift.datasets.offline import paper_settings
from priorshift.experiments.reproduce import worlds
from priorshift.experiments.reproduce.plan import StreamRun
from priorshift.learners import Learner, as_learner
from priorshift.learners.linear.hints import Hint, Periodic
from priorshift.simulation.evaluate import Result, evaluate
from priorshift.source import Source
from priorshift.typing import FloatArray

# Points that a course over time is kept with.
_POINTS = 200


def perform(run: StreamRun, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Send a run's learner through its stream; errors are in percent.

    No time is in the answer: two machines, or a run that was killed and begun again, agree on it.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import World
    >>> world = World("synthetic", "synthetic")
    >>> run = StreamRun(world, "fth", "predict-first", 100, 30, 0, shift="squ")
    >>> sorted(perform(run))[:3]
    ['calibrated_oracle_error', 'error', 'fix_error']
    """
    plain = worlds.source(run.world)
    learner = learner_of(run, plain)
    source = worlds.source(run.world, calibration_of(learner))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(
            learner,
            source,
            worlds.stream(run),
            protocol=run.protocol,
            track_weights="weights" in run.track,
            progress=progress,
        )
    return {**_numbers(result), **_courses(run, learner, source, result)}


def learner_of(run: StreamRun, source: Source) -> Learner:
    """Make a run's learner in the paper's preset, tuned for the rounds of the run.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import World
    >>> world = World("synthetic", "synthetic")
    >>> run = StreamRun(world, "atlas-ada", "adapt-first", 100, 30, 0, shift="squ", hint="fwd")
    >>> learner_of(run, worlds.source(world)).hint
    Forward()
    """
    hint: str | Hint | None = run.hint
    if run.period is not None:
        hint = Periodic(period=run.period)
    settings: dict[str, Any] = {
        "horizon": run.rounds,
        "hint": hint,
        "order": run.protocol,
        "sketch": run.sketch,
        "meta_rate": run.meta_rate,
    }
    if run.learner != "rogd":  # whose G is that of the reweighting vector, not of a linear model
        settings |= paper_settings(worlds.dataset(run.world), "paper", problem=run.world.problem)
    learner: Any = as_learner(run.learner, **settings)
    if run.step is not None:
        pool = learner.pool(source)
        settings["steps"] = (float(pool[min(run.step, len(pool) - 1)]),)
        learner = as_learner(run.learner, **settings)
    return learner  # type: ignore[no-any-return]


def calibration_of(learner: Learner) -> str:
    """Name of the calibration that a learner asks for.

    Examples
    --------
    >>> calibration_of(as_learner("fix")), calibration_of(as_learner("auto"))
    ('none', 'auto')
    """
    return as_calibration(learner.calibration).name


def _numbers(result: Result) -> dict[str, float]:
    return {
        "error": result.error,
        "fix_error": result.fix_error,
        "oracle_error": result.oracle_error,
        "calibrated_oracle_error": result.calibrated_oracle_error,
        "prior_error": float(result.prior_errors.mean()),
        "variation": result.variation,
    }


def _courses(run: StreamRun, learner: Any, source: Source, result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "curve" in run.track:
        found["curve"] = thinned(100 * result.errors[:, None])[:, 0].tolist()
    if result.weights is not None:
        found["weights"] = thinned(result.weights).tolist()
        found["final_weights"] = result.weights[-1].tolist()
    if run.step is not None or result.weights is not None:
        found["steps"] = learner.pool(source).tolist()
    return found


def thinned(rows: FloatArray, points: int = _POINTS) -> FloatArray:
    """Means of at most ``points`` equal stretches of rows (T, ...).

    Examples
    --------
    >>> thinned(np.arange(6.0)[:, None], points=3)[:, 0].tolist()
    [0.5, 2.5, 4.5]
    """
    parts = np.array_split(rows, min(points, len(rows)))
    return np.array([part.mean(axis=0) for part in parts])
