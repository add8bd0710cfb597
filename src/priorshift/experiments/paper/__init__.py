"""The paper's numbers, as data to compare with."""

from priorshift.experiments.paper.tables import (
    PAPER_ROUNDS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    Cell,
    benchmark_cell,
    declared,
    paper_error,
)

__all__ = [
    "PAPER_ROUNDS",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "Cell",
    "benchmark_cell",
    "declared",
    "paper_error",
]
