"""A page with everything that a part can hold and every drawing, from made-up data."""

from __future__ import annotations

from functools import cache

from drawing_examples import all_figures
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
from priorshift.experiments.reproduce.page import page_html
from priorshift.experiments.reproduce.parts import Claim, Drawing, Part

SHIFTS = ("Lin", "Squ", "Sin", "Ber")
DATA = ("ArXiv", "EuroSAT", "MNIST", "Fashion", "CIFAR10", "CINIC10")


@cache
def drawings() -> dict:
    return all_figures()


def wide_table() -> Grid:
    cell = GridCell(Entry((24.24, 24.28, 24.32), Cell(24.35, 0.02)), Mark(bold=True))
    groups = tuple(ColumnGroup(name, tuple(map(Column, SHIFTS))) for name in DATA)
    cells = (cell,) * len(DATA) * len(SHIFTS)
    names = ("FIX", "FTH", "ROGD", "UOGD", "ATLAS", "ATLAS-ADA")
    rows = (*(GridRow(name, cells) for name in names), GridRow("AUTO", cells, "ours"))
    return Grid("Table 3", "learner", groups, rows, "Average error (%), five seeds.", "the best")


def example_parts(copies: int = 1) -> list[Part]:
    claims = [
        Claim("ATLAS beats FIX under Squ, Sin and Ber", True, "6 of 6 data sets"),
        Claim("UOGD is best or tied under Lin", False, "4 of 6: not MNIST, Fashion <1>"),
    ]
    parts = [
        Part("claims", "What holds", ["All claims."], claims=claims, items=["one & two"]),
        Part("table-3", "Table 3", grids={"table3": wide_table()}),
    ]
    for copy in range(copies):
        for name, figure in drawings().items():
            caption = f"What {name} shows, from made-up data."
            drawing = Drawing(name, figure, caption, f"lines of {name}")
            words = ["Words."]
            parts.append(Part(f"{name}-{copy}", f"Figure: {name}", words, drawings=[drawing]))
    settings = [("seeds", "0, 1, 2, 3, 4"), ("commit", "0123456789abcdef" * 4), ("rounds", 10000)]
    return [*parts, Part("settings", "Settings", pairs=settings)]


@cache
def example_html(copies: int = 1) -> str:
    lead = "Tables & figures beside the numbers."
    return page_html("The paper, again <once more>", lead, example_parts(copies))
