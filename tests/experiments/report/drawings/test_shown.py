"""The drawings show the numbers they were given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import drawing_examples
from priorshift.experiments.report.drawings.save import svg_text
from priorshift.experiments.report.drawings.steps import (
    FinalWeightsData,
    RunningData,
    draw_shl,
    draw_skyline,
    draw_weights,
)
from priorshift.experiments.report.drawings.streams import draw_peri, paper_shifts
from priorshift.experiments.report.drawings.style import line_style, ordered_styles, spread
from priorshift.experiments.report.drawings.theory import (
    RegretPanel,
    RegretSeries,
    ShrinkingData,
    draw_lemmas,
    draw_regret,
)
from priorshift.simulation.shifts import shift_by_name

FINAL = FinalWeightsData([0.1, 0.2], [1, 2], [[0.9, 0.25], [0.1, 0.75]])


def line(axes, label):
    return next(item for item in axes.get_lines() if item.get_label() == label)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_layers_of_weights_lie_on_each_other():
    weights = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    figure = draw_weights([1, 2, 3], {"Lin": weights}, rounds=10)
    layers = figure.axes[0].patches
    # Drawn from the top: the edge of layer i is the sum of the weights up to i.
    edges = [layer.get_xy()[2:4, 1] for layer in layers]
    np.testing.assert_allclose(edges, [[1.0, 1.0], [0.5, 0.9], [0.2, 0.6]])


def test_a_thick_layer_is_named_and_a_thin_one_not():
    weights = np.tile([0.9, 0.1], (50, 1))
    axes = draw_weights([0.5, 0.25], {"Lin": weights}, 100).axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.5"]
    assert axes.texts[0].get_position()[1] == pytest.approx(0.45)


def test_peri_marks_the_multiples_of_the_period():
    axes = draw_peri(**drawing_examples.peri()).axes[0]
    upright = [
        item.get_xdata()[0]
        for item in axes.get_lines()
        if len(item.get_xdata()) == 2 and item.get_xdata()[0] == item.get_xdata()[1]
    ]
    assert upright == [40, 80]
    assert [text.get_text() for text in axes.texts] == ["L", "2L"]
    assert line(axes, "ATLAS: 6.03 %").get_ydata()[0] == 6.03


def test_running_errors_are_means_of_all_stretches_so_far():
    running = RunningData({"FIX": [4.0, 2.0, 6.0]}, rounds=30)
    axes = draw_shl(running, FINAL).axes[0]
    np.testing.assert_allclose(axes.get_lines()[0].get_xydata(), [[10, 4], [20, 3], [30, 4]])
    assert axes.texts[0].get_text() == "FIX 4.00"


def test_the_heat_map_has_small_steps_at_the_bottom():
    axes = draw_shl(RunningData({"FIX": [4.0]}, rounds=1), FINAL).axes[1]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places["0.90"] == (0.5, 0.5)
    assert places["0.75"] == (1.5, 1.5)
    assert not axes.yaxis_inverted()


def test_the_skyline_learner_is_dashed_and_black():
    axes = draw_skyline(**drawing_examples.skyline()).axes[0]
    learner = axes.containers[-1].lines[0]
    np.testing.assert_allclose(learner.get_ydata(), drawing_examples.skyline()["learner"])
    assert to_rgb(learner.get_color()) == (0, 0, 0)
    assert learner.get_linestyle() == "--"


def test_the_sketches_of_the_shifts_are_the_shifts():
    data = paper_shifts(rounds=120, seed=3)
    for name, alpha in zip(("lin", "squ", "sin", "ber"), data.values(), strict=True):
        expected = shift_by_name(name).weights(120, np.random.default_rng(3))
        np.testing.assert_array_equal(alpha, expected)


def regret_axes(series, rate=None):
    panel = RegretPanel("a", (series,), rate)
    return draw_regret((panel,)).axes[0]


def test_regret_of_a_power_law_lies_on_its_line():
    rounds = np.array([10.0, 100.0, 1000.0])
    axes = regret_axes(RegretSeries("UOGD", rounds, 3 * rounds**0.6, exponent=0.6), 0.75)
    fitted = next(item for item in axes.get_lines() if item.get_linewidth() == 1.3)
    np.testing.assert_allclose(fitted.get_ydata(), 3 * rounds**0.6)
    rate = line(axes, "theorem: slope 0.75")
    slopes = np.diff(np.log(rate.get_ydata())) / np.diff(np.log(rounds))
    np.testing.assert_allclose(slopes, 0.75)
    assert (rate.get_ydata() < 3 * rounds**0.6).all()
    assert legend(axes) == ["UOGD: slope 0.60", "theorem: slope 0.75"]


def test_regret_below_zero_is_left_out_and_counted():
    series = RegretSeries("ATLAS", [10, 100, 1000], [-1.0, 2.0, 4.0], [0.1, 0.1, 0.1])
    axes = regret_axes(series, rate=0.5)
    assert legend(axes)[0] == "ATLAS (1 not above 0)"
    shown = axes.containers[0].lines[0]
    assert shown.get_ydata().tolist() == [2.0, 4.0]


def test_nothing_above_zero_is_still_a_drawing():
    series = RegretSeries("ATLAS", [10, 100], [-1.0, -2.0], exponent=0.1)
    assert legend(regret_axes(series, rate=0.5))[0] == "ATLAS: slope 0.10 (2 not above 0)"


def test_lemma_2_has_the_slope_of_the_lemma():
    sizes = np.array([100.0, 400.0])
    unbiased, _ = drawing_examples.lemmas()
    data = ShrinkingData(sizes, 5 / np.sqrt(sizes))
    axes = draw_lemmas(unbiased, data).axes[1]
    np.testing.assert_allclose(line(axes, "slope -1/2").get_ydata(), [0.5, 0.25])


@pytest.mark.parametrize("points", [1, 2, 3])
def test_short_streams_are_drawn(points):
    svg_text(draw_weights(**drawing_examples.weights(points)))
    svg_text(draw_shl(**drawing_examples.shl(points)))


def test_contenders_differ_without_colour():
    styles = [line_style(name) for name in drawing_examples.LEARNERS]
    assert len({(str(style.dashes), style.marker) for style in styles}) == len(styles)
    assert len({style.color for style in styles}) == len(styles)


def test_ordered_styles_grow_paler():
    grey = [np.dot(to_rgb(style.color), [0.2126, 0.7152, 0.0722]) for style in ordered_styles(8)]
    assert min(np.diff(grey)) > 0.03


def test_spread_against_a_search():
    """The nearest positions that keep the gaps, found by trying all on a grid."""
    wanted, gap = [0.3, 0.5, 0.55], 0.2
    grid = np.linspace(0, 1, 101)
    best = min(
        (
            (a - wanted[0]) ** 2 + (b - wanted[1]) ** 2 + (c - wanted[2]) ** 2,
            (a, b, c),
        )
        for a in grid
        for b in grid[grid >= a + gap - 1e-9]
        for c in grid[grid >= b + gap - 1e-9]
    )[1]
    np.testing.assert_allclose(spread(wanted, gap), best, atol=0.011)


def test_spread_of_too_many_fills_the_panel():
    np.testing.assert_allclose(spread([0.5] * 5, gap=0.4), [0, 0.25, 0.5, 0.75, 1])
