"""What it costs to adapt to a batch and then predict its rows, in the place of doing both at once.

Run: python -m benchmarks.same_rows (about a minute)
"""

from __future__ import annotations

import numpy as np

from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.learners import as_learner
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream

ROUNDS, SIZES, SHIFTS, LEARNERS = 2000, (1, 10, 100), ("sin", "ber"), ("auto", "tracker", "flh-ftl")


def errors(name: str, shift: str, size: int, rounds: int) -> tuple[float, float, float]:
    """Error in percent of ``adapt_predict``, of ``adapt`` then ``predict``, of predicting first."""
    data, learner = load_dataset("synthetic"), as_learner(name)
    source = offline_stage(data, calibration=learner.calibration)
    priors = shift_by_name(shift).priors(data.mu1, data.mu2, rounds, rng=0)
    state, wrong = learner.start(source), np.zeros(3)
    for X, y in SimulatedStream(data.population, priors, size, seed=0):
        batch = source.read(X)
        first = learner.predict_proba(source, state, batch)
        state, at_once = learner.adapt_predict(source, state, batch)
        after = learner.predict_proba(source, state, batch)
        wrong += [np.mean(proba.argmax(axis=1) != y) for proba in (at_once, after, first)]
    at_once, after, first = (100 * wrong / rounds).tolist()
    return at_once, after, first


def main() -> None:
    ways = "adapt_predict | adapt, then predict | predict, then adapt"
    print(f"| learner | shift | rows a batch | {ways} |")
    print("|---|---|---|---|---|---|")
    for name in LEARNERS:
        for shift in SHIFTS:
            for size in SIZES:
                found = errors(name, shift, size, ROUNDS)
                cells = " | ".join(f"{error:.2f}" for error in found)
                print(f"| {name} | {shift} | {size} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
