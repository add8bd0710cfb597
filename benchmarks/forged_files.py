"""Load forged files, and watch: ``python -m benchmarks.forged_files [--count N]``.

Files are forged from good ones of several models and learners (``benchmarks/forging.py``) and
loaded in a child process that is watched from inside: every event that Python audits (import,
exec, open, processes, sockets, ...), the memory that is asked for, and the time. What a file that
was accepted predicts is asked for as well. A child that dies is counted, and another one goes on.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.svm import SVC

from benchmarks.forging import KINDS, PLACES, forge, names, pack, unpack
from priorshift import FileFormatError, LabelShiftClassifier, load
from priorshift.saving.estimators import Reader, Writer
from priorshift.saving.values import Parts

MEGABYTE = 2**20
LARGEST = 100 * MEGABYTE
SLOWEST = 30
# What reading and predicting do besides opening the file: none of it leaves the process.
HARMLESS = {
    "array.__new__",
    "object.__getattr__",
    "sys._getframe",
    "sys._getframemodulename",
    "builtins.id",
}


def good_files(folder: Path) -> list[tuple[bytes, Any]]:
    """Small files of several models, learners and guards, each with rows that its model reads."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[y]
    text = [" ".join(rng.choice(["oak", "ash", "elm"], 3)) + f" word{k}" for k in y]
    models: list[tuple[Any, Any, str]] = [
        (make_pipeline(StandardScaler(), LogisticRegression()), X, "auto"),
        (LogisticRegression(), X, "atlas-ada"),
        (RandomForestClassifier(3, max_depth=3, random_state=0), X, "tracker"),
        (GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0), X, "ftfwh"),
        (HistGradientBoostingClassifier(max_iter=2, categorical_features=[2]), _codes(X), "em"),
        (SVC(), X, "regimes"),
        (KNeighborsClassifier(), X, "window-hedge"),
        (MLPClassifier((3,), max_iter=2, random_state=0), X, "rogd"),
        (CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2), X, "flh-ftl"),
        (make_pipeline(KBinsDiscretizer(3), LogisticRegression()), X, "wavelet"),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), text, "uogd"),
    ]
    found = []
    for model, rows, learner in models:
        clf = LabelShiftClassifier(GaussianNB(), learner, guard=learner in ("auto", "em"))
        clf.fit(X, y).adapt(X[:20], batch_id="first").save(folder / "good")
        found.append((_with_model((folder / "good").read_bytes(), model.fit(rows, y)), rows[:8]))
    return found


def _codes(X: Any) -> Any:
    return np.column_stack([X[:, :2], X[:, 2] > 1])


def _with_model(data: bytes, model: Any) -> bytes:
    """The file with another model of the closed list in it."""
    manifest, blocks = unpack(data)
    parts = Parts()
    manifest["source"]["estimator"] = {
        "holds": Writer(parts, "model").encode(model),
        "type": f"{type(model).__module__}:{type(model).__qualname__}",
    }
    for name, array in parts.arrays.items():
        manifest["blocks"].append([name, array.dtype.str, list(array.shape)])
        blocks += array.tobytes() + bytes(-array.nbytes % 8)
    return pack(manifest, blocks)


class Watch:
    """What happens between ``on`` and ``off``."""

    def __init__(self) -> None:
        self.path = ""
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.path or event in HARMLESS:
            return
        own = event == "open" and (isinstance(args[0], int) or str(args[0]) == self.path)
        if own and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        self.seen.append(f"{event} {str(args)[:80]}")


