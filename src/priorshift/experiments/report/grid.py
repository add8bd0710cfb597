"""A table of errors as data: rows, groups of columns, cells that know their runs and marks.

``priorshift.experiments.report.grid_formats`` writes it as text, Markdown, LaTeX, HTML and CSV.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from priorshift.experiments.paper import Cell

SKETCH_MARK = "≈"
BULLET = "•"
Kind = Literal["paper", "ours", "oracle"]
"""Whose a row or a column is; what is not the paper's stands apart, behind a rule."""


class Entry(NamedTuple):
    """The errors of one learner on the streams of one setting, one for each seed.

    Parameters
    ----------
    errors : tuple of float
        Average error in percent, one number for each seed, in the same order of seeds in every
        entry of a table. Empty: not run, only the paper's number is shown.
    published : Cell, optional
        The paper's mean and deviation.
    sketch : str, optional
        What the learner read in the place of the held-out set, as "blocks:1000"; None: all of it.
    competes : bool
        False for what is shown apart and never marked: the oracle, learners beyond the paper.

    Examples
    --------
    >>> entry = Entry((4.25, 4.31), published=Cell(4.27, 0.02))
    >>> round(entry.mean, 2), round(entry.std, 3), round(entry.difference, 2)
    (4.28, 0.042, 0.01)
    """

    errors: tuple[float, ...]
    published: Cell | None = None
    sketch: str | None = None
    competes: bool = True

    @property
    def mean(self) -> float:
        """Mean over the seeds; not a number where nothing was run."""
        return statistics.fmean(self.errors) if self.errors else float("nan")

    @property
    def std(self) -> float | None:
        """Sample standard deviation over the seeds; None for fewer than two."""
        return statistics.stdev(self.errors) if len(self.errors) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's mean; None where one of them is missing."""
        if self.published is None or not self.errors:
            return None
        return self.mean - self.published.mean


class Mark(NamedTuple):
    """How an entry is set: in bold, with a bullet before it."""

    bold: bool = False
    bullet: bool = False


def signed(difference: float) -> str:
    """Write a difference with its sign and two decimals; what rounds to nought is never negative.

    Examples
    --------
    >>> signed(0.254), signed(-0.05), signed(-0.001)
    ('+0.25', '-0.05', '+0.00')
    """
    return f"{round(difference, 2) + 0.0:+.2f}"


class GridCell(NamedTuple):
    """A cell: an entry with its mark, or a text, or nothing."""

    entry: Entry | None = None
    mark: Mark = Mark()
    text: str = ""


class Column(NamedTuple):
    """The head of a column."""

    label: str
    kind: Kind = "paper"


class ColumnGroup(NamedTuple):
    """Columns under one title; an empty title is not shown."""

    title: str
    columns: tuple[Column, ...]


class GridRow(NamedTuple):
    """A row: its label, a cell for each column, and whose it is."""

    label: str
    cells: tuple[GridCell, ...]
    kind: Kind = "paper"


class Place(NamedTuple):
    """A cell with everything that says where it stands."""

    row: GridRow
    group: str
    column: Column
    cell: GridCell


@dataclass(frozen=True)
class Grid:
    """A table of errors in percent.

    Parameters
    ----------
    title : str
    stub : str
        Head of the column that holds the labels of the rows.
    groups : tuple of ColumnGroup
    rows : tuple of GridRow
        Each with one cell for each column of all groups.
    caption : str
        A sentence or two below the title: what was run.
    bold, bullet : str
        What they mean, as in "the best one"; empty: the table has no such mark.

    Examples
    --------
    >>> cell = GridCell(Entry((4.25,)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (cell,)),), bold="the best one")
    >>> [(place.row.label, place.column.label) for place in grid.places()]
    [('ATLAS', 'squ')]
    """

    title: str
    stub: str
    groups: tuple[ColumnGroup, ...]
    rows: tuple[GridRow, ...]
    caption: str = ""
    bold: str = ""
    bullet: str = ""

    def columns(self) -> list[tuple[str, Column]]:
        """All columns from left to right, each with the title of its group."""
        return [(group.title, column) for group in self.groups for column in group.columns]

    def places(self) -> Iterator[Place]:
        """Every cell, row by row, with where it stands."""
        heads = self.columns()
        for row in self.rows:
            for (group, column), cell in zip(heads, row.cells, strict=True):
                yield Place(row, group, column, cell)

    def by_group(self) -> list[Grid]:
        """One table for each group of columns, for formats that have no heads above heads."""
        found, start = [], 0
        for group in self.groups:
            part = slice(start, start + len(group.columns))
            rows = tuple(row._replace(cells=row.cells[part]) for row in self.rows)
            found.append(replace(self, groups=(group,), rows=rows))
            start = part.stop
        return found

    def starts_apart(self, row: int) -> bool:
        """Whether a rule goes above a row: it is the first behind the paper's rows."""
        behind = row > 0 and self.rows[row - 1].kind == "paper"
        return behind and self.rows[row].kind != "paper"

    def apart_columns(self) -> list[bool]:
        """For each column, whether a rule goes before it: the first beyond the paper in a group."""
        found = []
        for group in self.groups:
            kinds = [column.kind for column in group.columns]
            pairs = zip(["ours", *kinds], kinds, strict=False)
            found += [before == "paper" and kind != "paper" for before, kind in pairs]
        return found

    def notes(self) -> list[tuple[str, str]]:
        r"""Say what the numbers and marks of the table mean; only of those that it can show.

        Returns
        -------
        list of (sign, words)
            The sign may be empty. "bold" and "paper" stand for what a format shows in bold, and
            for the paper's number as it shows it.

        Examples
        --------
        >>> cell = GridCell(Entry((4.25, 4.3), sketch="blocks:1000"), Mark(bold=True))
        >>> grid = Grid("Errors", "learner", (ColumnGroup("", (Column("squ"),)),),
        ...             (GridRow("ATLAS", (cell,)),), bold="the best one")
        >>> for sign, words in grid.notes():
        ...     print(f"{sign}: {words}")
        : Average error in %: mean ± sample standard deviation over 2 seeds.
        bold: the best one.
        ≈: run on a sketch of the held-out set (blocks:1000), not on all of it.
        """
        entries = [place.cell.entry for place in self.places() if place.cell.entry is not None]
        counts = sorted({len(entry.errors) for entry in entries if entry.errors})
        sketches = ", ".join(dict.fromkeys(entry.sketch for entry in entries if entry.sketch))
        kinds = [row.kind for row in self.rows] + [column.kind for _, column in self.columns()]
        notes = [("", _seeds_words(counts))] if counts else []
        if self.bold:
            notes.append(("bold", f"{self.bold}."))
        if self.bullet:
            notes.append((BULLET, f"{self.bullet}."))
        if counts == [1] and (self.bold or self.bullet):
            words = "One seed allows no test: only the best is bold, nothing has a bullet."
            notes.append(("", words))
        if sketches:
            words = f"run on a sketch of the held-out set ({sketches}), not on all of it."
            notes.append((SKETCH_MARK, words))
        if any(entry.published is not None for entry in entries):
            notes.append(("paper", "the paper's mean, and ours minus it."))
        if any(kind != "paper" for kind in kinds):
            words = "the oracle and learners beyond the paper; they are never marked."
            notes.append(("Apart", words))
        return notes


def _seeds_words(counts: list[int]) -> str:
    if counts == [1]:
        return "Average error in %, one seed."
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Average error in %: mean ± sample standard deviation over {seeds} seeds."
