"""Claims for people to read: text, Markdown, HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from html import escape

from priorshift.report.grid_markdown import escape_markdown
from priorshift.reproduce.claim import Claim


def claims_text(claims: Sequence[Claim], width: int = 100) -> str:
    """Write claims for a terminal.

    Parameters
    ----------
    claims : sequence of Claim
    width : int
        Columns of the terminal.

    Examples
    --------
    >>> print(claims_text([Claim("ATLAS beats FIX", True, "6 of 6 data sets"),
    ...                    Claim("UOGD is the best under Lin", False, "5 of 6 data sets")]))
    1 of 2 claims hold.
    holds  ATLAS beats FIX: 6 of 6 data sets
    FAILS  UOGD is the best under Lin: 5 of 6 data sets
    """
    lines = [_count(claims)]
    for claim in claims:
        verdict = "holds" if claim.holds else "FAILS"
        text = f"{verdict}  {claim.text}: {claim.detail}"
        lines.append(textwrap.fill(text, max(width, 20), subsequent_indent=" " * 7))
    return "\n".join(lines)


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Write claims as a Markdown table.

    Examples
    --------
    >>> print(claims_markdown([Claim("ATLAS beats FIX", True, "6 of 6 data sets")]))
    1 of 1 claims hold.
    <BLANKLINE>
    | claim | holds | measured |
    |:---|:---|:---|
    | ATLAS beats FIX | yes | 6 of 6 data sets |
    """
    rows = [
        f"| {escape_markdown(claim.text)} | {_yes(claim)} | {escape_markdown(claim.detail)} |"
        for claim in claims
    ]
    head = ["| claim | holds | measured |", "|:---|:---|:---|"]
    return f"{_count(claims)}\n\n" + "\n".join([*head, *rows])


def claims_html(claims: Sequence[Claim]) -> str:
    """Write claims as a ``<table>`` of class ``claims``; a row is ``holds`` or ``fails``.

    Examples
    --------
    >>> html = claims_html([Claim("ATLAS beats FIX", True, "6 of 6")])
    >>> html.splitlines()[4]
    '<tr class="holds"><th scope="row">ATLAS beats FIX</th><td>yes</td><td>6 of 6</td></tr>'
    """
    rows = []
    for claim in claims:
        kind = "holds" if claim.holds else "fails"
        head = f'<th scope="row">{escape(claim.text)}</th>'
        cells = f"<td>{_yes(claim)}</td><td>{escape(claim.detail)}</td>"
        rows.append(f'<tr class="{kind}">{head}{cells}</tr>')
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("claim", "holds", "measured"))
    return "\n".join(
        [
            '<table class="claims">',
            f"<caption>{_count(claims)}</caption>",
            f"<thead><tr>{heads}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody>",
            "</table>",
        ]
    )


CLAIM_FORMATS: dict[str, Callable[[Sequence[Claim]], str]] = {
    "txt": claims_text,
    "md": claims_markdown,
    "html": claims_html,
}
"""Ending of the file, then what writes it."""


def _count(claims: Sequence[Claim]) -> str:
    return f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold."


def _yes(claim: Claim) -> str:
    return "yes" if claim.holds else "no"
