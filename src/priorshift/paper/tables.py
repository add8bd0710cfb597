"""Tables 1 to 4 of the paper: average error in percent on synthetic and on real data.

Bai, Zhang, Zhao, Sugiyama, Zhou, "Adapting to Online Label Shift with Provable Guarantees",
NeurIPS 2022. Every number is a mean and a standard deviation over five runs of 10,000 rounds.
"""

from __future__ import annotations

from typing import NamedTuple

PAPER_ROUNDS = 10_000
"""T, the rounds of a run behind every number."""

_SHIFTS = ("lin", "squ", "sin", "ber")
_HINTS = ("none", "win", "peri", "fwd", "okm")
_LEARNERS = ("fix", "fth", "ftfwh", "rogd", "uogd", "atlas", "atlas-ada")


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


def _lines(means: str, deviations: str) -> dict[str, Cell]:
    """Read a data set's two lines as they are printed: means, and the deviations under them."""
    numbers = zip(means.split(), deviations.split(), strict=True)
    cells = (Cell(float(mean), float(std)) for mean, std in numbers)
    return dict(zip(_LEARNERS, cells, strict=True))


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

TABLE_3: dict[str, dict[str, dict[str, Cell]]] = {
    "arxiv": {
        "lin": _lines(
            "30.28 28.18 25.74 23.09 21.04 22.10 21.28", "0.07 0.28 0.21 0.20 0.11 0.09 0.09"
        ),
        "ber": _lines(
            "30.63 27.69 28.50 24.82 21.53 21.11 20.58", "0.20 0.13 0.19 0.11 0.68 0.70 0.69"
        ),
    },
    "eurosat": {
        "lin": _lines(
            "14.06 11.16 9.78 12.56 7.04 7.19 7.13", "0.09 0.11 0.12 3.16 0.11 0.10 0.11"
        ),
        "ber": _lines(
            "14.12 10.48 10.50 9.06 7.28 6.99 6.91", "0.13 0.09 0.08 0.05 0.04 0.03 0.05"
        ),
    },
    "mnist": {
        "lin": _lines("1.79 1.38 1.20 1.25 1.06 1.06 1.06", "0.02 0.03 0.02 0.02 0.02 0.02 0.02"),
        "ber": _lines("1.81 1.29 1.34 1.33 1.12 1.03 1.03", "0.05 0.03 0.03 0.03 0.02 0.02 0.02"),
    },
    "fashion": {
        "lin": _lines("11.86 8.47 7.84 8.18 7.95 8.36 8.04", "0.04 0.07 0.06 0.07 0.08 0.07 0.08"),
        "ber": _lines("11.85 8.48 8.69 8.72 8.23 7.91 7.69", "0.09 0.11 0.10 0.08 0.12 0.12 0.12"),
    },
    "cifar10": {
        "lin": _lines(
            "20.77 17.36 15.77 18.45 15.54 15.77 15.62", "0.12 0.14 0.12 0.47 0.15 0.11 0.14"
        ),
        "ber": _lines(
            "20.82 17.06 16.96 17.66 15.93 14.98 14.80", "0.12 0.14 0.15 0.13 0.29 0.30 0.29"
        ),
    },
    "cinic10": {
        "lin": _lines(
            "33.98 28.85 26.87 32.54 26.21 26.66 26.38", "0.22 0.10 0.13 2.59 0.15 0.19 0.16"
        ),
        "ber": _lines(
            "34.11 28.48 28.44 28.90 26.63 25.85 25.63", "0.35 0.17 0.19 0.19 0.55 0.58 0.60"
        ),
    },
}
"""Data set, then shift (Lin and Ber), then learner; 10 rows in a round, ATLAS-ADA with OKM."""

TABLE_4: dict[str, dict[str, dict[str, Cell]]] = {
    "arxiv": {
        "sin": _lines(
            "31.58 30.63 31.90 28.35 25.64 26.03 25.08", "0.10 0.24 0.22 0.32 0.18 0.16 0.12"
        ),
        "squ": _lines(
            "30.35 26.72 28.05 24.44 21.96 21.36 20.80", "0.06 0.39 0.20 0.17 0.07 0.06 0.06"
        ),
    },
    "eurosat": {
        "sin": _lines(
            "13.62 10.90 10.96 9.68 8.03 8.03 7.97", "0.13 0.03 0.02 0.08 0.06 0.06 0.08"
        ),
        "squ": _lines(
            "14.15 10.22 10.26 8.91 7.30 6.97 6.81", "0.11 0.08 0.06 0.05 0.07 0.08 0.06"
        ),
    },
    "mnist": {
        "sin": _lines("1.81 1.46 1.47 1.46 1.30 1.28 1.27", "0.02 0.03 0.03 0.03 0.04 0.03 0.03"),
        "squ": _lines("1.79 1.26 1.28 1.32 1.13 1.04 1.01", "0.04 0.03 0.04 0.04 0.03 0.02 0.04"),
    },
    "fashion": {
        "sin": _lines("11.77 9.37 9.39 9.75 9.36 9.44 9.32", "0.11 0.15 0.14 0.12 0.07 0.04 0.04"),
        "squ": _lines("11.92 8.24 8.35 8.63 8.42 8.05 7.73", "0.09 0.09 0.07 0.07 0.04 0.07 0.05"),
    },
    "cifar10": {
        "sin": _lines(
            "21.40 18.57 18.62 19.16 18.17 18.01 17.89", "0.09 0.07 0.08 0.12 0.07 0.07 0.05"
        ),
        "squ": _lines(
            "20.77 16.67 16.72 17.40 16.29 15.18 14.84", "0.08 0.12 0.12 0.11 0.09 0.07 0.05"
        ),
    },
    "cinic10": {
        "sin": _lines(
            "35.29 31.17 31.20 31.46 30.22 30.15 30.06", "0.19 0.12 0.12 0.14 0.10 0.11 0.15"
        ),
        "squ": _lines(
            "33.99 27.99 28.08 28.58 27.00 25.94 25.56", "0.16 0.09 0.08 0.09 0.14 0.13 0.12"
        ),
    },
}
"""Data set, then shift (Sin and Squ), then learner; 10 rows in a round, ATLAS-ADA with OKM."""


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


def benchmark_cell(data: str, shift: str, learner: str) -> Cell | None:
    """Return the paper's mean and deviation on real data (Tables 3 and 4), or None.

    Parameters
    ----------
    data : str
        "arxiv", "eurosat", "mnist", "fashion", "cifar10" or "cinic10".
    shift : str
    learner : str
        "atlas-ada" is the one with the OKM hint.

    Examples
    --------
    >>> benchmark_cell("fashion", "lin", "ftfwh")
    Cell(mean=7.84, std=0.06)
    >>> benchmark_cell("fashion", "squ", "atlas-ada")
    Cell(mean=7.73, std=0.05)
    >>> benchmark_cell("pendigits", "squ", "atlas") is None
    True
    """
    rows = {**TABLE_3.get(data, {}), **TABLE_4.get(data, {})}
    return rows.get(shift, {}).get(learner)
