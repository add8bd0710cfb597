"""What the paper's tables show, checked on runs of our own: true or false, with the count.

What was not measured at all is not judged: there is no claim about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from priorshift.experiments.paper import TABLE_1, TABLE_2, benchmark_cell
from priorshift.experiments.report.grid import Entry, signed
from priorshift.experiments.reproduce.layouts import (
    DATA_SETS,
    HINTS,
    LEARNERS,
    SHIFTS,
    is_oracle,
    paper_name,
)
from priorshift.experiments.reproduce.parts import Claim
from priorshift.experiments.reproduce.significance import is_worse

_SHOWN = 4  # failures that are named; the others are counted
_NEAR = 0.25
_NEAR_WIDE = {"rogd": 0.5, "ftfwh": 0.5}
_HINT_NEAR, _HINT_CELLS = 0.4, 50
_ROUNDING = 1e-9
_EARLIER = ("fix", "fth", "ftfwh", "rogd")
_FAST = ("squ", "sin", "ber")

Key = TypeVar("Key", bound=tuple[Any, ...])
Case = dict[str, Entry]
"""The entries that were measured side by side, by learner or hint."""


@dataclass
class Tally:
    """Count in how many places something holds.

    Parameters
    ----------
    what : str
        What is counted, as "data sets".

    Examples
    --------
    >>> tally = Tally("data sets")
    >>> tally.add(True, "MNIST (1.03, FTH 1.29)", clear=True)
    >>> tally.add(False, "Fashion (9.44, FTH 9.37)")
    >>> tally.words(), tally.all_hold()
    ('1 of 2 data sets; not Fashion (9.44, FTH 9.37)', False)
    >>> tally.words(of=6)
    '1 of 6 data sets (2 measured); not Fashion (9.44, FTH 9.37)'
    >>> tally.words(clear=True)
    '1 of 2 data sets, 1 of them significantly; not Fashion (9.44, FTH 9.37)'
    """

    what: str
    total: int = 0
    held: int = 0
    clear: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, holds: bool, place: str, clear: bool = False) -> None:
        """Count a place; ``clear`` says that what holds there is no chance."""
        self.total += 1
        self.held += holds
        self.clear += clear
        if not holds:
            self.failures.append(place)

    def all_hold(self) -> bool:
        """Whether it holds in every place that was counted, and there was one."""
        return 0 < self.total == self.held

    def words(self, *, of: int | None = None, clear: bool = False) -> str:
        """Write the counts and the first failures.

        Parameters
        ----------
        of : int, optional
            How many places there should be.
        clear : bool
            Say how many are significant.
        """
        text = f"{self.held} of {self.total if of is None else of} {self.what}"
        if of is not None and self.total < of:
            text += f" ({self.total} measured)"
        if clear:
            text += f", {self.clear} of them significantly"
        if self.failures:
            more = len(self.failures) - _SHOWN
            behind = f" and {more} more" if more > 0 else ""
            text += f"; not {', '.join(self.failures[:_SHOWN])}{behind}"
        return text


def learner_claims(cells: Mapping[tuple[str, str], Entry]) -> list[Claim]:
    """Check Table 1: each cell near the paper's, the same learners best, ours against them.

    Parameters
    ----------
    cells : mapping from (learner, shift) to Entry
        As for ``learner_table``; runs of the paper's length.

    Examples
    --------
    >>> cells = {(learner, shift): Entry((cell.mean,))
    ...          for learner, row in TABLE_1.items() for shift, cell in row.items()}
    >>> [(claim.holds, claim.detail) for claim in learner_claims(cells)]
    [(True, '24 of 24 cells'), (True, '4 of 4 shifts')]
    """
    cases = {shift: case for (shift,), case in _cases(cells, learner=0).items()}
    near, best = Tally("cells"), Tally("shifts")
    for shift in SHIFTS:
        case, place = cases.get(shift, {}), paper_name(shift)
        printed = {name: Entry((row[shift].mean,)) for name, row in TABLE_1.items()}
        for learner in (name for name in printed if name in case):
            gap = case[learner].mean - printed[learner].mean
            where = f"{paper_name(learner)} under {place} ({case[learner].mean:.2f}, {signed(gap)})"
            near.add(abs(gap) <= _NEAR_WIDE.get(learner, _NEAR) + _ROUNDING, where)
        if set(printed) <= set(case):
            ours = _best(case, printed)
            best.add(ours == _best(printed, printed), f"{place} ({paper_name(ours)})")
    near_text = "Table 1: each cell is within 0.25 points of the paper's (ROGD, FTFWH within 0.5)"
    best_text = "Table 1: under each shift the best learner is the paper's best"
    total = len(TABLE_1) * len(SHIFTS)
    counted = ((near_text, near, total), (best_text, best, len(SHIFTS)))
    named = {paper_name(shift): case for shift, case in cases.items()}
    return [
        *(Claim(text, t.held == of, t.words(of=of)) for text, t, of in counted if t.total),
        *_beyond("Table 1", "shifts", named, TABLE_1),
    ]


def hint_claims(cells: Mapping[tuple[int, str, str], Entry]) -> list[Claim]:
    """Check Table 2: at least 50 of its 60 cells within 0.4 points of the paper's, or better.

    Parameters
    ----------
    cells : mapping from (rows in a round, shift, hint) to Entry
        As for ``hint_table``; runs of the paper's length.

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
    for (size, shift), case in _cases(cells, learner=2).items():
        place = f"{paper_name(shift)} with {size:,} a round"
        named[place] = case
        row = TABLE_2.get(size, {}).get(shift, {})
        for hint in (name for name in row if name in case):
            gap = case[hint].mean - row[hint].mean
            where = f"{paper_name(hint)} under {place} ({case[hint].mean:.2f}, {signed(gap)})"
            near.add(gap <= _HINT_NEAR + _ROUNDING, where)
    text = "Table 2: at least 50 of 60 cells are within 0.4 points of the paper's, or better"
    total = sum(len(row) for shifts in TABLE_2.values() for row in shifts.values())
    claim = Claim(text, near.held >= _HINT_CELLS, near.words(of=total))
    return [*([claim] if near.total else []), *_beyond("Table 2", "cases", named, HINTS)]


