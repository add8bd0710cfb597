"""Coverage of the intervals of class priors: ``python -m benchmarks.insight``.

``python -m benchmarks.insight past`` compares what ``history_`` says of a past batch with what the
classifier said right after it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from priorshift import LabelShiftClassifier
from priorshift.monitoring import batch_prior_interval, prior_interval
from priorshift.monitoring.metrics import kish
from priorshift.source import Source, build_source
from priorshift.source.model import LinearModel

LEVELS = (0.8, 0.9, 0.95)
# Of each past: classes, held-out rows, rows a batch.
PAST = (
    (2, 1000, 20),
    (3, 1000, 20),
    (3, 5000, 20),
    (3, 5000, 200),
    (10, 1000, 20),
    (10, 5000, 200),
)


class Gauss(NamedTuple):
    """Gaussian classes in four dimensions, and their exact posterior for equal shares."""

    centres: np.ndarray

    def draw(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.centres[labels] + rng.normal(size=(len(labels), self.centres.shape[1]))

    def proba(self, X: np.ndarray) -> np.ndarray:
        return softmax(X @ self.centres.T - 0.5 * (self.centres**2).sum(axis=1), axis=1)

    def source(self, hold: int, rng: np.random.Generator) -> Source:
        size = len(self.centres)
        labels = np.arange(hold) % size
        weights = np.column_stack([self.centres, -0.5 * (self.centres**2).sum(axis=1)])
        X = np.column_stack([self.draw(labels, rng), np.ones(hold)])
        return build_source(LinearModel(weights, np.arange(size)), X, labels, intercept=False)


def random_prior(size: int, rng: np.random.Generator) -> np.ndarray:
    """A prior with small shares, and in half of the cases a class that is absent."""
    mu = rng.dirichlet(np.full(size, 0.7))
    if rng.random() < 0.5:
        mu[rng.integers(size)] = 0.0
    return mu / mu.sum()


def discounted(proba: np.ndarray, source: Source, weights: np.ndarray) -> np.ndarray:
    """The prior that makes the discounted likelihood largest, by EM."""
    ratios = proba / source.prior
    mu = source.prior.copy()
    for _ in range(200):
        mu = mu * ((weights / (ratios @ mu)) @ ratios)
    return mu


def coverage(shares: int, hold: int) -> None:
    print(
        "Coverage in % of intervals for the class prior: shares above 0, shares of 0, worst class"
    )
    print(f"(held-out set of {hold} rows, drawn anew each time with classes, prior and rows;")
    print(f"{shares} shares of each batch's row, {3 * shares} of each tracker's)")
    header = "".join(f"{f'{level:.0%}':>22}" for level in LEVELS)
    print(f"{'interval':10} {'K':>3} {'N':>5}{header}")
    rng = np.random.default_rng(0)
    for size in (2, 5, 10):
        repeats = shares // size
        for rows in (10, 100, 1000):
            tally = {level: (np.zeros(size), []) for level in LEVELS}
            for _ in range(repeats):
                population = Gauss(1.2 * rng.normal(size=(size, 4)))
                source, mu = population.source(hold, rng), random_prior(size, rng)
                proba = population.proba(population.draw(rng.choice(size, rows, p=mu), rng))
                for level, (all_hits, pairs) in tally.items():
                    low, high = batch_prior_interval(source, proba, level)
                    hit = (low <= mu) & (mu <= high)
                    all_hits += hit
                    pairs.append((hit, mu == 0))
            _print_coverage("batch", size, rows, tally, repeats)


def tracked(shares: int, hold: int) -> None:
    """The same for evidence that is discounted by a rate a row, on a prior that stands still."""
    rng = np.random.default_rng(1)
    for size, rate in ((3, 0.02), (3, 0.005), (10, 0.005)):
        weights = (1 - rate) ** np.arange(int(6 / rate))
        worth, repeats = kish(weights), shares // size
        tally = {level: (np.zeros(size), []) for level in LEVELS}
        for _ in range(repeats):
            population = Gauss(1.5 * rng.normal(size=(size, 4)))
            source, mu = population.source(hold, rng), random_prior(size, rng)
            rows = population.draw(rng.choice(size, len(weights), p=mu), rng)
            prior = discounted(population.proba(rows), source, weights / weights.sum())
            for level, (all_hits, pairs) in tally.items():
                low, high = prior_interval(source, prior, worth, level)
                hit = (low <= mu) & (mu <= high)
                all_hits += hit
                pairs.append((hit, mu == 0))
        _print_coverage("tracker", size, round(worth), tally, repeats)
    print()


def _print_coverage(name: str, size: int, rows: int, tally: dict, repeats: int) -> None:
    cells = []
    for all_hits, pairs in tally.values():
        hits = np.concatenate([hit for hit, _ in pairs])
        zero = np.concatenate([is_zero for _, is_zero in pairs])
        worst = 100 * all_hits.min() / repeats
        cells.append(f"{100 * hits[~zero].mean():8.1f} {100 * hits[zero].mean():6.1f} {worst:6.1f}")
    print(f"{name:10} {size:3} {rows:5}" + "".join(cells))
    sys.stdout.flush()


def past(rounds: int) -> None:
    """Gaps between the ends of 90 % intervals, and accuracies, of now and of the history."""
    print("What history_ says of past batches, against what was said right after each, in points")
    print(f"{'':16}   ends of the intervals   mean width       accuracy")
    print("  K held-out rows   mean    90%  worst    then    now   mean  worst")
    for size, hold, rows in PAST:
        rng = np.random.default_rng([size, hold, rows])
        population = Gauss(1.2 * rng.normal(size=(size, 4)))
        labels = np.arange(hold) % size
        proba = population.proba(population.draw(labels, rng))
        clf = LabelShiftClassifier.from_probabilities(proba, labels)
        ends, accuracies = [], []
        for t in range(rounds):
            mu = np.full(size, 0.1 / size)
            mu[3 * t // rounds % size] += 0.9
            drawn = population.draw(rng.choice(size, rows, p=mu), rng)
            clf.adapt(population.proba(drawn))
            ends.append(np.stack(clf.prior_interval(0.9)))
            accuracies.append(clf.performance().accuracy.value)
        frame, then = clf.history_.iloc[:-1], np.array(ends)[:-1]
        now = np.stack([frame.filter(like=f"{end}_").to_numpy() for end in ("low", "high")], axis=1)
        gaps = 100 * np.abs(now - then)
        widths = (100 * np.diff(told, axis=1).mean() for told in (then, now))
        apart = 100 * np.abs(frame["accuracy"] - accuracies[:-1])
        figures = (gaps.mean(), np.quantile(gaps, 0.9), gaps.max(), *widths)
        print(
            f"{size:3} {hold:8} {rows:4}"
            + "".join(f" {figure:6.1f}" for figure in (*figures, apart.mean(), apart.max())),
            flush=True,
        )


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.insight", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("coverage", "past"), default="coverage")
    parser.add_argument("--rounds", type=int, default=200, help="batches of each past")
    parser.add_argument("--shares", type=int, default=3000, help="shares for each coverage")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with threadpool_limits(1):
        if args.part == "past":
            past(args.rounds)
        else:
            coverage(args.shares, hold=1000)
            tracked(3 * args.shares, hold=1000)
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
