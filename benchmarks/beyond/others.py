"""Table (g): claims that have benchmarks of their own."""

from __future__ import annotations

from benchmarks.beyond.runs import Measurer
from benchmarks.beyond.verdicts import show


def table(measurer: Measurer) -> None:
    """Say where to look."""
    rows = [
        ["false alarms and delays of the guard", "python -m benchmarks.guard", "docs/guard.md"],
        ["intervals for the mix, accuracy", "python -m benchmarks.insight", "docs/insight.md"],
        [
            "every calibration on every file",
            "python -m benchmarks.calibration",
            "docs/calibration.md",
        ],
        ["time of rounds", "make bench", "README.md"],
    ]
    show("g", "Measured elsewhere", ("what", "command", "page"), rows)
