"""What sketches of the offline set cost in error, and what they save in time.

``python -m benchmarks.sketches --rounds T --shifts lin,squ`` prints Table 1's errors with the
10,000 rows of the synthetic problem, and how far each sketch moves them; ``--scale`` prints instead
how a round's time depends on the number of rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rounds import problem
from benchmarks.timing import compare
from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.offline import offline_stage, paper_settings
from priorshift.learners import ATLAS, UOGD, as_learner
from priorshift.risk import Blocks, Coreset, Herding, RiskData, Softmax, sketch_error
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Batch, Source


@dataclass(frozen=True)
class RandomSubset:
    """The yardstick: one random stratified block, kept for all rounds."""

    size: int
    seed: int = 0
    name: ClassVar[str] = "random"
    fixed: ClassVar[bool] = True

    def at(self, data: RiskData, t: int) -> RiskData:
        return Blocks(self.size, self.seed).at(data, 0)


KINDS: dict[str, Any] = {kind.name: kind for kind in (RandomSubset, Blocks, Herding, Coreset)}


def error(
    source: Source, dataset: Dataset, shift: str, name: str, rounds: int, sketch: Any
) -> float:
    """Average error in percent of one learner under one shift."""
    priors = shift_by_name(shift).priors(dataset.mu1, dataset.mu2, rounds, np.random.default_rng(0))
    settings = paper_settings(dataset, "paper")
    learner = as_learner(name, horizon=rounds, hint="okm", sketch=sketch, **settings)
    stream = SimulatedStream(dataset.population, priors, batch_size=100, seed=0)
    return evaluate(learner, source, stream).error


def print_errors(args: argparse.Namespace) -> None:
    dataset = load_dataset("synthetic")
    source = offline_stage(dataset)
    print(f"relative errors of risk and gradient, {args.size} of {source.counts.sum()} rows")
    for name in args.sketches:
        began = time.perf_counter()
        found = sketch_error(source.risk, KINDS[name](args.size), Softmax())
        print(f"  {name:8} {found} (with judging {time.perf_counter() - began:.1f} s)")
    print(f"\nerror in % over {args.rounds} rounds of 100, and how far a sketch moves it")
    heads = "".join(f"{name:>24}" for name in args.sketches)
    print(f"{'learner':10} {'shift':5} {'all rows':>8}{heads}   (seeds {args.seeds})")
    for learner in args.learners:
        for shift in args.shifts:
            full = error(source, dataset, shift, learner, args.rounds, None)
            row = f"{learner:10} {shift:5} {full:8.2f}"
            for name in args.sketches:
                moved = [
                    error(source, dataset, shift, learner, args.rounds, KINDS[name](args.size, s))
                    - full
                    for s in range(args.seeds)
                ]
                worst = max(moved, key=abs)
                row += f"{fmean(moved):+10.3f} (at most {abs(worst):.3f})".rjust(24)
            print(row, flush=True)


def running(learner: Any, source: Source, batch: Batch) -> Callable[[], object]:
    """Go on from round to round, so that blocks change as they do in a stream."""
    states = [learner.start(source)]

    def play() -> None:
        learner.predict_proba(source, states[0], batch)
        states[0] = learner.adapt(source, states[0], batch)

    return play


def print_scales(args: argparse.Namespace) -> None:
    """Time a round on many rows against one on 10,000, both through the same sketch."""
    pool = tuple(0.1 * 2.0**i for i in range(8))
    few, many = problem(10_000, 12, 3), problem(args.scale, 12, 3)
    print(f"a round with {args.scale} rows against one with 10000, 12 features, {args.size} read")
    for name in args.sketches:
        if name == RandomSubset.name:  # a block holds on to the set that it was cut from
            continue
        sketch = KINDS[name](args.size)
        began = time.perf_counter()
        small, large = few[0].sketched(sketch), many[0].sketched(sketch)
        took = time.perf_counter() - began
        if not sketch.fixed:  # a first walk cuts the blocks
            for source in (small, large):
                for t in range(source.risk.XT.shape[1] // args.size):
                    sketch.at(source.risk, t).means.sum()
        own = None if sketch.fixed else sketch
        for learner in (UOGD(step=0.1, sketch=own), ATLAS(steps=pool, sketch=own)):
            plays = running(learner, large, many[1]), running(learner, small, few[1])
            ratio = compare(*plays, args.seconds)
            print(
                f"  {name:8} {learner.name:6} {1e6 * ratio.subject:7.1f} us "
                f"{1e6 * ratio.yardstick:7.1f} us, ratio {ratio.ratio:.2f}; both built in "
                f"{took:.1f} s; keeps {large.risk.XT.nbytes / 1e6:.2f} of "
                f"{many[0].risk.XT.nbytes / 1e6:.2f} MB",
                flush=True,
            )


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.sketches", description=__doc__)
    words: dict[str, Any] = {"type": lambda text: text.split(",")}
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--shifts", default=["lin", "squ", "sin", "ber"], **words)
    parser.add_argument("--learners", default=["uogd", "atlas"], **words)
    parser.add_argument("--sketches", default=list(KINDS), **words)
    parser.add_argument("--size", type=int, default=1000, help="rows of a sketch")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each sketch")
    parser.add_argument("--scale", type=int, help="time rounds on a problem of that many rows")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each ratio")
    args = parser.parse_args(argv)
    with threadpool_limits(1):
        (print_errors if args.scale is None else print_scales)(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
