"""Pictures of a history: what is drawn, and that they look as they did.

``python tests/monitoring/test_plots.py`` draws the references anew: look at them before a commit.
"""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import priorshift
from priorshift import InputError, PriorDisplay, PriorshiftError

mpl.use("Agg")
REFERENCES = Path(__file__).parent / "pictures"
DPI = 30


def history(times=None, regimes=True, classes=("cat", "dog", "emu")):
    """A frame as a classifier would give it: drift, a jump, an alarm."""
    t = np.arange(1, 61)
    first = np.where(t < 30, 0.3 + 0.2 * np.sin(t / 8), 0.7)
    rest = (1 - first) / (len(classes) - 1)
    frame = pd.DataFrame({"round": t, "time": np.nan if times is None else times(t)})
    for k, name in enumerate(classes):
        prior = first if k == 0 else rest
        frame[f"prior_{name}"] = prior
        frame[f"low_{name}"], frame[f"high_{name}"] = prior - 0.05, prior + 0.05
    frame["accuracy"] = 0.9 + 0.05 * first
    frame["accuracy_unadapted"] = 0.93 - 0.1 * np.abs(first - 0.3)
    frame["guard"] = np.where((t > 40) & (t < 48), 1.0, 0.0)
    frame["regime"] = np.where(t < 30, 0, 30) if regimes else -1
    return frame.set_index("round")


PICTURES = {
    "rounds": lambda: PriorDisplay.from_history(history()),
    "dates": lambda: PriorDisplay.from_history(
        history(lambda t: 1.7e9 + 86400.0 * t, regimes=False), classes=["dog"]
    ),
}


# Where the panels are in a picture that is compared, in shares of it: where matplotlib puts them
# depends on the letters around them, which differ from one version to the next.
PANELS = ((0.15, 0.55, 0.8, 0.35), (0.15, 0.3, 0.8, 0.15), (0.15, 0.1, 0.8, 0.1))
# Mean difference of a panel's pixels, of 255: versions 3.8 and 3.11 of matplotlib make none, and
# a line that is missing makes at least 0.6.
LIMIT = 0.5


def drawn(display) -> np.ndarray:
    display.figure_.set_layout_engine("none")
    for panel, place in zip(display.axes_, PANELS, strict=True):
        panel.set_position(place)
    display.figure_.set_dpi(DPI)
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba())[..., :3].astype(float)


def distances(one: np.ndarray, two: np.ndarray) -> list[float]:
    """Of each panel, without its edges, how far two pictures are apart."""
    height, width = one.shape[:2]
    found = []
    for left, bottom, wide, high in PANELS:
        rows = slice(int((1 - bottom - high) * height) + 2, int((1 - bottom) * height) - 2)
        columns = slice(int(left * width) + 3, int((left + wide) * width) - 1)
        found.append(float(np.abs(one - two)[rows, columns].mean()))
    return found


@pytest.fixture(autouse=True)
def plain_style():
    import matplotlib.pyplot as plt

    with plt.style.context("default"):
        yield
    plt.close("all")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(name) -> None:
    from matplotlib.image import imread

    reference = (imread(REFERENCES / f"{name}.png")[..., :3] * 255).round()
    found = drawn(PICTURES[name]())
    assert found.shape == reference.shape
    assert max(distances(found, reference)) < LIMIT


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_lacks_anything_does_not_look_as_it_did(name) -> None:
    whole = PICTURES[name]()
    reference = drawn(whole)
    for panel in whole.axes_:
        for part in (*panel.lines, *panel.collections, *panel.patches):
            part.set_visible(False)
            assert max(distances(drawn(whole), reference)) > LIMIT, part
            part.set_visible(True)


def test_labels_of_days_do_not_overlap() -> None:
    frame = history(lambda t: 1.7e9 + 86400.0 * t).iloc[:8]
    display = PriorDisplay.from_history(frame)
    display.figure_.canvas.draw()
    labels = [label.get_window_extent() for label in display.axes_[-1].get_xticklabels()]
    assert len(labels) >= 4
    assert all(one.x1 < two.x0 for one, two in pairwise(labels))


def test_the_references_are_small() -> None:
    assert all(path.stat().st_size < 8_000 for path in REFERENCES.glob("*.png"))
    assert {path.stem for path in REFERENCES.glob("*.png")} == set(PICTURES)


def test_what_is_drawn_is_the_history() -> None:
    frame = history()
    display = PriorDisplay.from_history(frame)
    prior, worth, guard = display.axes_
    assert [line.get_label() for line in prior.lines] == ["cat", "dog", "emu"]
    assert (prior.lines[0].get_ydata() == frame["prior_cat"]).all()
    assert len(prior.collections) == 3  # a band each
    assert len(prior.patches) == 1  # the second regime
    assert [line.get_label() for line in worth.lines] == ["adapted", "as it is"]
    assert (guard.lines[0].get_ydata() == frame["guard"]).all()
    colours = {line.get_color() for line in prior.lines}
    dashes = {str(line.get_linestyle()) + str(line._dash_pattern) for line in prior.lines}
    assert len(colours) == len(dashes) == 3  # told apart without colour, too


def test_of_many_classes_those_that_moved_most() -> None:
    frame = history(classes=tuple("abcdefgh"))
    frame["prior_h"] = np.linspace(0, 0.5, 60)
    names = [line.get_label() for line in PriorDisplay.from_history(frame).axes_[0].lines]
    assert len(names) == 6
    assert {"a", "h"} <= set(names)


def test_axes_of_ones_own_and_of_a_classifier() -> None:
    import matplotlib.pyplot as plt

    P = np.array([[0.9, 0.1], [0.2, 0.8]] * 20)
    clf = priorshift.LabelShiftClassifier.from_probabilities(P, [0, 1] * 20, "fth")
    clf.adapt(P[:6]).adapt(P[6:9])
    figure, axes = plt.subplots(3)
    assert priorshift.plot(clf, axes=axes).figure_ is figure
    assert clf.plot(classes=[1]).axes_[0].lines[0].get_label() == "1"
    with pytest.raises(InputError, match="3"):
        clf.plot(axes=axes[:2])


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"classes": ["yak"]}, "no class 'yak'"), ({"x": "time"}, "timestamp"), ({"x": "week"}, "x")],
)
def test_what_cannot_be_drawn_is_refused(settings, words) -> None:
    with pytest.raises(InputError, match=words):
        PriorDisplay.from_history(history(), **settings)


def test_an_empty_history_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        PriorDisplay.from_history(history().iloc[:0])


def test_without_matplotlib_it_says_what_to_install(monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(PriorshiftError, match=r"\.\[plot\]"):
        PriorDisplay.from_history(history())


if __name__ == "__main__":
    from PIL import Image

    REFERENCES.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        picture = Image.fromarray(drawn(draw()).astype(np.uint8)).quantize(256)
        picture.save(REFERENCES / f"{name}.png", optimize=True)
