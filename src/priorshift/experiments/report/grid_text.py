"""A table of errors for the terminal, two lines a row: ours, and the paper's below it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from priorshift.experiments.report.entry import signed
from priorshift.experiments.report.grid import Grid, GridCell
from priorshift.experiments.report.grid_notes import BULLET, SKETCH_MARK, grid_notes
from priorshift.experiments.report.tables import text_table

_NOTE_WIDTH = 100


def to_text(grid: Grid, width: int | None = None) -> str:
    """Write a table as text.

    Bold is a star behind the number. Give what comes back to ``printable`` for a terminal that has
    no Unicode.

    Parameters
    ----------
    grid : Grid
    width : int, optional
        Columns of the terminal. Every group of columns is a table of its own; what is wider than
        this is cut into several, each with as many columns as fit (at least one).

    Examples
    --------
    >>> from priorshift.experiments.paper import Cell
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, GridRow
    >>> best = GridCell(Entry((4.25, 4.31), published=Cell(4.27, 0.02)), Mark(bold=True))
    >>> other = GridCell(Entry((6.1, 6.2), sketch="blocks:1000"), Mark(bullet=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)), GridRow("UOGD", (other,))),
    ...             bold="the best one", bullet="worse than ATLAS")
    >>> print(to_text(grid))
    Errors
    <BLANKLINE>
    learner  squ
    -------  --------------
    ATLAS      4.28* ±0.04
               [4.27 +0.01]
    UOGD     • 6.15 ±0.07 ≈
    <BLANKLINE>
    Average error in %: mean ± sample standard deviation over 2 seeds.
    *: the best one.
    •: worse than ATLAS.
    ≈: run on a sketch of the offline set (blocks:1000), not on all of it.
    [4.27 +0.01]: the paper's mean, and ours minus it.
    """
    line = min(width or _NOTE_WIDTH, _NOTE_WIDTH)
    notes = grid_notes(grid, bold="*", published=_sample(grid))
    head = [grid.title, *([grid.caption] if grid.caption else [])]
    blocks = [_wrapped(head, line)]
    for part in grid.by_group():
        title = part.groups[0].title
        tables = [_table(part, columns) for columns in _cut(part, width)]
        blocks += [f"{title}\n\n{table}" if title else table for table in tables]
    return "\n\n".join(filter(None, [*blocks, _wrapped(notes, line)]))


def _cut(grid: Grid, width: int | None) -> Iterator[list[int]]:
    """Columns of each table: as many as fit, at least one."""
    part: list[int] = []
    for column in range(len(grid.columns())):
        if part and width is not None and _width(_table(grid, [*part, column])) > width:
            yield part
            part = []
        part.append(column)
    yield part


def _table(grid: Grid, columns: Sequence[int]) -> str:
    rules = ["| " if grid.apart_columns()[n] else "" for n in columns]

    def line(label: str, texts: Iterable[str]) -> list[str]:
        return [label, *(rule + text for rule, text in zip(rules, texts, strict=True))]

    header = line(grid.stub, (grid.columns()[n][1].label for n in columns))
    rows: list[list[str]] = []
    apart: list[int] = []
    for number, row in enumerate(grid.rows):
        if grid.starts_apart(number):
            apart.append(len(rows))
        cells = [row.cells[n] for n in columns]
        rows.append(line(row.label, map(_first_line, cells)))
        below = [_second_line(cell) for cell in cells]
        if any(below):
            rows.append(line("", below))
    lines = text_table(header, rows).splitlines()
    for number in reversed(apart):
        lines.insert(2 + number, lines[1])
    return "\n".join(lines)


def _first_line(cell: GridCell) -> str:
    entry = cell.entry
    if entry is None:
        return cell.text
    if not entry.errors:
        return "  not run"
    text = f"{BULLET if cell.mark.bullet else ' '} {entry.mean:.2f}{'*' * cell.mark.bold}"
    if entry.std is not None:
        text += f" ±{entry.std:.2f}"
    return text + (f" {SKETCH_MARK}" if entry.sketch is not None else "")


def _second_line(cell: GridCell) -> str:
    if cell.entry is None or cell.entry.published is None:
        return ""
    difference = cell.entry.difference
    behind = "" if difference is None else f" {signed(difference)}"
    return f"  [{cell.entry.published.mean:.2f}{behind}]"


def _sample(grid: Grid) -> str:
    """A pair of brackets from the table itself, for the note that explains them."""
    found = (_second_line(place.cell).strip() for place in grid.places())
    texts = list(filter(None, found))
    return next((text for text in texts if " " in text), texts[0] if texts else "")


def _wrapped(lines: Sequence[str], width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in lines)


def _width(table: str) -> int:
    return max(map(len, table.splitlines()))
