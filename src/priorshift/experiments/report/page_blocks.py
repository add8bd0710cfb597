"""What a page is made of: paragraphs, tables, figures, settings and claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from priorshift.errors import InputError
from priorshift.experiments.report.page_svg import inline_svg

_UNWANTED = re.compile(r"<\s*(script|iframe|link|img|object|embed|style)\b|\son\w+\s*=", re.I)


@dataclass(frozen=True)
class Text:
    """Paragraphs (or a single one), then a list.

    Examples
    --------
    >>> print(Text("1 < 2", items=("one",)).html("f1"))
    <p>1 &lt; 2</p>
    <ul>
    <li>one</li>
    </ul>
    """

    paragraphs: str | Sequence[str] = ()
    items: Sequence[str] = ()

    def html(self, prefix: str) -> str:
        """Return the block as HTML."""
        texts = (self.paragraphs,) if isinstance(self.paragraphs, str) else self.paragraphs
        lines = [f"<p>{escape(text)}</p>" for text in texts]
        if self.items:
            lines += ["<ul>", *(f"<li>{escape(text)}</li>" for text in self.items), "</ul>"]
        return "\n".join(lines)


@dataclass(frozen=True)
class TableBlock:
    """A table that is HTML already; where it is too wide it scrolls in its own box.

    Attributes
    ----------
    table : str
        From ``<table`` to ``</table>``, with escaped text.
    name : str
        What the table shows, in a few words, for those who hear the page.
    files : sequence of str
        Files with the same numbers, relative to the page.

    Examples
    --------
    >>> block = TableBlock("<table><tr><td>1</td></tr></table>", "Numbers", files=("a.csv",))
    >>> print(block.html("f1"))
    <div class="wide" role="region" aria-label="Numbers" tabindex="0">
    <table><tr><td>1</td></tr></table>
    </div>
    <p class="files">Files: <a href="a.csv">a.csv</a></p>
    """

    table: str
    name: str
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        text = self.table.strip()
        if not (text.startswith("<table") and text.endswith("</table>")):
            raise InputError("table does not go from <table> to </table>; give the fragment")
        found = _UNWANTED.search(text)
        if found:
            raise InputError(f"the table holds {found.group().strip()!r}; give text and cells only")

    def html(self, prefix: str) -> str:
        """Return the block as HTML."""
        label = escape(self.name)
        return (
            f'<div class="wide" role="region" aria-label="{label}" tabindex="0">\n'
            f"{self.table.strip()}\n</div>{_links(self.files)}"
        )


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
    >>> print(FigureBlock(svg, "A figure.", alt="nothing").html("f1"))
    <figure>
    <svg viewBox="0 0 2 1" role="img" aria-label="nothing" />
    <figcaption>A figure.</figcaption>
    </figure>
    """

    svg: str
    caption: str
    alt: str
    files: Sequence[str] = ()

    def html(self, prefix: str) -> str:
        """Return the block as HTML; ``prefix`` keeps its names apart from other figures'."""
        drawing = inline_svg(self.svg, prefix, self.alt)
        caption = f"<figcaption>{escape(self.caption)}</figcaption>"
        return f"<figure>\n{drawing}\n{caption}{_links(self.files)}\n</figure>"


@dataclass(frozen=True)
class KeyValues:
    """Settings, versions, the machine: names with what they were.

    Examples
    --------
    >>> print(KeyValues([("seeds", 5)]).html("f1"))
    <dl>
    <div><dt>seeds</dt><dd>5</dd></div>
    </dl>
    """

    pairs: Sequence[tuple[str, object]]

    def html(self, prefix: str) -> str:
        """Return the block as HTML."""
        rows = [
            f"<div><dt>{escape(str(key))}</dt><dd>{escape(str(value))}</dd></div>"
            for key, value in self.pairs
        ]
        return "\n".join(["<dl>", *rows, "</dl>"])


@dataclass(frozen=True)
class Claims:
    """What was said, whether it holds, and the numbers behind it.

    Examples
    --------
    >>> print(Claims([("1 is less than 2", True, "by 1")]).html("f1"))
    <p>1 of 1 claims holds.</p>
    <ul class="claims">
    <li class="holds"><b>holds</b> 1 is less than 2 <small>by 1</small></li>
    </ul>
    """

    claims: Sequence[tuple[str, bool, str]]

    def html(self, prefix: str) -> str:
        """Return the block as HTML."""
        good = sum(bool(holds) for _, holds, _ in self.claims)
        verb = "holds" if good == 1 else "hold"
        lines = [f"<p>{good} of {len(self.claims)} claims {verb}.</p>", '<ul class="claims">']
        for text, holds, detail in self.claims:
            kind, word = ("holds", "holds") if holds else ("fails", "does not hold")
            small = f" <small>{escape(detail)}</small>" if detail else ""
            lines.append(f'<li class="{kind}"><b>{word}</b> {escape(text)}{small}</li>')
        return "\n".join([*lines, "</ul>"])


Block = Text | TableBlock | FigureBlock | KeyValues | Claims


def _links(files: Sequence[str]) -> str:
    for name in files:
        # What is beside the page is no request to a network, and cannot be a script's address.
        if re.match(r"[a-zA-Z][\w+.-]*:|//", name):
            raise InputError(f"{name!r} is an address; name a file, relative to the page")
    links = ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in files)
    return f'\n<p class="files">Files: {links}</p>' if links else ""
