"""A report as one HTML file that needs nothing but itself: no network, no script, no font."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from priorshift.errors import InputError
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.report.page_blocks import Block
from priorshift.experiments.report.page_style import STYLE

_ANCHOR = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RESERVED = {"contents", "main"}
# A browser that obeys it cannot fetch or run anything, whatever the page came to hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


@dataclass(frozen=True)
class Section:
    """A part of a page, with a name that links can lead to.

    Attributes
    ----------
    title : str
    anchor : str
        Small letters and digits, with single hyphens between; unique in the page.
    blocks : sequence of Text, TableBlock, FigureBlock, KeyValues or Claims

    Examples
    --------
    >>> Section("Table 1", "table-1", ()).anchor
    'table-1'
    """

    title: str
    anchor: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        if not _ANCHOR.fullmatch(self.anchor) or self.anchor in _RESERVED:
            raise InputError(
                f"the anchor {self.anchor!r} of section {self.title!r} is not usable; "
                "give small letters and digits with single hyphens between, a letter first"
            )


@dataclass(frozen=True)
class Page:
    """A title, a few sentences, and the sections.

    Examples
    --------
    >>> Page("Report", "What was measured.", ()).title
    'Report'
    """

    title: str
    lead: str
    sections: Sequence[Section]

    def __post_init__(self) -> None:
        anchors = [section.anchor for section in self.sections]
        twice = sorted({anchor for anchor in anchors if anchors.count(anchor) > 1})
        if twice:
            raise InputError(f"two sections have the anchor {twice[0]!r}; give each its own")


def page_html(page: Page) -> str:
    """Return a page as the text of an HTML file.

    Parameters
    ----------
    page : Page

    Examples
    --------
    >>> from priorshift.experiments.report.page_blocks import Text
    >>> page = Page("Report", "Lead.", [Section("A & B", "a-b", [Text(["Words."])])])
    >>> '<a href="#a-b">A &amp; B</a>' in page_html(page)
    True
    """
    title = escape(page.title)
    entries = [
        f'<li><a href="#{section.anchor}">{escape(section.title)}</a></li>'
        for section in page.sections
    ]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        '<link rel="icon" href="data:,">',
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        f'<header>\n<h1>{title}</h1>\n<p class="lead">{escape(page.lead)}</p>\n</header>',
        '<div class="columns">',
        '<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>',
        *entries,
        "</ol>\n</nav>",
        "<main>",
        *map(_section, page.sections),
        "</main>",
        "</div>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> str:
    name = section.anchor
    # Two hyphens: no anchor has them, so that no name inside is another section's.
    blocks = [block.html(f"{name}--{i}") for i, block in enumerate(section.blocks)]
    head = f'<section id="{name}" aria-labelledby="{name}--title">'
    title = f'<h2 id="{name}--title">{escape(section.title)}</h2>'
    return "\n".join([head, title, *blocks, "</section>"])


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page as one HTML file, whole or not at all, and return its path.

    Parameters
    ----------
    page : Page
    path : path
        The file; an old one is replaced when the new one is whole.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_page(Page("Report", "Lead.", ()), f"{folder}/report.html")
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    target = Path(path)
    write_whole(target, page_html(page))
    return target
