"""What the paper says of its hints (Table 2, the remark on implicit updates), checked here."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from priorshift.experiments.paper import TABLE_2
from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.claims import beyond
from priorshift.experiments.reproduce.counting import (
    Case,
    Cases,
    Count,
    Tally,
    counted,
    duels,
    lowest,
    near,
    side_by_side,
)
from priorshift.experiments.reproduce.layouts import HINTS, SHIFTS, paper_name
from priorshift.experiments.reproduce.parts import Claim

Cells = Mapping[tuple[int, str, str], Entry]
"""By rows in a round, shift and hint."""

_NEAR, _ATLAS_NEAR = 0.4, 0.2
_OR_BETTER, _BOTH_SIDES = 50, 58  # of all cells
_FWD_BEST, _HELPED = 6, 5  # as many as by the paper's own numbers
_OWN = tuple(hint for hint in HINTS if hint != "none")
_SIZES, _LARGE = tuple(TABLE_2), (10, 100)
_PRINTED: Cells = {
    (size, shift, hint): Entry((cell.mean,))
    for size, shifts in TABLE_2.items()
    for shift, row in shifts.items()
    for hint, cell in row.items()
}


def hint_claims(cells: Cells) -> list[Claim]:
    """Check Table 2: cells near the paper's, and what its text says of the hints.

    Examples
    --------
    >>> cells = {(size, shift, hint): Entry((cell.mean + 0.3,)) for size, shifts in TABLE_2.items()
    ...          for shift, row in shifts.items() for hint, cell in row.items()}
    >>> [(claim.holds, claim.detail) for claim in hint_claims(cells)][:3]
    [(True, '60 of 60 cells'), (True, '60 of 60 cells'), (True, '4 of 4 cells')]
    """
    return [
        *_near_claims(cells),
        *_said_claims(cells),
        *beyond("Table 2", "cases", _cases(cells), HINTS),
    ]


def _near_claims(cells: Cells) -> list[Claim]:
    printed, all_cells, shifts = _cases(_PRINTED), len(_PRINTED), len(SHIFTS)

    def like(
        text: str, count: Count, of: int, need: int | None = None, sizes: Collection[int] = _SIZES
    ) -> list[Claim]:
        return counted(f"Table 2: {text}", "cells", count, _cases(cells, sizes), of=of, need=need)

    within = f"of {all_cells} cells are within {_NEAR} points of the paper's"
    return [
        *like(
            f"at least {_OR_BETTER} {within}, or better",
            near(printed, _NEAR, or_better=True),
            all_cells,
            _OR_BETTER,
        ),
        *like(
            f"at least {_BOTH_SIDES} {within}, above or below",
            near(printed, _NEAR),
            all_cells,
            _BOTH_SIDES,
        ),
        *like(
            f"with 1 row a round Fwd is within {_NEAR} points of the paper's under each shift",
            near(printed, _NEAR, names=["fwd"]),
            shifts,
            sizes=[1],
        ),
        *like(
            f"with 1 row a round ATLAS (None) is within {_ATLAS_NEAR} points of the paper's under "
            "each shift",
            near(printed, _ATLAS_NEAR, names=["none"]),
            shifts,
            sizes=[1],
        ),
    ]


def _said_claims(cells: Cells) -> list[Claim]:
    cases, large = len(_SIZES) * len(SHIFTS), len(_LARGE) * len(SHIFTS)
    pairs, calm = cases * len(_OWN), 2 * len(_SIZES)

    def said(
        text: str, count: Count, ours: Cases, theirs: Cases, of: int, need: int | None = None
    ) -> list[Claim]:
        text = f"Table 2: {text}"
        return counted(text, "cases", count, ours, printed=theirs, of=of, need=need, clear=True)

    return [
        *said(
            "hints improve over ATLAS without one (None) in most cases",
            duels(_OWN, ["none"]),
            _cases(cells),
            _cases(_PRINTED),
            pairs,
            pairs // 2 + 1,
        ),
        *counted(
            "Table 2: every hint improves over None in most of its cases",
            "hints",
            _mostly,
            _by_hint(cells),
            printed=_by_hint(_PRINTED),
            of=len(_OWN),
        ),
        *said(
            "OKM is the best with 1 row a round",
            duels(["okm"], HINTS),
            _cases(cells, [1]),
            _cases(_PRINTED, [1]),
            len(SHIFTS),
        ),
        *said(
            "Fwd is the best with 10 and 100 rows a round, or tied with it by the paired t-test at "
            f"5 %, in at least {_FWD_BEST} of {large} cases, as in the paper",
            duels(["fwd"], HINTS, "ties"),
            _cases(cells, _LARGE),
            _cases(_PRINTED, _LARGE),
            large,
            _FWD_BEST,
        ),
        *said(
            "the best hint gains more over None where V_T is large (Squ, Ber) than under Lin, in "
            f"at least {_HELPED} of {calm} cases, as in the paper",
            duels(["squ", "ber"], ["lin"], joint="with"),
            _changes(cells),
            _changes(_PRINTED),
            calm,
            _HELPED,
        ),
    ]


def solver_claims(cases: Cases) -> list[Claim]:
    """Check the remark: the implicit step beside the step on the linearised hint.

    Examples
    --------
    >>> case = {"implicit": Entry((3.7, 3.8)), "linearised": Entry((4.2, 4.3))}
    >>> solver_claims({"Squ with 10 a round": case})[0].detail
    '1 of 1 cases, 1 of them significantly: Squ with 10 a round 3.75 against 4.25'
    """
    text = (
        "The implicit step of ATLAS-ADA (hint OKM) is better than the linearised one of the "
        "remark, or tied with it by the paired t-test at 5 %"
    )
    numbers = ", ".join(
        f"{place} {case['implicit'].mean:.2f} against {case['linearised'].mean:.2f}"
        for place, case in cases.items()
    )
    count = duels(["implicit"], ["linearised"], "ties")
    return [
        claim._replace(detail=f"{claim.detail}: {numbers}")
        for claim in counted(text, "cases", count, cases, clear=True)
    ]


def hint_place(size: int, shift: str) -> str:
    """Name a case of Table 2."""
    return f"{paper_name(shift)} with {size:,} a round"


def _cases(cells: Cells, sizes: Collection[int] = _SIZES) -> Cases:
    found = side_by_side(cells, learner=2).items()
    return {hint_place(size, shift): case for (size, shift), case in found if size in sizes}


def _changes(cells: Cells) -> Cases:
    """By rows in a round: what the best hint changes under each shift, seed by seed."""
    found: dict[str, dict[str, Entry]] = {}
    for (size, shift), case in side_by_side(cells, learner=2).items():
        if set(HINTS) <= set(case):
            best, none = case[lowest(case, _OWN)].errors, case["none"].errors
            change = Entry(
                tuple(with_it - without for with_it, without in zip(best, none, strict=True))
            )
            found.setdefault(f"{size:,} a round", {})[shift] = change
    return found


def _by_hint(cells: Cells) -> Cases:
    """By hint: what it gains over None in every case."""
    found: dict[str, dict[str, Entry]] = {}
    for (size, shift), case in side_by_side(cells, learner=2).items():
        for hint in (name for name in _OWN if name in case and "none" in case):
            gain = Entry((case["none"].mean - case[hint].mean,))
            found.setdefault(paper_name(hint), {})[hint_place(size, shift)] = gain
    return found


def _mostly(tally: Tally, place: str, case: Case) -> None:
    better = sum(gain.mean > 0 for gain in case.values())
    tally.add(better > len(case) / 2, f"{place} ({better} of {len(case)})")
