"""Progress, on a pretended terminal."""

from __future__ import annotations

import io
import os
import re
import time

import pytest

from priorshift.experiments.progress import Progress, Running, Status, can_redraw, duration


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        """What a reader sees: the codes are acted upon."""
        lines, row = [""], 0
        for piece in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if piece.startswith("\x1b") and piece.endswith("A"):
                row -= int(piece[2:-1])
                assert row >= 0, "above the top"
            elif piece == "\x1b[2K":
                lines[row] = ""
            elif piece == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif piece != "\r" and not piece.startswith("\x1b"):
                lines[row] += piece
        return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture(autouse=True)
def a_terminal_with_a_name_and_a_size(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def status(*running: Running, done: int = 1) -> Status:
    return Status(done=done, ready=2, total=10, left=65.0, now="squ atlas", running=running)


def test_a_short_run_shows_nothing_but_what_is_said():
    clock, stream = Clock(), Terminal()
    progress = Progress(stream=stream, clock=clock)
    for clock.now in (0.0, 0.5, 1.9):
        progress.show(status)
    assert stream.getvalue() == ""
    progress.say("squ atlas: done")
    assert stream.getvalue() == "squ atlas: done\n"


def test_each_running_task_has_a_line_that_is_redrawn_in_place():
    clock, stream = Clock(), Terminal()
    progress = Progress(stream=stream, clock=clock)
    fix, fth = Running("lin fix", 25, 100, 10.0), Running("squ fth", 50, 100, 10.0)
    clock.now = 10.0
    progress.show(lambda: status(fix, fth))
    first = [
        "lin fix:  25 %, 2 rounds/s, 0:30 left",
        "squ fth:  50 %, 5 rounds/s, 0:10 left",
        "3 of 10 runs (2 found ready), about 1:05 left: squ atlas",
    ]
    assert stream.screen == first
    before = stream.getvalue()
    clock.now = 10.1
    progress.show(lambda: status(fix, fth))  # too soon to draw again
    assert stream.getvalue() == before
    progress.say("squ fth: done")
    assert stream.screen == ["squ fth: done"]
    clock.now = 20.0
    new = Running("squ atlas", 0, 100, 0.0)
    progress.show(lambda: status(Running("lin fix", 50, 100, 20.0), new, done=2))
    assert stream.screen == [
        "squ fth: done",
        "lin fix:  50 %, 2 rounds/s, 0:20 left",
        "squ atlas:   0 %",
        "4 of 10 runs (2 found ready), about 1:05 left: squ atlas",
    ]
    progress.stop()
    assert stream.screen == ["squ fth: done"]


def test_a_hundred_percent_is_not_said_too_early():
    assert " 99 %" in Running("a", 999, 1000, 10.0).line
    assert Running("regret: lemma1", 0, 0, 10.0).line == "regret: lemma1"


def test_a_small_terminal_is_never_overrun(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "4")
    clock, stream = Clock(), Terminal()
    progress = Progress(stream=stream, clock=clock)
    for clock.now in (0.0, 10.0, 20.0):
        progress.show(lambda: status(*[Running(f"job {i}", 10, 100, 5.0) for i in range(9)]))
    assert len(stream.screen) == 3
    assert max(map(len, stream.screen)) <= 20
    assert stream.screen[-1].startswith("3 of 10 runs")


def test_elsewhere_than_on_a_terminal_lines_come_seldom():
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream=stream, clock=clock)
    for clock.now, done in ((0.0, 1), (1.0, 2), (25.0, 3)):
        progress.show(lambda done=done: status(done=done))
    assert stream.getvalue().splitlines() == [
        "3 of 10 runs (2 found ready), about 1:05 left: squ atlas",
        "5 of 10 runs (2 found ready), about 1:05 left: squ atlas",
    ]


def test_lines_can_be_left_out_elsewhere_than_on_a_terminal():
    stream = io.StringIO()
    progress = Progress(stream=stream, log=False)
    progress.show(status)
    progress.say("a: done")
    assert stream.getvalue() == "a: done\n"


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_long_work_without_a_measure_is_named_once(kind, monkeypatch):
    monkeypatch.setattr("priorshift.experiments.progress._WAITED", 0.02)
    stream, quiet = kind(), kind()
    for progress in (Progress(stream=stream, log=False), Progress(stream=quiet, quiet=True)):
        with progress.waiting("fitting"):
            time.sleep(0.1)
            while "fitting" not in stream.getvalue():  # on a busy machine it takes longer
                time.sleep(0.01)
        progress.say("done")
    assert (stream.getvalue(), quiet.getvalue()) == ("fitting\ndone\n", "")
    monkeypatch.setattr("priorshift.experiments.progress._WAITED", 60.0)
    short = kind()
    with pytest.raises(ValueError, match="wrong"), Progress(stream=short).waiting("fitting"):
        raise ValueError("wrong")
    assert short.getvalue() == ""


@pytest.mark.parametrize("command", ["fit", "report"])
def test_commands_that_fit_say_so(command, monkeypatch, tmp_path, capsys):
    from priorshift.cli import main

    hold = tmp_path / "hold.csv"
    hold.write_text("p_0,p_1,y\n" + "0.9,0.1,0\n0.2,0.8,1\n" * 30)
    words = [command, "--hold", str(hold), "--label", "y", "--proba-columns", "p_*"]
    words += ["--learner", "fth", "-o", str(tmp_path / "out")]
    words += ["--stream", str(hold)] if command == "report" else []
    monkeypatch.setattr("priorshift.experiments.progress._WAITED", 0.0)
    assert main(words) == 0
    assert f"priorshift: measuring the model on {hold} ...\n" in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_is_quiet(stream):
    clock = Clock()
    progress = Progress(quiet=True, stream=stream, clock=clock)
    clock.now = 10.0
    progress.show(status)
    progress.say("done")
    progress.stop()
    assert stream.getvalue() == ""


def test_a_dumb_terminal_gets_whole_lines_only(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    clock, stream = Clock(), Terminal()
    assert not can_redraw(stream)
    progress = Progress(stream=stream, clock=clock, log=False)
    clock.now = 10.0
    progress.show(status)
    progress.say("a: done")
    assert stream.getvalue() == "a: done\n"


def test_durations():
    assert [duration(s) for s in (0, 59.6, 3599, 86_400)] == ["0:00", "1:00", "59:59", "24:00:00"]


@pytest.mark.skipif(os.name == "nt", reason="terminals of Unix")
def test_a_real_terminal(environment):
    """Standard error on a terminal, standard output in a pipe: JSON stays alone."""
    import json
    import pty
    import subprocess
    import sys

    leader, follower = pty.openpty()
    words = "run --rounds 40 --batch-size 20 --seeds 1 --learner fix --shift lin --json -"
    done = subprocess.run(
        [sys.executable, "-m", "priorshift", *words.split()],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**environment, "TERM": "xterm"},
        check=True,
    )
    os.close(follower)
    assert json.loads(done.stdout)[0]["learner"] == "fix"
    assert os.read(leader, 1000).startswith(b"lin fix: ")
    os.close(leader)
