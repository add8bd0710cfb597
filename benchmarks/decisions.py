"""Thresholds and prediction sets under label shift: ``python -m benchmarks.decisions``."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from bisect import bisect_left
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.safety.problems import PROBLEMS, world
from priorshift import LabelShiftClassifier
from priorshift.datasets import load_dataset
from priorshift.datasets.files import ORIGINS, named_file
from priorshift.decisions import COVERAGES, best_threshold, set_thresholds
from priorshift.decisions.thresholds import curve_of
from priorshift.simulation.streams import PoolPopulation

# A missed positive costs as much as ten false alarms; actions in rows.
COSTS = np.array([[0.0, 10.0], [1.0, 0.0]])
FIRST, LAST = 0.01, 0.15
ROWS = 1000
LEVEL, FEWEST = 0.9, 100
TRAIN, NEW = 3000, 10_000
RULES = (
    "f0 at 1/2",
    "fixed",
    "adapted at 1/2",
    "today",
    "decide",
    "true prior",
    "oracle",
    "hindsight",
)


def f1(called: np.ndarray, positive: np.ndarray) -> float:
    return 2.0 * (called & positive).sum() / max(called.sum() + positive.sum(), 1)


def cost(called: np.ndarray, positive: np.ndarray) -> float:
    return float(COSTS[called.astype(int), positive.astype(int)].mean())


MEASURES = {"f1": f1, "cost": cost}


class Stream(NamedTuple):
    """A classifier, f0's scores of its held-out set with their labels, and what windows are of."""

    clf: LabelShiftClassifier
    held: tuple[np.ndarray, np.ndarray]
    X: tuple[np.ndarray, np.ndarray]
    score: tuple[np.ndarray, np.ndarray]


def binary(model: str, seed: int, held_out: int, safety: str) -> Stream:
    """3 % positives in training and held-out set; windows are drawn from other rows."""
    found = world(PROBLEMS["binary"], model, seed)
    rng = np.random.default_rng([seed, 1])
    y = found.problem.labels(held_out, rng)
    X = found.X.reshape(2, found.size, -1)
    score = found.P[:, 1].reshape(2, -1)
    order = rng.permutation(found.size)
    counts = np.bincount(y, minlength=2)
    rows = [np.arange(found.size)[order[:n]] for n in counts]
    rest = [order[n:] for n in counts]
    labels = np.repeat([0, 1], counts)
    clf = LabelShiftClassifier(found.model, costs=COSTS, safety=safety)
    clf.fit(np.concatenate([X[k][rows[k]] for k in (0, 1)]), labels)
    held = np.concatenate([score[k][rows[k]] for k in (0, 1)])
    return Stream(
        clf,
        (held, labels == 1),
        (X[0][rest[0]], X[1][rest[1]]),
        (score[0][rest[0]], score[1][rest[1]]),
    )


def thresholds_of(score: Any, positive: Any, weights: Any) -> dict[str, float]:
    return {m: best_threshold(score, positive, weights, m, costs=COSTS) for m in MEASURES}


def weighed(positive: np.ndarray, share: float) -> np.ndarray:
    """Weights of rows that give the positive ones this share."""
    return np.where(positive, share / positive.sum(), (1.0 - share) / (~positive).sum())


def windows(stream: Stream, number: int, rng: np.random.Generator) -> np.ndarray:
    """Measures (windows, 2, rules) of each window of a drifting prior."""
    clf, (held, labels) = stream.clf, stream.held
    pool = np.concatenate(stream.score)
    of_pool = np.arange(len(pool)) >= len(stream.score[0])
    fixed = thresholds_of(held, labels, np.full(len(held), 1.0 / len(held)))
    kept = []
    for share in np.linspace(FIRST, LAST, number):
        positive = np.sort(rng.random(ROWS) < share)
        rows = [
            rng.integers(0, len(x), int(n))
            for x, n in zip(stream.X, (sum(~positive), sum(positive)), strict=True)
        ]
        X = np.concatenate([x[r] for x, r in zip(stream.X, rows, strict=True)])
        raw = np.concatenate([s[r] for s, r in zip(stream.score, rows, strict=True)])
        score = clf.adapt(X).predict_proba(X)[:, 1]
        known = thresholds_of(held, labels, weighed(labels, share))
        oracle = thresholds_of(pool, of_pool, weighed(of_pool, share))
        own = curve_of(raw, positive, np.full(ROWS, 1.0 / ROWS))
        after = {
            "f1": own.thresholds[own.f_beta(1.0).argmax()],
            "cost": own.thresholds[own.cost(COSTS).argmin()],
        }
        decided = clf.decide(X) == 1
        kept.append(
            [
                [
                    measure(called, positive)
                    for called in (
                        raw >= 0.5,
                        raw >= fixed[name],
                        score >= 0.5,
                        score >= clf.threshold_for(name),
                        decided,
                        raw >= known[name],
                        raw >= oracle[name],
                        raw >= after[name],
                    )
                ]
                for name, measure in MEASURES.items()
            ]
        )
    return np.array(kept)


