"""Performance without labels against the truth: ``python -m benchmarks.performance``.

Every file of the data folder is put together and split anew for each seed: rows to train on, a
held-out set, and a pool that windows are drawn from, so that label shift holds. The class prior
drifts; ``auto`` adapts to windows of 1,000 rows, and ``performance()`` is asked after each. With
``--known-prior`` it is told the class prior that each window was drawn with: what is left is the
error of the held-out set. With ``--as-it-is`` the model's own predictions are judged.

``least`` is what that ratio would be if the class prior were known and nothing but the draw of the
held-out set and of the window made errors: held-out rows are fewer than they seem where a class
that is rare there has become common.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift import LabelShiftClassifier
from priorshift.datasets import load_dataset
from priorshift.datasets.files import ORIGINS, named_file
from priorshift.monitoring.metrics import (
    Form,
    Weighed,
    accuracy,
    call_forms,
    log_loss,
    ranking,
)
from priorshift.monitoring.performance import Performance

METRICS = ("accuracy", "f1", "recall", "auc", "log_loss")
ROWS = 1000
TRAIN, HELD_OUT, POOL = 3000, 10_000, 8000
RESAMPLES = 5
# Of rarer classes a window says too little to compare with.
FEWEST = 20
EVERY = 2  # windows from one class prior to the next
# Of a class's rows in the pool, at most this share is in a window: no row is in it twice.
MOST = 0.9


class Problem(NamedTuple):
    """A model with its held-out set, rows to draw windows from, and the class priors to come."""

    clf: LabelShiftClassifier
    X: np.ndarray
    y: np.ndarray
    priors: np.ndarray


def drift(prior: np.ndarray, windows: int, rng: np.random.Generator) -> np.ndarray:
    """Class priors (windows, K) on the way from one to the next, all drawn around the source's."""
    ends = [prior]
    for _ in range(-(-windows // EVERY)):
        mu = prior * rng.gamma(1.0, size=len(prior))
        ends.append(mu / mu.sum())
    places = np.arange(1, windows + 1) / EVERY
    left = np.minimum(places.astype(int), len(ends) - 2)
    part = (places - left)[:, None]
    return (1 - part) * np.array(ends)[left] + part * np.array(ends)[left + 1]


def real(name: str, seed: int, windows: int, learner: str, safety: str = "on") -> Problem:
    """One split of a file."""
    data = load_dataset(name)
    X = np.concatenate([data.X0, data.population.X])
    y = np.concatenate([data.y0, data.population.y])
    rng = np.random.default_rng([7, seed])
    order = rng.permutation(len(y))
    held = min(HELD_OUT, len(y) // 2)
    train = 0 if data.probabilities else min(TRAIN, len(y) // 6)
    parts = np.split(order, [train, train + held])
    X_held, y_held = X[parts[1]], y[parts[1]]
    settings = {"learner": learner, "safety": safety}
    if data.probabilities:
        clf = LabelShiftClassifier.from_probabilities(X_held, y_held, **settings)
    else:
        model = LogisticRegression(max_iter=100).fit(X[parts[0]], y[parts[0]])
        clf = LabelShiftClassifier(model, **settings).fit(X_held, y_held)
    rest = parts[2][:POOL]
    priors = drift(clf.source_.prior, windows, rng)
    return Problem(clf, X[rest], y[rest], within(priors, np.bincount(y[rest]) * MOST / ROWS))


def within(priors: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Class priors with no share above its most; what is over goes to the others, in proportion."""
    for _ in range(len(most)):
        free = priors < most
        left = 1.0 - (~free * most).sum(axis=1, keepdims=True)
        others = (free * priors).sum(axis=1, keepdims=True)
        priors = np.where(free, priors * left / others, most)
    return priors


def rare(seed: int, windows: int, learner: str, safety: str = "on") -> Problem:
    """Two Gaussian classes with an AUC of 0.97, 3 % of the second; it drifts from 1 to 15 %."""
    rng = np.random.default_rng([8, seed])

    def draw(n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        y = (rng.random(n) < share).astype(int)
        X = rng.normal(size=(n, 6)) + 1.7 * y[:, None] * np.array([1, 1, 0.5, 0.5, 0.2, 0])
        return X, y

    X, y = draw(10_000, 0.03)
    model = LogisticRegression().fit(X, y)
    clf = LabelShiftClassifier(model, learner=learner, safety=safety).fit(*draw(10_000, 0.03))
    share = np.linspace(0.01, 0.15, windows)
    X0, y0 = draw(100_000, 0.0)
    X1, y1 = draw(20_000, 1.0)
    return Problem(clf, np.r_[X0, X1], np.r_[y0, y1], np.column_stack([1 - share, share]))


def truth(proba: np.ndarray, y: np.ndarray, mu: np.ndarray | None = None) -> dict:
    """Metrics of labelled rows, each as values and ends (3, M); weighed by a class prior or not."""
    K = proba.shape[1]
    shares = np.bincount(y, minlength=K) / len(y) if mu is None else mu
    found = Performance(Weighed.of(proba, y, shares), np.zeros((K, K)), np.arange(K))
    return {
        name: np.array([np.atleast_1d(end) for end in getattr(found, name)]) for name in METRICS
    }


def window(
    problem: Problem, mu: np.ndarray, rng: np.random.Generator, again: bool = False
) -> np.ndarray:
    """Numbers of the rows of a window: of each class without replacement, while there are some.

    With ``again`` rows are drawn with replacement: then windows differ from the pool as they do,
    drawn without, from what the pool was drawn from.
    """
    counts = rng.multinomial(ROWS, mu)
    rows = []
    for k, count in enumerate(counts):
        own = np.flatnonzero(problem.y == k)
        rows.append(rng.choice(own, count, replace=again or count > len(own)))
    return rng.permutation(np.concatenate(rows))


class Seen(NamedTuple):
    """One metric of one window (and class): split, errors, and whether the two intervals held.

    ``drawn`` and ``both`` are standard deviations: of the window's draw, and with the held-out
    set's.
    """

    split: float
    error: float
    draw: float
    held: float
    held_rows: float
    drawn: float
    both: float


def judged_by(found: Performance, mu: np.ndarray) -> Performance:
    """The same of the same predictions, under a class prior that is known."""
    held = Weighed.of(found.held.proba, found.held.labels, mu)
    return replace(found, held=held, covariance=np.zeros((len(mu),) * 2), size=np.inf)


def deviations(found: Performance) -> dict[str, np.ndarray]:
    """Standard deviations (2, M) of each metric's error where the class prior is known.

    First by the draw of a window alone, then with that of the held-out set.
    """
    held, none = found.held, np.zeros_like(found.covariance)
    calls = call_forms(held)
    forms: dict[str, Form] = {
        "accuracy": accuracy(held),
        "f1": calls.overlap,
        "recall": calls.recall,
        "auc": ranking(held)[0],
        "log_loss": log_loss(held),
    }
    deviations = {}
    for name, form in forms.items():
        own, both = form.variance(held, none), form.variance(held, none, ROWS)
        # F1 is 2 J / (1 + J) of the overlap J.
        scale = 2.0 / (1.0 + form.value) ** 2 if name == "f1" else 1.0
        deviations[name] = scale * np.sqrt([both - own, both])
    return deviations


def watched(
    problem: Problem, seed: int, args: argparse.Namespace
) -> Iterator[tuple[str, Seen, float]]:
    """Adapt to all windows, and compare; also the seconds that the answer took."""
    rng, clf = np.random.default_rng([9, seed]), problem.clf
    for mu in problem.priors:
        rows = window(problem, mu, rng)
        y, proba = problem.y[rows], clf.adapt_predict_proba(problem.X[rows])
        began = time.process_time()
        found, wide = clf.performance(0.9), clf.performance(0.9, rows=ROWS)
        every = clf.predict_proba(problem.X)
        if args.as_it_is:
            found, wide = found.unadapted, wide.unadapted
            proba, every = (clf._read(X).f0_proba for X in (problem.X[rows], problem.X))
        if args.known_prior:
            found, wide = judged_by(found, mu), judged_by(wide, mu)
        for name in METRICS:
            getattr(found, name)
        seconds = time.process_time() - began
        answers = [
            {name: np.array([np.atleast_1d(end) for end in getattr(one, name)]) for name in METRICS}
            for one in (found, wide)
        ]
        here, expected = truth(proba, y), truth(every, problem.y, mu)
        least_of = deviations(judged_by(found, mu))
        again = []
        for _ in range(RESAMPLES):
            some = window(problem, mu, rng, again=True)
            again.append(truth(every[some], problem.y[some]))
        common = np.bincount(y, minlength=len(mu)) >= FEWEST
        for name in METRICS:
            value, low, high = answers[0][name]
            middle, least, most = expected[name]
            draws = np.nanmean([np.abs(one[name][0] - middle) for one in again], axis=0)
            # Two intervals, squared and added: the pool is finite as the held-out set is.
            low = value - np.hypot(value - low, most - middle)
            high = value + np.hypot(high - value, middle - least)
            _, first, last = answers[1][name]
            for k in np.flatnonzero(common) if len(value) > 1 else [0]:
                own = here[name][0, k]
                seen = Seen(
                    seed,
                    value[k] - own,
                    draws[k],
                    low[k] <= middle[k] <= high[k],
                    first[k] <= own <= last[k],
                    *least_of[name][:, k],
                )
                yield name, seen, seconds


def report(name: str, problems: Iterator[Problem], args: argparse.Namespace) -> None:
    """One line for each metric: errors in points (nats for the log-loss), coverage in %."""
    tally: dict[str, list[Seen]] = defaultdict(list)
    times = []
    for seed, problem in enumerate(problems):
        for metric, seen, seconds in watched(problem, seed, args):
            tally[metric].append(seen)
            times.append(seconds)
    for metric, all_seen in tally.items():
        found = Seen(*np.array(all_seen, dtype=float).T)
        scale = 1.0 if metric == "log_loss" else 100.0
        error, draw = scale * np.abs(found.error).mean(), scale * np.abs(found.draw).mean()
        least = np.nanmean(found.both) / np.nanmean(found.drawn)
        print(
            f"{name:24} {metric:10} {scale * found.error.mean():+8.3f} {error:8.3f} {draw:8.3f} "
            f"{error / draw:6.2f} {ratio_noise(found):5.2f} {least:6.2f} {covered(found)}",
            flush=True,
        )
    every = [seen for all_seen in tally.values() for seen in all_seen]
    took = f"(an answer takes {1e3 * np.mean(times):.0f} ms)"
    found = Seen(*np.array(every, dtype=float).T)
    print(f"{name:24} {'all':10} {took:46} {covered(found)}", flush=True)


def ratio_noise(found: Seen) -> float:
    """The jackknife's standard error of the ratio of errors, over splits."""
    splits = np.unique(found.split)
    left = [found.split != split for split in splits]
    ratios = [np.abs(found.error[rest]).mean() / found.draw[rest].mean() for rest in left]
    return float(np.sqrt(len(splits) - 1) * np.std(ratios)) if len(splits) > 1 else np.nan


def covered(found: Seen) -> str:
    """Coverage of both intervals in %; of the first also its standard error over splits.

    Windows of a split share one held-out set and one pool, and so much of their errors.
    """
    own = [found.held[found.split == split].mean() for split in np.unique(found.split)]
    error = 100 * np.std(own, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
    return f"{100 * found.held.mean():6.0f} {error:5.1f} {100 * found.held_rows.mean():6.0f}"


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.performance", description=__doc__)
    parser.add_argument("--splits", type=int, default=8, help="splits of each file")
    parser.add_argument("--windows", type=int, default=4, help="windows of each split")
    parser.add_argument("--learner", default="auto")
    parser.add_argument(
        "--safety", choices=("on", "off"), default="on", help="off: without the rehearsal of fit"
    )
    parser.add_argument("--known-prior", action="store_true", help="judge by each window's own")
    parser.add_argument("--as-it-is", action="store_true", help="judge the unadapted model")
    parser.add_argument("--data", nargs="*", help="files; by default all, and the rare class")
    args = parser.parse_args(argv)
    names = args.data or ["rare", *(n for n in ORIGINS if named_file(n).exists())]
    print(
        f"{args.splits} splits, {args.windows} windows of {ROWS} rows, safety {args.safety}"
        f"{', class prior known' * args.known_prior}{', model as it is' * args.as_it_is}; "
        "in points (log-loss: nats)"
    )
    print("mean: of the errors; abs.: mean absolute error; draw: what drawing the window causes;")
    print("least: the ratio by the draws of held-out set and window alone, the class prior known;")
    print("held: % of 90 % intervals that hold the expected value, as far as the pool tells it;")
    print("+-: standard errors, as splits differ;")
    print("rows: % of those with rows=1000 that hold the window's own value")
    print(
        f"{'data':24} {'metric':10} {'mean':>8} {'abs.':>8} {'draw':>8} {'ratio':>6}"
        "    +-  least   held    +-   rows"
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a model has not converged does not matter here
        for name in names:
            seeds = range(args.splits)
            make = rare if name == "rare" else lambda *rest, name=name: real(name, *rest)
            problems = (make(seed, args.windows, args.learner, args.safety) for seed in seeds)
            report(name, problems, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
