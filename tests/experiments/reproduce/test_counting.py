"""Counts behind claims: what is counted, where it must hold, what is said of it."""

from __future__ import annotations

import pytest

from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.counting import Tally, counted, duels


def test_a_tally_names_only_some_failures():
    tally = Tally("cells")
    for n in range(6):
        tally.add(False, f"c{n}")
    assert tally.words() == "0 of 6 cells; not c0, c1, c2, c3 and 2 more"


@pytest.mark.parametrize(
    ("of", "need", "holds"),
    [(None, None, False), (None, 1, True), (2, 1, True), (3, None, False), (None, 2, False)],
)
def test_a_claim_holds_in_as_many_places_as_it_needs(of, need, holds):
    cases = {
        "Lin": {"fix": Entry((5.0,)), "fth": Entry((4.0,))},
        "Squ": {"fix": Entry((5.0,)), "fth": Entry((6.0,))},
        "Sin": {"fix": Entry((5.0,))},  # not measured with both
    }
    (claim,) = counted("a", "shifts", duels(["fth"], ["fix"]), cases, of=of, need=need)
    assert claim.holds is holds
    assert counted("a", "shifts", duels(["rogd"], ["fix"]), cases, of=of, need=need) == []


@pytest.mark.parametrize(
    ("own", "rival", "mean", "ties", "test"),
    [
        ((4.0, 4.1, 4.2), (5.0, 5.1, 5.3), True, True, True),
        ((4.0, 4.1, 5.6), (5.0, 5.1, 4.3), True, True, False),  # lower by chance
        ((5.0, 5.1, 4.3), (4.0, 4.1, 5.6), False, True, False),  # higher by chance
        ((5.0, 5.1, 5.3), (4.0, 4.1, 4.2), False, False, False),
        ((5.0,), (5.004,), True, True, True),  # one seed: no test
        ((5.004,), (5.0,), False, True, False),
        ((5.1,), (5.0,), False, False, False),
    ],
)
def test_what_beats_a_rival(own, rival, mean, ties, test):
    case = {"atlas": Entry(own), "fix": Entry((9.0,) * len(own)), "uogd": Entry(rival)}
    for by, holds in (("mean", mean), ("ties", ties), ("test", test)):
        tally = Tally("cases")
        duels(["atlas"], ["fix", "uogd", "atlas"], by)(tally, "Lin", case)  # nobody's own rival
        assert (tally.total, tally.held) == (1, int(holds))


@pytest.mark.parametrize(
    ("own", "other", "holds"),
    [
        ((16.0, 16.1), (10.0,), False),  # one seed in common
        ((16.0, 16.3), (15.0, 15.1), False),  # the t-test cannot tell with two
        ((16.0, 16.1), (16.004,), True),  # equal as printed
        ((9.0, 17.0), (10.0,), True),  # seed 0 against seed 0
        ((5.0, 5.1, 5.0, 5.1), (5.0, 5.05, 5.02, 5.06), True),
        ((5.4, 5.5, 5.4, 5.5), (5.0, 5.1, 5.0, 5.1), False),
    ],
)
def test_a_tie_needs_seeds_that_can_tell(own, other, holds):
    tally = Tally("cases")
    duels(["uogd"], ["fix"], "ties")(tally, "Lin", {"uogd": Entry(own), "fix": Entry(other)})
    assert tally.held == holds
