"""The picture of a stream."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from priorshift.errors import PriorshiftError
from priorshift.experiments.report.drawings.streams import running_mean, save_stream_picture


def save_picture(rounds: int, path) -> None:
    rng = np.random.default_rng(0)
    errors = {name: rng.random(rounds) for name in ("FIX", "ATLAS", "oracle")}
    words = {"share_name": "digit 8", "title": "A stream"}
    save_stream_picture(path, errors, rng.random(rounds), rng.random(rounds), **words)


@pytest.mark.parametrize("rounds", [1, 2, 50])
def test_a_png_of_any_length(tmp_path, rounds):
    path = tmp_path / "a.png"
    save_picture(rounds, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [child.name for child in tmp_path.iterdir()] == ["a.png"]


def test_it_is_an_image_with_lines_in_it(tmp_path):
    from matplotlib import image

    save_picture(50, tmp_path / "a.png")
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape == (960, 1200, 4)
    assert pixels[..., :3].std() > 0.05


def test_no_state_is_shared_with_pyplot(tmp_path):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    save_picture(5, tmp_path / "a.png")
    assert pyplot.get_fignums() == before


def test_a_failed_picture_leaves_nothing(tmp_path):
    with pytest.raises(OSError):  # noqa: PT011
        save_picture(5, tmp_path / "none" / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_missing_matplotlib_is_explained(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PriorshiftError, match=r"\.\[plot\]"):
        save_picture(5, tmp_path / "a.png")


def test_running_mean():
    assert running_mean(np.array([1.0, 0.0])).tolist() == [1.0, 0.5]
