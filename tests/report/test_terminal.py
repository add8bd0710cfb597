"""Pictures made of characters, and progress on a pretended terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest

from priorshift.cli.progress import Progress
from priorshift.errors import InputError
from priorshift.report.terminal import mix_plot, printable, resample, sparkline


def test_sparkline_levels_and_limits():
    assert sparkline([0, 1]) == " █"
    assert sparkline([-1, 5]) == " █"
    assert sparkline([0.5], top=0.5) == "█"
    assert len(sparkline(np.ones(1000), width=60)) == 60


def test_resample_keeps_the_mean_of_equal_parts():
    values = np.random.default_rng(0).random(120)
    assert resample(values, 60).mean() == pytest.approx(values.mean())
    assert resample(values, 500).tolist() == values.tolist()


@pytest.mark.parametrize(
    "bad", [lambda: resample([], 5), lambda: resample([1], 0), lambda: sparkline([1], top=0)]
)
def test_bad_series_are_refused(bad):
    with pytest.raises(InputError):
        bad()


def test_mix_plot_has_two_lines_a_class_of_one_width():
    mixes = np.tile([0.2, 0.8], (100, 1))
    lines = mix_plot(mixes, mixes, ["a", "bee"], width=40).splitlines()
    assert len(lines) == 4
    assert {len(line) for line in lines} == {len("bee true |") + 40 + 1}


def test_printable_falls_back_to_what_the_encoding_has():
    text = mix_plot(np.eye(2), np.eye(2), ["a", "b"]) + " ±"
    assert printable(text, "utf-8") == text
    printable(text, "ascii").encode("ascii")
    printable(text, None).encode("ascii")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_short_job_shows_nothing_until_it_is_done():
    now = [0.0]
    stream = Terminal()
    progress = Progress(["squ atlas"], 100, stream=stream, clock=lambda: now[0])
    for now[0] in (0.0, 0.5, 1.9):
        progress.advance([10])
    assert stream.getvalue() == ""
    progress.finish(0, "done")
    assert stream.getvalue() == "squ atlas: done\n"


def test_a_long_job_is_redrawn_in_place():
    now = [0.0]
    stream = Terminal()
    progress = Progress(["lin fix", "squ atlas"], 100, stream=stream, clock=lambda: now[0])
    progress.advance([100, 0])
    now[0] = 10.0
    progress.advance([100, 25])
    assert stream.getvalue() == "\rsqu atlas:  25 %, 2 rounds/s, 0:30 left"
    progress.advance([100, 26])  # too soon to draw again
    assert stream.getvalue().count("\r") == 1
    progress.finish(1, "done")
    assert stream.getvalue().endswith("\rsqu atlas: done\n")


def test_quiet_is_quiet():
    stream = Terminal()
    progress = Progress(["a"], 10, quiet=True, stream=stream, clock=lambda: 1e9)
    progress.advance([5])
    progress.finish(0, "done")
    assert stream.getvalue() == ""
