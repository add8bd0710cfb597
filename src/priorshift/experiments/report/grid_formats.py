"""A table of errors in every format: text, Markdown, LaTeX, HTML and CSV.

Markdown, LaTeX and HTML are templates beside this file; in all of them "bold" is a number's mark,
the paper's number stands below or behind ours, and the notes say what the marks mean.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from priorshift.experiments.report.grid import BULLET, SKETCH_MARK, Grid, GridCell, Place, signed
from priorshift.experiments.report.output import need
from priorshift.experiments.report.rendering import render
from priorshift.experiments.report.tables import text_table, text_width

CSV_COLUMNS = (
    *("row", "group", "column", "mean", "std", "seeds"),
    *("published", "published_std", "difference", "bold", "bullet", "sketch"),
)
"""The head of the CSV file."""

_NOTE_WIDTH = 100


def to_text(grid: Grid, width: int | None = None) -> str:
    """Write a table as text, two lines a row: ours, and the paper's number in brackets below it.

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
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, Entry, GridRow, Mark
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
    ≈: run on a sketch of the held-out set (blocks:1000), not on all of it.
    [4.27 +0.01]: the paper's mean, and ours minus it.
    """
    line = min(width or _NOTE_WIDTH, _NOTE_WIDTH)
    signs = {"bold": "*", "paper": _brackets(grid)}
    notes = [f"{signs.get(sign, sign)}: {words}".removeprefix(": ") for sign, words in grid.notes()]
    blocks = [_wrapped([grid.title, *([grid.caption] if grid.caption else [])], line)]
    for part in grid.by_group():
        title = part.groups[0].title
        tables = [_text_of(part, columns) for columns in _cut(part, width)]
        blocks += [f"{title}\n\n{table}" if title else table for table in tables]
    return "\n\n".join(filter(None, [*blocks, _wrapped(notes, line)]))


def to_markdown(grid: Grid) -> str:
    r"""Write a table in GitHub's Markdown; each group of columns is a table of its own.

    Labels of rows and columns that stand apart are in italics.
    """
    return render("grid.md.j2", grid=grid)


def to_latex(grid: Grid) -> str:
    r"""Write a table as LaTeX, with title and notes in its caption, a ``tabular`` for each group.

    It needs ``\usepackage{booktabs}`` and no more. Each row has two lines, the mean with its
    deviation and the paper's mean with the difference.
    """
    return render("grid.tex.j2", grid=grid)


def to_html(grid: Grid) -> str:
    """Write a table as a ``<table>`` for a page of your own; it brings no style and no script.

    Classes: the table is ``grid``; rows, heads and cells beyond the paper are ``ours`` or
    ``oracle``, the first of them in a row or group also ``apart`` (draw a rule there); a cell may
    be ``best`` or ``marked`` (with a bullet); in it are ``mean``, ``std``, ``published``,
    ``bullet`` and ``sketch``. The notes are the table's foot.
    """
    return render("grid.html.j2", grid=grid)


def to_csv(grid: Grid) -> str:
    """Write a line for each cell that has an entry, for other programs.

    Errors are in percent, marks 0 or 1, what is missing is empty.

    Examples
    --------
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, Entry, GridRow, Mark
    >>> best = GridCell(Entry((4.25, 4.31)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("N = 10", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)),), bold="the best one")
    >>> print(to_csv(grid), end="")
    row,group,column,mean,std,seeds,published,published_std,difference,bold,bullet,sketch
    ATLAS,N = 10,squ,4.28,0.042426,2,,,,1,0,
    """
    need("pandas")
    import pandas

    fields = list(map(_fields, grid.places()))
    frame = pandas.DataFrame(filter(None, fields), columns=CSV_COLUMNS)
    return str(frame.round(6).to_csv(index=False, lineterminator="\n"))


GRID_FORMATS: dict[str, Callable[[Grid], str]] = {
    "txt": to_text,
    "md": to_markdown,
    "tex": to_latex,
    "html": to_html,
    "csv": to_csv,
}
"""Ending of the file, then what writes it."""


def _fields(place: Place) -> tuple[Any, ...] | None:
    row, group, column, (entry, mark, _) = place
    if entry is None:
        return None
    published = entry.published or (None, None)
    numbers = (entry.mean, entry.std, len(entry.errors), *published, entry.difference)
    return (row.label, group, column.label, *numbers, *map(int, mark), entry.sketch)


def _cut(grid: Grid, width: int | None) -> Iterator[list[int]]:
    """Columns of each table: as many as fit, at least one."""
    part: list[int] = []
    for column in range(len(grid.columns())):
        if part and width is not None and text_width(_text_of(grid, [*part, column])) > width:
            yield part
            part = []
        part.append(column)
    yield part


def _text_of(grid: Grid, columns: Sequence[int]) -> str:
    """Some columns as a table."""
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
        rows.append(line(row.label, map(_ours, cells)))
        below = [_published(cell) for cell in cells]
        if any(below):
            rows.append(line("", below))
    lines = text_table(header, rows).splitlines()
    for number in reversed(apart):
        lines.insert(2 + number, lines[1])
    return "\n".join(lines)


def _ours(cell: GridCell) -> str:
    entry = cell.entry
    if entry is None:
        return cell.text
    if not entry.errors:
        return "  not run"
    text = f"{BULLET if cell.mark.bullet else ' '} {entry.mean:.2f}{'*' * cell.mark.bold}"
    text += "" if entry.std is None else f" ±{entry.std:.2f}"
    return text + ("" if entry.sketch is None else f" {SKETCH_MARK}")


def _published(cell: GridCell) -> str:
    if cell.entry is None or cell.entry.published is None:
        return ""
    difference = cell.entry.difference
    behind = "" if difference is None else f" {signed(difference)}"
    return f"  [{cell.entry.published.mean:.2f}{behind}]"


def _brackets(grid: Grid) -> str:
    """A pair of brackets from the table itself, for the note that explains them."""
    texts = list(filter(None, (_published(place.cell).strip() for place in grid.places())))
    return next((text for text in texts if " " in text), texts[0] if texts else "")


def _wrapped(lines: Sequence[str], width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in lines)