def try_files(args: argparse.Namespace) -> int:
    """The child: forge, load, and print one line for each file."""
    warnings.simplefilter("ignore")
    known = names()
    known = known[:: max(len(known) // args.names, 1)] if args.names else known
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "forged")
        good = good_files(Path(folder))
        for data, rows in good:  # so that all that a good file needs is imported and compiled
            Path(path).write_bytes(data)
            clf = load(path)
            for _ in range(50):  # the guard judges blocks of rows, not every batch
                _use(clf, rows)
        watch = Watch()
        tracemalloc.start()
        print("ready", len(known), flush=True)
        for number in range(args.first, args.count):
            rng = random.Random(f"{args.seed} {number}")
            kind = KINDS[number % len(KINDS)]
            data, rows = good[rng.randrange(len(good))]
            Path(path).write_bytes(forge(data, kind, rng, known, number * 7919))
            print(number, kind, *_try(path, rows, watch), sep="\t", flush=True)
        tracemalloc.stop()
        print("decoded", *_decode_all(known, watch), sep="\t", flush=True)
    return 0


def _try(path: str, rows: Any, watch: Watch) -> tuple[Any, ...]:
    """Outcome, seconds, largest memory in bytes, audited events."""
    watch.seen = []
    tracemalloc.reset_peak()
    before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
    signal.alarm(SLOWEST)
    watch.path = path
    try:
        clf = load(path)
        outcome = "accepted"
    except FileFormatError:
        outcome = "refused"
    except BaseException as error:
        outcome = f"raised {type(error).__name__}"
    finally:
        watch.path = ""
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1] - before
    if outcome == "accepted":
        watch.path = path
        outcome += _use(clf, rows)
        watch.path = ""
    signal.alarm(0)
    return outcome, f"{seconds:.4f}", peak, "; ".join(watch.seen[:3])


def _use(clf: Any, rows: Any) -> str:
    """Predict with the model and with the learner: whatever they answer, the process goes on."""
    with np.errstate(all="ignore"):
        try:
            clf.source_.model.estimator.predict(rows)
            clf.adapt_predict_proba(rows if isinstance(rows, np.ndarray) else np.zeros((3, 3)))
        except Exception:
            return ", cannot predict"
    return ", predicts"


def _decode_all(known: list[str], watch: Watch) -> tuple[int, int]:
    """Every name in every place, handed to the reader without a file around it."""
    tried = refused = 0
    watch.seen, watch.path = [], "no file"
    for name in known:
        for entry in PLACES.values():
            tried += 1
            try:
                Reader(Parts()).decode(entry(name))
            except Exception:
                refused += 1
    watch.path = ""
    if watch.seen:
        print("heard", watch.seen[:3], sep="\t", flush=True)
    return tried, refused


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="files to forge")
    parser.add_argument("--names", type=int, default=0, help="how many names; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        return try_files(args)
    return _report(args)


def _report(args: argparse.Namespace) -> int:
    """The parent: run children, count, print; 1 where a promise was broken."""
    start = time.perf_counter()
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    broken: list[str] = []
    slowest = largest = 0.0
    first, decoded, n_names = args.first, "", 0
    while first < args.count:
        command = [sys.executable, "-m", "benchmarks.forged_files", "--child"]
        command += [f"--first={first}", f"--count={args.count}", f"--seed={args.seed}"]
        command += [f"--names={args.names}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                fields = line.rstrip("\n").split("\t")
                if not fields[0].isdigit():
                    decoded = line if fields[0] == "decoded" else decoded
                    n_names = int(line.split()[1]) if line.startswith("ready") else n_names
                    broken += [line] if fields[0] == "heard" else []
                    continue
                number, kind, outcome, seconds, peak, events = fields
                first = int(number) + 1
                if first % 1000 == 0:
                    print(f"{first} of {args.count} files", file=sys.stderr)
                outcomes[kind][outcome] += 1
                slowest, largest = max(slowest, float(seconds)), max(largest, float(peak))
                if events or outcome.startswith("raised") or float(peak) > LARGEST:
                    broken.append(line.rstrip())
        if child.returncode != 0:
            broken.append(f"{first}\ta child ended with {child.returncode}")
            first += 1
        if first >= args.count:
            break
    for kind, found in outcomes.items():
        words = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found.items()))
        print(f"{kind:14} {found.total():6} files: {words}")
    total = sum((found for found in outcomes.values()), Counter())
    minutes = (time.perf_counter() - start) / 60
    print(f"all            {total.total():6} files, in {minutes:.1f} minutes")
    print(f"slowest load {slowest:.2f} s, largest memory of a load {largest / MEGABYTE:.1f} MB")
    if decoded:
        tried, refused = decoded.split("\t")[1:]
        print(
            f"{n_names} names in {len(PLACES)} places each: {tried} entries, {int(refused)} refused"
        )
    print(f"promises broken: {len(broken)}")
    for line in broken[:20]:
        print("   ", line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
