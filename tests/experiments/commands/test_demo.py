"""`priorshift demo`: a picture, a story, and the order that the story claims."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np

from priorshift.cli.main import build_parser
from priorshift.experiments.commands.demo import hold_contest

PNG = b"\x89PNG\r\n\x1a\n"


def test_demo_writes_a_picture_and_says_where(call, tmp_path):
    out = tmp_path / "a.png"
    answer = call("demo", "--rounds", 30, "--out", out)
    assert answer.status == 0
    assert answer.err == ""
    assert out.read_bytes().startswith(PNG)
    assert b"IEND" in out.read_bytes()[-12:]
    assert os.listdir(tmp_path) == ["a.png"]
    assert str(out) in answer.out.splitlines()[-1]
    assert answer.out.count("after round") == 10
    for word in ("FIX", "AUTO", "oracle", "digit 8 true", "adapt-first"):
        assert word in answer.out


def test_default_stream_has_the_order_of_the_story(capsys):
    options = build_parser().parse_args(["demo"])
    contest = hold_contest(options.learner, options.rounds, options.seed)
    fix, learner, oracle = (100 * errors.mean() for errors in contest.errors.values())
    assert list(contest.errors) == ["FIX", "AUTO", "oracle"]
    assert oracle <= learner < fix
    assert 8 < fix < 20
    assert fix - learner > 0.4 * (fix - oracle)


def test_another_learner_and_the_same_numbers_again(capsys):
    first, again = (hold_contest("rogd", rounds=20, seed=3) for _ in range(2))
    assert np.array_equal(first.estimate, again.estimate)
    assert np.array_equal(first.errors["ROGD"], again.errors["ROGD"])
    assert first.truth.shape == (20, 10)


def test_without_matplotlib_the_extra_is_named(call, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    answer = call("demo", "--rounds", 10, "--out", tmp_path / "a.png")
    assert answer.status == 2
    assert "'.[plot]'" in answer.err
    assert answer.err.count("\n") == 1


def test_a_plain_terminal_gets_plain_characters(environment, tmp_path):
    words = ["demo", "--learner", "fth", "--rounds", "10", "--out", "a.png"]
    done = subprocess.run(
        [sys.executable, "-m", "priorshift", *words],
        capture_output=True,
        env={**environment, "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        check=True,
    )
    assert b"digit 8 true" in done.stdout
    assert b"?" not in done.stdout
