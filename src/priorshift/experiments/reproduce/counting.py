"""Claims that are counted: in how many cases something holds, here and by the paper's numbers.

A case is what was measured side by side: the entries of all learners, or hints, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from priorshift.experiments.report.grid import Entry, signed
from priorshift.experiments.reproduce.layouts import paper_name
from priorshift.experiments.reproduce.parts import Claim
from priorshift.experiments.reproduce.significance import is_worse

_SHOWN = 4  # failures that are named; the others are counted
_ROUNDING = 1e-9
_TESTED = 3  # seeds from which on the t-test can tell a difference

Key = TypeVar("Key", bound=tuple[Any, ...])
Case = Mapping[str, Entry]
"""The entries that were measured side by side, by learner or hint."""
Cases = Mapping[str, Case]
"""By their places, as "Lin" or "Squ with 10 a round"."""


@dataclass
class Tally:
    """Count in how many places something holds.

    Examples
    --------
    >>> tally = Tally("data sets")
    >>> tally.add(True, "MNIST (1.03, FTH 1.29)", clear=True)
    >>> tally.add(False, "Fashion (9.44, FTH 9.37)")
    >>> tally.words()
    '1 of 2 data sets; not Fashion (9.44, FTH 9.37)'
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

    def words(self, *, of: int | None = None, clear: bool = False) -> str:
        """Write the counts and the first failures."""
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


Count = Callable[[Tally, str, Case], None]
"""Looks at the case of a place, and adds to a tally what can be told there."""


def counted(
    text: str,
    what: str,
    count: Count,
    cases: Cases,
    *,
    printed: Cases | None = None,
    of: int | None = None,
    need: int | None = None,
    clear: bool = False,
) -> list[Claim]:
    """Check a claim on our cases; where nothing can be told, there is none.

    It holds if ``count`` finds it in ``need`` places: by default in all, which are ``of``, or those
    that were measured. ``printed`` are the paper's cases, counted beside.

    Examples
    --------
    >>> ours = {"Lin": {"fix": Entry((7.0,)), "atlas": Entry((7.5,))}}
    >>> printed = {"Lin": {"fix": Entry((7.87,)), "atlas": Entry((5.44,))}}
    >>> counted("ATLAS beats FIX", "shifts", duels(["atlas"], ["fix"]), ours, printed=printed)
    [Claim(text='ATLAS beats FIX', holds=False,
           detail="0 of 1 shifts; not Lin (7.50, FIX 7.00); by the paper's numbers 1 of 1",
           cause='')]
    """
    ours, theirs = Tally(what), Tally(what)
    for tally, some in ((ours, cases), (theirs, printed or {})):
        for place, case in some.items():
            count(tally, place, case)
    if not ours.total:
        return []
    places = ours.total if of is None else of
    detail = ours.words(of=of, clear=clear)
    if printed is not None:
        detail += f"; by the paper's numbers {theirs.held} of {theirs.total}"
    return [Claim(text, ours.held >= (places if need is None else need), detail)]


def near(
    printed: Cases, limit: float, *, names: Sequence[str] | None = None, or_better: bool = False
) -> Count:
    """Count cells that are within ``limit`` points of the paper's, ``or_better``.

    Examples
    --------
    >>> tally = Tally("cells")
    >>> near({"Lin": {"fix": Entry((7.87,))}}, 0.15)(tally, "Lin", {"fix": Entry((7.6,))})
    >>> tally.words()
    '0 of 1 cells; not FIX under Lin (7.60, -0.27)'
    """

    def count(tally: Tally, place: str, case: Case) -> None:
        row = printed.get(place, {})
        for name in row if names is None else names:
            if name in row and name in case:
                # Both as printed: the paper has two decimals.
                gap = round(case[name].mean, 2) - row[name].mean
                where = f"{paper_name(name)} under {place} ({case[name].mean:.2f}, {signed(gap)})"
                tally.add((gap if or_better else abs(gap)) <= limit + _ROUNDING, where)

    return count


def duels(
    learners: Sequence[str],
    rivals: Sequence[str],
    by: Literal["mean", "ties", "test"] = "mean",
    *,
    joint: str = "under",
) -> Count:
    """Count how often each learner beats the best of its rivals, where all of them were run.

    ``by`` says what beats it: a lower "mean", or one that "ties", not worse by the paired t-test;
    or a mean that is lower by that "test". With fewer than three seeds the test finds next to
    nothing: printed decimals tell of a tie then, and with a single one means of the rest. What is
    significant is so against every rival.

    Examples
    --------
    >>> tally = Tally("cases")
    >>> case = {"fix": Entry((7.0, 7.1)), "fth": Entry((5.0, 5.1)), "uogd": Entry((5.1, 5.1))}
    >>> duels(["fth", "uogd"], ["fix"])(tally, "Lin", case)
    >>> duels(["uogd"], ["fix", "fth"])(tally, "Lin", case)
    >>> tally.words(clear=True)
    '2 of 3 cases, 2 of them significantly; not Lin (5.10, FTH 5.05)'
    """

    def count(tally: Tally, place: str, case: Case) -> None:
        for learner in learners:
            others = [name for name in rivals if name != learner]
            if not {learner, *others} <= set(case):
                continue
            # Fast learners may have more seeds: those that all of them have are compared.
            seeds = min(len(case[name].errors) for name in (learner, *others))
            cut = {n: case[n]._replace(errors=case[n].errors[:seeds]) for n in (learner, *others)}
            own, best = cut[learner], lowest(cut, others)
            lower = own.mean < cut[best].mean
            clear = all(is_worse(cut[name].errors, own.errors) for name in others)
            holds = {
                "mean": lower,
                "ties": lower or _tied(own, cut[best]),
                "test": clear or (lower and len(own.errors) < 2),
            }
            where = place if len(learners) == 1 else f"{paper_name(learner)} {joint} {place}"
            numbers = f"{own.mean:.2f}, {paper_name(best)} {cut[best].mean:.2f}"
            tally.add(holds[by], f"{where} ({numbers})", clear)

    return count


def _tied(entry: Entry, best: Entry) -> bool:
    if len(entry.errors) < _TESTED:
        return f"{entry.mean:.2f}" == f"{best.mean:.2f}"
    return not is_worse(entry.errors, best.errors)


def lowest(case: Case, names: Sequence[str]) -> str:
    """Name the learner with the lowest mean; of equals, the first."""
    return min(names, key=lambda name: case[name].mean)


def side_by_side(
    cells: Mapping[Key, Entry], learner: int
) -> dict[tuple[Any, ...], dict[str, Entry]]:
    """Put together what was measured side by side; what was not run is left out.

    ``learner`` says which part of a key names the learner (or the hint).

    Examples
    --------
    >>> side_by_side({("fix", "lin"): Entry((7.9,)), ("fth", "lin"): Entry(())}, learner=0)
    {('lin',): {'fix': Entry(errors=(7.9,), published=None, sketch=None, competes=True)}}
    """
    found: dict[tuple[Any, ...], dict[str, Entry]] = {}
    for key, entry in cells.items():
        if entry.errors:
            place = (*key[:learner], *key[learner + 1 :])
            found.setdefault(place, {})[key[learner]] = entry
    return found
