"""What an experiment comes to: tables, drawings, claims and words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from priorshift.experiments.report.grid import Grid
from priorshift.experiments.reproduce.plan import StreamRun

Results = Mapping[StreamRun, Mapping[str, Any]]
"""What every run gave."""


class Claim(NamedTuple):
    """A sentence, whether it holds, and the numbers behind the answer.

    ``holds`` is None for what cannot be checked here. ``cause`` says why it does not hold, or
    cannot be checked, as far as that was tested.

    Examples
    --------
    >>> Claim("ATLAS beats FIX", True, "6 of 6 data sets").verdict
    'holds'
    >>> Claim("UOGD is the best", False, "2 of 5 data sets", "clipped estimates").evidence
    '2 of 5 data sets. Cause: clipped estimates'
    """

    text: str
    holds: bool | None
    detail: str
    cause: str = ""

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        if self.holds is None:
            return "cannot be checked here"
        return "holds" if self.holds else "does not hold"

    @property
    def evidence(self) -> str:
        """The numbers, and the cause where there is one."""
        return f"{self.detail}. Cause: {self.cause}" if self.cause else self.detail


class Drawing(NamedTuple):
    """A figure, the stem of its files, and words for those who read and those who cannot see."""

    stem: str
    figure: Any
    caption: str
    alt: str


@dataclass(frozen=True, eq=False)
class Part:
    """One experiment, or another section of the report, ready to be written.

    Attributes
    ----------
    name : str
        What links lead to: small letters and digits, with single hyphens between.
    title : str
    words : sequence of str
        Paragraphs.
    grids : mapping of str to Grid
        Tables, by the stems of their files.
    drawings : sequence of Drawing
    claims : sequence of Claim
    items : sequence of str
        A list, below the paragraphs.
    pairs : sequence of (str, object)
        Settings: names with what they were.

    Examples
    --------
    >>> Part("table1", "Table 1").claims
    ()
    """

    name: str
    title: str
    words: Sequence[str] = ()
    grids: Mapping[str, Grid] = field(default_factory=dict)
    drawings: Sequence[Drawing] = ()
    claims: Sequence[Claim] = ()
    items: Sequence[str] = ()
    pairs: Sequence[tuple[str, object]] = ()


def by_seed(runs: Sequence[StreamRun]) -> dict[StreamRun, list[StreamRun]]:
    """Runs that differ in their seed alone, under the first of them.

    Examples
    --------
    >>> from priorshift.experiments.reproduce.plan import plan
    >>> runs = plan("table1", quick=True, seeds=3).runs["cell"]
    >>> {len(some) for some in by_seed(runs).values()}
    {3}
    """
    groups: dict[StreamRun, list[StreamRun]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault(replace(run, seed=0), []).append(run)
    return groups


def claims_count(claims: Sequence[Claim]) -> str:
    """Say how many of the claims that were checked hold.

    Examples
    --------
    >>> claims_count([Claim("a", True, ""), Claim("b", False, ""), Claim("c", None, "no data")])
    '1 of 2 claims hold; 1 more cannot be checked here'
    """
    verdicts = [claim.holds for claim in claims]
    open_ones = verdicts.count(None)
    text = f"{verdicts.count(True)} of {len(verdicts) - open_ones} claims hold"
    return text + (f"; {open_ones} more cannot be checked here" if open_ones else "")


def claims_text(claims: Sequence[Claim], width: int = 100) -> str:
    """Write claims for a terminal of ``width`` columns.

    Examples
    --------
    >>> print(claims_text([Claim("ATLAS beats FIX", True, "6 of 6 data sets"),
    ...                    Claim("UOGD is the best under Lin", False, "5 of 6 data sets")]))
    1 of 2 claims hold.
    holds  ATLAS beats FIX: 6 of 6 data sets
    FAILS  UOGD is the best under Lin: 5 of 6 data sets
    """
    lines = [f"{claims_count(claims)}."]
    for claim in claims:
        sign = {True: "holds", False: "FAILS", None: "open "}[claim.holds]
        text = f"{sign}  {claim.text}: {claim.evidence}"
        lines.append(textwrap.fill(text, max(width, 20), subsequent_indent=" " * 7))
    return "\n".join(lines)
