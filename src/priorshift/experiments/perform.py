"""One run, from its description to the record that comes out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from priorshift._numerics import stretch_means
from priorshift.calibration import Calibration, NoCalibration, as_calibration
from priorshift.cli.messages import first_lines
from priorshift.datasets import OrderedData
from priorshift.experiments.description import Data, StreamRun
from priorshift.learners import Careful, Learner, as_learner
from priorshift.learners.linear.hints import HINTS, Hint
from priorshift.risk import compiled
from priorshift.simulation.evaluate import Result, evaluate
from priorshift.simulation.recorded import RecordedStream
from priorshift.simulation.shifts import PAPER_COURSE, Bernoulli, shift_by_name
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Source

# Labels on either side of a round whose mix stands for the round's, unless a run says otherwise.
_NEAR = 500
# Fields of a run that are settings of learners, by the same name.
_OF_LEARNERS = (
    *("preset", "window", "sketch", "meta_rate", "gradient_bound", "loss_bound"),
    *("prior_form", "gap_limit", "largest_step", "hedge", "solver"),
)
# Points that a course over time is stored with.
_POINTS = 200
# Milliseconds that a round may take, before anything was measured: by learner, on narrow models.
_GUESSES = {
    **{"fix": 0.05, "fth": 0.07, "ftfwh": 0.07, "rogd": 0.3, "uogd": 0.1, "atlas": 0.3},
    **{"atlas-ada": 0.6, "tracker": 0.3, "auto": 0.6},
}
# ATLAS-ADA on wide models, on a sketch; without one it takes so many times as long.
_WIDE_ATLAS_ADA, _EXACT = 1.8, 4.0
_START = 0.1  # seconds before the first round
_MULTIPLICATIONS = 2e9  # a second


class Prepared:
    """What all runs on the same data share: made once, and sent to every worker once."""

    def __init__(self, data: Data) -> None:
        loaded = data.load()
        self.data = data
        self.ordered = loaded if isinstance(loaded, OrderedData) else None
        self.dataset = loaded.dataset if isinstance(loaded, OrderedData) else loaded
        self._sources: dict[tuple[str, Calibration], Source] = {}

    def source(self, run: StreamRun, calibration: Calibration | None = None) -> Source:
        """f0 and its held-out set as a run's learner reads them."""
        wanted = calibration_of(run) if calibration is None else calibration
        if (run.loss, wanted) not in self._sources:
            self._sources[run.loss, wanted] = (
                self.data.fit(self.dataset, run.loss)
                if isinstance(wanted, NoCalibration)
                else self.source(run, NoCalibration()).calibrated(wanted)
            )
        return self._sources[run.loss, wanted]

    def stream(self, run: StreamRun) -> SimulatedStream | RecordedStream:
        """The stream that a run goes through."""
        if self.ordered is not None:
            return self.ordered.stream(
                run.batch_size,
                seed=run.seed,
                every=run.every or 1,
                near=_NEAR if run.near is None else run.near,
                rounds=run.rounds,
            )
        if run.priors is not None:
            population = self.dataset.population
            return SimulatedStream(population, run.priors, run.batch_size, run.seed)
        assert run.shift is not None, "data without an order of their own need a shift"
        mu1 = self.dataset.mu1 if run.mu1 is None else np.array(run.mu1)
        mu2 = self.dataset.mu2 if run.mu2 is None else np.array(run.mu2)
        settings = dict(run.shift_settings)
        if run.shift == Bernoulli.name and run.seed == 0 and run.preset == "paper":
            settings.setdefault("course", PAPER_COURSE)
        shift = shift_by_name(run.shift, **settings)
        priors = shift.priors(mu1, mu2, run.rounds, np.random.default_rng(run.seed))
        return SimulatedStream(self.dataset.population, priors, run.batch_size, run.seed)

    def add(self, runs: Iterable[StreamRun]) -> None:
        """Make every source that one of the runs reads; refuse what would fail in round 1."""
        with threadpool_limits(limits=1):  # then the bits depend on the machine alone
            for run in runs:
                source, learner = self.source(run), make_learner(run, self)
                learner.check(source)


def prepare(runs: Sequence[StreamRun]) -> Prepared:
    """Load the data of runs that share them, and make every source that one of them reads.

    Examples
    --------
    >>> data = Data("digits", "digits", components=16)
    >>> prepare([StreamRun(data, "em", "adapt-first", 10, 5, 0, shift="lin")]).dataset.n_classes
    10
    """
    with threadpool_limits(limits=1):
        prepared = Prepared(runs[0].data)
    prepared.add(runs)
    return prepared


