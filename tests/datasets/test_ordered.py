"""Real orders, on small files made here and on the real ones where they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.datasets import SHL_CLASSES, arxiv_order, shl_order
from priorshift.datasets.files import named_file
from priorshift.errors import FileFormatError, InputError

RNG = np.random.default_rng(0)
NAMES = np.array(["Still", "Walk", "Run", "Bike", "Car", "Bus", "Train", "Subway"])
Y = np.repeat(np.arange(8), 10)
FRAMES = np.column_stack([Y, RNG.normal(size=80)])
SEQUENCE = np.repeat(RNG.integers(0, 8, 50), 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    return tmp_path


def save_shl(folder: Path, **changes: Any) -> None:
    arrays = {"X": FRAMES, "y": Y, "label_sequence": SEQUENCE, "class_names": NAMES, **changes}
    kept = {key: value for key, value in arrays.items() if value is not None}
    np.savez(folder / "shl2019.npz", **kept)


def test_shl_labels_keep_their_order_and_rows_their_class(folder: Path) -> None:
    save_shl(folder)
    data = shl_order()
    np.testing.assert_array_equal(data.y, SEQUENCE)
    assert data.X is None
    centres = [data.dataset.X0[data.dataset.y0 == k, 0].mean() for k in range(8)]
    for X, y in data.stream(10, seed=1):
        np.testing.assert_allclose(X[:, 0], np.array(centres)[y], atol=1e-6)


def test_shl_with_the_paper_s_classes_alone(folder: Path) -> None:
    save_shl(folder)
    data = shl_order(SHL_CLASSES)
    assert (data.dataset.n_classes, data.dataset.population.n_classes) == (6, 6)
    assert NAMES[data.dataset.classes].tolist() == list(SHL_CLASSES)
    np.testing.assert_array_equal(data.y, SEQUENCE[SEQUENCE < 6])
    # A hole in the middle: classes are numbered anew.
    some = shl_order(["Car", "Walk", "Subway"])
    assert some.dataset.classes.tolist() == [1, 4, 7]
    np.testing.assert_array_equal(
        some.dataset.classes[some.y], SEQUENCE[np.isin(SEQUENCE, [1, 4, 7])]
    )
    next(iter(some.stream(5)))


@pytest.mark.parametrize("classes", [["Still"], ["Still", "Tram"], []])
def test_shl_refuses_strange_classes(folder: Path, classes: list[str]) -> None:
    save_shl(folder)
    with pytest.raises(InputError, match="two or more of Still, Walk"):
        shl_order(classes)


def test_shl_refuses_files_without_an_order(folder: Path) -> None:
    with pytest.raises(FileFormatError, match="Sussex-Huawei"):
        shl_order()
    save_shl(folder, label_sequence=None)
    with pytest.raises(FileFormatError, match="lacks label_sequence"):
        shl_order()
    save_shl(folder, label_sequence=SEQUENCE + 1)
    with pytest.raises(FileFormatError, match="class 8, of which there is no frame"):
        shl_order()
    save_shl(folder, class_names=None)
    assert len(shl_order().y) == 200
    with pytest.raises(FileFormatError, match="lacks class_names"):
        shl_order(SHL_CLASSES)


def test_arxiv_goes_forward_in_time(folder: Path) -> None:
    time = RNG.permutation(100)
    X = np.column_stack([time, RNG.normal(size=(100, 2)) * 5]).astype(np.float16)
    np.savez(folder / "arxiv2025_stream.npz", X=X, y=time % 3, time=time)
    data = arxiv_order()
    assert (len(data.dataset.X0), len(data.y)) == (30, 70)
    assert (np.diff(data.dataset.X0[:, 0]) > 0).all()
    assert data.X is not None
    assert data.X[0, 0] > data.dataset.X0[:, 0].max()
    assert (np.diff(data.X[:, 0]) > 0).all()
    np.testing.assert_array_equal(data.y, np.arange(30, 100) % 3)
    # Only the past gives the scale.
    np.testing.assert_allclose(data.dataset.X0.std(axis=0), 1, rtol=1e-5)
    early = X[time < 30].astype(float)
    late = X[np.argsort(time)][30:].astype(float)
    np.testing.assert_allclose(data.X, (late - early.mean(0)) / early.std(0), atol=1e-4)
    rows = np.concatenate([part for part, _ in data.stream(7)])
    np.testing.assert_array_equal(rows, data.X)
    assert len(arxiv_order(share=0.5).y) == 50


def test_arxiv_refusals(folder: Path) -> None:
    with pytest.raises(FileFormatError, match="arXiv titles"):
        arxiv_order()
    np.savez(folder / "arxiv2025_stream.npz", X=FRAMES, y=Y)
    with pytest.raises(FileFormatError, match="lacks time"):
        arxiv_order()
    np.savez(folder / "arxiv2025_stream.npz", X=FRAMES[:2], y=Y[:2], time=np.arange(2))
    with pytest.raises(InputError, match="leaves one side empty"):
        arxiv_order()


@pytest.mark.skipif(
    not (os.environ.get("PRIORSHIFT_DATA") and named_file("shl2019").exists()),
    reason="PRIORSHIFT_DATA does not name a folder with the real data",
)
def test_the_real_order_and_how_thinning_changes_it() -> None:
    data = shl_order()
    assert len(data.y) == 195_491
    speeds = [
        stream.variation / len(stream)
        for stream in (data.stream(20, every=every, near=50) for every in (1, 4, 16))
    ]
    assert speeds[0] < speeds[1] < speeds[2]
