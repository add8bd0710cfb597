"""Dynamic regret on the synthetic problem, where every risk is known (Theorems 1 to 3).

One call measures one learner on one stream; ``regret_tasks`` lists the calls, ``perform`` does
one; ``regret_summary`` fits the exponents and says which of the claims hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from priorshift.datasets.synthetic import SyntheticProblem, synthetic_problem
from priorshift.experiments.reproduce.known_problem import (
    KnownProblem,
    adopt,
    clairvoyant_risks,
    gaussian_risks,
    known_problem,
    mixes,
)
from priorshift.experiments.reproduce.lemmas import lemma1, lemma2, lemma_tasks
from priorshift.experiments.reproduce.regret_summary import (
    ESTIMATED,
    REGIMES,
    STATIC,
    STATIC_REGIMES,
)
from priorshift.learners import ATLAS, UOGD, AtlasAda
from priorshift.simulation.shifts import (
    Bernoulli,
    Linear,
    Mixture,
    Sine,
    Square,
    total_variation,
)
from priorshift.simulation.streams import Chunk, SimulatedStream
from priorshift.simulation.theory import atlas_ada_bound, atlas_bound, static_bound, uogd_bound
from priorshift.source import Source
from priorshift.typing import Float32Array, FloatArray

Progress = Callable[[int], None]

LEARNERS = (
    "atlas-theory",
    "atlas-paper",
    "atlas-paper-raw",
    "uogd-tuned",
    "atlas-ada-theory",
    ESTIMATED,
    STATIC,
)
_BATCH = 10
_LARGE_BATCH = 100
# The base learners are compared with each other to a percent: fewer nodes will do.
_POOL_NODES = 8
_ROUNDS = (250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
_PAPER_ROUNDS = 10_000
# Milliseconds that a round may take, seconds that a lemma may take, seconds before the first round.
_GUESSES = {"uogd": 0.05, "atlas": 0.12, "atlas-ada": 1.5}
_LEMMA, _START = 0.3, 0.1


def run_regret(
    rounds: int,
    environment: str,
    variation: str,
    learner: str,
    seed: int,
    offline: str = "known",
    batch_size: int = 10,
    repeats: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the dynamic regret of one learner, the mean over ``repeats`` streams.

    Parameters
    ----------
    rounds : int
        T, which the learner knows.
    environment : {"lin", "squ", "sin", "ber", "half"}
        The pattern of change between the mixes mu_1 and mu_2; "half" is half way between them.
    variation : {"constant", "sqrt", "paper", "none"}
        How V_T grows with T: not at all (one drift from end to end, or three switches), like its
        root, or as in the paper's tables, with a period of 40 and a probability of 0.05; "none":
        nothing moves.
    learner : str
        One of ``LEARNERS``.
    seed : int
        Of the streams and of the random switches.
    offline : {"known", "sampled"}
        Whether the source knows C and the class risks, or has the paper's 10,000 offline rows.
    batch_size : int
        Rows of a round.
    repeats : int
        Independent streams; the theorems speak of the expected regret.
    progress : callable, optional
        Called with the number of rounds done, over all streams.

    Returns
    -------
    dict
        ``dynamic, static, cumulative_risk, best_cumulative, variation, loss_bound`` (B), ``bound``
        and ``share``, the largest part of its bound that the regret of a stream reached;
        ``function_variation`` (V_T^R), ``function_bound`` and ``function_share``, the same by the
        appendix on minimax optimality; ``static_bound`` of Lemma 3; ``step`` of UOGD,
        ``reusability`` of ATLAS-ADA, ``pool`` of ATLAS: its steps, the cumulative risk of each,
        the best step, the ratio of ATLAS's risk to that step's, the same ratio in each stream,
        Hedge's rate in the last round, and the final weights. None where there is none.

    Examples
    --------
    >>> found = run_regret(60, "squ", "constant", "atlas-theory", seed=0)
    >>> 0 < found["dynamic"] < found["bound"], len(found["pool"]["steps"])
    (True, 5)
    """
    shift = _shift(environment, variation, rounds)
    problem = known_problem()
    source: Source = {"known": problem.known, "sampled": problem.sampled}[offline]
    runs = []
    for i in range(repeats):
        key = np.random.SeedSequence([seed, i])
        alphas = shift.weights(rounds, np.random.default_rng([seed, i, rounds]))
        population = synthetic_problem().population
        stream = SimulatedStream(
            population, mixes(alphas), batch_size, int(key.generate_state(1)[0])
        )
        done = None if progress is None else _shifted(progress, i * rounds)
        runs.append(_run_once(learner, source, stream, alphas, done))
    means: dict[str, Any] = {
        name: None if runs[0][name] is None else float(np.mean([run[name] for run in runs]))
        for name in runs[0]
        if name != "pool"
    }
    for share, bound in (("share", "bound"), ("function_share", "function_bound")):
        known = means[bound] is not None
        means[share] = max(run["dynamic"] / run[bound] for run in runs) if known else None
    pools = [run["pool"] for run in runs if run["pool"] is not None]
    means["pool"] = _mean_pool(pools, means["cumulative_risk"]) if pools else None
    return means


