"""Trackers on the paper's synthetic problem, beside its best hint and f with the true mix.

``python -m benchmarks.tracking [--rounds T] [--learner NAME,...] [--rows N,...] [--seed S]`` prints
average errors in %. f is an ordinary logistic regression with an intercept, fitted on the offline
set; "f + true mix" reweights it with the mix of every round.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift.datasets import Dataset, load_dataset
from priorshift.experiments.paper import TABLE_2
from priorshift.learners import as_learner
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Source, build_source

SHIFTS = ("lin", "squ", "sin", "ber")


def calibrated_source(data: Dataset) -> Source:
    """A logistic regression with an intercept; classes were drawn alike, so the prior is known."""
    model = LogisticRegression(max_iter=1000).fit(data.X0, data.y0)
    return build_source(model, data.X0, data.y0, prior=np.full(3, 1 / 3))


def known_mix_error(source: Source, stream: SimulatedStream) -> float:
    """Error in % of f reweighted with the true mix of every round."""
    wrong = 0
    for chunk in stream.chunks():
        mixes = np.repeat(chunk.priors, stream.batch_size, axis=0)
        guesses = (source.read(chunk.X).proba / source.prior * mixes).argmax(axis=1)
        wrong += np.count_nonzero(guesses != chunk.y)
    return 100 * wrong / (len(stream) * stream.batch_size)


def main(argv: list[str] | None = None) -> int:
    """Print one line for each batch size, shift and learner."""
    parser = argparse.ArgumentParser(prog="benchmarks.tracking", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--learner", default="tracker")
    parser.add_argument("--rows", default="1,10,100")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    data = load_dataset("synthetic")
    print("rows shift learner       before   after  f + true mix  paper's best hint  ATLAS")
    with threadpool_limits(1):
        source = calibrated_source(data)
        for rows in map(int, args.rows.split(",")):
            for shift in SHIFTS:
                rng = np.random.default_rng(args.seed)
                priors = shift_by_name(shift).priors(data.mu1, data.mu2, args.rounds, rng)
                stream = SimulatedStream(data.population, priors, rows, args.seed)
                known = known_mix_error(source, stream)
                hints = {k: cell.mean for k, cell in TABLE_2.get(rows, {}).get(shift, {}).items()}
                atlas = hints.pop("none", np.nan)
                best = min(hints.values(), default=np.nan)
                for name in args.learner.split(","):
                    before, after = (
                        evaluate(as_learner(name), source, stream, protocol=protocol).error
                        for protocol in ("predict-first", "adapt-first")
                    )
                    print(
                        f"{rows:4} {shift:5} {name:12} {before:7.2f} {after:7.2f} {known:13.2f} "
                        f"{best:18.2f} {atlas:6.2f}",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
