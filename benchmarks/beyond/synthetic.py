"""Table (a): the twelve cells of the paper's Table 2."""

from __future__ import annotations

from benchmarks.beyond.runs import SHIFTS, Measurer, Numbers, Problem
from benchmarks.beyond.verdicts import close, counted, number, show
from benchmarks.tracking import calibrated_source
from priorshift.experiments.description import StreamRun
from priorshift.experiments.paper import TABLE_2

_TITLE = """\
The paper's Table 2: synthetic data, {rounds:,} rounds, {seeds} seeds, error in %. f: an ordinary
logistic regression with an intercept, fitted on the 10,000 offline rows, and calibrated on them
as {learner} asks for. (The paper's learners have no intercept.) "floor": f, so calibrated, with
the true class mix of every round. "oracle": the true densities with the true mix. "hint": the
best of the paper's hints, which adapt first; "ATLAS": the paper's, which predicts first.
"""
_HEAD = (
    *("N_t", "shift", "predict first", "adapt first", "floor", "oracle"),
    *("hint", "better by", "ATLAS", "better by"),
)


def table(measurer: Measurer) -> None:
    """Measure, print, judge."""
    sizes = (10,) if measurer.quick else (1, 10, 100)
    rounds, seeds = (60, 1) if measurer.quick else (10_000, 5)
    problem = Problem("f with an intercept", "synthetic", build=calibrated_source)
    rows, cells = [], []
    for size in sizes:
        runs = {
            (shift, order): StreamRun(
                problem, measurer.learner, order, size, rounds, 0, shift=shift
            )
            for shift in SHIFTS
            for order in ("predict-first", "adapt-first")
        }
        found = measurer.measure(runs, seeds)
        for shift in SHIFTS:
            before, after = (found[shift, order] for order in ("predict-first", "adapt-first"))
            cells.append(_Cell(size, shift, before, after))
            rows.append(cells[-1].row())
    show("a", _TITLE.format(rounds=rounds, seeds=seeds, learner=measurer.learner), _HEAD, rows)
    small = [cell for cell in cells if cell.size > 1]
    close(
        [
            counted("adapt first is below the best hint", [c.hint_gain > 0 for c in cells]),
            counted("by 25 % or more", [c.hint_gain >= 25 for c in cells], 10 * len(cells) // 12),
            counted("predict first is below ATLAS", [c.atlas_gain > 0 for c in cells]),
            counted(
                "adapt first is within 0.2 points of the floor, N_t > 1",
                [c.after.error <= c.after.calibrated_true_mix + 0.2 for c in small],
            ),
        ]
    )


class _Cell:
    """One batch size under one shift."""

    def __init__(self, size: int, shift: str, before: Numbers, after: Numbers) -> None:
        self.size, self.shift, self.before, self.after = size, shift, before, after
        hints = {name: cell.mean for name, cell in TABLE_2[size][shift].items()}
        self.atlas = hints.pop("none")
        self.hint = min(hints.values())

    @property
    def hint_gain(self) -> float:
        return 100 * (1 - self.after.error / self.hint)

    @property
    def atlas_gain(self) -> float:
        return 100 * (1 - self.before.error / self.atlas)

    def row(self) -> list[str]:
        after = self.after
        errors = (self.before.error, after.error, after.calibrated_true_mix, after.true_mix)
        return [
            *(f"{self.size}", self.shift, *map(number, errors), f"{self.hint:.2f}"),
            *(f"{self.hint_gain:.0f} %", f"{self.atlas:.2f}", f"{self.atlas_gain:.0f} %"),
        ]
