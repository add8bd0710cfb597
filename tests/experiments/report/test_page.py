"""A report as one HTML file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import page_example
from priorshift.errors import InputError
from priorshift.experiments.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_4
from priorshift.experiments.report.drawings.style import drawing_style, new_figure
from priorshift.experiments.report.grid import Entry, Grid
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.report.svg import inline_svg
from priorshift.experiments.reproduce.background import Background
from priorshift.experiments.reproduce.claims import benchmark_claims, learner_claims
from priorshift.experiments.reproduce.claims_hints import hint_claims
from priorshift.experiments.reproduce.page import (
    differences,
    page_html,
    page_markdown,
    with_causes,
    write_report,
)
from priorshift.experiments.reproduce.parts import Claim, Drawing, Part, claims_text
from priorshift.experiments.reproduce.plan import plan

EVIL = '<script>alert(1)</script> & "quoted"'
VOID = {"meta", "link", "br"}


class Reader(HTMLParser):
    """Collects tags, ids and links, and sees to it that every element is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "xlink:href", "src"):
                self.links.append(value)
            self.links += [f"#{name}" for name in re.findall(r"url\(#([^)]*)\)", value or "")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def html() -> str:
    return page_example.example_html(copies=2)


def test_the_page_is_well_formed_and_has_what_readers_need(html):
    reader = read(html)
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert reader.tags.count("h1") == reader.tags.count("main") == reader.tags.count("nav") == 1
    assert reader.tags.count("figure") == reader.tags.count("svg") == 14
    assert reader.tags.count("figcaption") == 14
    assert html.count('role="img"') == 14


def test_names_are_unique_and_links_lead_to_them(html):
    reader = read(html)
    assert len(reader.ids) == len(set(reader.ids))
    inner = {link[1:] for link in reader.links if link.startswith("#")}
    assert len(inner) > 100
    assert inner <= set(reader.ids)


def test_it_asks_for_nothing(html):
    outside = [link for link in read(html).links if not link.startswith("#")]
    tables = {f"tables/table3.{ending}" for ending in GRID_FORMATS}
    figures = {f"figures/{name}.{e}" for name in page_example.drawings() for e in ("svg", "png")}
    assert set(outside) == {"data:,"} | tables | figures
    assert "<script" not in html
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert "http" not in html.replace("http-equiv", "")


def test_two_of_every_figure_stay_below_2_megabytes(html):
    assert len(html.encode("utf-8")) < 2_000_000


def test_every_section_is_in_the_contents_in_order(html):
    names = [part.name for part in page_example.example_parts(copies=2)]
    contents = html[html.index("<nav") : html.index("</nav>")]
    assert re.findall(r'href="#([^"]*)"', contents) == names


def test_all_text_is_escaped():
    with drawing_style():
        figure = new_figure(1.0)
    part = Part(
        "a",
        EVIL,
        [EVIL],
        {EVIL: Grid(EVIL, EVIL, (), ())},
        [Drawing(EVIL, figure, EVIL, EVIL)],
        [Claim(EVIL, True, EVIL), Claim(EVIL, False, EVIL)],
        items=[EVIL],
        pairs=[(EVIL, EVIL)],
    )
    reader = read(page_html(EVIL, EVIL, [part]))
    assert "script" not in reader.tags
    # Seen as it was written: title twice, lead, contents, heading; in the part a paragraph, an
    # item, a table's title and stub, its files, a caption, two files, key and value, two claims
    # and two details.
    assert sum(EVIL in words for words in reader.words) == 16 + len(GRID_FORMATS) + 2


def test_claims_say_so_in_words():
    claims = [Claim("a", True, ""), Claim("b", False, "c"), Claim("d", True, "")]
    html = page_html("a", "b", [Part("c", "c", claims=claims)])
    assert "2 of 3 claims hold." in html
    assert html.count("<b>holds</b>") == 2
    assert "<b>does not hold</b> b <small>c</small>" in html


def test_what_cannot_be_checked_says_so_with_the_cause():
    claims = [Claim("a", True, "1"), Claim("b", False, "2", "c"), Claim("d", None, "3", "no data")]
    part = Part("c", "c", claims=claims)
    html, markdown = page_html("a", "b", [part]), page_markdown("a", [], [part])
    counts = "1 of 2 claims hold; 1 more cannot be checked here."
    assert counts in html
    assert counts in markdown
    assert '<li class="fails"><b>does not hold</b> b <small>2. Cause: c</small></li>' in html
    assert '<li class="open"><b>cannot be checked here</b> d <small>3. Cause: no data' in html
    assert "| b | no | 2. Cause: c |\n| d | not checkable here | 3. Cause: no data |" in markdown
    text = claims_text(claims)
    assert text == f"{counts}\nholds  a: 1\nFAILS  b: 2. Cause: c\nopen   d: 3. Cause: no data"


def test_claims_in_markdown_and_in_a_terminal():
    claims = [Claim("a | b < c", True, "1 & 2"), Claim("d", False, "word " * 40)]
    text = claims_text(claims, width=60)
    assert text.startswith("1 of 2 claims hold.\nholds  a | b < c: 1 & 2\nFAILS  d: word")
    assert max(map(len, text.splitlines())) <= 60
    markdown = page_markdown("a", [], [Part("a", "b", claims=claims)])
    assert "1 of 2 claims hold.\n\n| claim | holds | measured |\n|:---|:---|:---|\n" in markdown
    assert r"| a \| b \< c | yes | 1 \& 2 |" in markdown


def test_a_tested_cause_goes_to_its_claim_where_that_does_not_hold():
    text = "Under Lin UOGD is the best, or tied with it by the paired t-test at 5 %"
    held, failed, other, own = with_causes(
        [
            Claim(text, True, ""),
            Claim(text, False, ""),
            Claim("a", False, ""),
            Claim(text, None, "", "b"),
        ]
    )
    assert held.cause == other.cause == ""
    assert "clipping" in failed.cause
    assert own.cause == "b"


def test_every_cause_belongs_to_a_claim():
    known = tomllib.loads(
        files("priorshift.experiments.reproduce").joinpath("differences.toml").read_text("utf-8")
    )
    cells = {
        (data, shift, learner): Entry((cell.mean,))
        for table in (TABLE_3, TABLE_4)
        for data, rows in table.items()
        for shift, row in rows.items()
        for learner, cell in row.items()
    }
    hints = {
        (size, shift, hint): Entry((cell.mean,))
        for size, rows in TABLE_2.items()
        for shift, row in rows.items()
        for hint, cell in row.items()
    }
    learners = {
        (name, shift): Entry((cell.mean,))
        for name, row in TABLE_1.items()
        for shift, cell in row.items()
    }
    claims = [*learner_claims(learners), *hint_claims(hints), *benchmark_claims(cells, raw=cells)]
    others = known["causes"].keys() - {claim.text for claim in claims}
    # Claims about curves and about this library's learners: as the report of a real run has them.
    printed = Path(__file__).parents[3].joinpath("docs/results/results.md").read_text("utf-8")
    assert all(f"| {text} |" in printed for text in others)


def test_differences_are_those_of_the_runs():
    tables = [plan(name, quick=False, seeds=1) for name in ("table1", "table2")]
    without = differences(tables[:1], quick=False, notes=["a note"])
    assert without[0] == "a note"
    assert not any("sketch" in one or "SHL" in one or "exactly" in one for one in without)
    run = replace(tables[1].runs["cell"][-1], solver="exact")
    solved = replace(tables[1], runs={**tables[1].runs, "exact-solver": (run,), "raw": ()})
    found = differences([solved], quick=False, notes=[])
    assert sum("implicit step solved exactly" in one for one in found) == 1
    assert any("marked as a sketch" in one for one in found)
    assert not any("twice" in one for one in found)  # a role without runs


def test_a_page_is_written_whole(tmp_path):
    background = Background("priorshift reproduce all", False, 1, 1, 0.0, 0.0, ())
    path = write_report([Part("a", "b")], [], background, tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.name == "report.html"
    assert [tag for tag in read(path.read_text(encoding="utf-8")).tags if tag == "section"] == [
        *("section", "section", "section")  # the part, what differs, the settings
    ]


def wrap(inside: str, attributes: str = 'viewBox="0 0 1 1"') -> str:
    return (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {attributes}>{inside}</svg>'
    )


def test_names_inside_a_figure_are_changed_where_they_are_used():
    svg = wrap(
        '<defs><path id="p"/><clipPath id="c"/></defs>'
        '<use xlink:href="#p" clip-path="url(#c)" style="fill: url(#h)"/>'
    )
    html = inline_svg(svg, "f1", "a")
    assert 'id="f1-p"' in html
    assert 'href="#f1-p"' in html
    assert 'clip-path="url(#f1-c)"' in html
    assert 'style="fill: url(#f1-h)"' in html


def test_a_rule_for_all_elements_stays_in_its_figure():
    svg = wrap("<defs><style>*{stroke-linejoin: round}</style></defs><path/>")
    html = inline_svg(svg, "f1", "a")
    assert "<style" not in html
    assert html.startswith('<svg viewBox="0 0 1 1" style="stroke-linejoin: round"')


@pytest.mark.parametrize(
    ("svg", "message"),
    [
        ("no svg", "not SVG"),
        ("<p/>", "its root is 'p'"),
        (wrap("", ""), "no viewBox"),
        (wrap("<script/>"), "holds a <script>"),
        (wrap("<foreignObject/>"), "holds a <foreignObject>"),
        (wrap('<path onload="a()"/>'), "attribute onload"),
        (wrap('<image xlink:href="http://a/b.png"/>'), "outside of it"),
        (wrap('<use href="javascript:a()"/>'), "outside of it"),
        (wrap('<path style="fill: url(http://a/b)"/>'), "outside of it"),
        (wrap("<path style=\"fill: url('http://a/b')\"/>"), "outside of it"),
        (wrap("<style>path{fill: red}</style>"), "style sheet"),
        ('<!DOCTYPE svg [<!ENTITY a "b">]>' + wrap("&a;")[21:], "entities"),
    ],
)
def test_a_figure_that_is_no_plain_drawing_is_refused(svg, message):
    with pytest.raises(InputError, match=message):
        inline_svg(svg, "f1", "a")


def test_a_png_inside_a_figure_stays():
    html = inline_svg(wrap('<image xlink:href="data:image/png;base64,AAAA"/>'), "f1", "a")
    assert 'href="data:image/png;base64,AAAA"' in html
