"""What an experiment comes to: tables, drawings, claims and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from priorshift.experiments.report.grid import Grid
from priorshift.experiments.reproduce.claim import Claim
from priorshift.experiments.reproduce.plan import StreamRun

Results = Mapping[StreamRun, Mapping[str, Any]]
"""What every run gave."""


class Drawing(NamedTuple):
    """A figure, the stem of its files, and words for those who read and those who cannot see.

    Examples
    --------
    >>> Drawing("fig-peri", None, "Error by buffer size.", "A line that dips at 40.").stem
    'fig-peri'
    """

    stem: str
    figure: Any
    caption: str
    alt: str


@dataclass(frozen=True, eq=False)
class Part:
    """One experiment, ready to be written.

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
