"""Fleets: ``python -m benchmarks.fleet WHAT``; docs/fleet.md has the numbers.

together   each stream of a fleet against the same stream alone, every bit
speed      streams of one row each a call, against a loop over trackers of another tree (--before)
memory     a million streams: resident memory, and of the same memory-mapped with 1 % active
kills      a process that learns without end, killed again and again
short      many streams of 50 single rows: the shared prior against separate trackers, real files
season     streams that move together, or do not: ``together=True`` against separate trackers
single     ``adapt`` of one row through the classifier, this source tree against another (--before)
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.linear_model import LogisticRegression

from priorshift import Fleet, LabelShiftClassifier, load
from priorshift.datasets import load_dataset
from priorshift.learners.trackers.records import to_row
from priorshift.risk.compiled import available
from priorshift.saving.stream_bytes import leaves_of

FILES = ("pendigits", "cifar10_resnet18_logits", "shl2019")


def probabilities(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class probabilities of a mediocre model, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    Z = rng.normal(size=(n, classes))
    Z[np.arange(n), y] += 2.0
    P = np.exp(Z)
    return P / P.sum(axis=1, keepdims=True), y


def classifier(classes: int, learner: Any, **settings: Any) -> LabelShiftClassifier:
    """A classifier on class probabilities."""
    P, y = probabilities(max(1000, 20 * classes), classes, 0)
    return LabelShiftClassifier.from_probabilities(P, y, learner, **settings)


def together(args: argparse.Namespace) -> None:
    """Ragged calls in random order; states and predictions must be those of the stream alone."""
    for learner, safety in (("auto", "on"), ("tracker", "off")):
        clf = classifier(10, learner, safety=safety, guard=False)
        deployment, fleet = clf.deployment_, Fleet(clf)
        rows, rng = probabilities(20_000, 10, 1)[0], np.random.default_rng(0)
        alone: dict[int, Any] = {}
        checked = wrong = 0
        for _ in range(args.rounds):
            n = int(rng.integers(1, 2 * args.streams))
            ids, X = rng.integers(0, args.streams, n), rows[rng.integers(0, len(rows), n)]
            found = fleet.adapt_predict_proba(ids, X)
            batch = clf._read(X)
            for key in np.unique(ids).tolist():
                own = np.flatnonzero(ids == key)
                stream = alone.get(key) or deployment.start()
                alone[key], outcome = deployment.step(stream, batch.rows(own), predict=True)
                checked += 1
                wrong += not (outcome.proba == found[own]).all()
        for key, stream in alone.items():
            both = (to_row(leaves_of(one.state)) for one in (stream, fleet.stream(key)))
            wrong += not np.equal(*both).all()
        print(
            f"{learner}, safety {safety}: {len(alone)} streams, {args.rounds} calls, {checked} "
            f"batches: {wrong} differ in any bit"
        )


class Clock:
    """Microseconds of calls, an update: wall clock, and processor time of all threads; medians."""

    def __init__(self) -> None:
        self._spent: list[tuple[float, float]] = []

    def __call__(self, call: Callable[[], Any], updates: int) -> None:
        begun = time.perf_counter(), time.process_time()
        call()
        wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
        self.add(1e6 * wall / updates, 1e6 * cpu / updates)

    def add(self, wall: float, cpu: float) -> None:
        """Take in what was measured elsewhere."""
        self._spent.append((wall, cpu))

    @property
    def wall(self) -> float:
        """By the clock on the wall."""
        return float(np.median(self._spent, axis=0)[0])

    @property
    def cpu(self) -> float:
        """By the processor's."""
        return float(np.median(self._spent, axis=0)[1])


# What workers of another source tree begin with; older ones have no ``from_probabilities``.
_MADE = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from priorshift import LabelShiftClassifier
K = int(sys.argv[1])
rng = np.random.default_rng(0)
def draw(n):
    y = rng.integers(0, K, n)
    Z = rng.normal(size=(n, K))
    Z[np.arange(n), y] += 2.0
    P = np.exp(Z)
    return P / P.sum(axis=1, keepdims=True), y
