"""Part grid: models x held-out sets x problems x batches x shifts.

A model is trained once for each problem and seed and run once on a pool of rows; the classifier
reads its probabilities. With ``--features`` it wraps the model itself and sees the features, too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.safety import report
from benchmarks.safety.problems import MODELS, PROBLEMS, World, world
from benchmarks.safety.running import Options, collect
from benchmarks.safety.subject import quiet, subject
from priorshift import LabelShiftClassifier
from priorshift.simulation.shifts import Constant, Linear, Mixture, Sine, Square
from priorshift.source.model import ProbabilityModel

SHIFTS: dict[str, Mixture] = {
    "none": Constant(),
    "slow": Linear(),
    "abrupt": Square(period=200),
    "seasonal": Sine(period=400),
}
ROWS, BATCHES = (50, 134, 500, 2000), (1, 20)
FLOOR = 1e-15


@dataclass(frozen=True)
class Plan:
    """Which cells of the grid are run."""

    problems: tuple[str, ...] = tuple(PROBLEMS)
    models: tuple[str, ...] = tuple(MODELS)
    rows: tuple[int, ...] = ROWS
    batches: tuple[int, ...] = BATCHES
    shifts: tuple[str, ...] = tuple(SHIFTS)
    seeds: int = 5
    rounds: int = 1000
    features: bool = False
    safety: str = "on"

    @property
    def name(self) -> str:
        return "features" if self.features else "grid"

    def asked(self, options: Options) -> Plan:
        """The part of it that the options ask for."""
        axes = {
            axis: tuple(v for v in getattr(self, axis) if v in wanted)
            for axis, wanted in options.only.items()
        }
        seeds = self.seeds if options.seeds is None else options.seeds
        return replace(self, **axes, seeds=seeds, safety=options.safety)

    def holds(self, record: dict[str, Any]) -> bool:
        """Whether a record is of one of its cells."""
        axes = ("problems", "models", "rows", "batches", "shifts")
        keys = ("problem", "model", "rows", "batch", "shift")
        pairs = zip(axes, keys, strict=True)
        return record["part"] == self.name and all(record[k] in getattr(self, a) for a, k in pairs)

    def parts(self) -> list[Part]:
        """Work for one process each: a model that is trained once. Seed after seed."""
        every = itertools.product(range(self.seeds), self.problems, self.models)
        return [Part(self, problem, model, seed) for seed, problem, model in every]


FULL = Plan()
QUICK = Plan(
    models=("logistic", "naive Bayes", "boosting"), rows=(134, 500), shifts=("none", "abrupt"),
    seeds=2, rounds=300,
)  # fmt: skip


def table(options: Options, full: Plan = FULL, quick: Plan = QUICK) -> None:
    """Run, print, judge."""
    plan = (quick if options.quick else full).asked(options)
    records = [r for r in collect(plan.name, plan.parts(), options) if plan.holds(r)]
    if not records:
        print(f"({plan.name}) no run of these cells\n")
        return
    report.tables(records, options.cells)
    if options.older is not None:
        report.compare([r for r in options.older if plan.holds(r)], records)


class Part(NamedTuple):
    """All runs of one model in one problem with one seed."""

    plan: Plan
    problem: str
    model: str
    seed: int

    def __str__(self) -> str:
        return f"{self.problem}, {self.model}, seed {self.seed}"

    def run(self) -> list[dict[str, Any]]:
        """One record for each run, errors in percent."""
        with quiet():
            place = world(PROBLEMS[self.problem], self.model, self.seed)
            return [record for rows in self.plan.rows for record in self._runs(place, rows)]

    def _runs(self, place: World, rows: int) -> Iterator[dict[str, Any]]:
        plan, problem = self.plan, place.problem
        rng = np.random.default_rng([self.seed, rows])
        y = problem.labels(rows, rng)
        hold = y * place.size + rng.integers(0, place.size, rows)
        began = time.perf_counter()
        fitted = fit(place, hold, y, plan)
        seconds = time.perf_counter() - began
        for shift in plan.shifts:
            for batch in plan.batches:
                draws = np.random.default_rng([self.seed, batch, list(SHIFTS).index(shift)])
                stream = draw(place, SHIFTS[shift], plan.rounds, batch, draws)
                yield {
                    "part": plan.name,
                    **{"problem": self.problem, "model": self.model, "rows": rows},
                    **{"batch": batch, "shift": shift, "seed": self.seed},
                    **{"rounds": plan.rounds, "safety": plan.safety},
                    **{"missing": problem.n_classes - len(np.unique(y))},
                    **{"restricted": fitted.columns is not None, "fit_seconds": round(seconds, 3)},
                    **asdict(play(place, fitted, stream)),
                }


class Fitted(NamedTuple):
    """A classifier, and the classes that it knows where it refused to know them all."""

    classifier: LabelShiftClassifier
    columns: np.ndarray | None
    features: bool

    def adapt(self, place: World, rows: np.ndarray) -> np.ndarray:
        """Probabilities of a batch."""
        X = place.X[rows] if self.features else place.P[rows]
        if self.columns is None:
            return self.classifier.adapt_predict_proba(X)
        proba = np.zeros((len(rows), place.problem.n_classes))
        X = X if self.features else restricted(X, self.columns)
        proba[:, self.columns] = self.classifier.adapt_predict_proba(X)
        return proba


def fit(place: World, hold: np.ndarray, y: np.ndarray, plan: Plan) -> Fitted:
    """Fit the classifier; where it refuses classes without rows, on the others alone.

    A user of such a version had to do the same: leave those columns out.
    """
    known = np.unique(y)
    if plan.features:
        model, X = place.model, place.X[hold]
    else:
        model, X = ProbabilityModel(np.arange(place.problem.n_classes)), place.P[hold]
    try:
        return Fitted(subject(model, plan.safety).fit(X, y), None, plan.features)
    except ValueError:
        if len(known) == place.problem.n_classes:
            raise
    if plan.features:
        model = Restricted(place.model, known)
    else:
        model, X = ProbabilityModel(known), restricted(X, known)
    return Fitted(subject(model, plan.safety).fit(X, y), known, plan.features)


def restricted(P: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Probabilities given that the class is one of some."""
    Q = np.maximum(P[:, columns], FLOOR)
    return Q / Q.sum(axis=1, keepdims=True)


