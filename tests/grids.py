"""Tables of errors for the tests of their formats."""

from __future__ import annotations

from priorshift.experiments.paper import Cell
from priorshift.experiments.report.grid import (
    Column,
    ColumnGroup,
    Entry,
    Grid,
    GridCell,
    GridRow,
    Mark,
)

NASTY = r"a_b & 50% $x$ #1 {y} ~z^2 \n [*] <i> | `c` ± • ≈"


def small() -> Grid:
    """Two groups with a column apart each, a row apart, every kind of cell."""
    best = GridCell(
        Entry((4.25, 4.31, 4.3), Cell(4.27, 0.02), sketch="blocks:1000"), Mark(bold=True)
    )
    worse = GridCell(Entry((6.1, 6.2, 6.3), Cell(6.5, 0.01)), Mark(bullet=True))
    both = GridCell(Entry((3.0, 3.1, 3.2)), Mark(True, True))
    absent = GridCell(Entry((), Cell(9.87, 0.03)))
    extra = GridCell(Entry((2.0, 2.1, 2.2), competes=False))
    groups = (
        ColumnGroup("Lin", (Column("ATLAS"), Column("UOGD"), Column("AUTO", "ours"))),
        ColumnGroup("Ber", (Column("ATLAS"), Column("oracle", "oracle"))),
    )
    rows = (
        GridRow("mnist", (best, worse, extra, both, extra)),
        GridRow("cinic", (absent, GridCell(), extra, GridCell(text="no data"), extra)),
        GridRow("TRACKER", (extra, extra, extra, extra, extra), "ours"),
        GridRow("oracle", (extra, extra, extra, extra, extra), "oracle"),
    )
    bullet = "worse by the paired t-test at 5 %"
    return Grid("Errors", "data", groups, rows, "Ten rows a round.", "the best one", bullet)


def nasty() -> Grid:
    """Signs that mean something in every format, wherever a text can stand."""
    groups = (ColumnGroup(NASTY, (Column(NASTY),)),)
    entry = Entry((1.0, 2.0), sketch=NASTY)
    rows = (
        GridRow(NASTY, (GridCell(entry, Mark(True, True)),)),
        GridRow("[1] star*", (GridCell(text=NASTY),)),
    )
    return Grid(NASTY, NASTY, groups, rows, NASTY, NASTY, NASTY)
