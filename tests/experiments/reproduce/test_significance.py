"""The paired t-test by hand, and the marks of the paper where its numbers determine them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student

from priorshift.errors import InputError
from priorshift.experiments.paper import TABLE_1, TABLE_2, TABLE_3, TABLE_4
from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.significance import is_worse, marks, paired_p_value

RNG = np.random.default_rng(5)
# Five numbers with mean 0 and sample variance 1.
UNIT = np.array([-2, -1, 0, 1, 2]) / math.sqrt(2.5)
# What the paper does not mark with a bullet in Tables 3 and 4, ATLAS-ADA itself left out.
NO_BULLET = {
    ("arxiv", "lin", "uogd"),
    ("eurosat", "lin", "uogd"),
    ("mnist", "lin", "uogd"),
    ("mnist", "lin", "atlas"),
    ("mnist", "ber", "atlas"),
    ("fashion", "lin", "ftfwh"),
    ("fashion", "lin", "rogd"),
    ("fashion", "lin", "uogd"),
    ("cifar10", "lin", "ftfwh"),
    ("cifar10", "lin", "uogd"),
    ("cinic10", "lin", "uogd"),
    ("mnist", "sin", "atlas"),
    ("fashion", "sin", "fth"),
    ("fashion", "sin", "ftfwh"),
    ("fashion", "sin", "uogd"),
}
# What the paper does not mark in Table 2, ATLAS itself left out: rows in a round, shift, hint.
NOT_BETTER = {
    (1, "squ", "fwd"),
    (1, "ber", "fwd"),
    (10, "squ", "win"),
    (10, "ber", "win"),
    (10, "ber", "peri"),
    (100, "lin", "win"),
    (100, "lin", "okm"),
    (100, "squ", "win"),
    (100, "sin", "win"),
    (100, "ber", "win"),
    (100, "ber", "peri"),
}


def p_by_hand(first, second):
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    return 2 * student.sf(abs(mean) / math.sqrt(variance / n), n - 1)


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_p_value_is_that_of_the_formula(seeds):
    for gap in (0.0, 0.3, 2.0):
        first, second = RNG.normal(gap, 1, seeds), RNG.normal(0, 1, seeds)
        assert paired_p_value(first, second) == pytest.approx(p_by_hand(first, second), rel=1e-9)


def test_the_critical_value_of_five_seeds():
    # Two-sided 5 % with 4 degrees of freedom, from printed tables: 2.776.
    for t, significant in ((2.77, False), (2.78, True)):
        differences = UNIT + t / math.sqrt(5)
        assert is_worse(differences, np.zeros(5)) is significant


def test_pairing_sees_what_the_spread_over_seeds_hides():
    seeds = np.array([0.0, 3.0, -2.0, 5.0, 1.0])
    better, worse = seeds, seeds + np.array([0.10, 0.11, 0.09, 0.10, 0.12])
    assert is_worse(worse, better)
    assert not is_worse(worse, better[[1, 2, 3, 4, 0]])


def test_differences_without_variance():
    base = np.array([7.1, 7.3, 6.9, 7.7, 7.2])
    assert paired_p_value(base, base) == 1
    assert paired_p_value(base, base + 0.1) == 0  # equal up to rounding of the addition
    assert paired_p_value(base, base + 1e-13) == 1
    assert is_worse(base + 0.1, base)
    assert not is_worse(base, base + 0.1)


def test_what_cannot_be_paired_is_refused():
    with pytest.raises(InputError, match="same seeds"):
        paired_p_value([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="finite"):
        paired_p_value([1.0, math.nan], [1.0, 2.0])


def entries(**errors):
    return {name: Entry(tuple(values)) for name, values in errors.items()}


def test_ties_are_bold_by_the_test_and_not_by_the_mean():
    noise = np.array([0.0, 0.3, -0.3, 0.2, -0.2])
    found = marks(entries(a=5 + noise, b=5.05 - noise, c=5.05 + noise), bold="ties")
    # c is as near to the best as b, but it is worse in every single run.
    assert [name for name, mark in found.items() if mark.bold] == ["a", "b"]
    found = marks(entries(a=5 + noise, b=5.05 - noise, c=5.05 + noise), bold="best")
    assert [name for name, mark in found.items() if mark.bold] == ["a"]


def test_best_is_bold_for_all_that_print_the_same():
    found = marks(entries(a=[1.061, 1.062], b=[1.059, 1.058], c=[1.069, 1.069]), bold="best")
    assert [name for name, mark in found.items() if mark.bold] == ["a", "b"]


def test_bullets_to_both_sides():
    given = entries(ref=[5, 5.1, 5.2], low=[4, 4.1, 4.3], high=[6, 6.1, 6.3], near=[5, 5.2, 5.1])
    better = marks(given, bold="best", bullet="better-than", reference="ref")
    worse = marks(given, bold="best", bullet="worse-than", reference="ref")
    assert [name for name, mark in better.items() if mark.bullet] == ["low"]
    assert [name for name, mark in worse.items() if mark.bullet] == ["high"]
    absent = marks(given, bold="best", bullet="worse-than", reference="nobody")
    assert not any(mark.bullet for mark in absent.values())


def test_one_seed_allows_no_bullet_and_the_best_is_bold():
    for bold in ("ties", "best"):
        found = marks(entries(a=[4], b=[9]), bold=bold, bullet="worse-than", reference="a")
        assert found == {"a": (True, False), "b": (False, False)}


def test_extras_and_what_was_not_run_have_no_marks():
    given = entries(a=[4, 4.1], b=[9, 9.1], gone=[])
    given["oracle"] = Entry((1.0, 1.1), competes=False)
    found = marks(given, bold="ties", bullet="worse-than", reference="a")
    assert found["oracle"] == found["gone"] == (False, False)
    assert found["a"].bold
    assert found["b"].bullet
    assert list(found) == list(given)
    assert marks({}, bold="best") == {}


def runs(cell, sign=1.0):
    """Five runs with a printed mean and deviation."""
    return Entry(tuple(cell.mean + sign * cell.std * UNIT))


def determined(cell, other):
    """Whether two printed cells leave no doubt, whatever the correlation of their runs.

    The deviation of the differences lies between the difference and the sum of the deviations;
    printed numbers are off by up to 0.005, and the deviation may be the one that divides by n.
    """
    gap = cell.mean - other.mean
    widest = (cell.std + other.std + 0.01) * math.sqrt(5 / 4)
    narrowest = abs(cell.std - other.std) - 0.01
    if (abs(gap) - 0.01) * math.sqrt(5) > 2.776 * widest:
        return "differ"
    if (abs(gap) + 0.01) * math.sqrt(5) < 2.776 * narrowest:
        return "same"
    return "unknown"


def test_the_bullets_of_tables_3_and_4_where_the_numbers_determine_them():
    known = {"differ": 0, "same": 0, "unknown": 0}
    for data in TABLE_3:
        for shift, row in {**TABLE_3[data], **TABLE_4[data]}.items():
            for learner, cell in row.items():
                if learner == "atlas-ada":
                    continue
                kind = determined(cell, row["atlas-ada"])
                known[kind] += 1
                if kind == "unknown":
                    continue
                for sign in (-1.0, 1.0):  # runs that go against each other, and together
                    given = {learner: runs(cell, sign), "atlas-ada": runs(row["atlas-ada"])}
                    found = marks(given, bold="best", bullet="worse-than", reference="atlas-ada")
                    expected = (data, shift, learner) not in NO_BULLET
                    assert found[learner].bullet is expected, (data, shift, learner)
    assert known["differ"] > 100
    assert known["same"] >= 2


def test_the_bullets_of_table_2_where_the_numbers_determine_them():
    known = 0
    for size, shifts in TABLE_2.items():
        for shift, row in shifts.items():
            for hint in ("win", "peri", "fwd", "okm"):
                lower = row[hint].mean < row["none"].mean
                assert lower or (size, shift, hint) in NOT_BETTER
                if lower and determined(row[hint], row["none"]) == "unknown":
                    continue
                known += 1
                given = {hint: runs(row[hint], -1.0), "none": runs(row["none"])}
                found = marks(given, bold="best", bullet="better-than", reference="none")
                assert found[hint].bullet is ((size, shift, hint) not in NOT_BETTER)
    assert known > 25


def test_the_bold_numbers_of_table_1():
    best = {"lin": "fth", "squ": "atlas", "sin": "atlas", "ber": "atlas"}
    for shift, learner in best.items():
        given = {
            name: runs(row[shift], (-1.0) ** n) for n, (name, row) in enumerate(TABLE_1.items())
        }
        found = marks(given, bold="ties")
        assert [name for name, mark in found.items() if mark.bold] == [learner]