def made(learner, **settings):
    P, y = draw(max(1000, 20 * K))
    if hasattr(LabelShiftClassifier, "from_probabilities"):
        return LabelShiftClassifier.from_probabilities(P, y, learner, **settings)
    from priorshift.source.model import ProbabilityModel, log_probabilities
    model = ProbabilityModel(classes=list(range(K)))
    known = {"guard": settings.get("guard", False)}
    return LabelShiftClassifier(model, learner, features=log_probabilities, **known).fit(P, y)
def answer(call, updates):
    call()
    for line in sys.stdin:
        begun = time.perf_counter(), time.process_time()
        call()
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
        print(*(1e6 * one / updates for one in spent), flush=True)
"""
_LOOP = """
clf = made("tracker")
source, learner = clf.source_, clf.learner_
batches = [source.read(row[None]) for row in draw(200)[0]]
states = [learner.start(source)] * 200
def step():
    for i, batch in enumerate(batches):
        states[i] = learner.adapt(source, states[i], batch)
answer(step, 200)
"""


@contextmanager
def worker(tree: Path, code: str, *words: Any) -> Iterator[Callable[[], tuple[float, float]]]:
    """A process with its own source tree, and a function that asks it for one measurement."""
    env = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _MADE + code, *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def ask() -> tuple[float, float]:
            child.stdin.write("go\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            wall, cpu = child.stdout.readline().split()  # type: ignore[union-attr]
            return float(wall), float(cpu)

        yield ask
        child.communicate()


def speed(args: argparse.Namespace) -> None:
    """One row for every stream, in turns with a loop over trackers of another tree and a copy.

    On a busy machine wall-clock time says little: what a machine with free cores would do is worked
    out from processor time, calibration and learning on all cores and the rest on one.
    """
    cores = len(os.sched_getaffinity(0))
    print("K, streams | updates a second, by wall clock and by processor time on free cores |")
    print("microseconds an update: fleet, of it on all cores, a loop over trackers here, before |")
    print("times the loop of before, by wall clock and by processor time | copies of records a")
    print("second, which is what memory would allow")
    for classes, streams in ((2, args.streams), (10, args.streams), (100, args.streams // 10)):
        clf = classifier(classes, args.learner, safety=args.safety, guard=False)
        fleet, ids = Fleet(clf), np.arange(streams)
        X = probabilities(streams, classes, 1)[0]
        whole, shared, loop, before, copy = (Clock() for _ in range(5))
        pieces = fleet.adapt(ids, X)._store._pieces(ids)
        batch, target = clf._read(X), pieces[0][0].copy()
        singles = Singles(clf, X[:200])
        with worker(args.before, _LOOP, classes) as ask:
            for _ in range(args.rounds):
                whole(lambda: fleet.adapt(ids, X), streams)  # noqa: B023
                shared(lambda: learn(fleet, pieces, batch), streams)  # noqa: B023
                loop(singles.step, 200)
                before.add(*ask())
                copy(lambda: np.copyto(target, pieces[0][0]), len(target))  # noqa: B023
        free = max(whole.cpu - shared.cpu, 0.0) + shared.cpu / cores
        print(
            f"{classes}, {streams:,} | {1e6 / whole.wall:,.0f}, {1e6 / free:,.0f} | "
            f"{whole.cpu:.2f}, {shared.cpu:.2f}, {loop.cpu:.0f}, {before.cpu:.0f} | "
            f"{before.wall / whole.wall:.0f}, {before.cpu / free:.0f} | {1e6 / copy.wall:,.0f}",
            flush=True,
        )
    print(
        f"{args.learner}, safety {args.safety}; compiled: {available()}; cores {cores}; "
        f"load {os.getloadavg()[0]:.1f}"
    )


def learn(fleet: Fleet, pieces: list[Any], batch: Any) -> None:
    """What threads share: calibration, and the step of all streams."""
    calibration = fleet.deployment.source.calibration
    if calibration is not None:
        calibration(batch.f0_proba)
    for block, first, a, b in pieces:
        which, starts = np.arange(a, b) - first, np.arange(b - a + 1)
        fleet._form.learn(block, which, starts, batch.rows(slice(a, b)), None, fleet._pool)


class Singles:
    """Streams that each take a step of their own, in a loop."""

    def __init__(self, clf: LabelShiftClassifier, X: np.ndarray) -> None:
        self.source, self.learner = clf.source_, clf.learner_
        self.batches = [clf._read(X[i : i + 1]) for i in range(len(X))]
        self.states = [self.learner.start(self.source)] * len(X)

    def step(self) -> None:
        """One row for every stream."""
        for i, batch in enumerate(self.batches):
            self.states[i] = self.learner.adapt(self.source, self.states[i], batch)


def resident() -> float:
    """Resident memory of this process in GB (10^9 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) * 1024 / 1e9
    return float("nan")


