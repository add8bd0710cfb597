"""A table of errors in GitHub's Markdown."""

from __future__ import annotations

import re

from priorshift.experiments.report.entry import signed
from priorshift.experiments.report.grid import Grid, GridCell
from priorshift.experiments.report.grid_notes import BULLET, SKETCH_MARK, grid_notes


def to_markdown(grid: Grid) -> str:
    r"""Write a table as Markdown; each group of columns is a table of its own.

    Labels of rows and columns that stand apart are in italics.

    Examples
    --------
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, GridRow
    >>> best = GridCell(Entry((4.25, 4.31)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("Lin", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)),), bold="the best one")
    >>> print(to_markdown(grid))
    **Errors**
    <BLANKLINE>
    Lin
    <BLANKLINE>
    | learner | squ |
    |:---|---:|
    | ATLAS | **4.28** ±0.04 |
    <BLANKLINE>
    Average error in %: mean ± sample standard deviation over 2 seeds.\
    **bold**: the best one.
    """
    notes = grid_notes(grid, bold="\0", published="paper")
    texts = (escape_markdown(note).replace("\0", "**bold**") for note in notes)
    blocks = [f"**{escape_markdown(grid.title)}**", escape_markdown(grid.caption)]
    for part in grid.by_group():
        blocks += [escape_markdown(part.groups[0].title), _table(part)]
    return "\n\n".join(filter(None, [*blocks, "\\\n".join(texts)]))


def _table(grid: Grid) -> str:
    heads = [_label(column.label, column.kind) for _, column in grid.columns()]
    rows = (_line([_label(row.label, row.kind), *map(_cell, row.cells)]) for row in grid.rows)
    rule = "|:---|" + "---:|" * len(heads)
    return "\n".join([_line([escape_markdown(grid.stub), *heads]), rule, *rows])


def escape_markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is, also within a table.

    Examples
    --------
    >>> print(escape_markdown("a|b *c* _d_"))
    a\|b \*c\* \_d\_
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", " ".join(text.split()))


def _label(label: str, kind: str) -> str:
    text = escape_markdown(label)
    return text if kind == "paper" else f"*{text}*"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: GridCell) -> str:
    entry = cell.entry
    if entry is None:
        return escape_markdown(cell.text)
    text = "not run"
    if entry.errors:
        number = f"{entry.mean:.2f}"
        text = f"{BULLET} " * cell.mark.bullet + (f"**{number}**" if cell.mark.bold else number)
        text += "" if entry.std is None else f" ±{entry.std:.2f}"
        text += "" if entry.sketch is None else f" {SKETCH_MARK}"
    if entry.published is not None:
        text += f"<br>paper {entry.published.mean:.2f}"
        text += "" if entry.difference is None else f" ({signed(entry.difference)})"
    return text
