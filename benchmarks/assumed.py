"""What has to hold, and what it costs where it does not: ``python -m benchmarks.assumed``.

Three parts, in each of which nothing ever shifts. "even": labelled rows were bought class by class
from classes that come 97 to 3. "labels": of classes that come 95 to 5, four of five rows of the
second get their label, in time, and none of the first. "bursts": four classes, and every event is
seen several times in a row (a camera that takes ten pictures of an animal). Errors in %, means over
problems; "first" is what is predicted before a batch is learned, "with" along with it;
"untouched", of 5,000 rows, what a classifier that has seen no batch adds to the model's errors.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift import LabelShiftClassifier

LEVEL, SURE = 0.9, 0.01


class Problem:
    """Rows of the classes of one problem, to be drawn from, and a model of such rows."""

    def __init__(self, seed: int, shares: list[float], train: int, spread: float) -> None:
        self.shares, self.rng = np.array(shares), np.random.default_rng(seed)
        K = len(shares)
        X, y = make_classification(
            30_000,
            10,
            n_informative=5,
            n_redundant=0,
            n_classes=K,
            n_clusters_per_class=2 if K == 2 else 1,
            class_sep=spread,
            flip_y=0.0,
            random_state=seed,
        )
        # Training, held-out and later rows have nothing in common.
        self.rows = [[X[y == k][part::3] for k in range(K)] for part in range(3)]
        self.model = LogisticRegression(max_iter=500).fit(*self.draw(0, train))

    def draw(self, part: int, number: int, shares: Any = None, times: int = 1) -> Any:
        """So many rows, of which each event gives so many."""
        y = self.rng.choice(len(self.shares), number // times, p=shares or self.shares)
        X = np.array([self.rng.choice(self.rows[part][k]) for k in y])
        return np.repeat(X, times, axis=0), np.repeat(y, times)


def followed(
    problem: Problem, clf: Any, rounds: int, rows: int, times: int = 1, told: float = 0.0
) -> np.ndarray:
    """Errors of the model, first and with, and how often the intervals hold, all in %."""
    found = np.zeros(4)
    for _ in range(rounds):
        X, y = problem.draw(2, rows, times=times)
        first = clf.predict(X)
        labels = None
        if told:
            some = (y == 1) & (problem.rng.random(rows) < told)
            labels = {int(row): 1 for row in np.flatnonzero(some)}
        answers = [problem.model.predict(X), first, clf.adapt_predict(X, labels)]
        low, high = clf.prior_interval(LEVEL)
        held = ((low <= problem.shares) & (problem.shares <= high)).mean()
        found += 100.0 / rounds * np.array([*((a != y).mean() for a in answers), held])
    return found


def even(seeds: int, rounds: int) -> None:
    print("even: held-out set 50 to 50, model and stream 97 to 3")
    print(f"{'':24}  model  untouched  first   with")
    for name, prior in (("as it is", None), ("prior=[0.97, 0.03]", [0.97, 0.03])):
        kept = []
        for seed in range(seeds):
            problem = Problem(seed, [0.97, 0.03], 4000, 1.0)
            held = problem.draw(1, 600, [0.5, 0.5])
            clf = LabelShiftClassifier(problem.model, prior=prior).fit(*held)
            X, y = problem.draw(2, 5000)
            fresh = 100.0 * np.mean((clf.predict(X) != y) * 1.0 - (problem.model.predict(X) != y))
            errors = followed(problem, clf, rounds, 50)
            kept.append([errors[0], fresh, *errors[1:3]])
        model, fresh, first, along = np.mean(kept, axis=0)
        print(f"{name:24} {model:6.2f} {fresh:+10.2f} {first:6.2f} {along:6.2f}", flush=True)


def labels(seeds: int, rounds: int) -> None:
    print("labels: 80 % of the rows of the rare class (5 %) get one, no other row does")
    print(f"{'':24}  model  first   with  share that is told")
    for learner in ("auto", "fth"):
        for name, told in (("no labels", 0.0), ("labels of one class", 0.8)):
            kept = []
            for seed in range(seeds):
                problem = Problem(seed, [0.95, 0.05], 4000, 0.8)
                clf = LabelShiftClassifier(problem.model, learner).fit(*problem.draw(1, 3000))
                errors = followed(problem, clf, rounds, 50, told=told)
                kept.append([*errors[:3], clf.prior_[1]])
            model, first, along, share = np.mean(kept, axis=0)
            print(
                f"{learner:5}{name:19} {model:6.2f} {first:6.2f} {along:6.2f} {share:8.3f}",
                flush=True,
            )


def bursts(seeds: int, rounds: int) -> None:
    print("bursts: 50 rows a batch, held-out set of 2,000 rows")
    print(f"{'rows of an event':24}  model  first   with  held  shift  alarm")
    for name, times, rows in (
        ("1", 1, 50),
        ("5", 5, 50),
        ("10", 10, 50),
        ("10, thinned to one", 1, 5),
    ):
        kept = []
        for seed in range(seeds):
            problem = Problem(seed, [0.25] * 4, 2000, 0.8)
            clf = LabelShiftClassifier(problem.model).fit(*problem.draw(1, 2000))
            found = followed(problem, clf, rounds, rows, times)
            sure = clf.shift_.p_value < SURE
            kept.append([*found, 100.0 * sure, 100.0 * clf.guard_report_.alarm])
        model, first, along, held, shift, alarm = np.mean(kept, axis=0)
        print(
            f"{name:24} {model:6.2f} {first:6.2f} {along:6.2f} {held:5.0f} {shift:6.0f} "
            f"{alarm:6.0f}",
            flush=True,
        )
    print(
        f"held: % of the {LEVEL:.0%} intervals that hold; shift, alarm: % of the streams that were "
        "told to have moved, or to be no mix of the classes"
    )


PARTS = {"even": even, "labels": labels, "bursts": bursts}


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.assumed", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=["even", "labels", "bursts", []], help="by default all"
    )
    parser.add_argument("--seeds", type=int, default=8, help="problems")
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in args.parts or PARTS:
            PARTS[part](args.seeds, args.rounds)
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
