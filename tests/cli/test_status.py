"""The line about a long run."""

from __future__ import annotations

import io

from priorshift.experiments.reproduce.runner import Standing
from priorshift.experiments.running.status import Status


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def standing(done: int) -> Standing:
    return Standing(done=done, ready=2, total=10, left=65.0, now="squ atlas")


def test_elsewhere_than_on_a_terminal_lines_come_seldom():
    times = iter([0.0, 1.0, 25.0])
    stream = io.StringIO()
    status = Status(stream=stream, clock=lambda: next(times))
    for done in (1, 2, 3):
        status.show(standing(done))
    lines = stream.getvalue().splitlines()
    assert lines == [
        "3 of 10 runs (2 found ready), about 1:05 left: squ atlas",
        "5 of 10 runs (2 found ready), about 1:05 left: squ atlas",
    ]


def test_on_a_terminal_one_line_is_redrawn_and_taken_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    times = iter([0.0, 1.0])
    stream = Terminal()
    status = Status(stream=stream, clock=lambda: next(times))
    status.show(standing(1))
    status.show(standing(2))
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().count("\r") == 2
    status.clear()
    assert stream.getvalue().endswith(" \r")


def test_quiet_is_quiet():
    stream = io.StringIO()
    Status(quiet=True, stream=stream).show(standing(1))
    assert stream.getvalue() == ""