def _shifted(progress: Progress, before: int) -> Progress:
    return lambda rounds: progress(before + rounds)


def _run_once(
    name: str,
    source: Source,
    stream: SimulatedStream,
    alphas: FloatArray,
    progress: Progress | None,
) -> dict[str, Any]:
    """The same of one stream."""
    rounds, drift = len(stream), total_variation(stream.priors)
    agent = _learner(name, source, rounds, drift)
    found = _follow(agent, source, stream, progress)
    best = float(clairvoyant_risks(alphas).sum())
    fixed = float(clairvoyant_risks([alphas.mean()])[0]) * rounds
    total = float(found.risks.sum())
    reusability = None
    if isinstance(agent, AtlasAda):
        reusability = source.n_classes * source.gradient_bound**2 * found.gaps
    by_functions = known_problem().change * float(np.abs(np.diff(alphas)).sum())
    return {
        "dynamic": total - best,
        "static": total - fixed,
        "cumulative_risk": total,
        "best_cumulative": best,
        "variation": drift,
        "loss_bound": source.loss_bound,
        "bound": _bound(agent, source, rounds, drift, reusability),
        "function_variation": by_functions,
        "function_bound": (  # the appendix speaks of UOGD and ATLAS
            _bound(agent, source, rounds, by_functions / source.loss_bound, None)
            if reusability is None
            else None
        ),
        "static_bound": static_bound(source, rounds) if name == STATIC else None,
        "step": agent.step_size(source) if isinstance(agent, UOGD) else None,
        "reusability": reusability,
        "pool": _pool(agent, source, found) if isinstance(agent, ATLAS) else None,
    }


