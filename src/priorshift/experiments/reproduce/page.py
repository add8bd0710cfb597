"""The report: one HTML page with everything on it, and the same in Markdown.

The page needs nothing but itself: no network, no script, no font.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from priorshift.experiments.description import BUNDLED
from priorshift.experiments.report.drawings.save import svg_text
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.report.rendering import render
from priorshift.experiments.report.svg import inline_svg
from priorshift.experiments.reproduce.background import Background
from priorshift.experiments.reproduce.parts import Claim, Part, claims_count
from priorshift.experiments.reproduce.plan import Experiment

_TITLE = "The paper, run again"
_LEAD = (
    "Adapting to Online Label Shift with Provable Guarantees (Bai, Zhang, Zhao, Sugiyama and Zhou, "
    "NeurIPS 2022), run again by priorshift: every table and figure on the data that can be had, "
    "beside the printed numbers, with a clairvoyant that knows each round's class prior and with "
    "this library's own learners."
)


def write_report(
    parts: Sequence[Part], experiments: Sequence[Experiment], background: Background, out: Path
) -> Path:
    """Write ``report.html`` into the folder of the tables and figures, and return its path."""
    listed = differences(experiments, background.quick, background.notes)
    lead = f"{listed[0]} {_LEAD}" if background.quick else _LEAD
    whole = [*_overview(parts), *parts, _differences(listed), _settings(experiments, background)]
    path = out / "report.html"
    write_whole(path, page_html(_TITLE, lead, whole))
    return path


def write_markdown(
    parts: Sequence[Part], experiments: Sequence[Experiment], background: Background, out: Path
) -> Path:
    """Write ``results.md`` beside the report, for pages that are read beside the code."""
    listed = differences(experiments, background.quick, background.notes)
    path = out / "results.md"
    whole = [*parts, _differences(listed)]
    write_whole(path, page_markdown(_TITLE, background.pairs(), whole))
    return path


def page_html(title: str, lead: str, parts: Sequence[Part]) -> str:
    """Return the text of an HTML file with a section for each part.

    Examples
    --------
    >>> html = page_html("Report", "Lead.", [Part("a-b", "A & B", ["1 < 2"])])
    >>> '<a href="#a-b">A &amp; B</a>' in html, "<p>1 &lt; 2</p>" in html
    (True, True)
    """
    tools = {"inline_svg": inline_svg, "svg_text": svg_text, "endings": GRID_FORMATS}
    words = {"title": title, "lead": lead, "parts": parts, "counted": claims_count}
    return render("page.html.j2", **words, **tools) + "\n"


def page_markdown(title: str, pairs: Sequence[tuple[str, object]], parts: Sequence[Part]) -> str:
    """Return the text of a Markdown file with a section for each part."""
    words = {"title": title, "pairs": pairs, "parts": parts, "counted": claims_count}
    return render("page.md.j2", **words) + "\n"


def differences(experiments: Sequence[Experiment], quick: bool, notes: Sequence[str]) -> list[str]:
    """List what a reader has to know before comparing numbers."""
    known = _known()
    runs = [run for one in experiments for some in one.runs.values() for run in some]
    real = any(run.data.dataset not in BUNDLED for run in runs)
    sketched = any(run.sketch is not None for run in runs)
    roles = {role for one in experiments for role, some in one.runs.items() if some}
    return [
        *([known["quick"]] if quick else []),
        *notes,
        *known["always"],
        *(known["real_data"] if real else []),
        *(known["sketch"] if sketched else []),
        *(text for role, text in known["roles"].items() if role in roles),
    ]


def with_causes(claims: Sequence[Claim]) -> list[Claim]:
    """Add the cause, where one was tested, to claims that do not hold."""
    causes = _known()["causes"]
    return [
        claim if claim.holds or claim.cause else claim._replace(cause=causes.get(claim.text, ""))
        for claim in claims
    ]


@cache
def _known() -> dict[str, Any]:
    text = files(__package__).joinpath("differences.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _differences(listed: Sequence[str]) -> Part:
    return Part("differences", "What differs from the paper, and why", items=listed)


def _overview(parts: Sequence[Part]) -> list[Part]:
    """How many claims hold in each section, and those that do not."""
    counts = [f"{part.title}: {claims_count(part.claims)}" for part in parts if part.claims]
    failed = [claim for part in parts for claim in part.claims if not claim.holds]
    words = "Claims that were checked, section by section"
    words += (
        "; those that do not hold, or cannot be checked here, are below them:" if failed else ":"
    )
    return [Part("claims", "Claims", [words], claims=failed, items=counts)] if counts else []


def _settings(experiments: Sequence[Experiment], background: Background) -> Part:
    data = {run.data for one in experiments for some in one.runs.values() for run in some}
    about = [
        f"{one.name}: {one.dataset}"
        + (f", at most {one.rows:,} offline rows" if one.rows else "")
        + (f", {one.network} hidden units" if one.network else "")
        + (f", {one.components} principal components" if one.components else "")
        + (f", in the order '{one.order}'" if one.order else "")
        for one in sorted(data, key=lambda one: one.name)
    ]
    words = [
        "Streams, learners, shifts and batch sizes of every experiment are in "
        "src/priorshift/experiments/paper/experiments.toml; every single result with its settings "
        "is in results.db beside this page."
    ]
    return Part("settings", "Settings", words, items=about, pairs=background.pairs())
