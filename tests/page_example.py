"""A page with every kind of block and every drawing, from made-up data."""

from __future__ import annotations

from functools import cache

from drawing_examples import all_figures
from priorshift.experiments.paper import Cell
from priorshift.experiments.report.drawings import svg_text
from priorshift.experiments.report.grid import (
    Column,
    ColumnGroup,
    Entry,
    Grid,
    GridCell,
    GridRow,
    Mark,
)
from priorshift.experiments.report.page import (
    Claims,
    FigureBlock,
    KeyValues,
    Page,
    Section,
    TableBlock,
    Text,
)

SHIFTS = ("Lin", "Squ", "Sin", "Ber")
DATA = ("ArXiv", "EuroSAT", "MNIST", "Fashion", "CIFAR10", "CINIC10")


@cache
def drawings() -> dict[str, str]:
    return {name: svg_text(figure) for name, figure in all_figures().items()}


def wide_table() -> Grid:
    cell = GridCell(Entry((24.24, 24.28, 24.32), Cell(24.35, 0.02)), Mark(bold=True))
    groups = tuple(ColumnGroup(name, tuple(map(Column, SHIFTS))) for name in DATA)
    cells = (cell,) * len(DATA) * len(SHIFTS)
    names = ("FIX", "FTH", "ROGD", "UOGD", "ATLAS", "ATLAS-ADA")
    rows = (*(GridRow(name, cells) for name in names), GridRow("AUTO", cells, "ours"))
    return Grid("Table 3", "learner", groups, rows, "Average error (%), five seeds.", "the best")


def example_page(copies: int = 1) -> Page:
    claims = [
        ("ATLAS beats FIX under Squ, Sin and Ber", True, "6 of 6 data sets"),
        ("UOGD is best or tied under Lin", False, "4 of 6 data sets: not MNIST, Fashion <1>"),
    ]
    sections = [
        Section("What holds", "claims", [Text("All claims.", ["one & two"]), Claims(claims)]),
        Section("Table 3", "table-3", [TableBlock(wide_table(), "Table 3", ["table3.csv"])]),
    ]
    for copy in range(copies):
        for name, svg in drawings().items():
            figure = FigureBlock(
                svg, f"What {name} shows, from made-up data.", f"lines of {name}", [f"{name}.svg"]
            )
            anchor = f"{name}-{copy}"
            sections.append(Section(f"Figure: {name}", anchor, [Text(["Words."]), figure]))
    settings = [("seeds", "0, 1, 2, 3, 4"), ("commit", "0123456789abcdef" * 4), ("rounds", 10000)]
    sections.append(Section("Settings", "settings", [KeyValues(settings)]))
    return Page("The paper, again <once more>", "Tables & figures beside the numbers.", sections)
