"""Table (d): a thousand classes."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.beyond.runs import SHIFTS, Measurer, Numbers, Problem
from benchmarks.beyond.verdicts import above, below, close, number, show
from priorshift.datasets import Dataset
from priorshift.datasets.dataset import pool_dataset
from priorshift.experiments.description import StreamRun
from priorshift.experiments.perform import make_learner
from priorshift.simulation.streams import GaussianPopulation
from priorshift.source import Source, build_source

WIDTH, SPREAD, ROWS_A_CLASS, POOL_A_CLASS = 32, 0.75, 5, 50
LEAST_GAP = 0.5
CALIBRATION = "temperature"
_TITLE = """\
{classes:,} simulated classes, N_t = 100, {rounds:,} rounds; the last but one column has the share
after {longer:,} rounds. One seed, adapt first, error in %.
Gaussian classes in {width} dimensions with centres drawn at random; f: their exact posterior for
equal shares; {rows} labelled rows of each class, on which f is calibrated by a temperature, not
as the learner asks for: to choose among all maps takes minutes with so many classes. The mix
moves between equal shares and: "one" class alone, "few" (20 classes), "Zipf" (the k-th class has
a share proportional to 1 / k). Shares of a gap below {gap} points are noise and not counted (a
dash). Milliseconds are processor time.
"""


def centres(classes: int) -> np.ndarray:
    """One for each class."""
    return SPREAD * np.random.default_rng(0).normal(size=(classes, WIDTH))


def gaussian(count: str) -> Dataset:
    """Gaussian classes: a held-out set and a pool, with as many rows of each."""
    classes, rng = int(count), np.random.default_rng(1)
    gauss = GaussianPopulation(centres(classes), np.eye(WIDTH))
    y0, y1 = (np.repeat(np.arange(classes), rows) for rows in (ROWS_A_CLASS, POOL_A_CLASS))
    return pool_dataset("many", (gauss.draw(y0, rng), y0), (gauss.draw(y1, rng), y1))


def exact(data: Dataset) -> Source:
    """Make f: the posterior for equal shares, which is a logistic regression."""
    model = LogisticRegression()
    model.classes_ = data.classes
    model.coef_ = centres(data.n_classes)
    model.intercept_ = -0.5 * (model.coef_**2).sum(axis=1)
    return build_source(model, data.X0, data.y0)


def mixes(classes: int) -> dict[str, np.ndarray]:
    """What the mix moves to and from."""
    rank = np.random.default_rng(1).permutation(classes)
    zipf = 1.0 / (1 + rank)
    few = (rank < 20).astype(float)
    return {
        "one": (rank == 0).astype(float),
        "few": few / few.sum(),
        "Zipf": zipf / zipf.sum(),
    }


def round_time(measurer: Measurer, run: StreamRun) -> float:
    """Median processor time in ms of adapting to a batch and predicting it, as the mix moves.

    On a busy machine the clock on the wall tells of others' work.
    """
    with threadpool_limits(1):
        prepared = measurer.prepared(run)
        source, learner = prepared.source(run), make_learner(run)
        state, times = learner.start(source), []
        for X, _ in prepared.stream(run):
            batch = source.read(X)
            began = time.process_time()
            state = learner.adapt(source, state, batch)
            learner.predict_proba(source, state, batch)
            times.append(time.process_time() - began)
    return 1e3 * statistics.median(times)


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    classes, rounds, longer = (30, 20, 40) if measurer.quick else (1_000, 500, 3_000)
    problem = Problem(f"{classes} classes", f"{classes}", make=gaussian, build=exact)
    rows, cells, times = [], [], []
    for name, mu2 in mixes(classes).items():
        runs = {
            (shift, length): StreamRun(
                *(problem, measurer.learner, "adapt-first", 100, length, 0),
                shift=shift,
                mu2=tuple(mu2.tolist()),
                calibration=CALIBRATION,
            )
            for shift in SHIFTS
            for length in (rounds, longer)
        }
        found = measurer.measure(runs)
        times.append(round_time(measurer, replace(runs["lin", rounds], rounds=60)))
        for shift in SHIFTS:
            one = found[shift, rounds]
            both = (_part(one), _part(found[shift, longer]))
            cells.append(both)
            errors = (one.fix, one.true_mix, one.calibrated_true_mix, one.error)
            shares = (number(part, ".0f") for part in both)
            rows.append([name, shift, *map(number, errors), *shares, number(times[-1])])
    title = _TITLE.format(
        classes=classes,
        rounds=rounds,
        longer=longer,
        width=WIDTH,
        rows=ROWS_A_CLASS,
        gap=LEAST_GAP,
    )
    head = ["mix", "shift", "FIX", "true mix", "calibrated", measurer.learner]
    show("d", title, [*head, "share", f"{longer:,} rounds", "ms a round"], rows)
    slowest = below("ms a round (adapt and predict), median, slowest mix", max(times), 10)
    close([*_judged(cells, (rounds, longer)), slowest])


def _part(one: Numbers) -> float:
    return one.share if one.fix - one.true_mix >= LEAST_GAP else math.nan


def _judged(cells: list[tuple[float, float]], lengths: tuple[int, int]) -> list[str]:
    lines = []
    for length, shares in zip(lengths, zip(*cells, strict=True), strict=True):
        counted = [part for part in shares if not math.isnan(part)]
        what = f"{length:,} rounds: share of the gap closed"
        lines += [
            f"{length:,} rounds: cells counted: {len(counted)} of {len(shares)}",
            above(f"{what}, mean, %", statistics.fmean(counted), 50),
            above(f"{what}, worst cell, %", min(counted), 50),
        ]
    return lines
