"""Coverage of the prior's intervals, accuracy without labels: ``python -m benchmarks.insight``."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.digits import digits_dataset
from priorshift.datasets.files import ORIGINS, named_file
from priorshift.monitoring import (
    batch_prior_interval,
    effective_size,
    estimate_accuracy,
    estimate_prior,
    prior_interval,
)
from priorshift.monitoring.performance import reweighted
from priorshift.simulation.streams import PoolPopulation, Population
from priorshift.source import Source, build_source
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities

LEVELS = (0.8, 0.9, 0.95)
TRAIN, HELD_OUT = 3000, 6000


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
        worth, repeats = effective_size(weights), shares // size
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


def names() -> list[str]:
    """Synthetic, digits, and every file in the data folder."""
    return ["synthetic", "digits", *(n for n in ORIGINS if named_file(n).exists())]


def problem(data: Dataset, seed: int) -> Source:
    """A model and its held-out set, split at random; small parts of the large data sets."""
    order = np.random.default_rng(seed).permutation(len(data.y0))[: TRAIN + HELD_OUT]
    X, y = data.X0[order], data.classes[data.y0[order]]
    half = min(TRAIN, len(y) // 2)
    if data.probabilities:
        plain = ProbabilityModel(classes=data.classes.tolist())
        return build_source(plain, X[half:], y[half:], features=log_probabilities)
    model = LogisticRegression(max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged does not matter here
        model.fit(X[:half], y[:half])
    return build_source(model, X[half:], y[half:])


def all_rows(population: Population, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Every row of a pool, or many rows where there is no end of them, and their labels."""
    if isinstance(population, PoolPopulation):
        return population.X, population.y
    y = np.arange(60_000) % population.n_classes
    return population.draw(y, rng), y


class Window(NamedTuple):
    """What one window shows: all in shares of rows."""

    truth: float
    error: float
    draw: float
    held: bool
    recall: float


def window(
    source: Source, population: Population, every: tuple, rows: int, rng: np.random.Generator
) -> Window:
    """Estimate the accuracy of one window of a new prior, and compare.

    ``every`` are f0's probabilities and the labels of all rows that can be drawn: the accuracy of
    the window's rule on them, weighed by the prior, is what that of the window is drawn from.
    """
    mu = rng.dirichlet(np.full(source.n_classes, 0.7))
    y = rng.choice(source.n_classes, rows, p=mu)
    proba = source.model.predict_proba(population.draw(y, rng))
    prior = estimate_prior(source, proba)
    adapted = reweighted(source, prior, proba)
    report = estimate_accuracy(source, prior, rows, rows=adapted)
    truth = (adapted.argmax(axis=1) == y).mean()
    good = reweighted(source, prior, every[0]).argmax(axis=1) == every[1]
    recall = np.bincount(every[1], weights=good) / np.bincount(every[1])
    expected = float(mu @ recall)
    common = mu >= 0.05
    return Window(
        truth=truth,
        error=report.accuracy - truth,
        draw=abs(truth - expected),
        held=report.low <= expected <= report.high,
        recall=np.abs(report.recall - recall)[common].mean(),
    )


def accuracy(splits: int, windows: int, rows: int) -> None:
    print(f"Accuracy without labels: {windows} windows of {rows} rows, a new prior in each,")
    print(f"for each of {splits} random splits into training rows and held-out set, in points")
    print("(mean and mean absolute error against the window's labels; the largest mean of a split;")
    print("the absolute error that the draw of the window alone causes; how often the 90 %")
    print("interval holds the expected accuracy)")
    print(
        f"{'data':24} {'held-out':>8} {'true':>6} {'mean':>6} {'split':>6} {'abs.':>6} {'draw':>6}"
        f" {'held':>6} {'recall':>7}"
    )
    for name in names():
        seen: list[list[Window]] = []
        data = load_dataset(name)
        for split in range(splits):
            rng = np.random.default_rng([3, split])
            if name == "digits":  # so few rows that those of the stream are drawn anew, too
                data = digits_dataset(split)
            source = problem(data, split)
            X, y = all_rows(data.population, rng)
            every = source.model.predict_proba(X), y
            seen.append([window(source, data.population, every, rows, rng) for _ in range(windows)])
        found = Window(*np.moveaxis(np.array(seen, dtype=np.float64), 2, 0))
        by_split = found.error.mean(axis=1)
        print(
            f"{name:24} {len(source.labels):8} {100 * found.truth.mean():6.1f} "
            f"{100 * found.error.mean():+6.2f} {100 * by_split[np.abs(by_split).argmax()]:+6.2f} "
            f"{100 * np.abs(found.error).mean():6.2f} {100 * found.draw.mean():6.2f} "
            f"{100 * found.held.mean():6.0f} {100 * found.recall.mean():7.2f}"
        )
        sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.insight", description=__doc__)
    parser.add_argument("--shares", type=int, default=3000, help="shares for each coverage")
    parser.add_argument("--windows", type=int, default=12, help="windows of each split")
    parser.add_argument("--splits", type=int, default=8, help="splits of each data set")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with threadpool_limits(1):
        coverage(args.shares, hold=1000)
        tracked(3 * args.shares, hold=1000)
        accuracy(args.splits, args.windows, rows=1000)
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
