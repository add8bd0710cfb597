"""Part features: the grid with a classifier that wraps the model itself and sees the features."""

from __future__ import annotations

from benchmarks.safety import grid
from benchmarks.safety.grid import Plan
from benchmarks.safety.running import Options

FULL = Plan(batches=(20,), shifts=("none", "abrupt"), seeds=2, features=True)
QUICK = Plan(
    models=("logistic", "naive Bayes"), rows=(134,), batches=(20,), shifts=("none", "abrupt"),
    seeds=1, rounds=300, features=True,
)  # fmt: skip


def table(options: Options) -> None:
    """Run, print, judge."""
    grid.table(options, FULL, QUICK)
