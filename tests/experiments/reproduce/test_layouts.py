"""Fed with the paper's numbers, the four tables have the paper's rows, columns and marks."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.experiments.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_4
from priorshift.experiments.report.grid import Entry
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.reproduce.layouts import benchmark_table, hint_table, learner_table

SMALL = np.array([-2, -1, 0, 1, 2]) * 1e-4


def runs(cell, turn=0):
    """Five runs that hardly differ: any two printed means that are not equal differ for sure."""
    return Entry(tuple(cell.mean + np.roll(SMALL, turn)), published=cell)


def table_1():
    return {(name, s): runs(c, 1) for name, row in TABLE_1.items() for s, c in row.items()}


def table_2():
    return {
        (size, shift, hint): runs(cell, n)
        for size, shifts in TABLE_2.items()
        for shift, row in shifts.items()
        for n, (hint, cell) in enumerate(row.items())
    }


def benchmark():
    return {
        (data, shift, learner): runs(cell, n)
        for table in (TABLE_3, TABLE_4)
        for data, rows in table.items()
        for shift, row in rows.items()
        for n, (learner, cell) in enumerate(row.items())
    }


def labels(chosen, names):
    return [name for choice, name in zip(chosen, names, strict=True) if choice]


def test_table_1():
    cells = table_1()
    cells = dict(reversed(cells.items()))  # the order of rows is the paper's, not that of the cells
    cells["oracle", "lin"] = cells["auto", "lin"] = Entry((1.0,) * 5)
    grid = learner_table(cells)
    assert [row.label for row in grid.rows] == [
        *("FIX", "FTH", "FTFWH", "ROGD", "UOGD", "ATLAS"),
        *("AUTO", "oracle"),
    ]
    assert [row.kind for row in grid.rows] == ["paper"] * 6 + ["ours", "oracle"]
    assert [column.label for _, column in grid.columns()] == ["Lin", "Squ", "Sin", "Ber"]
    bold = [[row.label for row in grid.rows if row.cells[n].mark.bold] for n in range(4)]
    assert bold == [["FTH"], ["ATLAS"], ["ATLAS"], ["ATLAS"]]
    assert grid.rows[6].cells[1].entry is None
    assert not any(place.cell.mark.bullet for place in grid.places())


def test_table_2():
    cells = table_2()
    cells[10, "squ", "tracker"] = Entry((1.0,) * 5)
    grid = hint_table(cells)
    assert [group.title for group in grid.groups] == [
        "Sample size: 1",
        "Sample size: 10",
        "Sample size: 100",
    ]
    heads = [[column.label for column in group.columns] for group in grid.groups]
    hints = ["None", "Win", "Peri", "Fwd", "OKM"]
    assert heads == [hints, [*hints, "TRACKER"], hints]
    assert [row.label for row in grid.rows] == ["Lin", "Squ", "Sin", "Ber"]
    heads = [column.label for _, column in grid.columns()]
    bold = [labels([cell.mark.bold for cell in row.cells], heads) for row in grid.rows]
    # The bold numbers of the printed table.
    assert bold == [
        ["OKM", "OKM", "Peri"],
        ["OKM", "Fwd", "Fwd"],
        ["OKM", "Fwd", "Fwd"],
        ["OKM", "Fwd", "Fwd"],
    ]
    bullets = sum(place.cell.mark.bullet for place in grid.places())
    lower = sum(
        row[hint].mean < row["none"].mean
        for shifts in TABLE_2.values()
        for row in shifts.values()
        for hint in row
    )
    assert bullets == lower == 38
    extra = grid.rows[1].cells[10]
    assert extra.entry.mean == 1
    assert extra.mark == (False, False)


@pytest.mark.parametrize(("table", "shifts"), [(3, ["Lin", "Ber"]), (4, ["Sin", "Squ"])])
def test_tables_3_and_4(table, shifts):
    cells = benchmark()
    cells["pendigits", shifts[0].lower(), "atlas"] = Entry((1.0, 1.1))
    cells["mnist", shifts[0].lower(), "oracle"] = Entry((0.1,) * 5)
    grid = benchmark_table(cells, table=table)
    assert [group.title for group in grid.groups] == shifts
    assert [row.label for row in grid.rows] == [
        *("ArXiv", "EuroSAT", "MNIST", "Fashion", "CIFAR10", "CINIC10"),
        "PENDIGITS",
    ]
    learners = ["FIX", "FTH", "FTFWH", "ROGD", "UOGD", "ATLAS", "ATLAS-ADA"]
    heads = [[column.label for column in group.columns] for group in grid.groups]
    assert heads == [[*learners, "oracle"], learners]
    mnist = [cell.mark.bold for cell in grid.rows[2].cells]
    if table == 3:
        assert mnist == [*[False] * 4, True, True, True, False, *[False] * 5, True, True]
    published = {place.cell.entry.published for place in grid.places() if place.cell.entry}
    rows = (TABLE_3 if table == 3 else TABLE_4).values()
    printed = {cell for shift in rows for row in shift.values() for cell in row.values()}
    assert published - {None} == printed
    # Means that are printed higher than ATLAS-ADA's carry a bullet, others do not.
    for place in grid.places():
        if place.cell.entry and place.row.label != "PENDIGITS" and place.column.kind == "paper":
            data, shift = place.row.label.lower(), place.group.lower()
            other = cells[data, shift, "atlas-ada"].published.mean
            if place.cell.entry.published.mean != other:
                higher = place.cell.entry.published.mean > other
                assert place.cell.mark.bullet is higher, place


@pytest.mark.parametrize("ending", GRID_FORMATS)
def test_every_layout_in_every_format(ending):
    grids = [
        learner_table(table_1()),
        hint_table(table_2()),
        benchmark_table(benchmark(), table=3),
        benchmark_table(benchmark(), table=4),
    ]
    for grid in grids:
        assert GRID_FORMATS[ending](grid)


@pytest.mark.parametrize("ending", GRID_FORMATS)
def test_tables_without_cells_are_written_too(ending):
    for grid in (learner_table({}), hint_table({}), benchmark_table({}, table=3)):
        assert isinstance(GRID_FORMATS[ending](grid), str)
