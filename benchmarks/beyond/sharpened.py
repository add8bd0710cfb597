"""Table (e): an f whose logits are three times too large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.beyond.runs import SHIFTS, Measurer, Problem
from benchmarks.beyond.verdicts import below, close, number, show
from benchmarks.calibration import small
from benchmarks.tracking import calibrated_source
from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.files import named_file
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.description import StreamRun
from priorshift.source import Source
from priorshift.source.model import Model

NAMES = ("synthetic", "pendigits", "fashion_mnist", "cifar10_resnet18_logits")
POWER, LEAST_GAP = 3.0, 0.5
_TITLE = """\
f made three times too sure of itself (logits x 3), N_t = 10, {rounds:,} rounds, {seeds} seeds,
adapt first. Errors in % of f as it is (FIX, the same for both); of f and of f x 3, each
calibrated as {learner} asks for, with the true mix ("floor", "x 3"); of {learner} on the one and
on the other. "lost": how much smaller the gain over FIX is with f x 3, in %; where the gain is
below {gap} points it is noise (a dash). "maps": the calibrations that were chosen. f: as in (a)
for synthetic data, else as in (b), of at most 6,000 offline rows and 64 principal components.
"""


def sharpen(proba: np.ndarray) -> np.ndarray:
    """Probabilities with their logits multiplied."""
    return np.asarray(softmax(POWER * np.log(np.maximum(proba, 1e-300)), axis=1))


class Sharpened(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted model with its logits multiplied."""

    def __init__(self, model: object) -> None:
        self.model = model

    @property
    def classes_(self) -> np.ndarray:
        """Class labels."""
        return np.asarray(self.model.classes_)  # type: ignore[attr-defined]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Too sure."""
        return sharpen(self.model.predict_proba(X))  # type: ignore[attr-defined]


def plain(data: Dataset) -> Source:
    """f: for synthetic data as in (a), else as in (b)."""
    return calibrated_source(data) if data.name == "synthetic" else offline_stage(data)


def sharp(data: Dataset) -> Source:
    """The same f on the same held-out set, with sharper logits."""
    source = plain(data)
    model = Model(Sharpened(source.model.estimator), source.classes)
    return replace(source, model=model, proba=sharpen(source.proba))


def fewer(name: str) -> Dataset:
    """The data set; of a real one a part."""
    data = load_dataset(name)
    return data if name == "synthetic" else small(data, rows=6_000, components=64)


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    rounds, seeds = (60, 1) if measurer.quick else (3_000, 3)
    here = [n for n in NAMES if n == "synthetic" or named_file(n).exists()]
    names = ["digits"] if measurer.quick else here
    rows, lost = [], []
    for name in names:
        problems = (
            Problem(f"{name}, 6,000 rows", name, make=fewer, build=plain),
            Problem(f"{name}, logits x 3", name, make=fewer, build=sharp),
        )
        found = measurer.measure(
            {
                (problem, shift): StreamRun(
                    problem, measurer.learner, "adapt-first", 10, rounds, 0, shift=shift
                )
                for problem in problems
                for shift in SHIFTS
            },
            seeds,
        )
        for shift in SHIFTS:
            fine, poor = (found[problem, shift] for problem in problems)
            gain = fine.fix - fine.error
            loss = 100 * (1 - (poor.fix - poor.error) / gain) if gain >= LEAST_GAP else np.nan
            lost.append(loss)
            rows.append(
                [
                    *(name if shift == SHIFTS[0] else "", shift),
                    *map(number, (fine.fix, fine.calibrated_true_mix, poor.calibrated_true_mix)),
                    *map(number, (fine.error, poor.error)),
                    *(number(loss, ".1f"), f"{fine.calibration}, {poor.calibration}"),
                ]
            )
    head = ("data", "shift", "FIX", "floor", "x 3", measurer.learner, "x 3", "lost", "maps")
    show(
        "e",
        _TITLE.format(rounds=rounds, seeds=seeds, learner=measurer.learner, gap=LEAST_GAP),
        head,
        rows,
    )
    counted = [value for value in lost if not np.isnan(value)]
    if not counted:
        print("  no cell to judge\n")
        return
    close(
        [
            f"cells counted (gain of at least {LEAST_GAP} points): {len(counted)} of {len(lost)}",
            below("lost, mean, %", float(np.mean(counted)), 10, ".1f"),
            below("lost, worst cell, %", max(counted), 10, ".1f"),
        ]
    )
