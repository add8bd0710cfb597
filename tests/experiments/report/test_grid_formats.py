"""Every format holds every number, says what its marks mean and survives any label."""

from __future__ import annotations

import csv
import importlib.util
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from grids import NASTY, nasty, small
from priorshift.errors import PriorshiftError
from priorshift.experiments.report.grid_formats import (
    CSV_COLUMNS,
    GRID_FORMATS,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_text,
)
from priorshift.experiments.report.terminal import printable

READ_BY_PEOPLE = [to_text, to_markdown, to_latex, to_html]


@pytest.mark.parametrize("write", READ_BY_PEOPLE)
def test_numbers_and_notes_are_in_every_format(write):
    text = write(small())
    # Means, deviations, the paper's numbers and differences, worked out by hand.
    for number in ("4.29", "0.03", "4.27", "+0.02", "6.20", "0.10", "6.50", "-0.30", "3.10"):
        assert number in text, number
    for number in ("9.87", "2.10", "not run", "no data", "Ten rows a round."):
        assert number in text, number
    for words in ("over 3 seeds", "the best one", "worse by the paired t-test at 5", "a sketch of"):
        assert words in text, words
    for words in ("blocks:1000", "the paper", "ours minus it", "Apart: the oracle"):
        assert words in text, words


def test_all_formats_have_an_ending():
    assert list(GRID_FORMATS) == ["txt", "md", "tex", "html", "csv"]
    assert all(isinstance(write(small()), str) for write in GRID_FORMATS.values())


@pytest.mark.parametrize(
    ("package", "write"),
    [("jinja2", to_html), ("jinja2", to_latex), ("jinja2", to_markdown), ("pandas", to_csv)],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package, write):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    with pytest.raises(
        PriorshiftError, match=rf"{package}.*pip install '\.\[(experiments|frames)\]'"
    ):
        write(small())


def test_every_template_is_beside_the_code():
    folder = files("priorshift.experiments.report") / "templates"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("grid.html.j2", "grid.md.j2", "grid.tex.j2", "page.html.j2", "page.md.j2", "page.css"),
        *("stream.html.j2", "stream.css"),
    }


# Text


def test_text_marks_and_rules():
    lines = to_text(small()).splitlines()
    assert "mnist      4.29* ±0.03 ≈  • 6.20 ±0.10    |   2.10 ±0.10" in lines
    assert "           [4.27 +0.02]     [6.50 -0.30]  |" in lines
    rules = [n for n, line in enumerate(lines) if line.startswith("----")]
    assert len(rules) == 4  # two tables, in each one under the head and one above the extra rows
    assert lines[rules[1] + 1].startswith("TRACKER")


@pytest.mark.parametrize("width", [100, 60, 40, 1])
def test_text_is_cut_to_the_terminal(width):
    text = to_text(small(), width=width)
    tables = [part for part in text.split("\n\n") if "----" in part]
    if width >= 40:
        assert max(map(len, text.splitlines())) <= width
    assert len(tables) == {100: 2, 60: 2, 40: 3, 1: 5}[width]
    assert sum(part.count("4.29*") for part in tables) == 1


def test_text_for_a_terminal_without_unicode():
    text = printable(to_text(small()), "ascii")
    text.encode("ascii")
    assert "o 6.20 +-0.10" in text


# Markdown


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("grid", [small(), nasty()])
def test_markdown_rows_are_as_wide_as_their_head(grid):
    lines = to_markdown(grid).splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith("|:---")]
    assert len(heads) == len(grid.groups)
    for head, group in zip(heads, grid.groups, strict=True):
        for line in lines[head - 1 : head + 1 + len(grid.rows)]:
            assert len(cells_of(line)) == 1 + len(group.columns)


def test_markdown_marks():
    text = to_markdown(small())
    assert "| **4.29** ±0.03 ≈<br>paper 4.27 (+0.02) |" in text
    assert "| • 6.20 ±0.10<br>paper 6.50 (-0.30) |" in text
    assert "| • **3.10** ±0.10 |" in text
    assert "| *TRACKER* |" in text


def test_markdown_escapes():
    text = to_markdown(nasty())
    assert r"a\_b \& 50% $x$ \#1 \{y\} \~z^2 \\n \[\*\] \<i\> \| \`c\` ± • ≈" in text
    assert "<i>" not in text


# LaTeX

# All that base LaTeX and booktabs are asked for.
COMMANDS = re.compile(
    r"usepackage|begin|end|centering|caption|scriptsize|setlength|tabcolsep|"
    r"toprule|midrule|bottomrule|cmidrule|multicolumn|textbf|tiny|pm|bullet|"
    r"approx|par|medskip|textbackslash|textasciitilde|textasciicircum"
)


def tabulars(text):
    return re.findall(r"\\begin\{tabular\}\{([lr|]+)\}\n(.*?)\\end\{tabular\}", text, re.S)