def thresholds(models: list[str], number: int, seeds: int, held_out: int) -> None:
    print(f"Thresholds: {FIRST:.0%} to {LAST:.0%} positives (3 % in the held-out set of {held_out}")
    print(f"rows), {number} windows of {ROWS} rows; means over windows and {seeds} problems.")
    print(
        "Called positive: f0's score at 1/2, and at the threshold that is best on the held-out set"
    )
    print("(fixed); the adapted score at 1/2, at threshold_for (today), and by decide; f0's score")
    print("where the held-out set says under the true prior, where 10,000 rows of each class say")
    print("under it (oracle), and where the window's own labels say (hindsight). Closed: the part")
    print("of the gap between fixed and oracle; of true: between fixed and true prior.")
    head = "".join(f"{rule:>15}" for rule in RULES)
    print(f"{'model':12} {'safety':7} {'':5}{head} {'closed':>7} {'decide':>7} {'of true':>8}")
    for model, safety in product(models, ("on", "off")):
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng([seed, 2])
            found.append(windows(binary(model, seed, held_out, safety), number, rng).mean(axis=0))
        for name, row in zip(MEASURES, np.mean(found, axis=0), strict=True):
            at = dict(zip(RULES, row, strict=True))
            gap, known = at["oracle"] - at["fixed"], at["true prior"] - at["fixed"]
            cells = "".join(f"{value:15.3f}" for value in row)
            closed, decided = at["today"] - at["fixed"], at["decide"] - at["fixed"]
            print(
                f"{model:12} {safety:7} {name:5}{cells} {100 * closed / gap:6.0f}% "
                f"{100 * decided / gap:6.0f}% {100 * closed / known:7.0f}%"
            )
        sys.stdout.flush()
    print()


class Problem(NamedTuple):
    """A classifier, the held-out rows of each class, and rows of each class to draw from."""

    clf: LabelShiftClassifier
    counts: np.ndarray
    X: np.ndarray
    y: np.ndarray


