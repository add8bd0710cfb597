"""Performance without labels, beside NannyML's CBPE: ``python -m benchmarks.cbpe``.

Both see the windows of `benchmarks.performance`: CBPE by its calibrated probabilities, with the
held-out set as its reference, ours by the held-out rows, weighed by today's class prior. NannyML is
installed into an environment of its own, where none is at hand.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.performance import ROWS, Problem, rare, real, truth, window
from priorshift.datasets.files import ORIGINS, named_file
from priorshift.monitoring.performance import Performance

METRICS = ("accuracy", "f1", "recall", "auc")
# NannyML 0.13 needs statsmodels without saying so, and pandas before version 3.
PEER = ("nannyml>=0.13,<0.14", "statsmodels", "pandas<3")


class Window(NamedTuple):
    """Predictions of a window, what they were worth, and what was estimated; by their kind.

    ``expected`` is what they are worth on the mean over windows with the same class prior.
    """

    proba: dict[str, np.ndarray]
    truth: dict[str, dict[str, float]]
    expected: dict[str, dict[str, float]]
    ours: dict[str, dict[str, float]]
    milliseconds: float


def overall(metrics: dict) -> dict[str, float]:
    """One number of each metric: of two classes that of the second, of more their mean."""
    flat = {name: np.atleast_1d(metrics[name]) for name in METRICS}
    return {name: float(v[-1] if len(v) <= 2 else v.mean()) for name, v in flat.items()}


def values(found: Performance) -> dict[str, float]:
    return overall({name: getattr(found, name).value for name in METRICS})


def labelled(found: dict) -> dict[str, float]:
    return overall({name: ends[0] for name, ends in found.items()})


def watched(problem: Problem, mu: np.ndarray, rng: np.random.Generator) -> Window:
    """Adapt to one window, and estimate what the predictions are worth."""
    rows = window(problem, mu, rng)
    clf, X, y = problem.clf, problem.X[rows], problem.y[rows]
    proba = {"adapted": clf.adapt_predict_proba(X), "as it is": clf._read(X).f0_proba}
    began = time.process_time()
    found = clf.performance()
    ours = {"adapted": values(found)}
    milliseconds = 1e3 * (time.process_time() - began)
    assert found.unadapted is not None
    ours["as it is"] = values(found.unadapted)
    ours["of the rows"] = {"accuracy": float(found.accuracy_of(proba["adapted"]).value)}
    every = {"adapted": clf.predict_proba(problem.X), "as it is": clf._read(problem.X).f0_proba}
    true = {kind: labelled(truth(P, y)) for kind, P in proba.items()}
    expected = {kind: labelled(truth(P, problem.y, mu)) for kind, P in every.items()}
    # A mean over all classes is not defined for a window that lacks one.
    if (np.bincount(y, minlength=len(mu)) == 0).any():
        true = {kind: {"accuracy": metrics["accuracy"]} for kind, metrics in true.items()}
    return Window(proba, true, expected, ours, milliseconds)


def cbpe(problem: Problem, windows: list[Window], python: Path) -> dict:
    """What CBPE says of the same windows."""
    source = problem.clf.source_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.npz"
        proba = {kind: np.array([one.proba[kind] for one in windows]) for kind in windows[0].proba}
        np.savez(path, reference=source.f0_proba, labels=source.labels, **proba)
        script = Path(__file__).with_name("cbpe_windows.py")
        done = subprocess.run([python, script, path], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"CBPE failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def environment(folder: Path) -> Path:
    """The Python of an environment that has NannyML, made if it is not there."""
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        print(f"installing NannyML into {folder} (some minutes, once)", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
        done.touch()
    return python


def line(problems: list[tuple[list[Window], dict]], kind: str, judged: str, target: str) -> str:
    """Mean absolute errors in points, ours and CBPE's, and their ratio, for each metric."""
    cells = []
    for metric in METRICS:
        errors = [
            [abs(one.ours[kind][metric] - true), abs(theirs[judged][metric][place] - true)]
            for windows, theirs in problems
            for place, one in enumerate(windows)
            if metric in one.ours[kind]
            and (true := getattr(one, target)[judged].get(metric)) is not None
        ]
        own, peer = 100 * np.mean(errors, axis=0) if errors else (np.nan, np.nan)
        cells.append(f"{own:6.2f} {peer:6.2f} {own / peer:5.2f}" if errors else f"{'':19}")
    return "  ".join(cells).rstrip()


def report(name: str, problems: list[tuple[list[Window], dict]]) -> None:
    """Print the lines of a file."""
    for kind, judged in (("as it is",) * 2, ("adapted",) * 2, ("of the rows", "adapted")):
        for target in ("truth", "expected"):
            cells = line(problems, kind, judged, target)
            print(f"{name:24} {kind:12} {target:9}{cells}", flush=True)
    own = np.mean([one.milliseconds for windows, _ in problems for one in windows])
    peer = np.mean([theirs["adapted"]["milliseconds"] for _, theirs in problems])
    print(f"{name:24} (a window takes {own:.0f} ms, by CBPE {peer:.0f} ms)", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cbpe", description=__doc__)
    parser.add_argument("--env", type=Path, default=Path(".venv-nannyml"), help="for NannyML")
    parser.add_argument("--splits", type=int, default=3, help="splits of each file")
    parser.add_argument("--windows", type=int, default=8, help="windows of each split")
    parser.add_argument("--safety", choices=("on", "off"), default="on")
    parser.add_argument("--data", nargs="*", help="files; by default all, and the rare class")
    args = parser.parse_args(argv)
    python = environment(args.env.absolute())
    names = args.data or ["rare", *(n for n in ORIGINS if named_file(n).exists())]
    print(
        f"{args.splits} splits, {args.windows} windows of {ROWS} rows, safety {args.safety}: mean"
    )
    print("absolute errors in points, ours, CBPE's, and their ratio; of two classes those of the")
    print("second, of more the means over the classes, in windows that have all of them. As it is:")
    print("the model's own predictions; of the rows: performance().accuracy_of, as adapted.")
    print("Truth: the window's labels; expected: many rows with the window's class prior.")
    head = "  ".join(f"{name:19}" for name in METRICS).rstrip()
    print(f"{'data':24} {'predictions':12} {'against':9}{head}")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a model has not converged does not matter here
        for name in names:
            problems = []
            for seed in range(args.splits):
                asked = seed, args.windows, "auto", args.safety
                problem = rare(*asked) if name == "rare" else real(name, *asked)
                rng = np.random.default_rng([9, seed])
                windows = [watched(problem, mu, rng) for mu in problem.priors]
                problems.append((windows, cbpe(problem, windows, python)))
            report(name, problems)
    return 0


if __name__ == "__main__":
    sys.exit(main())
