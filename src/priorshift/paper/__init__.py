"""The paper's numbers, as data to compare with."""

from priorshift.paper.tables import PAPER_ROUNDS, TABLE_1, TABLE_2, Cell, paper_error

__all__ = ["PAPER_ROUNDS", "TABLE_1", "TABLE_2", "Cell", "paper_error"]
