"""The implicit step, sketches of the held-out set, the evaluation loop and sweeps, as ratios."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from benchmarks.figure import Figure
from benchmarks.timing import Ratio, compare, player
from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.learners import ATLAS, UOGD, AtlasAda
from priorshift.risk import Blocks, ImplicitSolver
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import GaussianPopulation, SimulatedStream
from priorshift.source import Batch, Source

_POOL = tuple(0.025 * 2.0**i for i in range(12))


def synthetic(rounds: int = 64, rows: int = 10_000) -> tuple[Source, list[Batch]]:
    """The paper's synthetic problem under the shift squ: its source, and batches of 100."""
    data = load_dataset("synthetic")
    assert isinstance(data.population, GaussianPopulation)
    priors = shift_by_name("squ").priors(data.mu1, data.mu2, rounds, np.random.default_rng(0))
    source = offline_stage(data)
    chunk = next(iter(SimulatedStream(data.population, priors, 100, seed=0).chunks()))
    whole = source.read(chunk.X)
    pieces = [whole.rows(slice(100 * i, 100 * i + 100)) for i in range(chunk.rounds)]
    if rows != 10_000:
        source = _larger(source, rows)
    return source, pieces


def _larger(source: Source, rows: int) -> Source:
    """The same source with its held-out set repeated and jittered to ``rows``."""
    from dataclasses import replace

    from priorshift.risk import RiskData

    rng = np.random.default_rng(0)
    old = source.risk
    times = rows // old.XT.shape[1]
    XT = np.repeat(old.XT, times, axis=1)
    XT += 0.01 * rng.standard_normal(XT.shape, dtype=np.float32)
    return replace(source, risk=RiskData(XT, old.offsets * times))


def implicit_figures(seconds: float) -> Iterator[Figure]:
    """ATLAS-ADA against ATLAS of the same pool; what its implicit step takes and leaves."""
    source, batches = synthetic()
    play = player(AtlasAda(steps=_POOL, hint="okm", solver="exact"), source, batches)
    result = compare(play, player(ATLAS(steps=_POOL), source, batches), seconds)
    solver = _Counting()
    count = player(AtlasAda(steps=_POOL, hint="okm", solver=solver), source, batches)
    solver.seen.clear()
    for _ in range(len(batches)):
        count()
    evaluations = np.mean([found.evaluations for found in solver.seen]) / len(_POOL)
    residual = max(float(found.residual.max()) for found in solver.seen)
    yield Figure(
        "ATLAS-ADA round, N = 12, OKM, 10000 x 12",
        "ATLAS round of the same N",
        6.0,
        result,
        f"{evaluations:.1f} gradient evaluations a base learner, residuals up to {residual:.3e}",
    )


class _Counting(ImplicitSolver):
    """The solver, remembering what it found."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "seen", [])

    seen: list[Any]

    def solve(self, *args: Any, **settings: Any) -> Any:
        found = super().solve(*args, **settings)
        self.seen.append(found)
        return found


def sketch_figures(seconds: float) -> Iterator[Figure]:
    """Rounds on fresh blocks against rounds on the whole set, and on a set of a million rows."""
    source, batches = synthetic()
    kinds: dict[str, Callable[[Any], Any]] = {
        "UOGD": lambda sketch: UOGD(sketch=sketch),
        "ATLAS": lambda sketch: ATLAS(sketch=sketch),
        "ATLAS-ADA": lambda sketch: AtlasAda(steps=_POOL, sketch=sketch, solver="exact"),
    }
    for name, kind in kinds.items():
        yardstick = player(kind(None), source, batches)
        for size, target in ((1000, 0.2), (300, 0.1)):
            subject = player(kind(Blocks(size)), source, batches)
            result = compare(subject, yardstick, seconds)
            yield Figure(f"{name} round, blocks of {size}", "with all 10,000 rows", target, result)
    large, _ = synthetic(rows=1_000_000)
    learner = ATLAS(sketch=Blocks(1000))
    for t in range(1_000_000 // 1000):  # blocks are cut when their round first comes
        learner.risk_data(large, t)
    result = compare(player(learner, large, batches), player(learner, source, batches), seconds)
    yield Figure("ATLAS, blocks of 1000 of 10^6 rows", "of 10^4 rows", 1.1, result)


def loop_figure(seconds: float) -> Figure:
    """The part of an evaluation that is not the learner's own steps."""
    data = load_dataset("synthetic")
    source = offline_stage(data)
    rounds = 2000 if seconds else 60
    priors = shift_by_name("squ").priors(data.mu1, data.mu2, rounds, np.random.default_rng(0))
    outside, all_in_all = [], []
    for _ in range(6):
        began = time.perf_counter()
        found = evaluate(ATLAS(), source, SimulatedStream(data.population, priors, 100, seed=0))
        total = time.perf_counter() - began
        outside.append((total - found.seconds) / rounds)
        all_in_all.append(total / rounds)
    ratio = median(a / b for a, b in zip(outside[1:], all_in_all[1:], strict=True))
    result = Ratio(median(outside[1:]), median(all_in_all[1:]), ratio)
    return Figure("evaluation outside ATLAS's steps, a round", "all of the round", 0.15, result)


def sweep_figure(seconds: float) -> Figure:
    """``priorshift run`` of 8 jobs in two processes and in one."""
    rounds, turns = ("12000", 5) if seconds else ("20", 1)
    words = f"-m priorshift run --learner uogd,atlas --seeds 1 --quiet --json - --rounds {rounds}"

    def run(jobs: int) -> float:
        began = time.perf_counter()
        command = [sys.executable, *words.split(), "--jobs", str(jobs)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    pairs = [(run(2), run(1)) for _ in range(turns)]
    two, one = (median(times) for times in zip(*pairs, strict=True))
    return Figure("priorshift run, 8 jobs, --jobs 2", "--jobs 1", 0.6, Ratio(two, one, two / one))
