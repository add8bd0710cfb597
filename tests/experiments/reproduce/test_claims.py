"""Claims on learners: on the paper's own numbers, where the page has the answer, and at limits."""

from __future__ import annotations

import pytest

from priorshift.experiments.paper import TABLE_1, TABLE_3, TABLE_4
from priorshift.experiments.report.grid import Entry
from priorshift.experiments.reproduce.claims import benchmark_claims, learner_claims


def runs(mean, gap=0.0):
    return Entry((mean + gap - 0.001, mean + gap, mean + gap + 0.001))


def table_1(**gaps):
    return {
        (name, shift): runs(cell.mean, gaps.get(name, 0.0))
        for name, row in TABLE_1.items()
        for shift, cell in row.items()
    }


def benchmark():
    return {
        (data, shift, learner): runs(cell.mean)
        for table in (TABLE_3, TABLE_4)
        for data, rows in table.items()
        for shift, row in rows.items()
        for learner, cell in row.items()
    }


def claim(claims, *words):
    (found,) = [one for one in claims if all(word in one.text for word in words)]
    return found


def test_the_paper_bears_out_its_own_table_1():
    found = learner_claims(table_1())
    assert [one.holds for one in found] == [True] * 7
    assert [one.detail for one in found] == [
        "24 of 24 cells",
        "4 of 4 cells",
        "4 of 4 shifts",
        "4 of 4 shifts, 4 of them significantly; by the paper's numbers 4 of 4",
        "20 of 20 cases, 20 of them significantly; by the paper's numbers 20 of 20",
        "3 of 3 shifts, 3 of them significantly; by the paper's numbers 3 of 3",
        "3 of 3 shifts, 3 of them significantly; by the paper's numbers 3 of 3",
    ]


@pytest.mark.parametrize(
    ("gaps", "kept"),
    [
        ({"atlas": 0.15}, 24),
        ({"atlas": -0.15}, 24),
        ({"atlas": 0.16}, 20),
        ({"atlas": -0.16}, 20),
        ({"rogd": 0.15, "ftfwh": -0.15}, 24),
        ({"rogd": 0.16}, 20),
        ({"fix": 0.2, "rogd": 0.1}, 20),
    ],
)
def test_how_far_a_cell_of_table_1_may_be(gaps, kept):
    near = learner_claims(table_1(**gaps))[0]
    assert near.text == "Table 1: each cell is within 0.15 points of the paper's"
    assert near.detail.startswith(f"{kept} of 24 cells")
    assert near.holds is (kept == 24)


@pytest.mark.parametrize(("gap", "holds"), [(0.02, True), (-0.02, True), (0.03, False)])
def test_how_far_fix_may_be(gap, holds):
    assert claim(learner_claims(table_1(fix=gap)), "FIX is within 0.02").holds is holds


def test_failures_are_named_with_their_numbers():
    cells = table_1()
    cells["atlas", "squ"] = runs(4.60)
    cells["fth", "lin"] = runs(5.5)
    near, _, best = learner_claims(cells)[:3]
    assert (
        near.detail
        == "22 of 24 cells; not FTH under Lin (5.50, +0.80), ATLAS under Squ (4.60, +0.33)"
    )
    assert best.detail == "3 of 4 shifts; not Lin (FTFWH)"
    assert not near.holds
    assert not best.holds


@pytest.mark.parametrize(
    ("cell", "error", "words", "detail"),
    [
        (("uogd", "sin"), 6.9, "UOGD outperforms", "3 of 4 shifts, 3 of them significantly; not "
         "Sin (6.90, ROGD 6.87)"),
        (("fth", "ber"), 7.8, "FIX is inferior", "19 of 20 cases, 19 of them significantly; not "
         "FTH under Ber (7.80, FIX 7.79)"),
        (("fth", "sin"), 5.7, "is the best under", "2 of 3 shifts, 2 of them significantly; not "
         "Sin (5.75, FTH 5.70)"),
        (("uogd", "squ"), 4.2, "better than UOGD", "2 of 3 shifts, 2 of them significantly; not "
         "Squ (4.27, UOGD 4.20)"),
    ],
)  # fmt: skip
def test_what_the_text_says_of_table_1_can_fail(cell, error, words, detail):
    found = claim(learner_claims({**table_1(), cell: runs(error)}), words)
    assert not found.holds
    assert found.detail.startswith(f"{detail}; by the paper's numbers")


def test_an_advantage_by_chance_is_not_significant():
    cells = table_1()
    cells["uogd", "ber"] = Entry((3.0, 4.1, 5.6))  # 4.23 on the average, ATLAS 4.04
    found = learner_claims(cells)
    assert claim(found, "ATLAS is the best").holds
    assert "not Ber (4.04, UOGD 4.23)" in claim(found, "better than UOGD").detail


def test_cells_that_are_missing_or_not_run_do_not_count():
    cells = table_1()
    del cells["fix", "lin"]
    cells["fth", "squ"] = Entry(())
    near, fix, best, *_ = learner_claims(cells)
    assert near == (near.text, False, "22 of 24 cells (22 measured)", "")
    assert fix == (fix.text, False, "3 of 4 cells (3 measured)", "")
    assert best == (best.text, False, "2 of 4 shifts (2 measured)", "")


