"""The benchmarks still run; their times are nobody's test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import anytime, auto, calibration, decisions, labels, patches
from benchmarks.__main__ import main
from benchmarks.sketches import main as sketches
from benchmarks.timing import compare
from benchmarks.tracking import main as tracking

from priorshift.calibration import CALIBRATIONS


def test_the_table_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    assert main(["--seconds", "0", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    record = json.loads(file.read_text())
    assert len(record["figures"]) >= 5
    for figure in record["figures"]:
        assert figure["ratio"] > 0
        assert figure["name"] in printed


def test_sketches_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--rounds", "5", "--shifts", "squ", "--learners", "uogd", "--seeds", "1", "--size", "90"]
    assert sketches(few) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[:2] == ["uogd", "squ"]
    assert row.count("(at") == 4
    assert sketches(["--scale", "10001", "--seconds", "0", "--sketches", "coreset"]) == 0
    assert "ratio" in capsys.readouterr().out


def test_compare_takes_medians_of_turns() -> None:
    calls: list[str] = []
    result = compare(lambda: calls.append("s"), lambda: calls.append("y"), seconds=0, least=5)
    assert calls == ["s", "y"] * 6
    assert result.ratio == pytest.approx(result.subject / result.yardstick)


def test_calibration_has_a_row_for_every_map(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--data digits,no_such_data --rounds 20 --batch-size 5 --rows 400 --components 10"
    assert calibration.main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "no_such_data: left out" in printed
    for name in CALIBRATIONS:
        assert f"\n{name}" in printed


def test_the_table_of_the_trackers(capsys: pytest.CaptureFixture[str]) -> None:
    assert tracking(["--rounds", "60", "--rows", "10", "--learner", "fix,tracker"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4 * 2
    for fix, tracker in zip(lines[1::2], lines[2::2], strict=True):
        assert float(tracker.split()[4]) < float(fix.split()[4])


def test_the_table_of_auto(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--data digits --rounds 40 --shift squ --learner tracker,auto --sharp 2"
    assert auto.main(words.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.count("|") == lines[0].count("|") for line in lines)


def test_the_table_of_anytime(capsys: pytest.CaptureFixture[str]) -> None:
    assert anytime.main(["--rounds", "5", "--rows", "5"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 3 * 2 * 2


def test_the_table_of_labels(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--rounds 15 --rows 5 --seeds 1 --learner tracker,atlas --data digits --calibration none"
    )
    assert labels.main(words.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + 2 * 4 + 1 + 2 * 4
    for atlas in lines[7:11]:
        none, *late = (atlas.split()[i] for i in (3, *range(8, 16)))
        assert set(late) == {none}  # labels that come late are nothing to it


def test_patch_features_are_compared_with_pixels(capsys: pytest.CaptureFixture[str]) -> None:
    assert patches.main(["--splits", "1", "--data", "digits", "--rows", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[5].split()[-1]) < float(lines[2].split()[-1])
    assert lines[-1].startswith("digits ")


def test_decisions_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    few = "--models logistic --windows 3 --seeds 1 --data synthetic --splits 2 --held-out 900"
    assert decisions.main(few.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("logistic")] == [
        ["logistic", safety, measure] for safety in ("on", "off") for measure in ("f1", "cost")
    ]
    rows = [line.split() for line in lines if line.startswith("synthetic")]
    assert len(rows) == 3 * 4
    for _, _, kind, mean, *_ in rows:
        assert kind in ("marginal", "plain") or 80.0 < float(mean) < 97.0
