"""Progress, on a pretended terminal."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable

import pytest

from priorshift.experiments.running import progress as module
from priorshift.experiments.running.progress import Meter, Progress, can_redraw, duration


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        """What a reader sees: the codes are acted upon."""
        lines, row = [""], 0
        for piece in re.findall(r"\x1b\[\d*[AJ]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if piece.endswith("A") and piece.startswith("\x1b"):
                row -= int(piece[2:-1])
                assert row >= 0, "above the top"
            elif piece == "\x1b[J":
                lines[row:] = [""]
            elif piece == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif piece != "\r":
                lines[row] += piece
        return [line for line in lines if line]


@pytest.fixture(autouse=True)
def a_terminal_with_a_name(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def meters(*pairs: Iterable[int]) -> list[Meter]:
    return [Meter(*pair) for pair in pairs]


def test_a_short_run_shows_nothing_until_a_job_is_done():
    clock, stream = Clock(), Terminal()
    progress = Progress(["squ atlas"], 100, stream=stream, clock=clock)
    for clock.now in (0.0, 0.5, 1.9):
        progress.advance(meters((10, 1)))
    assert stream.getvalue() == ""
    progress.finish(0, "done")
    assert stream.getvalue() == "squ atlas: done\n"


def test_each_running_job_has_a_line_that_is_redrawn_in_place():
    clock, stream = Clock(), Terminal()
    progress = Progress(["lin fix", "squ fth", "squ atlas"], 100, stream=stream, clock=clock)
    progress.advance(meters((0, 1), (0, 1), (0, 0)))
    clock.now = 10.0
    progress.advance(meters((25, 1), (50, 1), (0, 0)))
    first = [
        "lin fix:  25 %, 2 rounds/s, 0:30 left",
        "squ fth:  50 %, 5 rounds/s, 0:10 left",
        "0 of 3 jobs done,  25 %",
    ]
    assert stream.screen == first
    before = stream.getvalue()
    progress.advance(meters((26, 1), (50, 1), (0, 0)))  # too soon to draw again
    assert stream.getvalue() == before
    progress.finish(1, "done")
    assert stream.screen == ["squ fth: done"]
    clock.now = 20.0
    progress.advance(meters((50, 1), (100, 1), (0, 1)))
    assert stream.screen == [
        "squ fth: done",
        "lin fix:  50 %, 2 rounds/s, 0:20 left",
        "squ atlas:   0 %",
        "1 of 3 jobs done,  50 %",
    ]
    progress.clear()
    assert stream.screen == ["squ fth: done"]


def test_what_was_ready_counts_as_done_but_not_as_speed():
    clock, stream = Clock(), Terminal()
    progress = Progress(["squ atlas"], 100, ready=[50], stream=stream, clock=clock)
    progress.advance(meters((0, 1)))
    clock.now = 10.0
    progress.advance(meters((25, 1)))
    assert stream.screen == ["squ atlas:  75 %, 2 rounds/s, 0:10 left"]


def test_a_hundred_percent_is_not_said_too_early():
    clock, stream = Clock(), Terminal()
    progress = Progress(["a"], 1000, stream=stream, clock=clock)
    progress.advance(meters((0, 1)))
    clock.now = 10.0
    progress.advance(meters((999, 1)))
    assert " 99 %" in stream.screen[0]


def test_a_small_terminal_is_never_overrun(monkeypatch):
    monkeypatch.setattr(module, "terminal_size", lambda stream: (20, 4))
    clock, stream = Clock(), Terminal()
    progress = Progress([f"job {i}" for i in range(9)], 100, stream=stream, clock=clock)
    for clock.now in (0.0, 10.0, 20.0):
        progress.advance(meters(*[(int(clock.now), 1)] * 9))
    assert len(stream.screen) == 3
    assert max(map(len, stream.screen)) < 20
    assert stream.screen[-1].startswith("0 of 9 jobs")


def test_quiet_is_quiet():
    clock, stream = Clock(), Terminal()
    progress = Progress(["a"], 10, quiet=True, stream=stream, clock=clock)
    clock.now = 10.0
    progress.advance(meters((5, 1)))
    progress.finish(0, "done")
    assert stream.getvalue() == ""


def test_a_dumb_terminal_gets_finished_lines_only(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    clock, stream = Clock(), Terminal()
    assert not can_redraw(stream)
    progress = Progress(["a"], 10, stream=stream, clock=clock)
    clock.now = 10.0
    progress.advance(meters((5, 1)))
    progress.finish(0, "done")
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