def benchmark_claims(
    cells: Mapping[tuple[str, str, str], Entry], *, table: str = "Tables 3 and 4"
) -> list[Claim]:
    """Check Tables 3 and 4, or one of them.

    A claim holds if it does on every data set that has all it needs. The detail says on how many
    it does, names those where it does not, and counts the paper's own numbers in the same way.

    Parameters
    ----------
    cells : mapping from (data, shift, learner) to Entry
        As for ``benchmark_table``, all shifts.
    table : str
        What the cells are called.

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
    cases = _cases(cells, learner=2)
    under: dict[str, dict[str, Case]] = {shift: {} for shift in SHIFTS}
    for (data, shift), case in cases.items():
        under.setdefault(shift, {})[paper_name(data)] = case
    named = {f"{paper_name(d)} under {paper_name(s)}": case for (d, s), case in cases.items()}
    pairs = ((learner, shift) for learner in ("atlas", "atlas-ada") for shift in _FAST)
    return [
        *(claim for name, shift in pairs for claim in _beats_earlier(name, shift, under[shift])),
        *_best_under_lin(under["lin"]),
        *_beyond(table, "cases", named, LEARNERS),
    ]


def _beats_earlier(learner: str, shift: str, cases: Mapping[str, Case]) -> list[Claim]:
    tally = Tally("data sets")
    for data, case in cases.items():
        if {learner, *_EARLIER} <= set(case):
            own = case[learner]
            clear = all(is_worse(case[name].errors, own.errors) for name in _EARLIER)
            _add_duel(tally, data, case, learner, _EARLIER, clear=clear)
    printed = _printed_count(shift, lambda means: means[learner] < min(means[n] for n in _EARLIER))
    text = f"Under {paper_name(shift)} {paper_name(learner)} beats each of FIX, FTH, FTFWH and ROGD"
    detail = f"{tally.words(clear=True)}; by the paper's numbers {printed}"
    return [Claim(text, tally.all_hold(), detail)] if tally.total else []


def _best_under_lin(cases: Mapping[str, Case]) -> list[Claim]:
    tally = Tally("data sets")
    for data, case in cases.items():
        if set(LEARNERS) <= set(case):
            best = case[_best(case, LEARNERS)]
            _add_duel(tally, data, case, "uogd", LEARNERS, holds=_ties(case["uogd"], best))
    printed = _printed_count("lin", lambda means: means["uogd"] == min(means.values()))
    text = "Under Lin UOGD is the best, or tied with it by the paired t-test at 5 %"
    detail = f"{tally.words()}; by the paper's numbers the best on {printed}"
    return [Claim(text, tally.all_hold(), detail)] if tally.total else []


def _ties(entry: Entry, best: Entry) -> bool:
    """Not worse by the test; with a single seed, by the two decimals that are printed."""
    if len(entry.errors) < 2:
        return f"{entry.mean:.2f}" == f"{best.mean:.2f}"
    return not is_worse(entry.errors, best.errors)


def _printed_count(shift: str, holds: Callable[[dict[str, float]], bool]) -> str:
    """On how many of its data sets the paper's own means bear a claim out."""
    count = 0
    for data in DATA_SETS:
        cells = {learner: benchmark_cell(data, shift, learner) for learner in LEARNERS}
        count += holds({learner: cell.mean for learner, cell in cells.items() if cell is not None})
    return f"{count} of {len(DATA_SETS)}"


