"""What the paper says of its tables of learners (1, 3 and 4), checked on runs of our own.

What was not measured at all is not judged: there is no claim about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from priorshift.experiments.paper import TABLE_1, TABLE_3, TABLE_4
from priorshift.experiments.report.grid import Entry
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
from priorshift.experiments.reproduce.layouts import LEARNERS, SHIFTS, is_oracle, paper_name
from priorshift.experiments.reproduce.parts import Claim

_NEAR, _FIX_NEAR = 0.15, 0.02
_COMPARABLE = 3.0  # percent
_EARLIER = ("fix", "fth", "ftfwh", "rogd")
_FAST = ("squ", "sin", "ber")
_RAW = ", with the raw estimate of equation 3"


def learner_claims(cells: Mapping[tuple[str, str], Entry]) -> list[Claim]:
    """Check Table 1: cells near the paper's, and what its text says of the learners.

    Examples
    --------
    >>> cells = {(learner, shift): Entry((cell.mean,))
    ...          for learner, row in TABLE_1.items() for shift, cell in row.items()}
    >>> [(claim.holds, claim.detail) for claim in learner_claims(cells)][:3]
    [(True, '24 of 24 cells'), (True, '4 of 4 cells'), (True, '4 of 4 shifts')]
    """
    found, learners = side_by_side(cells, learner=0), list(TABLE_1)
    cases = {paper_name(shift): found[shift,] for shift in SHIFTS if (shift,) in found}
    printed = {
        paper_name(shift): {name: Entry((row[shift].mean,)) for name, row in TABLE_1.items()}
        for shift in SHIFTS
    }

    def same_best(tally: Tally, place: str, case: Case) -> None:
        if set(learners) <= set(case):
            ours, theirs = lowest(case, learners), lowest(printed[place], learners)
            tally.add(ours == theirs, f"{place} ({paper_name(ours)})")

    def like(text: str, what: str, count: Count, each: int = 1) -> list[Claim]:
        return counted(f"Table 1: {text}", what, count, cases, of=each * len(printed))

    def said(text: str, count: Count, shifts: Sequence[str] = SHIFTS, each: int = 1) -> list[Claim]:
        ours, theirs = _only(cases, shifts), _only(printed, shifts)
        of, what = each * len(shifts), "shifts" if each == 1 else "cases"
        return counted(f"Table 1: {text}", what, count, ours, printed=theirs, of=of, clear=True)

    online = learners[1:]
    return [
        *like(
            f"each cell is within {_NEAR} points of the paper's",
            "cells",
            near(printed, _NEAR),
            len(learners),
        ),
        *like(
            f"FIX is within {_FIX_NEAR} points of the paper's",
            "cells",
            near(printed, _FIX_NEAR, names=["fix"]),
        ),
        *like("under each shift the best learner is the paper's best", "shifts", same_best),
        *said("UOGD outperforms ROGD", duels(["uogd"], ["rogd"])),
        *said("FIX is inferior to all online methods", duels(online, ["fix"]), each=len(online)),
        *said("ATLAS is the best under Squ, Sin and Ber", duels(["atlas"], learners), _FAST),
        *said(
            "ATLAS is significantly better than UOGD under Squ, Sin and Ber",
            duels(["atlas"], ["uogd"], "test"),
            _FAST,
        ),
        *beyond("Table 1", "shifts", cases, learners),
    ]


def benchmark_claims(
    cells: Mapping[tuple[str, str, str], Entry],
    *,
    table: str = "Tables 3 and 4",
    raw: Mapping[tuple[str, str, str], Entry] | None = None,
) -> list[Claim]:
    """Check Tables 3 and 4, or one of them.

    A claim holds if it does on every data set that has all it needs. The detail says on how many
    it does, names those where it does not, and counts the paper's own numbers in the same way.
    ``raw`` are cells with the raw estimate: claims about Lin are checked with both.

    Examples
    --------
    >>> cells = {("mnist", "squ", name): Entry((1.0, 1.1)) for name in ("fix", "fth", "ftfwh")}
    >>> cells["mnist", "squ", "rogd"] = Entry((1.3, 1.4))
    >>> cells["mnist", "squ", "atlas"] = Entry((0.8, 0.9))
    >>> claim = benchmark_claims(cells)[0]
    >>> claim.text, claim.holds
    ('Under Squ ATLAS beats each of FIX, FTH, FTFWH and ROGD', True)
    >>> claim.detail
    "1 of 1 data sets, 1 of them significantly; by the paper's numbers 6 of 6"
    """
    found = side_by_side(cells, learner=2)
    named = {f"{paper_name(d)} under {paper_name(s)}": case for (d, s), case in found.items()}
    both = {
        place: {**found[place], **case}
        for place, case in side_by_side(raw or {}, 2).items()
        if place in found
    }
    return [
        *(
            claim
            for learner in ("atlas", "atlas-ada")
            for shift in _FAST
            for claim in _said(
                f"Under {paper_name(shift)} {paper_name(learner)} beats each of FIX, FTH, FTFWH "
                "and ROGD",
                duels([learner], _EARLIER),
                _under(shift, found),
                shift,
                clear=True,
            )
        ),
        *_lin_claims(_under("lin", found), ""),
        *_lin_claims(_under("lin", both), _RAW),
        *beyond(table, "cases", named, LEARNERS),
        *([_not_the_papers(table)] if named else []),
    ]


def _lin_claims(cases: Cases, suffix: str) -> list[Claim]:
    text = "Under Lin UOGD is the best, or tied with it by the paired t-test at 5 %"
    claims = _said(f"{text}{suffix}", duels(["uogd"], LEARNERS, "ties"), cases, "lin")
    for learner in ("atlas", "atlas-ada"):
        gaps = [_above_uogd(case, learner) for case in _PRINTED["lin"].values()]
        text = (
            f"Under Lin {paper_name(learner)} is comparable with UOGD: at most {_COMPARABLE:g} % "
            f"(relative) above it{suffix}"
        )
        for claim in _said(text, _comparable(learner), cases, "lin"):
            worst = f"{claim.detail}, where it is at most {max(gaps):.1f} % above"
            claims.append(claim._replace(detail=worst))
    return claims


def _said(text: str, count: Count, cases: Cases, shift: str, *, clear: bool = False) -> list[Claim]:
    return counted(text, "data sets", count, cases, printed=_PRINTED[shift], clear=clear)


def _comparable(learner: str) -> Count:
    def count(tally: Tally, place: str, case: Case) -> None:
        if {learner, "uogd"} <= set(case):
            above = _above_uogd(case, learner)
            tally.add(above <= _COMPARABLE, f"{place} ({above:+.1f} %)")

    return count


def _above_uogd(case: Case, learner: str) -> float:
    """How far its mean is above UOGD's, in percent of it."""
    return 100 * (case[learner].mean / case["uogd"].mean - 1)