@pytest.mark.parametrize("grid", [small(), nasty()])
def test_latex_is_well_formed(grid):
    text = "\n".join(line for line in to_latex(grid).splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\[\\&%$#_{}]", "", text)
    depth = 0
    for sign in bare:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[%#~_^]", bare)
    assert bare.isascii()
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    names = re.findall(r"\\([a-zA-Z]+)", text.replace("\\\\", ""))
    assert [name for name in names if not COMMANDS.fullmatch(name)] == []


@pytest.mark.parametrize("grid", [small(), nasty()])
def test_latex_rows_are_as_wide_as_their_columns(grid):
    found = tabulars(to_latex(grid))
    assert len(found) == len(grid.groups)
    for columns, body in found:
        wide = len(columns.replace("|", ""))
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) >= len(grid.rows) + 1
        for row in rows:
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + sum(spans) == wide
            assert not row.startswith(("[", "*"))  # LaTeX would take it for an argument of \\


def test_latex_marks():
    text = to_latex(small())
    assert r"\textbf{4.29}{\tiny$\pm$0.03} $\approx$" in text
    assert r"$\bullet$ 6.20{\tiny$\pm$0.10}" in text
    assert [columns for columns, _ in tabulars(text)] == ["lrr|r", "lr|r"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("grid", [small(), nasty()])
def test_latex_compiles(grid, tmp_path):
    body = to_latex(grid)
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
        f"{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


# HTML


class Walk(HTMLParser):
    """Check that tags close in order, and keep the rows with their cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "tr":
            self.rows.append((self.open[-1], attributes, []))
        if tag in ("td", "th"):
            self.rows[-1][2].append((tag, attributes))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("grid", [small(), nasty()])
def test_html_is_a_table_that_can_be_walked(grid):
    text = to_html(grid)
    page = Walk(text)
    assert not page.open
    assert text.startswith('<table class="grid">\n<caption>')
    assert "<script" not in text
    wide = 1 + len(grid.columns())
    head = [cells for place, _, cells in page.rows if place == "thead"]
    body = [cells for place, _, cells in page.rows if place == "tbody"]
    assert [attributes.get("scope") for _, attributes in head[0]] == [
        "col",
        *["colgroup"] * len(grid.groups),
    ]
    assert all(attributes.get("scope") == "col" for _, attributes in head[1])
    spans = [int(attributes.get("colspan", 1)) for _, attributes in head[0]]
    assert sum(spans) == wide == len(head[1]) + 1
    assert len(body) == len(grid.rows)
    for cells in body:
        assert [tag for tag, _ in cells] == ["th", *["td"] * (wide - 1)]
        assert cells[0][1]["scope"] == "row"
    foot = [cells for place, _, cells in page.rows if place == "tfoot"]
    assert foot[0][0][1]["colspan"] == str(wide)


def test_html_classes():
    page = Walk(to_html(small()))
    rows = {n: attributes.get("class") for n, (_, attributes, _) in enumerate(page.rows)}
    assert list(rows.values()) == [None, None, None, None, "ours apart", "oracle", "notes"]
    classes = [attributes.get("class") for _, attributes in page.rows[2][2]]
    assert classes == [None, "best", "marked", "ours apart", "best marked", "oracle apart"]
    assert '<span class="sketch" title="sketch blocks:1000">≈</span>' in to_html(small())


def test_html_shows_labels_as_they_are():
    page = Walk(to_html(nasty()))
    assert sum(text.strip() == NASTY for text in page.texts) >= 5
    assert "<i>" not in to_html(nasty())


# CSV


def test_csv_is_read_back_whole():
    grid = small()
    lines = list(csv.DictReader(io.StringIO(to_csv(grid))))
    assert tuple(lines[0]) == CSV_COLUMNS
    places = [place for place in grid.places() if place.cell.entry is not None]
    assert len(lines) == len(places) == 18
    for line, (row, group, column, cell) in zip(lines, places, strict=True):
        assert (line["row"], line["group"], line["column"]) == (row.label, group, column.label)
        assert int(line["seeds"]) == len(cell.entry.errors)
        assert (line["bold"], line["bullet"]) == (
            str(int(cell.mark.bold)),
            str(int(cell.mark.bullet)),
        )
        assert line["sketch"] == (cell.entry.sketch or "")
        if cell.entry.errors:
            assert float(line["mean"]) == pytest.approx(cell.entry.mean, abs=1e-6)
            assert float(line["std"]) == pytest.approx(cell.entry.std, abs=1e-6)
        else:
            assert line["mean"] == line["std"] == line["difference"] == ""
    first = lines[0]
    assert (first["published"], first["published_std"]) == ("4.27", "0.02")
    assert float(first["difference"]) == pytest.approx(float(first["mean"]) - 4.27, abs=2e-6)


def test_csv_survives_any_label():
    lines = list(csv.DictReader(io.StringIO(to_csv(nasty()))))
    assert [lines[0][name] for name in ("row", "group", "column", "sketch")] == [NASTY] * 4
