"""Pictures made of characters."""

from __future__ import annotations

import numpy as np

from priorshift.experiments.report.terminal import mix_plot, printable, sparkline


def test_sparkline_levels_and_limits():
    assert sparkline([0, 1]) == " █"
    assert sparkline([-1, 5]) == " █"
    assert sparkline([0.5], top=0.5) == "█"
    assert len(sparkline(np.ones(1000), width=60)) == 60


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