class Restricted:
    """A model that has forgotten some of its classes."""

    def __init__(self, model: Any, classes: np.ndarray) -> None:
        self.model, self.classes_ = model, classes

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return restricted(self.model.predict_proba(X), self.classes_)


class Stream(NamedTuple):
    """Rows of the pool (T, N), their classes, and the class prior of each round."""

    rows: np.ndarray
    y: np.ndarray
    priors: np.ndarray


def draw(place: World, shift: Mixture, rounds: int, batch: int, rng: np.random.Generator) -> Stream:
    """Draw classes from the shifting prior, and rows of those classes from the pool."""
    problem = place.problem
    priors = shift.priors(problem.prior, problem.other(rng), rounds, rng)
    steps = np.cumsum(priors, axis=1)[:, None, :-1]
    y = (rng.random((rounds, batch, 1)) > steps).sum(axis=2)
    return Stream(y * place.size + rng.integers(0, place.size, y.shape), y, priors)


@dataclass(frozen=True)
class Result:
    """What a run came to: error in percent and log-loss, unadapted, adapted, and reweighted."""

    fix_error: float
    error: float
    true_error: float
    fix_loss: float
    loss: float
    true_loss: float
    seconds: float


def play(place: World, fitted: Fitted, stream: Stream) -> Result:
    """Run a stream of its own through the classifier."""
    fitted.classifier.reset()
    began = time.perf_counter()
    adapted = np.concatenate([fitted.adapt(place, rows) for rows in stream.rows])
    seconds = time.perf_counter() - began
    y, own = stream.y.ravel(), place.P[stream.rows.ravel()]
    weights = stream.priors / place.trained_on
    true = own * np.repeat(weights, stream.rows.shape[1], axis=0)
    true /= np.maximum(true.sum(axis=1, keepdims=True), FLOOR)
    errors = [round(error(P, y), 4) for P in (own, adapted, true)]
    losses = [round(log_loss(P, y), 5) for P in (own, adapted, true)]
    return Result(*errors, *losses, round(seconds, 3))


def error(P: np.ndarray, y: np.ndarray) -> float:
    """Rows that are wrong, in percent."""
    return float(100 * np.mean(P.argmax(axis=1) != y))


def log_loss(P: np.ndarray, y: np.ndarray) -> float:
    """Mean of minus the logarithm of the true class's probability, floored."""
    return float(-np.mean(np.log(np.maximum(P[np.arange(len(y)), y], FLOOR))))