def _beyond(table: str, what: str, cases: Mapping[str, Case], rivals: Iterable[str]) -> list[Claim]:
    """For each learner that is not the paper's: does it beat the best of the paper's, run here.

    Counted in the cases where the learner and all rivals were run; oracles are nobody's rival.
    """
    own = list(rivals)
    names = dict.fromkeys(name for case in cases.values() for name in case)
    claims = []
    for learner in (name for name in names if name not in own and not is_oracle(name)):
        tally = Tally(what)
        for place, case in cases.items():
            if {learner, *own} <= set(case):
                clear = is_worse(case[_best(case, own)].errors, case[learner].errors)
                _add_duel(tally, place, case, learner, own, clear=clear)
        name = paper_name(learner)
        text = f"{table}: {name} beats the best of the paper's learners, run side by side"
        if tally.total:
            claims.append(Claim(text, tally.all_hold(), tally.words(clear=True)))
    return claims


def _add_duel(
    tally: Tally,
    place: str,
    case: Case,
    learner: str,
    rivals: Iterable[str],
    *,
    holds: bool | None = None,
    clear: bool = False,
) -> None:
    """Count a case: ``learner`` against the best of its rivals, by their means unless told."""
    best = _best(case, rivals)
    own, other = case[learner].mean, case[best].mean
    numbers = f"{place} ({own:.2f}, {paper_name(best)} {other:.2f})"
    tally.add(own < other if holds is None else holds, numbers, clear)


def _cases(cells: Mapping[Key, Entry], learner: int) -> dict[tuple[Any, ...], Case]:
    """Put together what was measured side by side; what was not run is left out.

    ``learner`` says which part of a key names the learner (or the hint).
    """
    found: dict[tuple[Any, ...], Case] = {}
    for key, entry in cells.items():
        if entry.errors:
            place = (*key[:learner], *key[learner + 1 :])
            found.setdefault(place, {})[key[learner]] = entry
    return found


def _best(case: Mapping[str, Entry], names: Iterable[str]) -> str:
    """Name the learner with the lowest mean; of equals, the first."""
    return min(names, key=lambda name: case[name].mean)
