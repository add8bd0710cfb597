"""Table (f): time of a round against a prediction of the model that is being followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.beyond.runs import Measurer
from benchmarks.beyond.verdicts import below, close, show
from benchmarks.timing import compare
from priorshift.learners import LEARNERS, as_learner
from priorshift.source import Batch, Source, build_source

CLASSES, WIDTH, ROWS = 10, 784, 100
TARGETS = {"tracker": 3.0, "auto": 10.0}
_TITLE = """\
Time of learning from {rows} rows (adapt), K = {classes}, against scikit-learn's
LogisticRegression.predict_proba on the same {rows} x {width} rows: medians, in turns in one
process, one BLAS thread. Hold-out of {hold:,} rows.
"""


def problem(hold: int) -> tuple[Source, list[np.ndarray]]:
    """A logistic regression on simulated pixels, and batches from two mixes in turns."""
    rng = np.random.default_rng(0)
    centres = 0.12 * rng.normal(size=(CLASSES, WIDTH))
    labels = np.arange(2 * hold) % CLASSES
    X = centres[labels] + rng.normal(size=(len(labels), WIDTH))
    model = LogisticRegression(C=1e-2, max_iter=50).fit(X[:hold], labels[:hold])
    batches = []
    for t in range(40):
        mix = np.full(CLASSES, 1 / CLASSES)
        if t >= 20:
            mix = 0.2 * mix + 0.8 * np.eye(CLASSES)[0]
        y = rng.choice(CLASSES, ROWS, p=mix)
        batches.append(centres[y] + rng.normal(size=(ROWS, WIDTH)))
    return build_source(model, X[hold:], labels[hold:]), batches


def adapting(learner: Any, source: Source, batches: list[Batch]) -> Callable[[], object]:
    """Adapt to the next batch, on and on."""
    place = {"t": 0, "state": learner.start(source)}

    def play() -> None:
        place["state"] = learner.adapt(source, place["state"], batches[place["t"] % len(batches)])
        place["t"] += 1

    return play


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    hold, seconds = (200, 0.0) if measurer.quick else (2_000, 5.0)
    rows, verdicts = [], []
    with threadpool_limits(1):
        source, batches = problem(hold)
        model = source.model.estimator
        for name in dict.fromkeys(["tracker", "auto", measurer.learner]):
            if name not in LEARNERS:
                continue
            learner = as_learner(name)
            read = source.calibrated(learner.calibration)
            play = adapting(learner, read, [read.read(X) for X in batches])
            for _ in range(2 if measurer.quick else 50):
                play()
            ours, theirs, ratio = compare(play, lambda: model.predict_proba(batches[0]), seconds)
            rows.append([name, f"{1e3 * ours:.3f}", f"{1e3 * theirs:.3f}", f"{ratio:.2f}"])
            if name in TARGETS:
                verdicts.append(below(f"{name}, ratio", ratio, TARGETS[name]))
    title = _TITLE.format(rows=ROWS, classes=CLASSES, width=WIDTH, hold=hold)
    show("f", title, ("learner", "adapt, ms", "predict_proba, ms", "ratio"), rows)
    close(verdicts)
