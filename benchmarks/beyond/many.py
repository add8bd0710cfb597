"""Table (d): a thousand classes."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.beyond.runs import SHIFTS, Desk, Numbers, Problem, Run
from benchmarks.beyond.verdicts import above, below, close, number, show
from priorshift.calibration import as_calibration
from priorshift.datasets import Dataset
from priorshift.datasets.dataset import pool_dataset
from priorshift.learners import as_learner
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import GaussianWorld, Stream
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


def world(classes: int) -> Dataset:
    """Gaussian classes: a hold-out and a pool, with as many rows of each."""
    rng = np.random.default_rng(1)
    gauss = GaussianWorld(centres(classes), np.eye(WIDTH))
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


def round_time(desk: Desk, problem: Problem, rounds: int = 60) -> float:
    """Median processor time in ms of adapting to a batch and predicting it, as the mix moves.

    On a busy machine the clock on the wall tells of others' work.
    """
    learner = as_learner(desk.learner)
    with threadpool_limits(1):
        source = desk.source(problem, as_calibration(CALIBRATION))
        mixes = shift_by_name("lin").priors(problem.dataset.mu1, problem.mu2, rounds, rng=0)
        state, times = learner.start(source), []
        for X, _ in Stream(problem.dataset.world, mixes, problem.batch_size, seed=0):
            batch = source.read(X)
            began = time.process_time()
            state = learner.adapt(source, state, batch)
            learner.predict_proba(source, state, batch)
            times.append(time.process_time() - began)
    return 1e3 * statistics.median(times)


def table(desk: Desk) -> None:
    """Measure, print, judge."""
    classes, rounds, longer = (30, 20, 40) if desk.quick else (1_000, 500, 3_000)
    data = world(classes)
    rows, cells, times = [], [], []
    for name, mu2 in mixes(classes).items():
        problem = Problem(f"{classes} classes, {name}", data, exact, rounds, 100, mu2)
        short, long = _measured(desk, problem), _measured(desk, replace(problem, rounds=longer))
        times.append(round_time(desk, problem))
        for shift in SHIFTS:
            one, both = short[shift], (_part(short[shift]), _part(long[shift]))
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
    head = ["mix", "shift", "FIX", "true mix", "calibrated", desk.learner]
    show("d", title, [*head, "share", f"{longer:,} rounds", "ms a round"], rows)
    slowest = below("ms a round (adapt and predict), median, slowest mix", max(times), 10)
    close([*_judged(cells, (rounds, longer)), slowest])


def _measured(desk: Desk, problem: Problem) -> dict[str, Numbers]:
    runs = {
        shift: Run(desk.learner, shift, "adapt-first", calibration=CALIBRATION) for shift in SHIFTS
    }
    found = desk.measure(problem, list(runs.values()))
    return {shift: found[run] for shift, run in runs.items()}


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
