"""What the paper's tables show, checked on runs of our own: true or false, with the count."""

from __future__ import annotations

from collections.abc import Mapping

from priorshift.experiments.paper import TABLE_1, TABLE_2
from priorshift.experiments.report.grid import Entry, signed
from priorshift.experiments.reproduce.benchmark_claims import benchmark_claims
from priorshift.experiments.reproduce.claim import Claim, Tally, best_of, beyond_claims, worlds_of
from priorshift.experiments.reproduce.names import HINTS, SHIFTS, paper_name

__all__ = ["Claim", "benchmark_claims", "hint_claims", "learner_claims"]

_NEAR = 0.25
_NEAR_WIDE = {"rogd": 0.5, "ftfwh": 0.5}
_HINT_NEAR, _HINT_CELLS = 0.4, 50
_ROUNDING = 1e-9


def learner_claims(
    cells: Mapping[tuple[str, str], Entry], *, labels: Mapping[str, str] | None = None
) -> list[Claim]:
    """Check Table 1: each cell near the paper's, the same learners best, ours against them.

    What was not measured at all is not judged: there is no claim about it.

    Parameters
    ----------
    cells : mapping from (learner, shift) to Entry
        As for ``learner_table``; runs of the paper's length.
    labels : mapping, optional
        Names other than the paper's.

    Examples
    --------
    >>> cells = {(learner, shift): Entry((cell.mean,))
    ...          for learner, row in TABLE_1.items() for shift, cell in row.items()}
    >>> [(claim.holds, claim.detail) for claim in learner_claims(cells)]
    [(True, '24 of 24 cells'), (True, '4 of 4 shifts')]
    """
    worlds = {place[0]: world for place, world in worlds_of(cells, learner=0).items()}
    named = {paper_name(shift, labels): world for shift, world in worlds.items()}
    near = Tally("cells")
    best = Tally("shifts")
    for shift in SHIFTS:
        world = worlds.get(shift, {})
        for learner in (name for name in TABLE_1 if name in world):
            gap = world[learner].mean - TABLE_1[learner][shift].mean
            where = f"{paper_name(learner, labels)} under {paper_name(shift, labels)}"
            limit = _NEAR_WIDE.get(learner, _NEAR)
            near.add(
                abs(gap) <= limit + _ROUNDING, f"{where} ({world[learner].mean:.2f}, {signed(gap)})"
            )
        if set(TABLE_1) <= set(world):
            ours = best_of(world, TABLE_1)
            paper = best_of(
                {name: Entry((row[shift].mean,)) for name, row in TABLE_1.items()}, TABLE_1
            )
            best.add(ours == paper, f"{paper_name(shift, labels)} ({paper_name(ours, labels)})")
    cells_text = "Table 1: each cell is within 0.25 points of the paper's (ROGD, FTFWH within 0.5)"
    best_text = "Table 1: under each shift the best learner is the paper's best"
    total = len(TABLE_1) * len(SHIFTS)
    counted = ((near, cells_text, total), (best, best_text, len(SHIFTS)))
    return [
        *(
            Claim(text, tally.kept == of, tally.words(of=of))
            for tally, text, of in counted
            if tally.total
        ),
        *beyond_claims("Table 1", "shifts", named, TABLE_1, labels),
    ]


def hint_claims(
    cells: Mapping[tuple[int, str, str], Entry], *, labels: Mapping[str, str] | None = None
) -> list[Claim]:
    """Check Table 2: at least 50 of its 60 cells within 0.4 points of the paper's, or better.

    What was not measured at all is not judged: there is no claim about it.

    Parameters
    ----------
    cells : mapping from (rows in a round, shift, hint) to Entry
        As for ``hint_table``; runs of the paper's length.
    labels : mapping, optional

    Examples
    --------
    >>> cells = {(size, shift, hint): Entry((cell.mean + 0.3,)) for size, shifts in TABLE_2.items()
    ...          for shift, row in shifts.items() for hint, cell in row.items()}
    >>> hint_claims(cells)
    [Claim(text="Table 2: at least 50 of 60 cells are within 0.4 points of the paper's, or better",
           holds=True, detail='60 of 60 cells')]
    """
    near = Tally("cells")
    named = {}
    for (size, shift), world in worlds_of(cells, learner=2).items():
        place = f"{paper_name(shift, labels)} with {size:,} a round"
        named[place] = world
        row = TABLE_2.get(size, {}).get(shift, {})
        for hint in (name for name in row if name in world):
            gap = world[hint].mean - row[hint].mean
            where = f"{paper_name(hint, labels)} under {place}"
            near.add(
                gap <= _HINT_NEAR + _ROUNDING, f"{where} ({world[hint].mean:.2f}, {signed(gap)})"
            )
    text = "Table 2: at least 50 of 60 cells are within 0.4 points of the paper's, or better"
    total = sum(len(row) for shifts in TABLE_2.values() for row in shifts.values())
    claim = Claim(text, near.kept >= _HINT_CELLS, near.words(of=total))
    return [
        *([claim] if near.total else []),
        *beyond_claims("Table 2", "cases", named, HINTS, labels),
    ]
