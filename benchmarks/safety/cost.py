"""Part cost: what safety adds to the time of adapting and of fitting."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.beyond.verdicts import below, close, show
from benchmarks.safety.running import Options
from benchmarks.safety.subject import has_safety, quiet, subject
from benchmarks.timing import compare
from priorshift.source import build_source

ROWS, CLASSES, WIDTH = 2000, 10, 20
MANY_ROWS, MANY_CLASSES = 4000, 26
_TITLE = """\
Time with safety and without, in turns in one process, one thread of BLAS; held-out set of {rows:,}
rows, {classes} classes, {width} features, a logistic regression. adapt: ms, medians; fit: seconds,
the least of {times}. Without a version that knows safety, the one time there is.
"""


def problem(rows: int, classes: int) -> tuple[Any, np.ndarray, np.ndarray, list[np.ndarray]]:
    """A model, a held-out set, and rows of a stream whose class prior changes."""
    rng = np.random.default_rng(0)
    centres = 0.9 * rng.normal(size=(classes, WIDTH))
    y = np.arange(2 * rows) % classes
    X = centres[y] + rng.normal(size=(len(y), WIDTH))
    model = LogisticRegression(max_iter=300).fit(X[:rows], y[:rows])
    later = [rng.choice(classes, 100, p=rng.dirichlet(np.ones(classes))) for _ in range(40)]
    return model, X[rows:], y[rows:], [centres[z] + rng.normal(size=(100, WIDTH)) for z in later]


def adapting(classifier: Any, batches: list[np.ndarray], rows: int) -> Callable[[], object]:
    """Adapt to the next batch, on and on."""
    place = iter(range(10**9))
    return lambda: classifier.adapt(batches[next(place) % len(batches)][:rows])


def fit_seconds(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, times: int) -> float:
    """Seconds of a fit, the least of some."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        make().fit(X, y)
        found.append(time.perf_counter() - began)
    return min(found)


def calibration_seconds(times: int) -> float:
    """Seconds that calibration="auto" takes for many classes."""
    model, X, y, _ = problem(MANY_ROWS, MANY_CLASSES)
    source = build_source(model, X, y)
    found = []
    for _ in range(times):
        began = time.perf_counter()
        source.calibrated("auto")
        found.append(time.perf_counter() - began)
    return median(found)


def table(options: Options) -> None:
    """Measure, print, judge."""
    times, seconds = (1, 0.1) if options.quick else (3, 5.0)
    rows, verdicts = [], []
    with quiet():
        model, X, y, batches = problem(300 if options.quick else ROWS, CLASSES)
        modes = ("on", "off") if has_safety() else ("on",)
        fitted = {mode: subject(model, mode).fit(X, y) for mode in modes}
        for size in (1, 20, 100):
            plays = [adapting(fitted[mode], batches, size) for mode in modes]
            for play in plays * 20:
                play()
            found = compare(plays[0], plays[-1], seconds)
            rows.append(_row(f"adapt, {size} rows, ms", 1e3 * found.subject, 1e3 * found.yardstick))
            if has_safety():
                verdicts.append(below(f"adapt, {size} rows, ratio", found.ratio, 1.3))
        spent = [fit_seconds(lambda m=mode: subject(model, m), X, y, times) for mode in modes]
        rows.append(_row("fit, s", spent[0], spent[-1]))
        if has_safety():
            verdicts.append(below("fit, seconds more", spent[0] - spent[1], 2.0))
        if not options.quick:
            name = f'calibration="auto", {MANY_ROWS:,} rows, {MANY_CLASSES} classes, s'
            verdicts.append(below(name, calibration_seconds(times), 5.0))
    title = _TITLE.format(rows=len(X), classes=CLASSES, width=WIDTH, times=times)
    show("cost", title, ("what", "on", "off", "ratio"), rows)
    close(verdicts)


def _row(what: str, on: float, off: float) -> list[str]:
    if not has_safety():
        return [what, f"{on:.3f}", "-", "-"]
    return [what, f"{on:.3f}", f"{off:.3f}", f"{on / off:.2f}"]
