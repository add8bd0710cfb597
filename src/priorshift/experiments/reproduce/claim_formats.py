"""Claims for people to read: text and Markdown; the report has its own block for them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from priorshift.experiments.report.rendering import escape_markdown
from priorshift.experiments.reproduce.claim import Claim


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


def _count(claims: Sequence[Claim]) -> str:
    return f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold."


def _yes(claim: Claim) -> str:
    return "yes" if claim.holds else "no"
