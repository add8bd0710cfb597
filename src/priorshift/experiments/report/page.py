"""A report as one HTML file that needs nothing but itself: no network, no script, no font."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from priorshift.errors import InputError
from priorshift.experiments.report.grid import Grid
from priorshift.experiments.report.output import write_whole
from priorshift.experiments.report.page_svg import inline_svg
from priorshift.experiments.report.rendering import render

_ANCHOR = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RESERVED = {"contents", "main"}


@dataclass(frozen=True)
class Text:
    """Paragraphs (or a single one), then a list.

    Examples
    --------
    >>> Text("1 < 2", items=("one",)).sentences()
    ('1 < 2',)
    """

    kind: ClassVar[str] = "text"
    paragraphs: str | Sequence[str] = ()
    items: Sequence[str] = ()

    def sentences(self) -> Sequence[str]:
        """Return the paragraphs, also where there is a single one."""
        return (self.paragraphs,) if isinstance(self.paragraphs, str) else self.paragraphs


@dataclass(frozen=True)
class TableBlock:
    """A table of errors; where it is too wide it scrolls in its own box.

    Attributes
    ----------
    grid : Grid
    name : str
        What the table shows, in a few words, for those who hear the page.
    files : sequence of str
        Files with the same numbers, relative to the page.

    Examples
    --------
    >>> TableBlock(Grid("Errors", "learner", (), ()), "Numbers", files=("a.csv",)).name
    'Numbers'
    """

    kind: ClassVar[str] = "table"
    grid: Grid
    name: str
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_files(self.files)


@dataclass(frozen=True)
class FigureBlock:
    """A drawing with a caption.

    Attributes
    ----------
    svg : str
        The text of an SVG file, as ``svg_text`` returns it.
    caption : str
    alt : str
        What can be seen, for those who do not see it.
    files : sequence of str
        Files with the same drawing or its numbers, relative to the page.

    Examples
    --------
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1" />'
    >>> FigureBlock(svg, "A figure.", alt="nothing").caption
    'A figure.'
    """

    kind: ClassVar[str] = "figure"
    svg: str
    caption: str
    alt: str
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_files(self.files)


@dataclass(frozen=True)
class KeyValues:
    """Settings, versions, the machine: names with what they were.

    Examples
    --------
    >>> KeyValues([("seeds", 5)]).pairs
    [('seeds', 5)]
    """

    kind: ClassVar[str] = "pairs"
    pairs: Sequence[tuple[str, object]]


@dataclass(frozen=True)
class Claims:
    """What was said, whether it holds, and the numbers behind it.

    Examples
    --------
    >>> Claims([("1 is less than 2", True, "by 1")]).claims[0][1]
    True
    """

    kind: ClassVar[str] = "claims"
    claims: Sequence[tuple[str, bool, str]]


Block = Text | TableBlock | FigureBlock | KeyValues | Claims


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
    >>> page = Page("Report", "Lead.", [Section("A & B", "a-b", [Text(["1 < 2"])])])
    >>> html = page_html(page)
    >>> '<a href="#a-b">A &amp; B</a>' in html, "<p>1 &lt; 2</p>" in html
    (True, True)
    """
    return render("page.html.j2", page=page, inline_svg=inline_svg) + "\n"


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


def _check_files(names: Sequence[str]) -> None:
    for name in names:
        # What is beside the page is no request to a network, and cannot be a script's address.
        if re.match(r"[a-zA-Z][\w+.-]*:|//", name):
            raise InputError(f"{name!r} is an address; name a file, relative to the page")
