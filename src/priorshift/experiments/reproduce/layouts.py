"""The paper's four tables: what it calls things, rows and columns in its order, and their marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from priorshift.experiments.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_4
from priorshift.experiments.report.grid import (
    Column,
    ColumnGroup,
    Entry,
    Grid,
    GridCell,
    GridRow,
    Kind,
)
from priorshift.experiments.report.tables import learner_label
from priorshift.experiments.reproduce.significance import marks

SHIFTS = tuple(TABLE_1["fix"])
HINTS = tuple(TABLE_2[1]["lin"])
LEARNERS = tuple(TABLE_3["mnist"]["lin"])
DATA_SETS = tuple(TABLE_3)

_NAMES = {
    **{"arxiv": "ArXiv", "eurosat": "EuroSAT", "mnist": "MNIST", "fashion": "Fashion"},
    **{"cifar10": "CIFAR10", "cinic10": "CINIC10", "fashion-deep": "Fashion (CNN)"},
    **{"none": "None", "win": "Win", "peri": "Peri", "fwd": "Fwd", "okm": "OKM"},
    **{"lin": "Lin", "squ": "Squ", "sin": "Sin", "ber": "Ber"},
}
_TEST = "by the paired t-test at 5 %"


def paper_name(name: str) -> str:
    """Write a data set, shift, hint or learner, named as on the command line, as the paper does.

    Examples
    --------
    >>> paper_name("eurosat"), paper_name("okm"), paper_name("atlas-ada"), paper_name("oracle")
    ('EuroSAT', 'OKM', 'ATLAS-ADA', 'oracle')
    """
    if name in _NAMES:
        return _NAMES[name]
    return name if is_oracle(name) else learner_label(name, None)  # others are learners


def is_oracle(name: str) -> bool:
    """Whether a row or column is a clairvoyant's."""
    return "oracle" in name


def learner_table(
    cells: Mapping[tuple[str, str], Entry],
    title: str = "Table 1",
    caption: str = "",
) -> Grid:
    """Lay out Table 1: learners as rows, shifts as columns.

    Examples
    --------
    >>> grid = learner_table({("auto", "squ"): Entry((2.1, 2.2)),
    ...                       ("atlas", "squ"): Entry((4.2, 4.3)),
    ...                       ("fix", "squ"): Entry((7.8, 7.9))})
    >>> [(row.label, row.kind, row.cells[0].mark.bold) for row in grid.rows]
    [('FIX', 'paper', False), ('ATLAS', 'paper', True), ('AUTO', 'ours', False)]
    """
    learners = _ordered(TABLE_1, (learner for learner, _ in cells))
    shifts = _ordered(SHIFTS, (shift for _, shift in cells))
    cases = {
        shift: _marked({n: cells.get((n, shift)) for n in learners}, TABLE_1, {"bold": "ties"})
        for shift in shifts
    }
    rows = tuple(
        GridRow(paper_name(name), tuple(cases[s][name] for s in shifts), _kind(name, TABLE_1))
        for name in learners
    )
    columns = tuple(Column(paper_name(shift)) for shift in shifts)
    bold = f"the best, and those not significantly worse {_TEST}"
    return Grid(title, "learner", (ColumnGroup("", columns),), rows, caption, bold)


def hint_table(
    cells: Mapping[tuple[int, str, str], Entry],
    title: str = "Table 2",
    caption: str = "",
) -> Grid:
    """Lay out Table 2: shifts as rows, hints as columns, a group for each number of rows a round.

    The hint "none" is ATLAS; names that are no hints of the paper are columns apart.

    Examples
    --------
    >>> grid = hint_table({(10, "squ", "none"): Entry((4.5, 4.6)),
    ...                    (10, "squ", "fwd"): Entry((3.7, 3.81)),
    ...                    (10, "squ", "tracker"): Entry((2.1, 2.2))})
    >>> grid.groups[0].title, [column.label for column in grid.groups[0].columns]
    ('Sample size: 10', ['None', 'Fwd', 'TRACKER'])
    >>> grid.rows[0].cells[1].mark
    Mark(bold=True, bullet=True)
    """
    rule = {"bold": "best", "bullet": "better-than", "reference": "none"}
    blocks = {
        f"Sample size: {size:,}": {key[1:]: cells[key] for key in cells if key[0] == size}
        for size in sorted({size for size, _, _ in cells})
    }
    groups, rows = _side_by_side(blocks, SHIFTS, HINTS, rule)
    bold, bullet = "the best one", f"significantly better than ATLAS without hint (None) {_TEST}"
    return Grid(title, "shift", groups, rows, caption, bold, bullet)