def _not_the_papers(table: str) -> Claim:
    return Claim(
        f"{table}: each cell is near the paper's",
        None,
        "errors on other features are other errors",
        "the paper's features come from networks that were fine-tuned on data that cannot be had "
        "here, and CINIC10 cannot be had at all",
    )


def beyond(table: str, what: str, cases: Cases, rivals: Sequence[str]) -> list[Claim]:
    """Ask of each learner that is not the paper's: does it beat the paper's best, run here.

    Counted in the cases where the learner and all rivals were run; oracles are nobody's rival.

    Examples
    --------
    >>> case = {"fix": Entry((7.0, 7.1)), "auto": Entry((2.0, 2.1)), "oracle": Entry((1.0, 1.1))}
    >>> [claim.detail for claim in beyond("Table 1", "shifts", {"Lin": case}, ["fix"])]
    ['1 of 1 shifts, 1 of them significantly']
    """
    names = dict.fromkeys(name for case in cases.values() for name in case)
    return [
        claim
        for learner in names
        if learner not in rivals and not is_oracle(learner)
        for claim in counted(
            f"{table}: {paper_name(learner)} beats the best of the paper's learners, run side by "
            "side",
            what,
            duels([learner], rivals),
            cases,
            clear=True,
        )
    ]


def _only(cases: Cases, shifts: Sequence[str]) -> Cases:
    return {name: cases[name] for name in map(paper_name, shifts) if name in cases}


def _under(shift: str, found: Mapping[tuple[str, ...], Case]) -> Cases:
    """The cases of one shift, by data set."""
    return {paper_name(data): case for (data, other), case in found.items() if other == shift}


_PRINTED: dict[str, Cases] = {
    shift: {
        paper_name(data): {name: Entry((cell.mean,)) for name, cell in rows[shift].items()}
        for table in (TABLE_3, TABLE_4)
        for data, rows in table.items()
        if shift in rows
    }
    for shift in SHIFTS
}
