"""One line of the table that ``make bench`` prints."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.timing import Ratio


class Figure(NamedTuple):
    """A subject timed against a yardstick, the ratio that is wanted, and what else to know."""

    name: str
    yardstick: str
    target: float | None
    result: Ratio
    note: str = ""