def make_learner(run: StreamRun, prepared: Prepared | None = None) -> Learner:
    """Make a run's learner, tuned for the rounds of the run; a ``step`` needs the data.

    Examples
    --------
    >>> data = Data("synthetic", "synthetic")
    >>> run = StreamRun(data, "atlas-ada", "adapt-first", 100, 30, 0, shift="squ", hint="fwd")
    >>> make_learner(run).hint
    Forward()
    """
    settings: dict[str, Any] = {name: getattr(run, name) for name in _OF_LEARNERS}
    settings |= {"horizon": run.rounds, "hint": _hint(run), "order": run.protocol}
    learner: Any = as_learner(run.learner, **settings)
    if run.step is not None and prepared is not None:
        pool = learner.pool(prepared.source(run, NoCalibration()))
        settings["steps"] = (float(pool[min(run.step, len(pool) - 1)]),)
        settings["largest_step"] = None  # there is no pool left that it could end
        learner = as_learner(run.learner, **settings)
    careful = run.safety == "on" and learner.guarded
    return Careful(learner) if careful else learner


def _hint(run: StreamRun) -> Hint | None:
    """The hint with its settings; None is the learner's own."""
    if run.hint is None:
        return None
    period = {} if run.period is None else {"period": run.period}
    return HINTS[run.hint](**period, **dict(run.hint_settings))


def calibration_of(run: StreamRun) -> Calibration:
    """The calibration of f0 that a run asks for, by default its learner's own."""
    return as_calibration(run.calibration or make_learner(run).calibration)


def perform(
    run: StreamRun, prepared: Prepared, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Send a run's learner through its stream; errors are in percent.

    But for ``seconds``, the time of the learner's own steps, two machines, or a run that was
    killed and begun again, agree on the answer.

    Examples
    --------
    >>> run = StreamRun(Data("digits", "digits"), "fth", "predict-first", 20, 40, 0, shift="lin")
    >>> record = perform(run, prepare([run]))
    >>> 0 <= record["error"] <= 100, round(record["variation"], 6)
    (True, 1.755)
    """
    source, learner = prepared.source(run), make_learner(run, prepared)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = evaluate(
            learner,
            source,
            prepared.stream(run),
            protocol=run.protocol,
            track_weights="weights" in run.track,
            track_scores="scores" in run.track,
            progress=progress,
        )
    return {
        "error": result.error,
        "fix_error": result.fix_error,
        "oracle_error": result.oracle_error,
        "calibrated_oracle_error": result.calibrated_oracle_error,
        "prior_error": float(result.prior_errors.mean()),
        "variation": result.variation,
        "rounds": len(result.errors),
        "seconds": result.seconds,
        "calibration_map": "none" if source.calibration is None else source.calibration.name,
        "warnings": list(first_lines(caught)),
        **({} if result.scores is None else result.scores._asdict()),
        **_courses(run, learner, source, result),
    }


def _courses(run: StreamRun, learner: Any, source: Source, result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "curve" in run.track:
        found["curve"] = stretch_means(100 * result.errors[:, None], _POINTS)[:, 0].tolist()
    if result.weights is not None:
        found["weights"] = stretch_means(result.weights, _POINTS).tolist()
    if hasattr(result.state, "steps"):  # a pool: its weights after the last round
        found["steps"] = result.state.steps.tolist()
        found["final_weights"] = learner.weights(source, result.state).tolist()
    return found


def guess(run: StreamRun, prepared: Prepared | None = None) -> float:
    """Seconds that a run may take; where the data are known, so is the size of its products."""
    unit = _GUESSES.get(run.learner, 0.5)
    if run.learner == "atlas-ada":
        unit = unit if run.data.dataset == "synthetic" else _WIDE_ATLAS_ADA
        unit *= _EXACT if run.sketch is None else 1.0
    seconds = _START + 1e-3 * run.rounds * unit
    if prepared is not None:
        source, learner = prepared.source(run), make_learner(run, prepared)
        cost = learner.cost(source, learner.start(source))
        seconds = max(seconds, run.rounds * cost / _MULTIPLICATIONS)
    return seconds


def prepare_kernels(kernels: Iterable[str], say: Callable[[str], None]) -> None:
    """Compile the kernels that learners will call, for all processes; say so where it is slow."""
    wanted = set(kernels) - {"none"}
    if wanted and compiled.available():
        from priorshift.risk.compiled.warm import warm_up

        text = "compiling the kernels, once on this machine; up to a minute"
        warm_up(lambda: say(text), implicit="implicit" in wanted)
