"""The benchmarks of docs/insight.md and docs/files.md still run, at their smallest sizes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks import assumed, cbpe, files, history, insight, performance

SMALL = ["--data", "rare", "--splits", "1", "--windows", "1", "--safety", "off"]

# What answers in the place of NannyML: 0.5, whatever is asked.
STANDS_IN = """\
import json, sys
import numpy as np
with np.load(sys.argv[2]) as file:
    kinds = {name: len(file[name]) for name in file.files if name not in ("reference", "labels")}
half = {kind: [0.5] * windows for kind, windows in kinds.items()}
metrics = ("accuracy", "f1", "recall", "auc")
print(json.dumps({k: dict.fromkeys(metrics, v) | {"milliseconds": 1.0} for k, v in half.items()}))
"""


@pytest.mark.parametrize("more", [[], ["--known-prior", "--as-it-is"]])
def test_performance_is_compared_with_labels(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert performance.main([*SMALL, *more]) == 0
    head, *_, last = capsys.readouterr().out.splitlines()
    assert ("known" in head) == bool(more)
    assert last.startswith("rare                     all")


def test_both_estimates_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "installed").touch()
    (tmp_path / "stand_in.py").write_text(STANDS_IN)
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/stand_in.py" "$@"\n')
    python.chmod(0o755)
    assert cbpe.main([*SMALL, "--env", str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[6:-1]]
    assert len(rows) == 6
    for row in rows:
        ours, theirs, ratio = map(float, row[-3:])
        assert ours < theirs
        assert ratio == pytest.approx(ours / theirs, abs=0.1)


def test_files_go_through_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "HELD_OUT", 100)
    assert files.main(["--rows", "500", "--kills", "0"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:]] == ["fit", "adapt", "report"]


def test_the_cost_of_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert history.main(["--rounds", "200"]) == 0
    rounds = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]]
    assert rounds == ["100", "200"]


def test_the_past_is_compared_with_what_was_said_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert insight.main(["past", "--rounds", "6"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    assert len(lines) == len(insight.PAST)
    assert all(0 < float(mean) <= float(worst) for *_, mean, _, worst, _, _, _, _ in lines)


def test_what_is_assumed_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert assumed.main(["--seeds", "1", "--rounds", "4"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed if ":" in line][:3] == list(assumed.PARTS)
    even = [line.split() for line in printed[2:4]]
    assert even[1][:2] == ["prior=[0.97,", "0.03]"]
    assert float(even[0][-3]) > float(even[1][-3])
