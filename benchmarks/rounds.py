"""Rounds of the learners against the matrix products that they cannot avoid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.figure import Figure
from benchmarks.speed import implicit_figures, loop_figure, sketch_figures, sweep_figure
from benchmarks.timing import compare
from benchmarks.trackers import tracker_rounds
from priorshift.learners import ATLAS, UOGD
from priorshift.source import Batch, Source, build_source
from priorshift.source.model import LinearModel


def problem(rows: int, width: int, n_classes: int, seed: int = 0) -> tuple[Source, Batch]:
    """A Gaussian problem of the given size, with a linear f0 that is good but not perfect."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, width))
    centres *= 3.0 / np.linalg.norm(centres, axis=1, keepdims=True)
    labels = rng.integers(0, n_classes, rows)
    X = centres[labels] + 0.7 * rng.normal(size=(rows, width))
    model = LinearModel(centres, np.arange(n_classes))
    source = build_source(model, X, labels, intercept=False)
    return source, source.read(X[:100])


def products(source: Source, n_learners: int) -> Callable[[], object]:
    """The two float32 products of a round: logits of all samples, gradients of all weights."""
    XT = source.risk.XT
    rows = n_learners * source.n_classes
    W = np.random.default_rng(1).normal(size=(rows, XT.shape[0])).astype(np.float32)
    logits = np.empty((rows, XT.shape[1]), np.float32)
    gradient = np.empty((rows, XT.shape[0]), np.float32)

    def both() -> None:
        np.matmul(W, XT, out=logits)
        np.matmul(logits, XT.T, out=gradient)

    return both


def one_round(learner: Any, source: Source, batch: Batch, state: Any) -> Callable[[], object]:
    """Predict a batch of 100 and adapt to it."""

    def play() -> Any:
        learner.predict_proba(source, state, batch)
        return learner.adapt(source, state, batch)

    return play


def warmed(learner: Any, source: Source, batch: Batch, rounds: int = 5) -> Any:
    """A state after a few rounds, when the base learners have parted."""
    state = learner.start(source)
    for _ in range(rounds):
        state = learner.adapt(source, state, batch)
    return state


def figures(seconds: float) -> Iterator[Figure]:
    """Measure everything, one figure after the other."""
    pool = tuple(0.1 * 2.0**i for i in range(8))
    sizes = ((10_000, 12, 3, 2.0), (10_000, 512, 10, 1.25), (30_000, 22, 6, 2.0))
    for rows, width, n_classes, target in sizes:
        source, batch = problem(rows, width, n_classes)
        atlas = ATLAS(steps=pool)
        play = one_round(atlas, source, batch, warmed(atlas, source, batch))
        name = f"ATLAS round, {rows} x {width}, K = {n_classes}, N = 8"
        yield Figure(
            name, "its two float32 products", target, compare(play, products(source, 8), seconds)
        )
    source, batch = problem(10_000, 12, 3)
    atlas, uogd = ATLAS(steps=pool), UOGD(step=0.1)
    play = one_round(atlas, source, batch, warmed(atlas, source, batch))
    single = one_round(uogd, source, batch, warmed(uogd, source, batch))
    yield Figure(
        "ATLAS round, N = 8, 10000 x 12", "UOGD round", 4.0, compare(play, single, seconds)
    )
    yield from implicit_figures(seconds)
    yield from sketch_figures(seconds)
    for line in tracker_rounds(seconds):
        yield Figure(*line)
    yield loop_figure(seconds)
    yield sweep_figure(seconds)
