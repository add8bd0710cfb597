"""What Tables 3 and 4 show, checked on runs of our own: who beats whom, on how many data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from priorshift.experiments.paper import benchmark_cell
from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.claim import (
    Claim,
    Tally,
    World,
    best_of,
    beyond_claims,
    worlds_of,
)
from priorshift.experiments.reproduce.names import DATA_SETS, LEARNERS, SHIFTS, paper_name
from priorshift.experiments.reproduce.significance import is_worse

_EARLIER = ("fix", "fth", "ftfwh", "rogd")
_FAST = ("squ", "sin", "ber")

Labels = Mapping[str, str] | None


def benchmark_claims(
    cells: Mapping[tuple[str, str, str], Entry],
    *,
    labels: Labels = None,
    table: str = "Tables 3 and 4",
) -> list[Claim]:
    """Check Tables 3 and 4, or one of them.

    A claim holds if it does on every data set that has all it needs. The detail says on how many
    it does, names those where it does not, and counts the paper's own numbers in the same way.
    What was not measured at all is not judged: there is no claim about it.

    Parameters
    ----------
    cells : mapping from (data, shift, learner) to Entry
        As for ``benchmark_table``, all shifts.
    labels : mapping, optional
        Names other than the paper's.
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
    worlds = worlds_of(cells, learner=2)
    under: dict[str, dict[str, World]] = {shift: {} for shift in SHIFTS}
    for (data, shift), world in worlds.items():
        under.setdefault(shift, {})[data] = world
    named = {
        f"{paper_name(data, labels)} under {paper_name(shift, labels)}": world
        for (data, shift), world in worlds.items()
    }
    pairs = ((learner, shift) for learner in ("atlas", "atlas-ada") for shift in _FAST)
    judged = [
        *(_beats_earlier(learner, shift, under[shift], labels) for learner, shift in pairs),
        _best_under_lin(under["lin"], labels),
    ]
    return [
        *(claim for claim in judged if claim is not None),
        *beyond_claims(table, "cases", named, LEARNERS, labels),
    ]


def _beats_earlier(
    learner: str, shift: str, worlds: Mapping[str, World], labels: Labels
) -> Claim | None:
    tally = Tally("data sets")
    for data, world in worlds.items():
        if not {learner, *_EARLIER} <= set(world):
            continue
        own, rival = world[learner], best_of(world, _EARLIER)
        numbers = f"{own.mean:.2f}, {paper_name(rival, labels)} {world[rival].mean:.2f}"
        clear = all(is_worse(world[name].errors, own.errors) for name in _EARLIER)
        failure = f"{paper_name(data, labels)} ({numbers})"
        tally.add(own.mean < world[rival].mean, failure, clear)
    printed = _printed_count(shift, lambda means: means[learner] < min(means[n] for n in _EARLIER))
    text = (
        f"Under {paper_name(shift, labels)} {paper_name(learner, labels)} beats each of FIX, FTH, "
        "FTFWH and ROGD"
    )
    detail = f"{tally.words(clear=True)}; by the paper's numbers {printed}"
    return Claim(text, tally.all_hold(), detail) if tally.total else None


def _best_under_lin(worlds: Mapping[str, World], labels: Labels) -> Claim | None:
    tally = Tally("data sets")
    for data, world in worlds.items():
        if not set(LEARNERS) <= set(world):
            continue
        own, best = world["uogd"], best_of(world, LEARNERS)
        numbers = f"{own.mean:.2f}, {paper_name(best, labels)} {world[best].mean:.2f}"
        tally.add(_ties(own, world[best]), f"{paper_name(data, labels)} ({numbers})")
    printed = _printed_count("lin", lambda means: means["uogd"] == min(means.values()))
    text = "Under Lin UOGD is the best, or tied with it by the paired t-test at 5 %"
    detail = f"{tally.words()}; by the paper's numbers the best on {printed}"
    return Claim(text, tally.all_hold(), detail) if tally.total else None


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
