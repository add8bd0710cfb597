"""A table of errors as CSV in long form, for other programs."""

from __future__ import annotations

import csv
import io

from priorshift.experiments.report.grid import Grid, Place

CSV_COLUMNS = (
    "row",
    "group",
    "column",
    "mean",
    "std",
    "seeds",
    "published",
    "published_std",
    "difference",
    "bold",
    "bullet",
    "sketch",
)
"""The head of the file; errors are in percent, marks 0 or 1, what is missing is empty."""


def to_csv(grid: Grid) -> str:
    """Write a line for each cell that has an entry.

    Examples
    --------
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, GridCell, GridRow
    >>> best = GridCell(Entry((4.25, 4.31)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("N = 10", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)),), bold="the best one")
    >>> print(to_csv(grid), end="")
    row,group,column,mean,std,seeds,published,published_std,difference,bold,bullet,sketch
    ATLAS,N = 10,squ,4.28,0.042426,2,,,,1,0,
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(_fields(place) for place in grid.places() if place.cell.entry is not None)
    return file.getvalue()


def _fields(place: Place) -> list[str]:
    entry = place.cell.entry
    assert entry is not None
    published = entry.published
    return [
        place.row.label,
        place.group,
        place.column.label,
        _number(entry.mean if entry.errors else None),
        _number(entry.std),
        str(len(entry.errors)),
        _number(published and published.mean),
        _number(published and published.std),
        _number(entry.difference),
        str(int(place.cell.mark.bold)),
        str(int(place.cell.mark.bullet)),
        entry.sketch or "",
    ]


def _number(value: float | None) -> str:
    """Six decimals and no trailing zeros."""
    return "" if value is None else str(round(value, 6))
