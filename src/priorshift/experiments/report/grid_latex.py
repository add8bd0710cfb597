r"""A table of errors in LaTeX: a ``table`` that needs ``\usepackage{booktabs}`` and no more."""

from __future__ import annotations

from collections.abc import Sequence

from priorshift.experiments.report.entry import signed
from priorshift.experiments.report.grid import Grid, GridCell
from priorshift.experiments.report.grid_notes import grid_notes

# A bracket or a star behind the end of a row would be read as its argument; < > | are other signs
# in LaTeX's oldest fonts.
_ESCAPES = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    **{sign: f"${sign}$" for sign in "<>|"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "•": r"$\bullet$",
    "≈": r"$\approx$",
}
_TABLE = str.maketrans(_ESCAPES)


def to_latex(grid: Grid) -> str:
    r"""Write a table as LaTeX, with title and notes in its caption, a ``tabular`` for each group.

    Each row has two lines, the mean with its deviation and the paper's mean with the difference.

    Examples
    --------
    >>> from priorshift.experiments.report.entry import Entry, Mark
    >>> from priorshift.experiments.report.grid import Column, ColumnGroup, GridRow
    >>> best = GridCell(Entry((4.25, 4.31)), Mark(bold=True))
    >>> grid = Grid("Errors", "learner", (ColumnGroup("Lin", (Column("squ"),)),),
    ...             (GridRow("ATLAS", (best,)),), bold="the best one")
    >>> print(to_latex(grid))
    % needs \usepackage{booktabs}
    \begin{table}
    \centering
    \caption{Errors. Average error in \%: mean $\pm$ sample standard deviation over 2 seeds. \textbf{Bold}: the best one.}
    \scriptsize
    \setlength{\tabcolsep}{3pt}
    \begin{tabular}{lr}
    \toprule
     & \multicolumn{1}{c}{Lin} \\
    \cmidrule(lr){2-2}
    learner & squ \\
    \midrule
    ATLAS & \textbf{4.28}{\tiny$\pm$0.04} \\
    \bottomrule
    \end{tabular}
    \end{table}
    """  # noqa: E501
    notes = grid_notes(grid, bold="\0", published="Below it")
    words = [f"{grid.title}.", grid.caption, *notes]
    caption = " ".join(escape_latex(word) for word in words if word).replace("\0", r"\textbf{Bold}")
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            r"\scriptsize",
            r"\setlength{\tabcolsep}{3pt}",
            "\n\\par\\medskip\n".join(_tabular(part) for part in grid.by_group()),
            r"\end{table}",
        ]
    )


def _tabular(grid: Grid) -> str:
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{_columns(grid)}}}",
            r"\toprule",
            *_heads(grid),
            r"\midrule",
            *_rows(grid),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def escape_latex(text: str) -> str:
    r"""Return a text that LaTeX sets as it is.

    Examples
    --------
    >>> print(escape_latex("5 % of a_b ±1"))
    5 \% of a\_b $\pm$1
    """
    return " ".join(text.split()).translate(_TABLE)


def _columns(grid: Grid) -> str:
    """One letter a column, a rule before the first that stands apart in its group."""
    return "l" + "".join("|r" if apart else "r" for apart in grid.apart_columns())


def _heads(grid: Grid) -> list[str]:
    title, wide = grid.groups[0].title, len(grid.columns())
    lines = []
    if title:
        lines.append(_line(["", rf"\multicolumn{{{wide}}}{{c}}{{{escape_latex(title)}}}"]))
        lines.append(rf"\cmidrule(lr){{2-{wide + 1}}}")
    labels = (escape_latex(column.label) for _, column in grid.columns())
    return [*lines, _line([escape_latex(grid.stub), *labels])]


def _rows(grid: Grid) -> list[str]:
    lines = []
    for number, row in enumerate(grid.rows):
        if grid.starts_apart(number):
            lines.append(r"\midrule")
        lines.append(_line([escape_latex(row.label), *map(_first_line, row.cells)]))
        below = [_second_line(cell) for cell in row.cells]
        if any(below):
            lines.append(_line(["", *below]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _first_line(cell: GridCell) -> str:
    entry = cell.entry
    if entry is None:
        return escape_latex(cell.text)
    if not entry.errors:
        return "not run"
    number = f"{entry.mean:.2f}"
    text = r"$\bullet$ " * cell.mark.bullet
    text += rf"\textbf{{{number}}}" if cell.mark.bold else number
    text += "" if entry.std is None else rf"{{\tiny$\pm${entry.std:.2f}}}"
    return text + ("" if entry.sketch is None else r" $\approx$")


def _second_line(cell: GridCell) -> str:
    if cell.entry is None or cell.entry.published is None:
        return ""
    difference = cell.entry.difference
    behind = "" if difference is None else f" (${signed(difference)}$)"
    return rf"{{\tiny {cell.entry.published.mean:.2f}{behind}}}"
