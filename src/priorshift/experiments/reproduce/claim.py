"""A claim and how it is counted: where it holds, where it does not, where chance could do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.names import is_oracle, paper_name
from priorshift.experiments.reproduce.significance import is_worse

_SHOWN = 4  # failures that are named; the others are counted

Key = TypeVar("Key", bound=tuple[Any, ...])
World = dict[str, Entry]
"""The entries that were measured side by side, by learner or hint."""


class Claim(NamedTuple):
    """A sentence, whether it holds, and the numbers behind the answer.

    Examples
    --------
    >>> Claim("ATLAS beats FIX", True, "6 of 6 data sets").holds
    True
    """

    text: str
    holds: bool
    detail: str


class Tally:
    """Count in how many places something holds.

    Parameters
    ----------
    what : str
        What is counted, as "data sets".

    Examples
    --------
    >>> tally = Tally("data sets")
    >>> tally.add(True, "MNIST (1.03, FTH 1.29)")
    >>> tally.add(False, "Fashion (9.44, FTH 9.37)")
    >>> tally.words(), tally.all_hold()
    ('1 of 2 data sets; not Fashion (9.44, FTH 9.37)', False)
    >>> tally.words(of=6)
    '1 of 6 data sets (2 measured); not Fashion (9.44, FTH 9.37)'
    """

    def __init__(self, what: str) -> None:
        self.what, self.total, self.kept, self.clear = what, 0, 0, 0
        self.failures: list[str] = []

    def add(self, holds: bool, failure: str, clear: bool = False) -> None:
        """Count a place; ``failure`` names it, ``clear`` says that it is no chance.

        Examples
        --------
        >>> tally = Tally("cells")
        >>> tally.add(True, "here", clear=True)
        >>> tally.kept, tally.clear
        (1, 1)
        """
        self.total += 1
        self.kept += holds
        self.clear += clear
        if not holds:
            self.failures.append(failure)

    def all_hold(self) -> bool:
        """Whether it holds in every place that was counted, and there was one.

        Examples
        --------
        >>> Tally("cells").all_hold()
        False
        """
        return 0 < self.total == self.kept

    def words(self, *, of: int | None = None, clear: bool = False) -> str:
        """Write the counts and the first failures.

        Parameters
        ----------
        of : int, optional
            How many places there should be.
        clear : bool
            Say how many are significant.

        Examples
        --------
        >>> tally = Tally("cells")
        >>> tally.add(True, "here", clear=True)
        >>> tally.words(clear=True)
        '1 of 1 cells, 1 of them significantly'
        """
        text = f"{self.kept} of {self.total if of is None else of} {self.what}"
        if of is not None and self.total < of:
            text += f" ({self.total} measured)"
        if clear:
            text += f", {self.clear} of them significantly"
        if self.failures:
            more = len(self.failures) - _SHOWN
            behind = f" and {more} more" if more > 0 else ""
            text += f"; not {', '.join(self.failures[:_SHOWN])}{behind}"
        return text


def worlds_of(cells: Mapping[Key, Entry], learner: int) -> dict[tuple[Any, ...], World]:
    """Put together what was measured side by side; what was not run is left out.

    Parameters
    ----------
    cells : mapping from tuples to Entry
    learner : int
        Which part of a key names the learner (or the hint).

    Examples
    --------
    >>> cells = {("fix", "lin"): Entry((7.9,)), ("fth", "lin"): Entry((4.7,))}
    >>> {place: list(world) for place, world in worlds_of(cells, 0).items()}
    {('lin',): ['fix', 'fth']}
    """
    found: dict[tuple[Any, ...], World] = {}
    for key, entry in cells.items():
        if entry.errors:
            place = tuple(part for n, part in enumerate(key) if n != learner)
            found.setdefault(place, {})[key[learner]] = entry
    return found


def beyond_claims(
    table: str,
    what: str,
    worlds: Mapping[str, World],
    rivals: Iterable[str],
    labels: Mapping[str, str] | None = None,
) -> list[Claim]:
    """For each learner that is not the paper's: does it beat the best of the paper's, run here.

    Parameters
    ----------
    table, what : str
        How the claim begins, and what is counted.
    worlds : mapping
        By the words that name them. Counted where the learner and all rivals were run.
    rivals : iterable of str
        The paper's learners (or hints). Oracles are nobody's rival.
    labels : mapping, optional
        Names other than the paper's.

    Examples
    --------
    >>> world = {"atlas": Entry((4.2, 4.3)), "auto": Entry((2.1, 2.2)), "oracle": Entry((2.0, 2.0))}
    >>> beyond_claims("Table 1", "shifts", {"Squ": world}, ["atlas"])[0].detail
    '1 of 1 shifts, 1 of them significantly'
    """
    own = list(rivals)
    names = dict.fromkeys(name for world in worlds.values() for name in world)
    claims = []
    for learner in (name for name in names if name not in own and not is_oracle(name)):
        tally = Tally(what)
        for place, world in worlds.items():
            if not {learner, *own} <= set(world):
                continue
            best = best_of(world, own)
            ours, theirs = world[learner], world[best]
            numbers = f"{ours.mean:.2f}, {paper_name(best, labels)} {theirs.mean:.2f}"
            clear = is_worse(theirs.errors, ours.errors)
            tally.add(ours.mean < theirs.mean, f"{place} ({numbers})", clear)
        name = paper_name(learner, labels)
        text = f"{table}: {name} beats the best of the paper's learners, run side by side"
        if tally.total:
            claims.append(Claim(text, tally.all_hold(), tally.words(clear=True)))
    return claims


def best_of(world: World, names: Iterable[str]) -> str:
    """Name the learner with the lowest mean; of equals, the first.

    Examples
    --------
    >>> best_of({"fix": Entry((7.9,)), "fth": Entry((4.7,))}, ["fix", "fth"])
    'fth'
    """
    return min(names, key=lambda name: world[name].mean)