class Pool(NamedTuple):
    """A model, and rows that it was not fitted on."""

    model: Any
    X: np.ndarray
    y: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def pool_of(name: str) -> Pool:
    """All rows of a file in one order, the first of them for the model."""
    data = load_dataset(name)
    rng = np.random.default_rng(3)
    if isinstance(data.population, PoolPopulation):
        X = np.concatenate([data.X0, data.X1])
        y = np.concatenate([data.y0, data.y1])
    else:
        y = rng.integers(0, data.n_classes, 20_000)
        X = data.population.draw(y, rng)
    order = rng.permutation(len(y))
    if data.probabilities:
        return Pool(None, X[order], y[order])
    train, rest = np.split(order, [min(TRAIN, len(y) // 3)])
    return Pool(LogisticRegression(max_iter=100).fit(X[train], y[train]), X[rest], y[rest])


def dealt(pool: Pool, held_out: int, rng: np.random.Generator) -> Problem:
    """Rows dealt anew: to the held-out set and to streams."""
    order = rng.permutation(len(pool.y))
    held, new = np.split(order, [min(held_out, len(order) // 2)])
    X, y, new = pool.X[held], pool.y[held], new[:NEW]
    if pool.model is None:
        labels = np.arange(pool.n_classes)
        clf = LabelShiftClassifier.from_probabilities(X, y, classes=labels)
    else:
        clf = LabelShiftClassifier(pool.model).fit(X, y)
    counts = np.bincount(y, minlength=pool.n_classes)
    return Problem(clf, counts, pool.X[new], pool.y[new])


def shifts(K: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """No class more common than others, some far more than others, one nearly alone."""
    alone = np.full(K, 0.1 / (K - 1))
    alone[0] = 0.9
    return {"even": np.full(K, 1.0 / K), "uneven": rng.dirichlet(np.full(K, 0.3)), "one": alone}


class Covered(NamedTuple):
    """Coverage of each class, and of all rows together; the mean number of classes in a set."""

    by_class: np.ndarray
    all_rows: float
    size: float


def covered(sets: np.ndarray, y: np.ndarray, prior: np.ndarray) -> Covered:
    """What sets of rows of all classes hold, weighed by a class prior."""
    rows = np.bincount(y, minlength=len(prior))
    hit = np.bincount(y, sets[np.arange(len(y)), y], minlength=len(prior)) / rows
    size = np.bincount(y, sets.sum(axis=1), minlength=len(prior)) / rows
    return Covered(hit, float(prior @ hit), float(prior @ size))


def plain(subject: Problem, proba: np.ndarray, prior: np.ndarray, least: float) -> Covered:
    """Split conformal prediction, without classes or weights, at the lowest level that will do.

    Its score is f0's probability. The level is raised until the worst class is covered as often as
    ``least``, on the rows themselves.
    """
    source, judged = subject.clf.source_, subject.counts >= FEWEST
    n = len(source.labels)
    score, even = source.f0_proba[np.arange(n), source.labels][:, None], np.full(n, 1.0 / n)

    def at(level: float) -> Covered:
        least_score = set_thresholds(score, np.zeros(n, dtype=int), even, level)
        return covered(proba >= least_score[0], subject.y, prior)

    levels = np.linspace(0.5, 1.0 - 2.0 / n, 2000)
    place = bisect_left(levels, least, key=lambda level: at(level).by_class[judged].min())
    return at(levels[min(place, len(levels) - 1)])


def one_stream(subject: Problem, prior: np.ndarray, rng: np.random.Generator) -> dict[str, Covered]:
    """Follow a new class prior for ten batches, then cover all rows by each kind of sets."""
    clf, K = subject.clf.reset(), len(prior)
    rows = [np.flatnonzero(subject.y == k) for k in range(K)]
    for _ in range(10):
        drawn = rng.choice(K, 200, p=prior)
        clf.adapt(subject.X[[rng.choice(rows[k]) for k in drawn]])
    found = {
        kind: covered(clf.predict_set(subject.X, LEVEL, coverage=kind), subject.y, prior)
        for kind in COVERAGES
    }
    raw = clf._read(subject.X).f0_proba
    worst = found["per-class"].by_class[subject.counts >= FEWEST].min()
    return {**found, "plain": plain(subject, raw, prior, worst)}


def sets(splits: int, held_out: int, only: list[str] | None) -> None:
    print(f"Prediction sets at {LEVEL:.0%}: each file dealt {splits} times to a held-out set of")
    print(
        f"up to {held_out} rows and to streams. Coverage in % of the classes with {FEWEST} held-out"
    )
    print("rows or more: mean, lowest and highest class by their means over the deals, and the")
    print("standard deviation between deals, with what the draw of the held-out set alone causes;")
    print(
        "of all rows together; mean size. Plain: split conformal prediction at the level at which"
    )
    print("its worst class is covered as often as ours.")
    print(
        f"{'data':24} {'shift':7} {'sets':10} {'mean':>6} {'low':>6} {'high':>6} {'sd':>5} "
        f"{'draw':>5} {'rows':>6} {'size':>6}"
    )
    for name in only or ["synthetic", "digits", *(n for n in ORIGINS if named_file(n).exists())]:
        kept: dict[str, dict[str, list[Covered]]] = {}
        pool = pool_of(name)
        for split in range(splits):
            rng = np.random.default_rng([split, 4])
            subject = dealt(pool, held_out, rng)
            if (subject.counts < FEWEST).all():
                break
            for shift, prior in shifts(len(subject.counts), rng).items():
                for kind, found in one_stream(subject, prior, rng).items():
                    kept.setdefault(shift, {}).setdefault(kind, []).append(found)
        if not kept:
            print(f"{name:24} no class has {FEWEST} held-out rows")
            continue
        judged = subject.counts >= FEWEST
        tested = np.bincount(subject.y)[judged]
        draw = LEVEL * (1 - LEVEL) * (1 / (subject.counts[judged] + 2) + 1 / tested)
        for shift, kinds in kept.items():
            for kind, several in kinds.items():
                by_class = 100 * np.array([found.by_class[judged] for found in several])
                mean = by_class.mean(axis=0)
                print(
                    f"{name:24} {shift:7} {kind:10} {mean.mean():6.1f} {mean.min():6.1f} "
                    f"{mean.max():6.1f} {np.sqrt(by_class.var(axis=0, ddof=1).mean()):5.1f} "
                    f"{100 * np.sqrt(draw.mean()):5.1f} "
                    f"{100 * np.mean([found.all_rows for found in several]):6.1f} "
                    f"{np.mean([found.size for found in several]):6.2f}"
                )
        sys.stdout.flush()
    print()


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.decisions", description=__doc__)
    parser.add_argument("--windows", type=int, default=100, help="windows of each drift")
    parser.add_argument("--models", default="logistic,naive Bayes,boosting", help="by commas")
    parser.add_argument("--seeds", type=int, default=3, help="binary problems")
    parser.add_argument("--splits", type=int, default=8, help="deals of each data set")
    parser.add_argument("--held-out", type=int, default=6000, help="rows of the held-out sets")
    parser.add_argument("--data", help="names of data sets, by commas; default: all that are there")
    parser.add_argument("--part", choices=("thresholds", "sets", "both"), default="both")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a model has not converged does not matter here
        if args.part != "sets":
            thresholds(args.models.split(","), args.windows, args.seeds, args.held_out)
        if args.part != "thresholds":
            sets(args.splits, args.held_out, args.data.split(",") if args.data else None)
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
