"""Rounds of the trackers against a prediction of the model that they follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import Ratio, compare, player
from priorshift.learners import as_learner
from priorshift.source import Batch, Source, build_source
from priorshift.typing import FloatArray, IntArray

NAMES = ("em", "regimes", "tracker", "flh-ftl", "window-hedge", "wavelet")


def batches(n_classes: int, rows: int = 100, rounds: int = 40) -> list[Batch]:
    """Batches of a calibrated f, from two mixes in turns."""
    rng = np.random.default_rng(0)
    found = []
    for t in range(rounds):
        mix = np.full(n_classes, 1.0 / n_classes)
        if t // 20 % 2:
            mix = 0.2 * mix + 0.8 * np.eye(n_classes)[0]
        X = rng.normal(size=(rows, n_classes))
        X[np.arange(rows), rng.choice(n_classes, rows, p=mix)] += 2.5
        P = np.exp(2.5 * (X - X.max(axis=1, keepdims=True)))
        found.append(Batch(P / P.sum(axis=1, keepdims=True), np.zeros((rows, 1))))
    return found


def plain_source(n_classes: int) -> Any:
    """What trackers read of a source."""
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(n_classes), 5)
    X = rng.normal(size=(len(labels), n_classes)) + 2.5 * np.eye(n_classes)[labels]
    P = np.exp(2.5 * (X - X.max(axis=1, keepdims=True)))
    P /= P.sum(axis=1, keepdims=True)
    soft = P.reshape(n_classes, 5, n_classes).mean(axis=1).T
    return SimpleNamespace(
        prior=np.full(n_classes, 1.0 / n_classes),
        n_classes=n_classes,
        proba=P,
        labels=labels,
        counts=np.full(n_classes, 5),
        soft_confusion_inverse=np.linalg.inv(soft),
    )


def model_prediction(width: int = 784) -> Callable[[], object]:
    """Predictions of scikit-learn's logistic regression for 100 rows, ten classes."""
    rng = np.random.default_rng(2)
    model = LogisticRegression()
    model.classes_ = np.arange(10)
    model.coef_, model.intercept_ = rng.normal(size=(10, width)), np.zeros(10)
    rows = rng.normal(size=(100, width))
    return lambda: model.predict_proba(rows)


def tracker_rounds(seconds: float) -> Iterator[tuple[str, str, float | None, Ratio]]:
    """Name, yardstick, target and times of each tracker's round."""
    yardstick = model_prediction()
    for n_classes, names in ((10, NAMES), (1000, ("tracker",))):
        source, stream = plain_source(n_classes), batches(n_classes)
        for name in names:
            play = player(as_learner(name), source, stream, warm=20)
            target = 3.0 if n_classes == 10 else None
            title = f"{name} round, 100 rows, K = {n_classes}"
            yield title, "predict_proba, 100 x 784", target, compare(play, yardstick, seconds)
    source, stream = featured_source()
    play = player(as_learner("auto"), source, stream, warm=20)
    title = "auto round, all members, K = 10, d = 784"
    yield title, "predict_proba, 100 x 784", 10.0, compare(play, yardstick, seconds)


def featured_source(width: int = 784) -> tuple[Source, list[Batch]]:
    """Ten classes with features, an f that was trained on few rows, and a stream."""
    rng = np.random.default_rng(3)
    centres = 0.12 * rng.normal(size=(10, width))

    def draw(rows: int) -> tuple[FloatArray, IntArray]:
        labels = np.arange(rows) % 10
        return centres[labels] + rng.normal(size=(rows, width)), labels

    X, y = draw(400)
    model = LogisticRegression(max_iter=50).fit(X, y)
    source = build_source(model, *draw(1500))
    return source, [source.read(draw(100)[0]) for _ in range(20)]
