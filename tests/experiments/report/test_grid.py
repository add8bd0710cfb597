"""Tables of errors as data, and the words under them."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest

from grids import small
from priorshift.experiments.paper import Cell
from priorshift.experiments.report.grid import Entry, Grid, GridCell, GridRow, signed


def test_an_entry_counts_as_numpy_does():
    errors = (4.25, 4.31, 4.02, 4.4)
    entry = Entry(errors, Cell(4.0, 0.1))
    assert entry.mean == pytest.approx(np.mean(errors))
    assert entry.std == pytest.approx(np.std(errors, ddof=1))
    assert entry.difference == pytest.approx(statistics.fmean(errors) - 4)


def test_what_is_missing_is_none():
    assert Entry((1.0,)).std is None
    assert Entry((1.0,)).difference is None
    assert Entry((), Cell(1.0, 0.1)).difference is None


def test_nought_has_no_minus():
    assert [signed(x) for x in (-0.004, -0.006, 0.0, 1.234)] == ["+0.00", "-0.01", "+0.00", "+1.23"]


def test_groups_fall_apart_with_their_own_cells():
    grid = small()
    parts = grid.by_group()
    assert [part.groups[0].title for part in parts] == ["Lin", "Ber"]
    for n, row in enumerate(grid.rows):
        assert row.cells == parts[0].rows[n].cells + parts[1].rows[n].cells
        assert [len(part.rows[n].cells) for part in parts] == [3, 2]


def test_rules_stand_before_what_is_beyond_the_paper():
    grid = small()
    assert grid.apart_columns() == [False, False, True, False, True]
    assert [grid.starts_apart(n) for n in range(4)] == [False, False, True, False]
    only = replace(grid, rows=grid.rows[2:])
    assert not only.starts_apart(0)  # nothing above it to be kept apart from


def notes(grid: Grid) -> str:
    return "\n".join(f"{sign}: {words}" if sign else words for sign, words in grid.notes())


def test_notes_explain_every_mark_of_the_table():
    text = notes(small())
    for part in ("over 3 seeds", "bold: the best one.", "•: worse by", "≈: run on a sketch"):
        assert part in text
    for part in ("(blocks:1000)", "paper: the paper's mean", "Apart: "):
        assert part in text


def test_notes_are_silent_about_marks_that_the_table_cannot_have():
    one = GridCell(Entry((1.0, 2.0)))
    grid = Grid("t", "s", small().groups, (GridRow("r", (one,) * 5),))
    text = notes(grid)
    for part in ("bold", "•", "≈", "paper's mean"):
        assert part not in text


@pytest.mark.parametrize(
    ("counts", "words"), [((1, 1), "one seed."), ((3, 3), "over 3 seeds"), ((3, 5), "3 to 5 seeds")]
)
def test_notes_count_the_seeds(counts, words):
    cells = tuple(GridCell(Entry((1.0,) * n)) for n in counts)
    group = small().groups[0]._replace(columns=small().groups[0].columns[:2])
    grid = Grid("t", "s", (group,), (GridRow("r", cells),), bold="the best")
    assert words in notes(grid)
    assert ("allows no test" in notes(grid)) is (counts == (1, 1))
    assert "Apart" not in notes(grid)
