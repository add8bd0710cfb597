"""The report: one page with everything on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from priorshift.experiments.report.drawings import svg_text
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.report.page import (
    Block,
    Claims,
    FigureBlock,
    KeyValues,
    Page,
    Section,
    TableBlock,
    Text,
    write_page,
)
from priorshift.experiments.reproduce.background import Background
from priorshift.experiments.reproduce.differences import QUICK, differences
from priorshift.experiments.reproduce.parts import Part
from priorshift.experiments.reproduce.plan import Experiment

_LEAD = (
    "Adapting to Online Label Shift with Provable Guarantees (Bai, Zhang, Zhao, Sugiyama and Zhou, "
    "NeurIPS 2022), run again by priorshift: every table and figure on the data that can be had, "
    "beside the printed numbers, with a clairvoyant that knows each round's class mix and with this"
    " library's own learners."
)


def write_report(
    parts: Sequence[Part], experiments: Sequence[Experiment], background: Background, out: Path
) -> Path:
    """Write ``report.html`` into the folder of the tables and figures.

    Examples
    --------
    >>> write_report.__name__
    'write_report'
    """
    sections = [
        *([_overview(parts)] if any(part.claims for part in parts) else []),
        *(Section(part.title, part.name, _blocks(part)) for part in parts),
        Section(
            "What differs from the paper, and why",
            "differences",
            [Text(items=differences(experiments, background.quick, background.notes))],
        ),
        Section("Settings", "settings", _settings(experiments, background)),
    ]
    lead = f"{QUICK} {_LEAD}" if background.quick else _LEAD
    return write_page(Page("The paper, run again", lead, sections), out / "report.html")


def _overview(parts: Sequence[Part]) -> Section:
    """How many claims hold in each section, and those that do not."""
    counts = [
        f"{part.title}: {sum(claim.holds for claim in part.claims)} of {len(part.claims)} hold"
        for part in parts
        if part.claims
    ]
    failed = [claim for part in parts for claim in part.claims if not claim.holds]
    blocks: list[Block] = [Text("Claims that were checked, section by section:", counts)]
    if failed:
        blocks += [Text("Those that do not hold:"), Claims(failed)]
    return Section("Claims", "claims", blocks)


def _blocks(part: Part) -> list[Block]:
    blocks: list[Block] = []
    for stem, grid in part.grids.items():
        files = [f"tables/{stem}.{ending}" for ending in GRID_FORMATS]
        blocks.append(TableBlock(grid, part.title, files))
    for drawing in part.drawings:
        files = [f"figures/{drawing.stem}.{ending}" for ending in ("svg", "png")]
        blocks.append(FigureBlock(svg_text(drawing.figure), drawing.caption, drawing.alt, files))
    if part.words:
        blocks.append(Text(part.words))
    if part.claims:
        blocks.append(Claims(part.claims))
    return blocks


def _settings(experiments: Sequence[Experiment], background: Background) -> list[Block]:
    worlds = {run.world for one in experiments for some in one.runs.values() for run in some}
    about = [
        f"{world.name}: {world.data}"
        + (f", at most {world.rows:,} offline rows" if world.rows else "")
        + (f", {world.network} hidden units" if world.network else "")
        + (f", {world.components} principal components" if world.components else "")
        + (f", in the order '{world.order}'" if world.order else "")
        for world in sorted(worlds, key=lambda world: world.name)
    ]
    words = [
        "Streams, learners, shifts and batch sizes of every experiment are in "
        "src/priorshift/paper/experiments.toml; every single result with its settings is in "
        "results.db beside this page."
    ]
    return [KeyValues(background.pairs()), Text(words, about)]
