"""What `make safety` runs: it runs, and counts right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.safety import broken, grid, problems, report, seen, subject
from benchmarks.safety.__main__ import main
from scipy.special import softmax


def test_a_cell_of_the_grid_is_run_written_and_compared(tmp_path: Path, capsys) -> None:
    few = ["grid", "--quick", "--jobs", "1", "--seeds", "1", "--problems", "binary"]
    few += ["--models", "naive Bayes", "--rows", "134", "--batches", "20"]
    file = tmp_path / "grid.jsonl"
    assert main([*few, "--out", str(file)]) == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [r["shift"] for r in records] == ["none", "abrupt"]
    printed = capsys.readouterr().out
    assert re.search(r"worst run .*: target <= 1, measured .*: (true|FALSE)", printed)
    assert main([*few, "--read", str(file), "--compare", str(file)]) == 0
    assert "cells that give up more than 10 %: 0" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["features", "broken", "alarms", "cost"])
def test_every_other_part_is_printed(part: str, capsys, monkeypatch) -> None:
    monkeypatch.setattr(broken, "KINDS", dict(list(broken.KINDS.items())[:2]))
    few = ["--quick", "--jobs", "1", "--seeds", "1", "--problems", "ten", "--models", "logistic"]
    assert main([part, *few]) == 0
    assert capsys.readouterr().out.startswith(f"({part}) ")


def test_a_case_is_printed_and_a_refusal_is_no_number(capsys, monkeypatch) -> None:
    def refused(seed: int, rows: int) -> seen.Case:
        case = seen.without_bias(5)(seed, rows)
        return case._replace(y_hold=case.y_hold[:-1])

    cases = {"biased": seen.without_bias(5), "rows without labels": refused}
    monkeypatch.setattr(seen, "CASES", cases)
    assert main(["seen", "--quick", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^biased +\d+\.\d\d +\d+\.\d\d +[+-]", printed, re.MULTILINE)
    assert re.search(r"^rows without labels +\d+\.\d\d +refused", printed, re.MULTILINE)


@pytest.mark.parametrize("safety", ["on", "off"])
def test_safety_is_passed_on_where_the_library_has_it(safety: str, monkeypatch) -> None:
    class Old:
        def __init__(self, estimator, learner, *, guard=None) -> None:
            self.settings = {"guard": guard}

    class New:
        def __init__(self, estimator, learner, *, safety="on") -> None:
            self.settings = {"safety": safety}

    for kind, plain, watched in (
        (Old, {"guard": None}, {"guard": True}),
        (New, {"safety": safety}, {"safety": safety}),
    ):
        monkeypatch.setattr(subject, "LabelShiftClassifier", kind)
        assert subject.subject(None, safety).settings == plain
        assert subject.guarded(None, safety).settings == watched
        assert subject.alarmed(subject.subject(None, safety)) is None


def test_what_is_not_there_is_refused(capsys) -> None:
    for wrong in (["gird"], ["grid", "--rows", "51"]):
        with pytest.raises(SystemExit):
            main(wrong)
        assert wrong[-1] in capsys.readouterr().err


def test_held_out_labels_have_the_prior_they_should() -> None:
    rng = np.random.default_rng(0)
    for rows, positives in ((50, 2), (134, 4), (500, 15), (2000, 60)):
        counts = np.bincount(problems.PROBLEMS["binary"].labels(rows, rng))
        assert counts.tolist() == [rows - positives, positives]
    assert np.ptp(np.bincount(problems.PROBLEMS["ten"].labels(134, rng))) == 1
    assert len(np.unique(problems.PROBLEMS["zipf"].labels(2000, rng))) < 200


def test_reweighting_with_the_true_prior_is_bayes_rule() -> None:
    """Where the model is right, the reference of the grid is the best that can be done."""
    rng = np.random.default_rng(0)
    prior, size = np.array([0.9, 0.1]), 20_000
    X = np.concatenate([rng.normal(-0.7, 1, size), rng.normal(0.7, 1, size)])[:, None]
    P = softmax(np.column_stack([-0.7 * X, 0.7 * X]) + np.log(prior), axis=1)
    problem = replace(problems.PROBLEMS["binary"], prior=prior, other=lambda rng: prior[::-1])
    place = problems.World(problem, None, prior, X, P)
    stream = grid.draw(place, grid.Square(period=50), 100, 200, rng)

    class Same:
        def reset(self) -> None: ...

        def adapt_predict_proba(self, P: np.ndarray) -> np.ndarray:
            return P

    found = grid.play(place, grid.Fitted(Same(), None, False), stream)
    assert found.error == found.fix_error
    assert found.loss == pytest.approx(found.fix_loss)
    # By hand: half of the rounds have either prior, and each its own threshold.
    x, y = X[stream.rows, 0], stream.y
    side = np.where(np.arange(100) % 50 < 25, 1, -1)[:, None] * np.log(9) / 1.4
    assert found.true_error == pytest.approx(100 * np.mean((x > side) != y), abs=1e-3)
    assert found.true_error < found.fix_error - 5


def test_what_is_kept_is_a_share_of_what_was_closed(capsys) -> None:
    cell = {"part": "grid", "problem": "ten", "model": "LDA", "rows": 50, "batch": 1, "rounds": 9}
    old = [{**cell, "shift": "slow", "seed": s, "fix_error": 9.0, "error": 7.0} for s in (0, 1)]
    new = [{**r, "error": error} for r, error in zip(old, (7.0, 7.5), strict=True)]
    report.compare(old, new)
    printed = capsys.readouterr().out
    assert "measured 87.5: FALSE" in printed
    assert "ten, LDA, 50, 1, slow: 2.00 -> 1.75 (88 %)" in printed


@pytest.mark.parametrize("kind", sorted(broken.KINDS))
def test_a_change_is_there_when_it_should_be(kind: str) -> None:
    when = [broken.KINDS[kind].strength(t) for t in range(broken.ROUNDS)]
    assert not any(when[: broken.START])
    assert when[broken.START] > 0
    assert (when[-1] == 0) == kind.endswith("gone")
    change = broken.KINDS[kind].change
    if change is None:
        return
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 16)) * np.arange(1, 17), np.arange(30) % 3
    before = X.copy()
    for side in (0, 4):
        changed = change(broken.place(X, y, X, side, seed=0))
        assert changed.shape == X.shape
        assert not np.allclose(changed, X)
    np.testing.assert_array_equal(X, before)
