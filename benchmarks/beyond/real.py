"""Table (b): the real files, and how much of what the true class mix would gain is gained."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.beyond.runs import SHIFTS, Measurer, Numbers, Problem
from benchmarks.beyond.verdicts import above, close, number, show
from benchmarks.calibration import small
from priorshift.datasets import Dataset, load_dataset, named_dataset
from priorshift.datasets.files import ORIGINS, named_file
from priorshift.datasets.reduce import reduced
from priorshift.experiments.description import StreamRun

ROWS, HEAVY_ROWS, HEAVY_COLUMNS, SKETCH = 20_000, 3_000, 64, 500
# A gap of fewer points than this is not larger than its own noise: no share of it is taken.
LEAST_GAP = 0.5
_EVERY_COLUMN = 10**6
_TITLE = """\
Real data, N_t = 10, {rounds:,} rounds, {seeds} seeds, all adapt first; error in %, and the share
of the gap between f as it is (FIX) and f, uncalibrated, with the true class mix ("true mix") that
is closed, in %. "calibrated": f as the learner reads it, with the true mix. f: a logistic
regression on one half of at most {rows:,} offline rows, measured on the other half; of
cifar10_resnet18_logits a real network. The last two columns are of a smaller problem that
ATLAS-ADA (OKM, {sketch} offline rows read a round) can be run on: {heavy_rows:,} offline rows, at
most {columns} principal components, the same rounds and seeds, shares of that problem's own gap.
Rule: where the gap is below {gap} points its share is noise and is not counted (a dash).
"""


def present() -> tuple[list[str], list[str]]:
    """Names of the files that are in the data folder, and of those that are not."""
    names = list(ORIGINS)
    here = [name for name in names if named_file(name).exists()]
    return here, [name for name in names if name not in here]


def few(name: str) -> Dataset:
    """The data set, without most of its offline rows where there are many."""
    return small(load_dataset(name), rows=ROWS, components=_EVERY_COLUMN)


def heavy(name: str) -> Dataset:
    """The smaller problem; components are those of features as the file has them."""
    data = load_dataset(name)
    if name in ORIGINS and data.X0.shape[1] > HEAVY_COLUMNS:
        data = named_dataset(name, standardise=False)
    return reduced(data, rows=HEAVY_ROWS, components=HEAVY_COLUMNS, stratify=False)


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    here, missing = present()
    names = ["digits"] if measurer.quick else here
    rounds, seeds = (60, 1) if measurer.quick else (3_000, 3)
    rows, shares = [], []
    for name in names:
        problem = Problem(name, name, make=few)
        fewer = Problem(f"{name}, small", name, make=heavy)
        found = measurer.measure(_runs(problem, (measurer.learner, "ftfwh"), rounds), seeds)
        both = () if measurer.light else (measurer.learner, "atlas-ada")
        beside = measurer.measure(_runs(fewer, both, rounds), seeds)
        for shift in SHIFTS:
            own, window = found[measurer.learner, shift], found["ftfwh", shift]
            pair = [_share(beside.get((one, shift))) for one in (measurer.learner, "atlas-ada")]
            shares.append((f"{name} {shift}", _share(own)))
            errors = (own.fix, own.true_mix, own.calibrated_true_mix, own.error, window.error)
            rows.append(
                [
                    *(name if shift == SHIFTS[0] else "", shift, *map(number, errors)),
                    *(number(s, ".0f") for s in (_share(own), _share(window), *pair)),
                ]
            )
    title = _TITLE.format(
        rounds=rounds,
        seeds=seeds,
        rows=ROWS,
        heavy_rows=HEAVY_ROWS,
        columns=HEAVY_COLUMNS,
        sketch=SKETCH,
        gap=LEAST_GAP,
    )
    head = (
        *("data", "shift", "FIX", "true mix", "calibrated", measurer.learner, "FTFWH"),
        *("share", "FTFWH", f"small: {measurer.learner}", "ATLAS-ADA"),
    )
    show("b", title, head, rows)
    _judge(shares, missing)


def _runs(
    problem: Problem, learners: Sequence[str], rounds: int
) -> dict[tuple[str, str], StreamRun]:
    how = {"atlas-ada": {"hint": "okm", "sketch": f"blocks:{SKETCH}"}}
    return {
        (learner, shift): StreamRun(
            *(problem, learner, "adapt-first", 10, rounds, 0), shift=shift, **how.get(learner, {})
        )
        for learner in learners
        for shift in SHIFTS
    }


def _judge(shares: list[tuple[str, float]], missing: list[str]) -> None:
    if missing:
        print(f"  left out, not in the data folder: {', '.join(missing)}")
    counted = {name: value for name, value in shares if not math.isnan(value)}
    if not counted:
        print("  no cell to judge\n")
        return
    worst = min(counted, key=lambda name: counted[name])
    close(
        [
            f"cells counted: {len(counted)} of {len(shares)}",
            above("share of the gap closed, mean, %", statistics.fmean(counted.values()), 95),
            above(f"share of the gap closed, worst cell ({worst}), %", counted[worst], 75),
        ]
    )


def _share(found: Numbers | None) -> float:
    if found is None or found.fix - found.true_mix < LEAST_GAP:
        return math.nan
    return found.share
