"""Tables in text, and the paper's numbers in them."""

from __future__ import annotations

import pytest

from priorshift.experiments.paper import PAPER_ROUNDS, TABLE_1, TABLE_2, paper_error
from priorshift.experiments.report import Record, results_table, text_table


def record(learner: str, shift: str, error: float, **changes: object) -> Record:
    base = Record(
        learner=learner,
        hint=None,
        preset="paper",
        protocol="predict-first",
        calibration="none",
        calibration_map="none",
        data="synthetic",
        shift=shift,
        rounds=PAPER_ROUNDS,
        batch_size=100,
        sketch=None,
        errors=[error, error],
        error_mean=error,
        error_std=0.0,
        oracle_error=2.0,
        calibrated_oracle_error=2.5,
        fix_error=7.8,
        prior_error=0.1,
        variation=1.0,
        seconds=1.0,
        rounds_per_second=1e4,
    )
    base.update(changes)  # type: ignore[typeddict-item]
    return base


@pytest.mark.parametrize(
    ("learner", "hint", "shift", "size", "error"),
    [
        ("fix", None, "lin", 100, 7.87),
        ("fix", None, "ber", 100, 7.79),
        ("fth", None, "squ", 100, 6.50),
        ("ftfwh", None, "lin", 100, 5.27),
        ("rogd", None, "sin", 100, 6.87),
        ("uogd", None, "ber", 100, 5.46),
        ("atlas", None, "squ", 100, 4.27),
        ("atlas", None, "lin", 1, 6.28),
        ("atlas", None, "ber", 10, 4.39),
        ("atlas-ada", "win", "squ", 10, 4.69),
        ("atlas-ada", "peri", "squ", 1, 5.27),
        ("atlas-ada", "fwd", "ber", 100, 3.19),
        ("atlas-ada", "okm", "sin", 1, 5.25),
        ("atlas-ada", "okm", "lin", 100, 5.45),
        ("fix", None, "lin", 10, None),
        ("atlas", None, "lin", 50, None),
        ("atlas-ada", "none", "lin", 100, None),
        ("atlas-ada", None, "lin", 100, None),
        ("fix", None, "constant", 100, None),
    ],
)
def test_paper_numbers(learner, hint, shift, size, error):
    assert paper_error(learner, hint, shift, size) == error


def test_the_two_tables_agree_on_atlas():
    for shift, cell in TABLE_1["atlas"].items():
        assert TABLE_2[100][shift]["none"] == cell


def test_a_cell_has_ours_the_papers_and_the_difference():
    table = results_table([record("atlas", "squ", 4.25)], compare=True)
    assert "4.25 ±0.00 (paper 4.27, -0.02)" in table
    assert "differences" not in table


def test_a_single_seed_has_no_deviation():
    table = results_table([record("atlas", "squ", 4.25, errors=[4.25])], compare=True)
    assert "4.25 (paper 4.27, -0.02)" in table


def test_a_sketch_is_named_in_the_title():
    rows = [record("fix", "squ", 7.8), record("uogd", "squ", 6.1, sketch="blocks:500")]
    assert ", sketch blocks:500, " in results_table(rows, compare=False).splitlines()[0]


def test_a_shorter_run_says_so():
    table = results_table([record("atlas", "squ", 4.25, rounds=500)], compare=True)
    assert "10,000 rounds" in table
    assert "500" in table.splitlines()[-1]


def test_no_footnote_without_a_number_of_the_paper():
    for rows, compare in (
        ([record("atlas", "squ", 4.0)], False),
        ([record("x", "squ", 4.0)], True),
    ):
        table = results_table(rows, compare=compare)
        assert "paper:" not in table
        assert "(paper" not in table


def test_what_rows_mean_is_said_under_the_table():
    scores = {"log_loss": 0.1, "brier": 0.1, "f1": 0.9, "auc": 0.9}
    calibrated = {"calibration": "auto", "calibration_map": "matrix"}
    row = record("auto", "lin", 3.0, **scores, **calibrated)
    table = results_table([row], compare=False)
    assert "f0 (FIX): the source model, trained on the offline set, as it is" in table
    assert "with the true class mix of every round" in table
    assert "f0 by matrix, true mix: the same for f0, calibrated" in table
    plain = results_table([record("fth", "lin", 3.0, **scores)], compare=False)
    assert "true mix:" not in plain


def test_f0_that_needs_no_calibration_has_no_row_as_calibrated():
    row = record("auto", "lin", 3.0, calibration="auto", calibration_map="none", log_loss=0.1)
    row.update(brier=0.1, f1=0.9, auc=0.9)
    assert "true mix" not in results_table([row], compare=False).replace("the true mix", "")


def test_baseline_appears_once_and_the_oracle_is_last():
    rows = [record("atlas", "squ", 4.0), record("atlas", "lin", 5.0)]
    lines = results_table(rows, compare=False).splitlines()
    assert lines[-1].split() == ["oracle", "2.00", "2.00"]
    assert lines[-2].startswith("f0 as it is")
    with_fix = results_table([*rows, record("fix", "squ", 7.8)], compare=False)
    assert "f0 as it is" not in with_fix


def test_a_wide_table_becomes_one_for_each_shift():
    rows = [record("atlas", shift, 4.0) for shift in ("lin", "squ", "sin", "ber")]
    wide = results_table(rows, compare=True)
    narrow = results_table(rows, compare=True, width=80)
    assert wide.count("oracle") == 1
    assert narrow.count("oracle") == 4
    table_lines = [line for line in narrow.splitlines()[1:] if not line.startswith("paper")]
    assert max(map(len, table_lines)) <= 80


def test_hints_are_named():
    row = record("atlas-ada", "squ", 3.3, hint="okm", protocol="adapt-first")
    assert "ATLAS-ADA (okm)  adapt-first" in results_table([row], compare=False)


def test_text_table_has_no_trailing_blanks():
    table = text_table(["a", "b"], [["long text", ""], ["x", "y"]])
    assert all(line == line.rstrip() for line in table.splitlines())
