"""What every drawing has to be: whole, small, the same twice, readable without colour."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

import drawing_examples
from priorshift.experiments.report.drawings.save import png_bytes, save_drawing, svg_text
from priorshift.experiments.report.drawings.steps import draw_weights
from priorshift.experiments.report.drawings.streams import draw_peri

LIMIT = 300_000
NAMES = tuple(drawing_examples.DRAW)


@pytest.fixture(scope="module")
def figures():
    return drawing_examples.all_figures()


@pytest.mark.parametrize("name", NAMES)
def test_both_files_are_written_whole_and_small(figures, name, tmp_path):
    paths = save_drawing(figures[name], tmp_path / name)
    assert paths == (tmp_path / f"{name}.svg", tmp_path / f"{name}.png")
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert paths[0].read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert all(path.stat().st_size < LIMIT for path in paths)


@pytest.mark.parametrize("name", NAMES)
def test_no_word_is_cut_off_or_small(figures, name):
    figure = figures[name]
    figure.draw_without_rendering()
    page = figure.bbox
    words = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    # Ticks beyond the axes' limits exist, and are not drawn.
    beyond = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for which in ("major", "minor")
        for tick in (axis.get_major_ticks() if which == "major" else axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
        if not _inside(axis, tick.get_loc())
    }
    assert len(words) > 5
    for word in words:
        if id(word) in beyond:
            continue
        box = word.get_window_extent()
        fits = box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1
        fits = fits and box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1
        assert fits, f"{word.get_text()!r} goes from {box.p0} to {box.p1} on {page.p1}"
        assert word.get_fontsize() >= 10


def _inside(axis, place):
    low, high = sorted(axis.get_view_interval())
    return low <= place <= high


@pytest.mark.parametrize("name", NAMES)
def test_the_same_drawing_is_the_same_file(figures, name):
    again = drawing_examples.DRAW[name]()
    assert svg_text(figures[name]) == svg_text(again)


def test_the_same_drawing_is_the_same_picture(figures):
    pictures = [png_bytes(figures["peri"]) for _ in range(2)]
    assert pictures[0] == pictures[1] == png_bytes(drawing_examples.DRAW["peri"]())


def test_a_restless_picture_is_made_coarser():
    rng = np.random.default_rng(0)
    noise = {name: rng.dirichlet(np.full(12, 0.1), size=200) for name in ("a", "b", "c", "d")}
    figure = draw_weights(np.arange(1, 13), noise, rounds=10)
    assert 50_000 < len(png_bytes(figure)) < LIMIT
    assert len(svg_text(figure)) < LIMIT


def test_the_users_settings_neither_matter_nor_change():
    plain = svg_text(draw_peri(**drawing_examples.peri()))
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "mine", "axes.grid": False}):
        assert svg_text(draw_peri(**drawing_examples.peri())) == plain
        assert matplotlib.rcParams["font.size"] == 30
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"


def test_no_state_is_shared_with_pyplot(figures):
    from matplotlib import pyplot

    assert pyplot.get_fignums() == []


def test_a_failed_drawing_leaves_nothing(figures, tmp_path):
    with pytest.raises(OSError):  # noqa: PT011
        save_drawing(figures["peri"], tmp_path / "none" / "a")
    assert list(tmp_path.iterdir()) == []


def test_short_numbers_move_nothing_that_can_be_seen(figures):
    """The PNG comes from the figure, the SVG is rounded: no point moves by more than 0.005."""
    import io
    import re

    from priorshift.experiments.report.drawings.style import drawing_style

    figure, whole = figures["peri"], io.StringIO()
    with drawing_style():
        figure.savefig(whole, format="svg", metadata={"Date": None})
    for long, short in zip(
        re.findall(r' d="([^"]*)"', whole.getvalue()),
        re.findall(r' d="([^"]*)"', svg_text(figure)),
        strict=True,
    ):
        letters = re.compile("[A-Za-z]")
        assert letters.findall(long) == letters.findall(short)
        a, b = (np.array(letters.sub(" ", d).split(), dtype=float) for d in (long, short))
        np.testing.assert_allclose(a, b, rtol=0, atol=0.005001)
