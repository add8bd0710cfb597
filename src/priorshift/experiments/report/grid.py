"""A table of errors as data: rows, groups of columns, cells that know their runs and marks.

``priorshift.experiments.report.grid_formats`` writes it as text, Markdown, LaTeX, HTML and CSV.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from priorshift.errors import InputError
from priorshift.experiments.report.entry import Entry, Mark

Kind = Literal["paper", "ours", "oracle"]
"""Whose a row or a column is; what is not the paper's stands apart, behind a rule."""


class GridCell(NamedTuple):
    """A cell: an entry with its mark, or a text, or nothing.

    Examples
    --------
    >>> GridCell(text="no data").text
    'no data'
    """

    entry: Entry | None = None
    mark: Mark = Mark()
    text: str = ""


class Column(NamedTuple):
    """The head of a column.

    Examples
    --------
    >>> Column("ATLAS").kind
    'paper'
    """

    label: str
    kind: Kind = "paper"


class ColumnGroup(NamedTuple):
    """Columns under one title; an empty title is not shown.

    Examples
    --------
    >>> ColumnGroup("Lin", (Column("FIX"), Column("oracle", "oracle"))).title
    'Lin'
    """

    title: str
    columns: tuple[Column, ...]


class GridRow(NamedTuple):
    """A row: its label, a cell for each column, and whose it is.

    Examples
    --------
    >>> GridRow("oracle", (GridCell(),), kind="oracle").label
    'oracle'
    """

    label: str
    cells: tuple[GridCell, ...]
    kind: Kind = "paper"


class Place(NamedTuple):
    """A cell with everything that says where it stands.

    Examples
    --------
    >>> Place(GridRow("lin", ()), "Lin", Column("FIX"), GridCell()).group
    'Lin'
    """

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

    def __post_init__(self) -> None:
        wide = len(self.columns())
        for row in self.rows:
            if len(row.cells) != wide:
                raise InputError(
                    f"row {row.label!r} of {self.title!r} has {len(row.cells)} cells for {wide} "
                    "columns; give it one for each, GridCell() where there is nothing"
                )

    def columns(self) -> list[tuple[str, Column]]:
        """All columns from left to right, each with the title of its group.

        Examples
        --------
        >>> Grid("t", "", (ColumnGroup("Lin", (Column("FIX"),)),), ()).columns()
        [('Lin', Column(label='FIX', kind='paper'))]
        """
        return [(group.title, column) for group in self.groups for column in group.columns]

    def places(self) -> Iterator[Place]:
        """Every cell, row by row, with where it stands.

        Examples
        --------
        >>> list(Grid("t", "", (), ()).places())
        []
        """
        heads = self.columns()
        for row in self.rows:
            for (group, column), cell in zip(heads, row.cells, strict=True):
                yield Place(row, group, column, cell)

    def by_group(self) -> list[Grid]:
        """One table for each group of columns, for formats that have no heads above heads.

        Examples
        --------
        >>> groups = (ColumnGroup("Lin", (Column("FIX"),)), ColumnGroup("Ber", (Column("FIX"),)))
        >>> [grid.groups[0].title for grid in Grid("t", "", groups, ()).by_group()]
        ['Lin', 'Ber']
        """
        found, start = [], 0
        for group in self.groups:
            part = slice(start, start + len(group.columns))
            rows = tuple(row._replace(cells=row.cells[part]) for row in self.rows)
            found.append(replace(self, groups=(group,), rows=rows))
            start = part.stop
        return found

    def starts_apart(self, row: int) -> bool:
        """Whether a rule goes above a row: it is the first behind the paper's rows.

        Examples
        --------
        >>> rows = (GridRow("ATLAS", ()), GridRow("AUTO", (), "ours"), GridRow("o", (), "oracle"))
        >>> [Grid("t", "", (), rows).starts_apart(n) for n in range(3)]
        [False, True, False]
        """
        behind = row > 0 and self.rows[row - 1].kind == "paper"
        return behind and self.rows[row].kind != "paper"

    def apart_columns(self) -> list[bool]:
        """For each column, whether a rule goes before it: the first beyond the paper in its group.

        Examples
        --------
        >>> columns = (Column("FIX"), Column("AUTO", "ours"), Column("oracle", "oracle"))
        >>> Grid("t", "", (ColumnGroup("Lin", columns),), ()).apart_columns()
        [False, True, False]
        """
        found = []
        for group in self.groups:
            kinds = [column.kind for column in group.columns]
            pairs = zip(["ours", *kinds], kinds, strict=False)
            found += [before == "paper" and kind != "paper" for before, kind in pairs]
        return found
