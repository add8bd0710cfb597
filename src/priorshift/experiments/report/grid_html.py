"""A table of errors as a piece of HTML that screen readers can walk through."""

from __future__ import annotations

from html import escape

from priorshift.experiments.report.entry import signed
from priorshift.experiments.report.grid import Column, Grid, GridCell, GridRow, Kind
from priorshift.experiments.report.grid_notes import BULLET, SKETCH_MARK, grid_notes


def to_html(grid: Grid) -> str:
    """Write a table as a ``<table>`` for a page of your own; it brings no style and no script.

    Classes: the table is ``grid``; rows, heads and cells beyond the paper are ``ours`` or
    ``oracle``, the first of them in a row or group also ``apart`` (draw a rule there); a cell may
    be ``best`` or ``marked`` (with a bullet); in it are ``mean``, ``std``, ``published``,
    ``bullet`` and ``sketch``. The notes are the table's foot.

    Examples
    --------
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import ColumnGroup
    >>> best = GridCell(Entry((4.25, 4.31)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)),), bold="the best one")
    >>> html = to_html(grid)
    >>> html.splitlines()[1]
    '<caption>Errors</caption>'
    >>> '<strong class="mean">4.28</strong> <span class="std">±0.04</span>' in html
    True
    """
    caption = escape(grid.title)
    if grid.caption:
        caption += f'<br><span class="about">{escape(grid.caption)}</span>'
    lines = [
        '<table class="grid">',
        f"<caption>{caption}</caption>",
        *_column_groups(grid),
        "<thead>",
        *_heads(grid),
        "</thead>",
        *_bodies(grid),
        *_foot(grid),
        "</table>",
    ]
    return "\n".join(lines)


def _column_groups(grid: Grid) -> list[str]:
    """What ``scope="colgroup"`` refers to."""
    groups = (f'<colgroup span="{len(group.columns)}"></colgroup>' for group in grid.groups)
    return ["<colgroup></colgroup>", *groups]


def _heads(grid: Grid) -> list[str]:
    stub = f'<th scope="col">{escape(grid.stub)}</th>'
    lines = []
    if any(group.title for group in grid.groups):
        titles = [
            f'<th scope="colgroup" colspan="{len(group.columns)}">{escape(group.title)}</th>'
            for group in grid.groups
        ]
        stub_above = stub.replace("<th ", '<th rowspan="2" ')
        lines.append(f"<tr>{stub_above}{''.join(titles)}</tr>")
        stub = ""
    heads = [
        f'<th scope="col"{_class(column.kind, apart)}>{escape(column.label)}</th>'
        for column, apart in _columns(grid)
    ]
    return [*lines, f"<tr>{stub}{''.join(heads)}</tr>"]


def _columns(grid: Grid) -> list[tuple[Column, str]]:
    """Every column, with "apart" for the first behind the paper's in its group."""
    columns = (column for _, column in grid.columns())
    marks = ("apart" if apart else "" for apart in grid.apart_columns())
    return list(zip(columns, marks, strict=True))


def _bodies(grid: Grid) -> list[str]:
    lines = ["<tbody>"]
    for number, row in enumerate(grid.rows):
        apart = ""
        if grid.starts_apart(number):
            lines += ["</tbody>", "<tbody>"]
            apart = "apart"
        lines.append(_row(grid, row, apart))
    return [*lines, "</tbody>"]


def _row(grid: Grid, row: GridRow, apart: str) -> str:
    cells = [
        f"<td{_class(column.kind, first, *_marks(cell))}>{_content(cell)}</td>"
        for (column, first), cell in zip(_columns(grid), row.cells, strict=True)
    ]
    head = f'<th scope="row">{escape(row.label)}</th>'
    return f"<tr{_class(row.kind, apart)}>{head}{''.join(cells)}</tr>"


def _foot(grid: Grid) -> list[str]:
    notes = grid_notes(grid, bold="\0", published="paper")
    texts = (escape(note).replace("\0", "<strong>bold</strong>") for note in notes)
    if not notes:
        return []
    wide = 1 + len(grid.columns())
    cell = f'<td colspan="{wide}">{"<br>".join(texts)}</td>'
    return ["<tfoot>", f'<tr class="notes">{cell}</tr>', "</tfoot>"]


def _class(kind: Kind, *others: str) -> str:
    names = [*([] if kind == "paper" else [kind]), *filter(None, others)]
    return f' class="{" ".join(names)}"' if names else ""


def _marks(cell: GridCell) -> list[str]:
    return ["best"] * cell.mark.bold + ["marked"] * cell.mark.bullet


def _content(cell: GridCell) -> str:
    entry = cell.entry
    if entry is None:
        return escape(cell.text)
    parts = ['<span class="mean">not run</span>']
    if entry.errors:
        tag = "strong" if cell.mark.bold else "span"
        parts = [f'<span class="bullet">{BULLET}</span>'] if cell.mark.bullet else []
        parts.append(f'<{tag} class="mean">{entry.mean:.2f}</{tag}>')
        if entry.std is not None:
            parts.append(f'<span class="std">±{entry.std:.2f}</span>')
        if entry.sketch is not None:
            title = escape(f"sketch {entry.sketch}")
            parts.append(f'<span class="sketch" title="{title}">{SKETCH_MARK}</span>')
    if entry.published is not None:
        behind = "" if entry.difference is None else f" ({signed(entry.difference)})"
        paper = f"paper {entry.published.mean:.2f}{behind}"
        parts.append(f'<br><span class="published">{paper}</span>')
    return " ".join(parts)
