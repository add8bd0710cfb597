"""Tables 1 to 4 of the paper: average error in percent on synthetic and on real data.

Bai, Zhang, Zhao, Sugiyama, Zhou, "Adapting to Online Label Shift with Provable Guarantees",
NeurIPS 2022. Every number is a mean and a standard deviation over five runs of 10,000 rounds.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


@cache
def declared() -> dict[str, Any]:
    """Read ``experiments.toml``, which declares the paper's experiments and has its numbers.

    Examples
    --------
    >>> declared()["sizes"]["rounds"]
    10000
    """
    text = (
        files("priorshift.experiments.paper")
        .joinpath("experiments.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


PAPER_ROUNDS: int = declared()["sizes"]["rounds"]
"""T, the rounds of a run behind every number."""


class Cell(NamedTuple):
    """One entry of a table: mean and standard deviation, in percent.

    Examples
    --------
    >>> TABLE_1["atlas"]["squ"]
    Cell(mean=4.27, std=0.02)
    """

    mean: float
    std: float


Rows = dict[str, dict[str, Cell]]


def _rows(table: dict[str, dict[str, list[float]]]) -> Rows:
    return {name: {key: Cell(*pair) for key, pair in row.items()} for name, row in table.items()}


_PRINTED = declared()["paper"]

TABLE_1: Rows = _rows(_PRINTED["table1"])
"""Learner, then shift; 100 rows in a round."""

TABLE_2: dict[int, Rows] = {int(size): _rows(rows) for size, rows in _PRINTED["table2"].items()}
"""Rows in a round, then shift, then the hint of ATLAS-ADA; "none" is ATLAS."""

TABLE_3: dict[str, Rows] = {data: _rows(rows) for data, rows in _PRINTED["table3"].items()}
"""Data set, then shift (Lin and Ber), then learner; 10 rows in a round."""

TABLE_4: dict[str, Rows] = {data: _rows(rows) for data, rows in _PRINTED["table4"].items()}
"""Data set, then shift (Sin and Squ), then learner; 10 rows in a round."""


def paper_error(learner: str, hint: str | None, shift: str, batch_size: int) -> float | None:
    """Return the paper's average error in percent, or None where it has no number.

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
