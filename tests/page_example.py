"""A page with every kind of block and every drawing, from made-up data."""

from __future__ import annotations

from functools import cache

from drawing_examples import all_figures
from priorshift.experiments.report.drawings import svg_text
from priorshift.experiments.report.page import Page, Section
from priorshift.experiments.report.page_blocks import (
    Claims,
    FigureBlock,
    KeyValues,
    TableBlock,
    Text,
)

SHIFTS = ("Lin", "Squ", "Sin", "Ber")
DATA = ("ArXiv", "EuroSAT", "MNIST", "Fashion", "CIFAR10", "CINIC10")


@cache
def drawings() -> dict[str, str]:
    return {name: svg_text(figure) for name, figure in all_figures().items()}


def wide_table() -> str:
    groups = "".join(f'<th scope="colgroup" colspan="4">{name}</th>' for name in DATA)
    heads = "".join(f'<th scope="col">{shift}</th>' for _ in DATA for shift in SHIFTS)
    cell = (
        '<td class="best"><strong class="mean">24.28</strong> <span class="std">±0.04</span><br>'
        '<span class="published">paper 24.35 (-0.07)</span></td>'
    )
    rows = "".join(
        f'<tr><th scope="row">{name}</th>{cell * len(DATA) * 4}</tr>'
        for name in ("FIX", "FTH", "ROGD", "UOGD", "ATLAS", "ATLAS-ADA")
    )
    ours = f'<tr class="ours"><th scope="row">AUTO</th>{cell * len(DATA) * 4}</tr>'
    return (
        '<table class="grid"><caption>Table 3<br><span class="about">Average error (%), five '
        'seeds.</span></caption><thead><tr><th rowspan="2" scope="col">learner</th>'
        f"{groups}</tr><tr>{heads}</tr></thead><tbody>{rows}</tbody><tbody>{ours}</tbody></table>"
    )


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