def benchmark_table(
    cells: Mapping[tuple[str, str, str], Entry],
    *,
    table: Literal[3, 4],
    title: str = "Learners on real data",
    caption: str = "",
) -> Grid:
    """Lay out Table 3 or 4: data sets as rows, learners as columns, a group for each shift.

    Cells of shifts that are not in the table are left out: both can be made of one mapping.

    Examples
    --------
    >>> grid = benchmark_table({("mnist", "ber", "atlas-ada"): Entry((1.02, 1.04, 1.03)),
    ...                         ("mnist", "ber", "fix"): Entry((1.81, 1.84, 1.80)),
    ...                         ("mnist", "sin", "fix"): Entry((1.8, 1.8, 1.8))}, table=3)
    >>> [group.title for group in grid.groups], [cell.mark.bullet for cell in grid.rows[0].cells]
    (['Ber'], [True, False])
    """
    shifts = next(iter((TABLE_3 if table == 3 else TABLE_4).values()))
    rule = {"bold": "best", "bullet": "worse-than", "reference": "atlas-ada"}
    blocks = {
        paper_name(shift): {(key[0], key[2]): cells[key] for key in cells if key[1] == shift}
        for shift in shifts
        if any(key[1] == shift for key in cells)
    }
    groups, rows = _side_by_side(blocks, DATA_SETS, LEARNERS, rule)
    bold, bullet = "the best one", f"significantly worse than ATLAS-ADA {_TEST}"
    return Grid(title, "data", groups, rows, caption, bold, bullet)


def _side_by_side(
    blocks: Mapping[str, Mapping[tuple[str, str], Entry]],
    row_order: Sequence[str],
    column_order: Sequence[str],
    rule: Mapping[str, Any],
) -> tuple[tuple[ColumnGroup, ...], tuple[GridRow, ...]]:
    """Groups of columns by their titles: in each, the entries of one row are marked together."""
    names = _ordered(row_order, (name for block in blocks.values() for name, _ in block))
    cells: dict[str, list[GridCell]] = {name: [] for name in names}
    groups = []
    for title, block in blocks.items():
        columns = _ordered(column_order, (column for _, column in block))
        heads = tuple(Column(paper_name(c), _kind(c, column_order)) for c in columns)
        groups.append(ColumnGroup(title, heads))
        for name in names:
            case = {column: block.get((name, column)) for column in columns}
            cells[name] += _marked(case, column_order, rule).values()
    rows = tuple(GridRow(paper_name(name), tuple(cells[name])) for name in names)
    return tuple(groups), rows


def _marked(
    case: Mapping[str, Entry | None], rivals: Iterable[str], rule: Mapping[str, Any]
) -> dict[str, GridCell]:
    """Cells of what was measured side by side, by a rule of ``marks``; only the paper's compete."""
    own = set(rivals)
    entries = {
        name: entry._replace(competes=entry.competes and name in own)
        for name, entry in case.items()
        if entry is not None
    }
    found = marks(entries, **rule)
    return {
        name: GridCell(entries[name], found[name]) if name in entries else GridCell()
        for name in case
    }


def _ordered(known: Iterable[str], found: Iterable[str]) -> list[str]:
    """What was found: the known ones in their order, then others, oracles last."""
    own = list(known)
    present = dict.fromkeys(found)
    extras = sorted((name for name in present if name not in own), key=is_oracle)
    return [*(name for name in own if name in present), *extras]


def _kind(name: str, own: Iterable[str]) -> Kind:
    if name in own:
        return "paper"
    return "oracle" if is_oracle(name) else "ours"
