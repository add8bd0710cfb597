"""False alarms and delays of the guard: ``python -m benchmarks.guard [--streams S]``.

False alarms are counted on streams of 10,000 rounds that are pure label shift. To be quick the
rounds are drawn all at once, from the rows of a large labelled pool that were not held out. The
blocks are judged by the guard's own code, and ``tests/monitoring/test_guard.py`` shows that the
result is the one that `Guard.update` comes to for batches that it reads whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift.datasets.digits import digits_split
from priorshift.monitoring.evidence import BLOCK_ROWS, FIRST_ROWS, judge, log_share
from priorshift.monitoring.guard import Guard, guard_regions
from priorshift.monitoring.regions import Regions
from priorshift.source import Batch, Source, build_source
from priorshift.source.model import LinearModel

ALPHA = 0.01
POOL = 60_000


class Pool(NamedTuple):
    """Rows of Gaussian classes, sorted by class, as many of each; f0 is right for equal shares."""

    X: np.ndarray
    n_classes: int
    weights: np.ndarray

    @property
    def size(self) -> int:
        """Rows of each class."""
        return len(self.X) // self.n_classes

    def batch(self, rows: np.ndarray) -> Batch:
        """What f0 makes of some rows."""
        return Batch(softmax(self.X[rows] @ self.weights.T, axis=1), self.X[rows])


def gaussian_pool(n_classes: int, size: int, spread: float, seed: int) -> Pool:
    """Gaussian classes, and the logistic model that is right for equal shares of them."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(n_classes, size))
    rows = n_classes * (POOL // n_classes)
    X = np.repeat(centres, POOL // n_classes, axis=0) + rng.normal(size=(rows, size))
    weights = np.column_stack([centres, -0.5 * (centres**2).sum(axis=1)])
    return Pool(np.column_stack([X, np.ones(len(X))]), n_classes, weights)


def priors(kind: str, rounds: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Class priors (T, K): standing still, drifting, or thrown anew each round."""
    if kind == "still":
        return np.tile(rng.dirichlet(np.ones(n_classes)), (rounds, 1))
    if kind == "one class":
        return np.eye(n_classes)[np.full(rounds, rng.integers(n_classes))]
    if kind == "drift":
        ends = rng.dirichlet(np.full(n_classes, 0.5), 2)
        alpha = np.linspace(0, 1, rounds)[:, None]
        return (1 - alpha) * ends[0] + alpha * ends[1]
    if kind == "switch":  # a new class alone every few rounds
        jumps = rng.random(rounds) < 0.3
        return np.eye(n_classes)[rng.integers(0, n_classes, rounds)[np.cumsum(jumps) % rounds]]
    return rng.dirichlet(np.full(n_classes, 0.3), rounds)


KINDS = ("still", "one class", "drift", "switch", "anew")


def held_out(pool: Pool, rows: int, rng: np.random.Generator) -> tuple[Source, np.ndarray]:
    """A source with ``rows`` rows of the pool, and the other rows of each class (K, m)."""
    few = rows // pool.n_classes
    order = rng.permuted(np.arange(len(pool.X)).reshape(pool.n_classes, -1), axis=1)
    model = LinearModel(pool.weights, np.arange(pool.n_classes))
    labels = np.repeat(np.arange(pool.n_classes), few)
    source = build_source(model, pool.X[order[:, :few].ravel()], labels, intercept=False)
    return source, order[:, few:]


def cells_of(regions: Regions, batch: Batch) -> np.ndarray:
    """Between which edges every value of the batch lies, (n, V)."""
    return regions.cells(batch)


def running_counts(cells: np.ndarray, size: int, rows: int) -> np.ndarray:
    """Rows of rounds 1..t in each cell, (T + 1, V, C), of cells (T * N, V)."""
    rounds = len(cells) // rows
    V = cells.shape[1]
    counts = np.empty((rounds + 1, V, size), dtype=np.int32)
    counts[0] = 0
    base = np.repeat(np.arange(rounds, dtype=np.int32) * size, rows)
    for v in range(V):
        flat = np.bincount(base + cells[:, v], minlength=rounds * size)
        np.cumsum(flat.reshape(rounds, size), axis=0, out=counts[1:, v])
    return counts


def smallest_log_p(
    regions: Regions, cells: np.ndarray, calls: np.ndarray, n_classes: int, rows: int
) -> float:
    """What the guard's ``log_p`` is at the end of a stream of rounds of ``rows`` rows."""
    inside = running_counts(cells, regions.edges.shape[1] - 1, rows)
    called = running_counts(calls[:, None], n_classes, rows)[:, 0]
    best, first = 0.0, -(-FIRST_ROWS // rows)  # longer blocks are made of the first ones
    for level, least in enumerate(BLOCK_ROWS):
        ends = np.arange(0, len(inside), first * -(-int(least) // (first * rows)))
        for start in range(0, len(ends) - 1, 500):
            part = ends[start : start + 501]
            cells, calls = np.diff(inside[part], axis=0), np.diff(called[part], axis=0)
            share = log_share(level, start + 1 + np.arange(len(part) - 1))
            found = judge(regions, cells, calls, share)
            best = min(best, float(found.log_p.min(initial=0.0)))
    return best


def is_alarm(log_p: float) -> bool:
    return bool(np.exp(log_p) <= ALPHA)


def null_streams(
    pool: Pool, hold: int, rows: int, rounds: int, streams: int, seed: int
) -> tuple[int, float]:
    """Alarms on pure label shift, and the smallest p-value seen before the correction's end."""
    alarms, smallest = 0, 1.0
    for number in range(streams):
        rng = np.random.default_rng([seed, hold, rows, number])
        source, rest = held_out(pool, hold, rng)
        mu = priors(KINDS[number % len(KINDS)], rounds, pool.n_classes, rng)
        steps = np.cumsum(mu, axis=1)[:, None, :-1]
        labels = (rng.random((rounds, rows, 1)) > steps).sum(axis=2).ravel()
        drawn, again = np.unique(
            rest[labels, rng.integers(0, rest.shape[1], len(labels))], return_inverse=True
        )
        batch = pool.batch(drawn)
        cells = cells_of(guard_regions(source), batch)[again]
        calls = batch.labels.astype(np.uint8)[again]
        log_p = smallest_log_p(guard_regions(source), cells, calls, pool.n_classes, rows)
        alarms += is_alarm(log_p)
        smallest = min(smallest, float(np.exp(log_p)))
    return alarms, smallest


def false_alarms(streams: int, rounds: int) -> None:
    print(f"False alarms: streams of {rounds} rounds under pure label shift, alpha = {ALPHA}")
    print(
        f"{'K':>3} {'features':>8} {'held-out':>8} {'N':>4} {'streams':>8} {'alarms':>7}"
        f" {'least p':>8}"
    )
    total = found = 0
    for n_classes, size, spread in ((3, 6, 1.0), (10, 12, 1.5)):
        pool = gaussian_pool(n_classes, size, spread, seed=n_classes)
        for hold in (1000, 10_000):
            for rows, few in ((1, 1), (10, 1), (100, 4)):
                count = max(streams // few, 1)
                alarms, least = null_streams(pool, hold, rows, rounds, count, seed=1)
                total, found = total + count, found + alarms
                print(f"{n_classes:3} {size:8} {hold:8} {rows:4} {count:8} {alarms:7} {least:8.3f}")
                sys.stdout.flush()
    print(f"together: {found} of {total} streams ({found / total:.2%})\n")


def delay(source: Source, before: list[np.ndarray], after: list[np.ndarray]) -> tuple[int, str]:
    """Rounds from the change to the alarm (0: none, -1: before it), and the evidence."""
    guard = Guard(alpha=ALPHA)
    state = guard.start(source)
    for t, X in enumerate([*before, *after], start=1):
        state = guard.update(source, state, source.read(X))
        if state.alarm:
            found = t - len(before)
            return (found if found > 0 else -1), guard.report(source, state).evidence
    return 0, "no alarm"


def changes(
    X: np.ndarray, new: np.ndarray | None, rows: int, rounds: int, rng: np.random.Generator
) -> dict[str, list[np.ndarray]]:
    """The rows of ``rounds`` rounds after each kind of change."""

    def draw(pool: np.ndarray) -> list[np.ndarray]:
        return [pool[rng.integers(0, len(pool), rows)] for _ in range(rounds)]

    widest = int(X.std(axis=0).argmax())
    stuck = [B.copy() for B in draw(X)]
    for B in stuck:
        B[:, widest] = 0.0
    result = {
        "none": draw(X),
        "one feature stuck at 0": stuck,
        "features times 1.5": [1.5 * B for B in draw(X)],
        "features plus 1 sd": [B + X.std(axis=0) for B in draw(X)],
    }
    if new is not None:
        blends = []
        for B in draw(X):
            few = rng.random(rows) < 0.1
            B[few] = new[rng.integers(0, len(new), int(few.sum()))]
            blends.append(B)
        result["new class, 10 % of rows"] = blends
    return result


def digits_case(left_out: int, seed: int) -> tuple[Source, np.ndarray, np.ndarray]:
    split = digits_split(seed)
    known = [y != left_out for y in (split.y_train, split.y_holdout, split.y_pool)]
    model = LogisticRegression(max_iter=300).fit(split.X_train[known[0]], split.y_train[known[0]])
    source = build_source(model, split.X_holdout[known[1]], split.y_holdout[known[1]])
    return source, split.X_pool[known[2]], split.X_pool[~known[2]]


def gaussian_case(n_classes: int, hold: int, seed: int) -> tuple[Source, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = 2.5 * rng.normal(size=(n_classes + 1, 8))
    y = np.arange(2 * hold) % n_classes
    X = centres[y] + rng.normal(size=(len(y), 8))
    model = LogisticRegression(max_iter=300).fit(X[:hold], y[:hold])
    fresh = np.arange(20_000) % n_classes
    pool = centres[fresh] + rng.normal(size=(len(fresh), 8))
    new = centres[-1] + rng.normal(size=(5000, 8))
    return build_source(model, X[hold:], y[hold:]), pool, new


def delays(cases: int, quiet: int = 200, rows: int = 100, rounds: int = 100) -> None:
    print(
        f"Delays: rounds of {rows} rows from a change to the alarm, after {quiet} rounds without;"
    )
    print(f"median, worst, and how many of the cases within 50 rounds (each seen for {rounds})")
    populations = {
        "digits, one left out (K = 9)": lambda i: digits_case(i % 10, i // 10),
        "Gaussian, K = 3, held-out set 1000": lambda i: gaussian_case(3, 1000, i),
        "Gaussian, K = 10, held-out set 3000": lambda i: gaussian_case(10, 3000, i),
    }
    for name, make in populations.items():
        found: dict[str, list[int]] = {}
        for i in range(cases):
            source, X, new = make(i)
            rng = np.random.default_rng([7, i])
            before = [X[rng.integers(0, len(X), rows)] for _ in range(quiet)]
            for change, after in changes(X, new, rows, rounds, rng).items():
                found.setdefault(change, []).append(delay(source, before, after)[0])
        print(name)
        for change, all_delays in found.items():
            seen = [d for d in all_delays if d > 0]
            early = sum(d < 0 for d in all_delays)
            within = sum(d <= 50 for d in seen)
            middle = f"{np.median(seen):.0f}" if seen else "-"
            worst = f"{max(seen)}" if len(seen) == len(all_delays) else "-"
            print(
                f"  {change:26} median {middle:>3}, worst {worst:>3}, within 50: {within} of "
                f"{len(all_delays)}, alarms before the change: {early}"
            )
        sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.guard", description=__doc__)
    parser.add_argument("--streams", type=int, default=20, help="streams of each kind")
    parser.add_argument("--rounds", type=int, default=10_000, help="rounds of each stream")
    parser.add_argument("--cases", type=int, default=10, help="cases of each change")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    with threadpool_limits(1):
        false_alarms(args.streams, args.rounds)
        delays(args.cases)
    print(f"({time.perf_counter() - began:.0f} seconds)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