def memory(args: argparse.Namespace) -> None:
    """Fill a fleet, save it, and open it again in a process of its own, memory-mapped."""
    if args.folder is not None:
        _mapped(args)
        return
    clf = classifier(10, args.learner, safety=args.safety, guard=False)
    fleet, X = Fleet(clf), probabilities(100_000, 10, 1)[0]
    for first in range(0, args.streams, 100_000):
        number = min(100_000, args.streams - first)
        fleet.adapt(np.arange(first, first + number), X[:number])
    print(
        f"in memory: {len(fleet):,} streams, {8 * fleet._store.width} bytes each, "
        f"resident {resident():.2f} GB ({resident() * 1e9 / 2**30:.2f} GiB)"
    )
    with tempfile.TemporaryDirectory(dir=args.disk) as folder:
        fleet.save(Path(folder) / "fleet")
        words = ["memory", "--folder", str(Path(folder) / "fleet"), "--streams", str(args.streams)]
        subprocess.run([sys.executable, "-m", "benchmarks.fleet", *words], check=True)


def _mapped(args: argparse.Namespace) -> None:
    before, begun = resident(), time.perf_counter()
    fleet = load(args.folder, mapped=True)
    opened = time.perf_counter() - begun
    rng, X, most = np.random.default_rng(0), probabilities(10_000, 10, 1)[0], 0.0
    active = rng.choice(args.streams, args.streams // 100, replace=False)
    spent = []
    for _ in range(5):
        begun = time.perf_counter()
        fleet.adapt(active, X[rng.integers(0, len(X), len(active))])
        spent.append(time.perf_counter() - begun)
        most = max(most, resident())
    print(
        f"memory-mapped: opened in {opened:.2f} s, resident {before:.2f} GB before, at most "
        f"{most:.2f} GB while {len(active):,} of {len(fleet):,} streams learn, "
        f"{len(active) / float(np.median(spent)):,.0f} updates a second"
    )
    fleet.close()


def one_call(t: int, streams: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for the child and for who looks at what it left."""
    rng = np.random.default_rng(t)
    return rng.permutation(streams), rng.dirichlet(np.ones(4), streams)


def kills(args: argparse.Namespace) -> None:
    """Kill a child in the middle of memory-mapped calls; all records must be of whole calls."""
    clf = classifier(4, "auto", guard=False)
    twin, streams = Fleet(clf, n_jobs=1), args.streams
    twin.adapt(*one_call(0, streams))
    slots, done, torn, lost = np.arange(streams), 1, 0, 0
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        twin.save(Path(folder) / "fleet")
        for _ in range(args.kills):
            child = os.fork()
            if child == 0:
                try:
                    fleet = load(Path(folder) / "fleet", mapped=True, n_jobs=1)
                    for t in range(done, 10**6):
                        fleet.adapt(*one_call(t, streams))
                finally:
                    os._exit(1)
            time.sleep(0.1 + 0.4 * rng.random())
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            fleet = load(Path(folder) / "fleet", mapped=True, n_jobs=1)
            for t in range(done, fleet._store.live.calls):
                twin.adapt(*one_call(t, streams))
            done = fleet._store.live.calls
            both = (one._store.read(slots).view(np.uint64) for one in (fleet, twin))
            same = np.equal(*both).all(axis=1)
            torn += int((~same).sum())
            lost += bool(fleet.lost)
            fleet.close()
    print(
        f"{args.kills} kills in {done:,} calls of {streams:,} streams: {torn} records torn; "
        f"{lost} calls lost, each with its ids"
    )


def problem(name: str) -> tuple[np.ndarray, ...]:
    """Class probabilities and labels: a held-out set, and rows that streams are drawn from."""
    data = load_dataset(name)
    X, y = np.asarray(data.X0, dtype=float), np.asarray(data.y0)
    if len(data.X1):
        X, y = np.concatenate([X, data.X1]), np.concatenate([y, data.y1])
    chosen = np.random.default_rng(0).permutation(len(y))[:9000]
    X, y = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
    if np.allclose(np.exp(X).sum(axis=1), 1.0, atol=1e-3) or name.endswith("logits"):
        P = np.exp(X - X.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
    else:
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
        P = LogisticRegression(max_iter=300, C=0.3).fit(X[:600], y[:600]).predict_proba(X[600:])
        y = y[600:]
    return P[:2000], y[:2000], P[2000:], y[2000:]


def drawn_priors(
    kind: str, classes: int, streams: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Class priors of streams: of four kinds, around one that is common to all, or unrelated.

    Before them the Dirichlet distributions (R, K) that they are drawn from, one for each kind.
    """
    if kind == "unrelated":
        alpha = np.full((1, classes), 0.3)
        return alpha, rng.dirichlet(alpha[0], streams)
    centres = rng.dirichlet(np.full(classes, 0.15 if kind == "kinds" else 0.3), 4)
    which = rng.integers(0, 4, streams) if kind == "kinds" else np.zeros(streams, int)
    alpha = 20.0 * centres + 1e-3
    return alpha[: which.max() + 1], np.array([rng.dirichlet(alpha[r]) for r in which])


def told(alpha: np.ndarray, ratios: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What Bayes' rule says of rows (n, t) of streams, if told each row's label after it.

    It knows how class priors are drawn: no learner without labels can be expected to do better.
    """
    counts, said = np.zeros((len(labels), alpha.shape[1])), np.empty_like(labels)
    first, every = alpha[:, None], np.arange(len(labels))
    for t in range(labels.shape[1]):
        sums = first.sum(axis=-1)
        logs = (gammaln(first + counts) - gammaln(first)).sum(axis=-1)
        logs += gammaln(sums) - gammaln(sums + t)
        shares = np.exp(logs - logsumexp(logs, axis=0)) / (sums + t)
        prior = np.einsum("rn,rnk->nk", shares, first + counts)
        said[:, t] = (ratios[:, t] * prior).argmax(axis=1)
        counts[every, labels[:, t]] += 1.0
    return said


def short(args: argparse.Namespace) -> None:
    """Streams come one after the other, and have 50 rows each; errors over all rows of all."""
    warnings.simplefilter("ignore")
    print("file, class priors | f0, known prior, told, separate, shared: error in % |")
    print("gap closed: told, separate, shared; ratio of the last two, and the most it could be")
    for name in args.files.split(","):
        P0, y0, P1, y1 = problem(name)
        clf = LabelShiftClassifier.from_probabilities(
            P0, y0, args.learner, safety=args.safety, guard=False
        )
        kinds = ("kinds", "common", "unrelated")
        found = {kind: _short(clf, kind, P1, y1, args.streams) for kind in kinds}
        found["all three"] = np.mean(list(found.values()), axis=0)
        for kind, (f0, known, *others) in found.items():
            most, apart, joint = (f0 - np.array(others)) / (f0 - known)
            errors = ", ".join(f"{error:.2f}" for error in (f0, known, *others))
            print(
                f"{name}, {kind} | {errors} | {most:.3f} {apart:.3f} {joint:.3f}; "
                f"{joint / apart:.2f} {most / apart:.2f}",
                flush=True,
            )


def _short(
    clf: LabelShiftClassifier, kind: str, P1: np.ndarray, y1: np.ndarray, streams: int
) -> list[float]:
    """Errors in %: f0, with the known prior, told, separate trackers, with the shared prior."""
    rounds, rng, K = 50, np.random.default_rng(1), P1.shape[1]
    alpha, priors = drawn_priors(kind, K, streams, rng)
    of_class = [np.flatnonzero(y1 == k) for k in range(K)]
    labels = np.array([rng.choice(K, rounds, p=prior) for prior in priors])
    rows = np.array([[rng.choice(of_class[k]) for k in own] for own in labels])
    start = rng.integers(0, 150, streams)
    ratios = clf._read(P1).proba / clf.source_.prior
    errors = [
        (P1[rows].argmax(axis=2) != labels).mean(),
        ((ratios[rows] * priors[:, None]).argmax(axis=2) != labels).mean(),
        (told(alpha, ratios[rows], labels) != labels).mean(),
    ]
    for shared in (False, True):
        fleet, said = Fleet(clf, shared_prior=shared), np.empty_like(labels)
        for call in range(150 + rounds):
            active = np.flatnonzero((call >= start) & (call < start + rounds))
            if len(active):
                t = call - start[active]
                said[active, t] = fleet.adapt_predict(active, P1[rows[active, t]])
        errors.append((said != labels).mean())
    return [100.0 * float(error) for error in errors]


def moving_priors(
    kind: str, calls: int, own: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Class priors (streams, K) of every call: the own one of a stream times a factor that moves.

    ``sin``: it swings once in 50 calls; ``switch``: it is one of two, by turns, for 25 calls each;
    ``apart``: it swings for each stream at another time, and for each class, too.
    """
    streams, K = own.shape
    phases = np.linspace(0.0, 2.0 * np.pi, K, endpoint=False)
    if kind == "apart":
        phases = rng.uniform(0.0, 2.0 * np.pi, (streams, K))
    two = rng.normal(0.0, 1.0, (2, K))
    for call in range(calls):
        swing = 1.5 * np.sin(2.0 * np.pi * call / 50.0 + phases)
        priors = own * np.exp(two[call // 25 % 2] if kind == "switch" else swing)
        yield priors / priors.sum(axis=1, keepdims=True)


def season(args: argparse.Namespace) -> None:
    """Single rows; all streams in each call, or a tenth of them; errors up to 20, 50, 200 rows."""
    warnings.simplefilter("ignore")
    print("file, factor, present | for 20, 50, 200 rows of a stream: f0, known prior, separate,")
    print("together: error in %; gap closed: separate, together")
    for name in args.files.split(","):
        P0, y0, P1, y1 = problem(name)
        clf = LabelShiftClassifier.from_probabilities(
            P0, y0, args.learner, safety=args.safety, guard=False
        )
        for kind in ("sin", "switch", "apart"):
            for present in (1.0, 0.1):
                wrong = _season(clf, kind, present, P1, y1, args.streams, args.rounds)
                cells = []
                for rows in (20, 50, 200):
                    part = 100.0 * wrong[: round(rows / present)].mean(axis=0)
                    closed = (part[0] - part[2:]) / (part[0] - part[1])
                    cells.append(
                        " ".join([*(f"{x:.2f}" for x in part), *(f"{x:.3f}" for x in closed)])
                    )
                print(f"{name}, {kind}, {present:.0%} | {' | '.join(cells)}", flush=True)


def _season(
    clf: LabelShiftClassifier,
    kind: str,
    present: float,
    P1: np.ndarray,
    y1: np.ndarray,
    streams: int,
    rounds: int,
) -> np.ndarray:
    """Errors (calls, 4) of f0, with the known prior, of separate trackers, and together."""
    rng, K = np.random.default_rng(1), P1.shape[1]
    own, calls = rng.dirichlet(np.ones(K), streams), round(rounds / present)
    of_class, ratios = [np.flatnonzero(y1 == k) for k in range(K)], clf._read(P1).proba
    ratios = ratios / clf.source_.prior
    fleets, found = (Fleet(clf), Fleet(clf, together=True)), np.empty((calls, 4))
    for call, priors in enumerate(moving_priors(kind, calls, own, rng)):
        ids = np.sort(rng.choice(streams, round(present * streams), replace=False))
        labels = (priors[ids].cumsum(axis=1) < rng.random(len(ids))[:, None]).sum(axis=1)
        rows = np.array([rng.choice(of_class[k]) for k in np.minimum(labels, K - 1)])
        said = [P1[rows].argmax(axis=1), (ratios[rows] * priors[ids]).argmax(axis=1)]
        said += [fleet.adapt_predict(ids, P1[rows]) for fleet in fleets]
        found[call] = [(one != y1[rows]).mean() for one in said]
    return found


_SINGLE = """
settings = {key: eval(value) for key, value in (word.split("=") for word in sys.argv[3:])}
clf, rows = made(sys.argv[2], **settings), draw(700)[0]
for row in rows:  # until a history is full
    clf.adapt(row[None])
def step():
    for row in rows[:200]:
        clf.adapt(row[None])
answer(step, 200)
"""
# Learner and settings now, and settings before: the same work, and what users get by default.
_ALONE = (
    ("tracker", ("safety='off'", "history=0"), ()),
    ("tracker", ("safety='off'",), ()),
    ("tracker", (), ("guard=True",)),
    ("tracker", (), ()),
    ("auto", ("safety='off'", "history=0"), ()),
    ("auto", ("safety='off'",), ()),
    ("auto", (), ("guard=True",)),
    ("auto", (), ()),
)


def single(args: argparse.Namespace) -> None:
    """Two processes, each with its own source tree, measured in turns by their processor time."""
    here = Path(__file__).resolve().parents[1] / "src"
    print("K, learner, settings; those before | microseconds before, now | ratio; by wall clock")
    for learner, now, then in _ALONE:
        before, after = Clock(), Clock()
        with (
            worker(args.before, _SINGLE, 10, learner, *then) as ask_before,
            worker(here, _SINGLE, 10, learner, *now) as ask_after,
        ):
            for _ in range(args.rounds):
                before.add(*ask_before())
                after.add(*ask_after())
        print(
            f"10, {learner}, {' '.join(now) or 'default'}; {' '.join(then) or 'default'} | "
            f"{before.cpu:.0f}, {after.cpu:.0f} | {before.cpu / after.cpu:.1f}; "
            f"{before.wall / after.wall:.1f}",
            flush=True,
        )


def main(argv: list[str] | None = None) -> int:
    """Measure one thing, and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.fleet", description=__doc__)
    parser.add_argument(
        "what", choices=("together", "speed", "memory", "kills", "short", "season", "single")
    )
    parser.add_argument("--streams", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--learner", default="tracker")
    parser.add_argument("--safety", default="off")
    parser.add_argument("--files", default=",".join(FILES))
    parser.add_argument("--folder", help="of a fleet that is there already")
    parser.add_argument("--disk", help="where to write the fleet that is mapped")
    parser.add_argument("--before", type=Path, help="the src folder of another source tree")
    args = parser.parse_args(argv)
    streams = {
        "together": 2000,
        "kills": 2000,
        "speed": 100_000,
        "memory": 1_000_000,
        "short": 1000,
        "season": 1000,
    }
    args.streams = args.streams or streams.get(args.what)
    args.rounds = args.rounds or {"together": 100, "speed": 9, "season": 200, "single": 10}.get(
        args.what
    )
    if args.what in ("single", "speed") and args.before is None:
        parser.error(f"{args.what} needs --before, the src folder of another source tree")
    globals()[args.what](args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