@dataclass(frozen=True)
class _HalfWay(Mixture):
    """Stay half way between the mixes."""

    name: ClassVar[str] = "half"

    def weights(self, rounds: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha_t``, shape (T,)."""
        return np.full(rounds, 0.5)


def _shift(environment: str, variation: str, rounds: int) -> Mixture:
    root = float(np.sqrt(rounds))
    known: dict[tuple[str, str], Callable[[], Mixture]] = {
        ("lin", "constant"): Linear,
        ("squ", "constant"): lambda: Square(max(2, rounds // 2)),
        ("squ", "sqrt"): lambda: Square(max(2, round(2 * root))),
        ("ber", "sqrt"): lambda: Bernoulli(1 / root),
        ("lin", "paper"): Linear,
        ("squ", "paper"): Square,
        ("sin", "paper"): Sine,
        ("ber", "paper"): Bernoulli,
        ("half", "none"): _HalfWay,
    }
    return known[environment, variation]()


def _learner(name: str, source: Source, rounds: int, drift: float) -> UOGD | ATLAS | AtlasAda:
    theory: dict[str, Any] = {"preset": "theory", "horizon": rounds}
    paper: dict[str, Any] = {"horizon": rounds, "gradient_bound": SyntheticProblem.gradient_bound}
    known: dict[str, Callable[[], UOGD | ATLAS | AtlasAda]] = {
        "atlas-theory": lambda: ATLAS(**theory),
        "atlas-paper": lambda: ATLAS(**paper),
        "atlas-paper-raw": lambda: ATLAS(**paper, prior_form="raw"),
        "uogd-tuned": lambda: UOGD(**theory, step=tuned_step(source, rounds, drift)),
        "atlas-ada-theory": lambda: AtlasAda(**theory, hint="fwd", order="predict-first"),
        ESTIMATED: lambda: ATLAS(**theory, loss_bound="estimate"),
        STATIC: lambda: UOGD(**theory),
    }
    return known[name]()


def tuned_step(source: Source, rounds: int, variation: float) -> float:
    """The step size with the smallest bound of Theorem 1: of order ``T^(-1/3) V^(1/3)``.

    Examples
    --------
    >>> source = known_problem().known
    >>> ratio = tuned_step(source, 1000, 1000.0) / tuned_step(source, 8000, 1000.0)
    >>> round(ratio, 2)
    2.0
    """
    found = minimize_scalar(
        lambda power: np.log(uogd_bound(source, rounds, variation, float(np.exp(power)))),
        bounds=(-18.0, 6.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(np.exp(found.x))


def _bound(
    agent: UOGD | ATLAS | AtlasAda,
    source: Source,
    rounds: int,
    drift: float,
    reusability: float | None,
) -> float:
    if isinstance(agent, UOGD):
        return uogd_bound(source, rounds, drift, agent.step_size(source))
    number = len(agent.pool(source))
    if isinstance(agent, ATLAS):
        return atlas_bound(source, rounds, drift, number, agent.largest_loss(source))
    return atlas_ada_bound(source, rounds, drift, reusability or 0.0, number)


class _Followed(NamedTuple):
    """Risks (T,) of the learner, cumulative risks (N,) of its base learners, hint gaps, state."""

    risks: FloatArray
    pool: FloatArray
    gaps: float
    state: Any


def _follow(
    agent: Any, source: Source, stream: SimulatedStream, progress: Progress | None
) -> _Followed:
    """Play all rounds, predict first, and integrate the true risks of the models on the way."""
    population = synthetic_problem().population
    state = agent.start(source)
    pooled = isinstance(agent, ATLAS)
    risks, gaps = np.empty(len(stream)), 0.0
    pool = np.zeros(len(state.steps) if pooled else 0)
    for chunk in stream.chunks():
        state, models, bases, gap = _play(agent, source, state, chunk, pooled)
        gaps += gap
        rows = slice(chunk.first, chunk.first + chunk.rounds)
        risks[rows] = (gaussian_risks(population, models) * chunk.priors).sum(axis=1)
        if pooled:
            flat = bases.reshape(-1, *bases.shape[2:])
            by_class = gaussian_risks(population, flat, _POOL_NODES).reshape(*bases.shape[:2], -1)
            pool += np.einsum("tnk,tk->n", by_class, chunk.priors)
        if progress is not None:
            progress(chunk.first + chunk.rounds)
    return _Followed(risks, pool, gaps, state)


def _play(
    agent: Any, source: Source, state: Any, chunk: Chunk, pooled: bool
) -> tuple[Any, Float32Array, Float32Array, float]:
    """The rounds of a chunk: the models that predict them, and the base models."""
    batch, size = source.read(chunk.X), len(chunk.y) // chunk.rounds
    shape = (source.n_classes, source.risk.XT.shape[0])
    models = np.empty((chunk.rounds, *shape), np.float32)
    bases = np.empty((chunk.rounds, len(state.W) if pooled else 0, *shape), np.float32)
    gaps = 0.0
    for i in range(chunk.rounds):
        models[i] = agent.model(source, state)
        if pooled:
            bases[i] = state.W
        before = state
        state = agent.adapt(source, state, batch.rows(slice(i * size, (i + 1) * size)))
        gaps += agent.hint_gap(before, state) or 0.0
    return state, models, bases, gaps


def _pool(agent: ATLAS, source: Source, found: _Followed) -> dict[str, Any]:
    return {
        "steps": found.state.steps,
        "cumulative_risks": found.pool,
        "ratio": float(found.risks.sum() / found.pool.min()),
        "rate": agent.rate(source, len(found.risks), len(found.state.steps)),
        "final_weights": agent.weights(source, found.state),
    }


def _mean_pool(pools: list[dict[str, Any]], total: float) -> dict[str, Any]:
    """The pool over all streams, as plain lists; one step size has to be best for all of them."""
    steps = pools[0]["steps"]
    risks = np.mean([pool["cumulative_risks"] for pool in pools], axis=0)
    best = int(risks.argmin())
    return {
        "steps": steps.tolist(),
        "cumulative_risks": risks.tolist(),
        "best_step": float(steps[best]),
        "ratio": float(total / risks[best]),
        "ratios": [pool["ratio"] for pool in pools],
        "rate": pools[0]["rate"],
        "final_weights": np.mean([pool["final_weights"] for pool in pools], axis=0).tolist(),
    }


def regret_tasks(quick: bool, seeds: int) -> list[dict[str, Any]]:
    """Settings of every call that the evidence needs; each goes to ``perform``.

    Short streams are repeated, so that the noise of their mean is that of the long ones.

    Examples
    --------
    >>> tasks = regret_tasks(quick=True, seeds=1)
    >>> tasks[0]["kind"], tasks[0]["rounds"], tasks[0]["learner"]
    ('regret', 250, 'atlas-theory')
    """
    many = range(min(seeds, 2) if quick else seeds)
    few = range(min(seeds, 1 if quick else 2))
    longest = 2000 if quick else 16_000
    tasks = []
    for name in LEARNERS[:4]:
        tasks += _growing(name, longest, many, _BATCH)
    tasks += _growing(ESTIMATED, longest, many, _BATCH, REGIMES[:2])
    # UOGD is long on its way to the best fixed model, and its rounds are cheap: larger T.
    static = longest if quick else 4 * longest
    tasks += _growing(STATIC, static, few, _BATCH, STATIC_REGIMES, static // 16)
    tasks += _growing("atlas-theory", longest, few, _LARGE_BATCH)
    tasks += _growing("atlas-ada-theory", longest // 4, few, _BATCH)
    tasks += [
        _task(500 if quick else _PAPER_ROUNDS, environment, "paper", name, seed, "sampled")
        for environment in ("lin", "squ", "sin", "ber")
        for name in ("atlas-theory", "atlas-paper")
        for seed in few
    ]
    return tasks + lemma_tasks(quick, len(many))


def _growing(
    name: str,
    longest: int,
    seeds: range,
    batch_size: int,
    regimes: Sequence[tuple[str, str]] = REGIMES,
    shortest: int = 0,
) -> list[dict[str, Any]]:
    """One learner in every regime, for all T from the shortest to the longest."""
    return [
        {
            **_task(rounds, environment, variation, name, seed, "known"),
            "batch_size": batch_size,
            "repeats": min(8, max(1, longest // (4 * rounds))),
        }
        for environment, variation in regimes
        for rounds in _ROUNDS
        for seed in seeds
        if shortest <= rounds <= longest
    ]


def _task(
    rounds: int, environment: str, variation: str, learner: str, seed: int, offline: str
) -> dict[str, Any]:
    return {
        "kind": "regret",
        "rounds": rounds,
        "environment": environment,
        "variation": variation,
        "learner": learner,
        "seed": seed,
        "offline": offline,
        "batch_size": _BATCH,
        "repeats": 1,
    }


def perform(settings: dict[str, Any], progress: Progress | None = None) -> dict[str, Any]:
    """Do one call of ``regret_tasks``: plain settings in, a plain dict out."""
    rest = {name: value for name, value in settings.items() if name != "kind"}
    kind = settings["kind"]
    if kind == "regret":
        return run_regret(**rest, progress=progress)
    return lemma1(**rest) if kind == "lemma1" else lemma2(**rest)


@dataclass(frozen=True)
class RegretRun:
    """A measurement of regret, or of a lemma, for the runner; its settings as JSON text.

    Examples
    --------
    >>> run = RegretRun.of({"kind": "lemma1", "seed": 0})
    >>> run.settings()["seed"], run.label
    (0, 'regret: kind lemma1, seed 0')
    """

    text: str

    @classmethod
    def of(cls, settings: dict[str, Any]) -> RegretRun:
        """Make it from settings that ``perform`` understands."""
        return cls(json.dumps(settings, sort_keys=True))

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        return "regret: " + ", ".join(f"{name} {value}" for name, value in self.settings().items())

    @property
    def alike(self) -> str:
        """The same measurement with other seeds."""
        return str({name: value for name, value in self.settings().items() if name != "seed"})

    @property
    def group(self) -> str:
        """All of them share the known problem."""
        return "regret"

    @property
    def kernels(self) -> str:
        """Compiled kernels that the learner calls."""
        return "implicit" if "atlas-ada" in self._learner else "explicit"

    @property
    def total_rounds(self) -> int:
        """Rounds of all streams."""
        found = self.settings()
        return int(found.get("rounds", 0) * found.get("repeats", 1))

    @property
    def _learner(self) -> str:
        return str(self.settings().get("learner", ""))

    def settings(self) -> dict[str, Any]:
        """What it was made from."""
        return dict(json.loads(self.text))

    def guess(self, prepared: Any = None) -> float:
        """Seconds that it may take."""
        known = [name for name in _GUESSES if self._learner.startswith(name)]
        if not known:
            return _LEMMA
        return _START + 1e-3 * _GUESSES[max(known, key=len)] * self.total_rounds

    def prepare(self, tasks: Sequence[RegretRun]) -> KnownProblem:
        """Make the known problem and its clairvoyant."""
        return known_problem()

    def perform(self, prepared: KnownProblem, progress: Progress | None = None) -> dict[str, Any]:
        """Measure."""
        adopt(prepared)
        began = time.perf_counter()
        found = perform(self.settings(), progress)
        return {**found, "seconds": time.perf_counter() - began}
