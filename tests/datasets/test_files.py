"""A user's own .npz: what works, and every way in which it can be wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.datasets import file_dataset, load_dataset
from priorshift.errors import FileFormatError, InputError, InputTypeError

X0 = np.random.default_rng(0).normal(size=(6, 2))
X1 = np.random.default_rng(1).normal(size=(4, 2))
Y0 = np.array([2, 5, 2, 5, 5, 2])
Y1 = np.array([5, 5, 2, 5])
P0 = np.array([[0.25, 0.75], [1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1], [0.125, 0.875]])
GOOD: dict[str, Any] = {"X0": X0, "y0": Y0, "X1": X1, "y1": Y1}
GOOD_P: dict[str, Any] = {"P0": P0, "y0": Y0, "P1": P0[:4], "y1": Y1}


def saved(folder: Path, arrays: dict[str, Any], name: str = "mine.npz") -> Path:
    path = folder / name
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path


def test_features_and_labels_come_back(tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD)
    for dataset in (load_dataset(path), load_dataset(str(path)), file_dataset(path)):
        np.testing.assert_array_equal(dataset.X0, X0)
        np.testing.assert_array_equal(dataset.X1, X1)
        np.testing.assert_array_equal(dataset.classes, [2, 5])
        np.testing.assert_array_equal(dataset.classes[dataset.y0], Y0)
        np.testing.assert_array_equal(dataset.classes[dataset.y1], Y1)
        assert dataset.name == str(path)
        assert (dataset.focus, dataset.probabilities) == (0, False)
        drawn = dataset.population.draw(np.array([0, 0]), np.random.default_rng(0))
        np.testing.assert_array_equal(drawn, X1[[2, 2]])


def test_probabilities_come_back(tmp_path: Path) -> None:
    dataset = load_dataset(saved(tmp_path, GOOD_P))
    assert dataset.probabilities
    np.testing.assert_array_equal(dataset.X0, P0)
    np.testing.assert_array_equal(dataset.X1, P0[:4])


def test_half_precision_probabilities_are_brought_to_sum_1(tmp_path: Path) -> None:
    table = np.random.default_rng(0).dirichlet(np.ones(2), size=6).astype(np.float16)
    dataset = load_dataset(saved(tmp_path, {**GOOD_P, "P0": table}))
    np.testing.assert_allclose(dataset.X0.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(dataset.X0, table, atol=1e-3)


def test_features_win_when_both_are_there(tmp_path: Path) -> None:
    assert not load_dataset(saved(tmp_path, {**GOOD_P, **GOOD})).probabilities


def test_text_float_and_boolean_labels_work(tmp_path: Path) -> None:
    for label in (np.array(["cat", "dog"]), np.array([0.0, 1.0]), np.array([False, True])):
        arrays = {**GOOD, "y0": label[(Y0 == 5).astype(int)], "y1": label[(Y1 == 5).astype(int)]}
        dataset = load_dataset(saved(tmp_path, arrays))
        np.testing.assert_array_equal(dataset.y0, (Y0 == 5).astype(int))
        np.testing.assert_array_equal(dataset.y1, (Y1 == 5).astype(int))


def test_small_types_become_float32_and_large_ones_float64(tmp_path: Path) -> None:
    for given, kept in (("u1", "f4"), ("f2", "f4"), ("f4", "f4"), ("i8", "f8"), ("f8", "f8")):
        dataset = load_dataset(saved(tmp_path, {**GOOD, "X0": np.abs(X0).astype(given)}))
        assert dataset.X0.dtype == kept


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"X0": np.where(np.arange(6)[:, np.newaxis] == 3, np.nan, X0)}, r"X0 has NaN in row 3, "),
        ({"X1": np.full_like(X1, np.inf)}, r"X1 has infinity \(inf\) in row 0"),
        ({"X0": X0[:5]}, "y0 has 6 labels for 5 rows"),
        ({"y1": Y1[:3]}, "y1 has 3 labels for 4 rows"),
        ({"X1": X1[:, :1]}, "X0 has 2 columns, X1 has 1"),
        ({"y0": Y0[:, np.newaxis]}, r"y0 has shape \(6, 1\); labels are 1-d"),
        ({"y1": np.array(5)}, r"y1 has shape \(\)"),
        ({"X0": X0[:, 0]}, r"X0 has shape \(6,\)"),
        ({"X0": X0[:0], "y0": Y0[:0]}, r"X0 has shape \(0, 2\)"),
        ({"X1": np.empty((4, 0))}, r"X1 has shape \(4, 0\)"),
        ({"X0": X0 + 1j}, "X0 is of type complex128"),
        ({"X0": X0.astype(str)}, "X0 is of type <U"),
        ({"y0": Y0 + 0.5}, "y0 .* not whole numbers"),
        ({"y0": np.where(Y0 == 2, np.nan, Y0)}, "y0 .* not whole numbers"),
        ({"y0": Y0.astype(complex)}, "y0 .* not whole numbers"),
        ({"y0": np.where(Y0 == 2, np.uint64(2**64 - 1), np.uint64(5))}, "y0 .* not whole numbers"),
        ({"y0": Y0.astype(str)}, "label both the same way"),
        ({"y1": np.array([5, 2, 7, 5])}, "class 7 of y1 never occurs in y0"),
        ({"y1": np.array([5, 5, 5, 5])}, "class 2 of y0 never occurs in y1"),
        ({"y0": np.full(6, 2), "y1": np.full(4, 2)}, "single class"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    path = saved(tmp_path, {**GOOD, **changes})
    with pytest.raises(InputError, match=says) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"P0": P0 * 1.1}, "P0 row 0 .* sum 1.1"),
        ({"P1": np.array([[1.5, -0.5]] * 4)}, "P1 row 0 .* smallest entry -0.5"),
        ({"P0": np.eye(3)[[0, 1, 2] * 2], "P1": np.eye(3)[[0, 1, 2, 0]]}, "P0 has 3 columns but"),
        ({"P0": np.full_like(P0, np.nan)}, "P0 has NaN"),
    ],
)
def test_rows_that_are_no_probabilities_are_refused(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        load_dataset(saved(tmp_path, {**GOOD_P, **changes}))


@pytest.mark.parametrize("key", ["X0", "y0", "X1", "y1"])
def test_a_missing_array_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(FileFormatError, match=f"lacks {key}; it needs X0, y0, X1, y1"):
        load_dataset(saved(tmp_path, {**GOOD, key: None}))


def test_missing_probabilities_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="lacks P1;"):
        load_dataset(saved(tmp_path, {**GOOD_P, "P1": None}))
    with pytest.raises(FileFormatError, match="lacks X0, y0, X1, y1;"):
        load_dataset(saved(tmp_path, {"other": X0}))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="no such file"):
        load_dataset(tmp_path / "none.npz")
    with pytest.raises(FileFormatError, match="no such file"):
        load_dataset(tmp_path / ("a" * 5000 + ".npz"))
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(FileFormatError, match="is not a file"):
        load_dataset(tmp_path / "folder.npz")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "exploded",))

    arrays = {**GOOD, "y0": np.array([Bomb()] * 6, dtype=object)}
    with pytest.raises(FileFormatError, match="y0 holds pickled Python objects"):
        load_dataset(saved(tmp_path, arrays))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"hello, world", b"\x80\x04N.", b"\x93NUMPY"])
def test_what_is_no_npz_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "strange.npz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"no \.npz archive or is damaged"):
        load_dataset(path)


def test_a_bare_array_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "bare.npz").open("wb") as file:
        np.save(file, X0)
    with pytest.raises(FileFormatError, match="one bare array"):
        load_dataset(tmp_path / "bare.npz")


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zip.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in GOOD:
            archive.writestr(f"{name}.npy", b"not an array")
    with pytest.raises(FileFormatError, match=r"X0 is not a NumPy array|X0 cannot be read"):
        load_dataset(path)


@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed])
def test_a_cut_file_is_refused_wherever_it_is_cut(tmp_path: Path, writer: Any) -> None:
    path = tmp_path / "whole.npz"
    writer(path, **GOOD)
    content = path.read_bytes()
    cut = tmp_path / "cut.npz"
    for length in range(0, len(content), 37):
        cut.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            load_dataset(cut)


def test_an_altered_file_is_refused_or_read_but_never_crashes(tmp_path: Path) -> None:
    path = tmp_path / "whole.npz"
    np.savez_compressed(path, **GOOD)
    content = path.read_bytes()
    altered = tmp_path / "altered.npz"
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(0, len(content), size=150):
        changed = bytearray(content)
        changed[position] ^= int(rng.integers(1, 256))
        altered.write_bytes(changed)
        try:
            load_dataset(altered)
        except (FileFormatError, InputError):
            refused += 1
    assert refused > 75


def test_a_thing_that_is_no_path_is_a_type_error() -> None:
    with pytest.raises(InputTypeError, match="not int"):
        load_dataset(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x.csv", "folder/x.csv.gz", "x.parquet"])
def test_a_table_is_told_what_to_do(name):
    with pytest.raises(InputError, match=r"is a table.*priorshift data convert x --from .*--label"):
        load_dataset(name)