def test_the_paper_on_its_own_tables_3_and_4():
    found = {one.text: one for one in benchmark_claims(benchmark())}
    # Read from the page: ATLAS has 9.44 on Fashion under Sin, FTH 9.37; and there FTFWH wins Lin.
    counts = {
        ("Squ", "ATLAS"): 6,
        ("Sin", "ATLAS"): 5,
        ("Ber", "ATLAS"): 6,
        ("Squ", "ATLAS-ADA"): 6,
        ("Sin", "ATLAS-ADA"): 6,
        ("Ber", "ATLAS-ADA"): 6,
    }
    assert len(found) == 10
    for (shift, learner), count in counts.items():
        one = found[f"Under {shift} {learner} beats each of FIX, FTH, FTFWH and ROGD"]
        assert one.holds is (count == 6)
        assert one.detail.startswith(f"{count} of 6 data sets, {count} of them significantly")
        assert one.detail.endswith(f"by the paper's numbers {count} of 6")
    assert (
        "not Fashion (9.44, FTH 9.37)"
        in found["Under Sin ATLAS beats each of FIX, FTH, FTFWH and ROGD"].detail
    )
    lin = claim(found.values(), "Under Lin UOGD")
    assert lin.detail.startswith("5 of 6 data sets; not Fashion (7.95, FTFWH 7.84)")
    assert lin.detail.endswith("by the paper's numbers 5 of 6")
    assert not lin.holds
    # 22.10 / 21.04 and 8.36 / 7.95; ATLAS-ADA on EuroSAT 7.13 / 7.04.
    atlas, ada = (claim(found.values(), f"Lin {name} is") for name in ("ATLAS", "ATLAS-ADA"))
    assert atlas.detail == (
        "4 of 6 data sets; not ArXiv (+5.0 %), Fashion (+5.2 %); by the paper's numbers 4 of 6, "
        "where it is at most 5.2 % above"
    )
    assert ada.detail == (
        "6 of 6 data sets; by the paper's numbers 6 of 6, where it is at most 1.3 % above"
    )
    assert (atlas.holds, ada.holds) == (False, True)


def test_claims_about_lin_are_checked_with_the_raw_estimate_too():
    cells = {key: entry for key, entry in benchmark().items() if key[1] == "lin"}
    raw = {
        key: entry
        for key, entry in cells.items()
        if key[0] in ("mnist", "fashion") and key[2] in ("uogd", "atlas", "atlas-ada")
    }
    raw["fashion", "lin", "uogd"] = runs(7.8)  # FTFWH has 7.84, ATLAS 8.36, ATLAS-ADA 8.04
    clipped, best = (one for one in benchmark_claims(cells, raw=raw) if "Lin UOGD" in one.text)
    assert clipped.detail.startswith("5 of 6 data sets; not Fashion (7.95, FTFWH 7.84)")
    assert best.text == f"{clipped.text}, with the raw estimate of equation 3"
    assert best.holds
    assert best.detail.startswith("2 of 2 data sets; by")
    found = benchmark_claims(cells, raw=raw)
    assert "2 of 2 data sets; not" not in claim(found, "Lin ATLAS is", "raw").detail
    assert "not Fashion (+7.2 %)" in claim(found, "Lin ATLAS is", "raw").detail
    assert "not Fashion (+3.1 %)" in claim(found, "Lin ATLAS-ADA is", "raw").detail


def test_the_cells_of_tables_3_and_4_cannot_be_checked():
    last = benchmark_claims(benchmark(), table="Table 3")[-1]
    assert last.holds is None
    assert last.text == "Table 3: each cell is near the paper's"
    assert "CINIC10" in last.cause


def test_uogd_may_tie_by_the_test_but_not_with_one_seed():
    cells = {k: e for k, e in benchmark().items() if k[:2] == ("fashion", "lin")}
    cells["fashion", "lin", "ftfwh"] = Entry((7.0, 7.84, 8.68))
    assert claim(benchmark_claims(cells), "Lin UOGD").holds
    single = {key: Entry((entry.mean,)) for key, entry in cells.items()}
    assert not claim(benchmark_claims(single), "Lin UOGD").holds


def test_what_was_not_measured_is_not_judged():
    assert learner_claims({}) == benchmark_claims({}) == []
    lin = {key: entry for key, entry in benchmark().items() if key[1] == "lin"}
    assert [one.text[:14] for one in benchmark_claims(lin) if one.holds is not None] == [
        *("Under Lin UOGD", "Under Lin ATLA", "Under Lin ATLA")
    ]
    alone = {("auto", "lin"): runs(1.0)}
    assert learner_claims(alone) == []


def test_learners_beyond_the_paper_meet_the_best_of_it():
    cells = benchmark()
    for data in TABLE_3:
        for shift in ("lin", "ber", "sin", "squ"):
            best = min(cells[data, shift, learner].mean for learner in TABLE_3["mnist"]["lin"])
            cells[data, shift, "auto"] = runs(best, -0.5)
            cells[data, shift, "tracker"] = runs(best, 0.1 if data == "mnist" else -0.5)
            cells[data, shift, "oracle"] = runs(0.0)
    auto, tracker = (claim(benchmark_claims(cells), name) for name in ("AUTO", "TRACKER"))
    assert (
        auto.text == "Tables 3 and 4: AUTO beats the best of the paper's learners, run side by side"
    )
    assert auto[1:] == (True, "24 of 24 cases, 24 of them significantly", "")
    assert not tracker.holds
    assert tracker.detail.startswith(
        "20 of 24 cases, 20 of them significantly; not MNIST under Lin ("
    )


def test_a_case_without_all_rivals_does_not_count():
    cells = {**table_1(), ("auto", "lin"): runs(1.0), ("auto", "squ"): runs(9.0)}
    assert claim(learner_claims(cells), "AUTO").detail.startswith("1 of 2 shifts")
    del cells["fix", "squ"]
    assert claim(learner_claims(cells), "AUTO").holds
