"""Tables 1 and 2 of the paper: average error in percent on the synthetic data.

Bai, Zhang, Zhao, Sugiyama, Zhou, "Adapting to Online Label Shift with Provable Guarantees",
NeurIPS 2022. Every number is a mean and a standard deviation over five runs of 10,000 rounds.
"""

from __future__ import annotations

from typing import NamedTuple

PAPER_ROUNDS = 10_000
"""T, the rounds of a run behind every number."""

_SHIFTS = ("lin", "squ", "sin", "ber")
_HINTS = ("none", "win", "peri", "fwd", "okm")


class Cell(NamedTuple):
    """One entry of a table: mean and standard deviation, in percent.

    Examples
    --------
    >>> TABLE_1["atlas"]["squ"]
    Cell(mean=4.27, std=0.02)
    """

    mean: float
    std: float


def _row(names: tuple[str, ...], *numbers: float) -> dict[str, Cell]:
    """Pair means with the deviations that follow each of them."""
    cells = zip(numbers[::2], numbers[1::2], strict=True)
    return {name: Cell(*cell) for name, cell in zip(names, cells, strict=True)}


TABLE_1: dict[str, dict[str, Cell]] = {
    "fix": _row(_SHIFTS, 7.87, 0.03, 7.87, 0.02, 7.34, 0.03, 7.79, 0.02),
    "fth": _row(_SHIFTS, 4.70, 0.02, 6.50, 0.01, 6.36, 0.03, 6.60, 0.01),
    "ftfwh": _row(_SHIFTS, 5.27, 0.02, 6.52, 0.01, 6.36, 0.02, 6.60, 0.01),
    "rogd": _row(_SHIFTS, 6.08, 0.01, 7.11, 0.01, 6.87, 0.02, 6.40, 0.01),
    "uogd": _row(_SHIFTS, 5.35, 0.02, 6.17, 0.01, 6.37, 0.01, 5.46, 0.05),
    "atlas": _row(_SHIFTS, 5.44, 0.02, 4.27, 0.02, 5.75, 0.01, 4.04, 0.07),
}
"""Learner, then shift; 100 rows in a round."""

TABLE_2: dict[int, dict[str, dict[str, Cell]]] = {
    1: {
        "lin": _row(_HINTS, 6.28, 0.21, 5.89, 0.26, 5.99, 0.29, 6.01, 0.31, 5.35, 0.31),
        "squ": _row(_HINTS, 6.03, 0.23, 5.83, 0.24, 5.27, 0.20, 5.88, 0.23, 5.07, 0.35),
        "sin": _row(_HINTS, 6.90, 0.22, 6.58, 0.22, 6.59, 0.25, 6.43, 0.26, 5.25, 0.22),
        "ber": _row(_HINTS, 5.55, 0.09, 5.42, 0.11, 5.43, 0.09, 5.63, 0.16, 4.69, 0.17),
    },
    10: {
        "lin": _row(_HINTS, 5.61, 0.04, 5.47, 0.04, 5.43, 0.03, 5.53, 0.05, 5.42, 0.05),
        "squ": _row(_HINTS, 4.59, 0.02, 4.69, 0.02, 3.85, 0.04, 3.72, 0.02, 3.91, 0.03),
        "sin": _row(_HINTS, 6.12, 0.07, 5.99, 0.06, 5.83, 0.05, 5.78, 0.05, 5.86, 0.04),
        "ber": _row(_HINTS, 4.39, 0.10, 4.45, 0.08, 4.43, 0.10, 3.66, 0.10, 3.73, 0.06),
    },
    100: {
        "lin": _row(_HINTS, 5.44, 0.02, 5.44, 0.03, 5.38, 0.02, 5.40, 0.02, 5.45, 0.03),
        "squ": _row(_HINTS, 4.27, 0.02, 4.68, 0.02, 3.39, 0.03, 3.33, 0.03, 3.46, 0.04),
        "sin": _row(_HINTS, 5.75, 0.01, 5.78, 0.01, 5.53, 0.00, 5.48, 0.01, 5.58, 0.00),
        "ber": _row(_HINTS, 4.04, 0.07, 4.29, 0.06, 4.26, 0.06, 3.19, 0.07, 3.45, 0.11),
    },
}
"""Rows in a round, then shift, then the hint of ATLAS-ADA; "none" is ATLAS."""


def paper_error(learner: str, hint: str | None, shift: str, batch_size: int) -> float | None:
    """Return the paper's average error in percent, or None where it has no number.

    Parameters
    ----------
    learner : str
    hint : str or None
        For "atlas-ada"; others have none.
    shift : str
    batch_size : int
        N_t, rows in a round.

    Examples
    --------
    >>> paper_error("fth", None, "lin", 100)
    4.7
    >>> paper_error("atlas-ada", "okm", "ber", 10)
    3.73
    >>> paper_error("atlas", None, "squ", 1)
    6.03
    >>> paper_error("fth", None, "lin", 10) is None
    True
    """
    if learner in ("atlas", "atlas-ada"):
        # The table's column without a hint is ATLAS; ATLAS-ADA without one is not in it.
        column = "none" if learner == "atlas" else hint
        if column is None or (learner == "atlas-ada" and column == "none"):
            return None
        cell = TABLE_2.get(batch_size, {}).get(shift, {}).get(column)
    else:
        cell = TABLE_1.get(learner, {}).get(shift) if batch_size == 100 else None
    return None if cell is None else cell.mean
