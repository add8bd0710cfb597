"""Tables and arrays to NAME.npz, and back through the loader."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.datasets import load_dataset, timed_order
from priorshift.errors import FileFormatError, InputError, PriorshiftError
from priorshift.experiments.convert.convert import table_arrays, write_named
from priorshift.experiments.convert.tables import read_table

RNG = np.random.default_rng(0)
ROWS = 24
X = RNG.normal(size=(ROWS, 3)).round(4)
KINDS = np.array(["ape", "bee", "cat"])[np.arange(ROWS) % 3]
SIDES = np.where(np.arange(ROWS) % 4 < 2, "train", "test")
DAYS = RNG.permutation(ROWS) + 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def csv_text(separator: str = ",") -> str:
    lines = [["a", "kind", "b", "side", "c", "day"]]
    for row, kind, side, day in zip(X, KINDS, SIDES, DAYS, strict=True):
        lines.append([str(row[0]), kind, str(row[1]), side, str(row[2]), f"2026-01-{day:02d}"])
    return "\n".join(separator.join(line) for line in lines) + "\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
def test_csv(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + csv_text(separator), encoding="utf-8")
    found = read_table(path, ["kind", "side", "day"])
    assert found.names == ["a", "b", "c"]
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.apart["kind"], KINDS)


def test_gzipped_csv_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(csv_text().partition("\n")[2].encode()))
    found = table_arrays(path, "2", split="4", drop=["6"], header=False)
    np.testing.assert_array_equal(found["X"], X.astype(np.float32))
    np.testing.assert_array_equal(found["split"], SIDES == "test")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_table(path, ["2"], header=False)


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "table.csv"
    path.write_text(csv_text())
    frame = polars.read_csv(path, try_parse_dates=True)
    frame.write_parquet(tmp_path / "table.parquet")
    settings: dict[str, Any] = {"split": "side", "time": "day"}
    plain = table_arrays(path, "kind", **settings)
    other = table_arrays(tmp_path / "table.parquet", "kind", **settings)
    assert plain.keys() == other.keys()
    for key, value in plain.items():
        np.testing.assert_array_equal(value, other[key])
        assert value.dtype.kind == other[key].dtype.kind
    with pytest.raises(InputError, match="row 1, column 'side': holds 'train', not a number"):
        table_arrays(tmp_path / "table.parquet", "kind", drop=["day"])
    frame.with_columns(a=polars.lit(None, dtype=polars.Float64)).write_parquet(path)
    path.rename(tmp_path / "gaps.parquet")
    with pytest.raises(InputError, match="row 1, column 'a': has no finite number"):
        table_arrays(tmp_path / "gaps.parquet", "kind", **settings)
    (tmp_path / "gaps.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileFormatError, match="as Parquet"):
        table_arrays(tmp_path / "gaps.parquet", "kind")


def test_parquet_without_polars_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PriorshiftError, match=r"\.\[frames\]"):
        read_table(tmp_path / "table.parquet", ["kind"])


def test_from_csv_to_the_loader(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_text())
    write_named("pets", table_arrays(path, "kind", split="side", drop=["day"]))
    data = load_dataset("pets")
    assert data.classes.tolist() == ["ape", "bee", "cat"]
    offline = X[SIDES == "train"]
    scaled = (offline - offline.mean(0)) / offline.std(0)
    np.testing.assert_allclose(np.sort(data.X0, 0), np.sort(scaled, 0), atol=1e-5)


def test_time_sorts_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_text())
    found = table_arrays(path, "kind", time="day", drop=["side"])
    order = np.argsort(DAYS)
    np.testing.assert_array_equal(found["X"], X[order].astype(np.float32))
    np.testing.assert_array_equal(found["y"], KINDS[order])
    assert found["time"][0] == 1767225600  # 1 January 2026
    assert set(np.diff(found["time"]).tolist()) == {86400}
    write_named("days", found)
    data = timed_order("days", share=0.5)
    np.testing.assert_array_equal(data.dataset.classes[data.y], KINDS[order][12:])


def test_pixels_stay_bytes(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (ROWS, 64))
    lines = [",".join(map(str, [*row, i % 2])) for i, row in enumerate(pixels)]
    path = tmp_path / "pictures.csv"
    path.write_text("\n".join(lines))
    found = table_arrays(path, "65", header=False, image=(8, 8, 1))
    assert found["X"].dtype == found["y"].dtype == np.uint8
    np.testing.assert_array_equal(found["X"], pixels)
    # Counts that nobody called pixels must not be divided by 255 by the loader.
    assert table_arrays(path, "65", header=False)["X"].dtype == np.float32
    with pytest.raises(InputError, match="has 64 feature columns, an image of 8x8x3 has 192"):
        table_arrays(path, "65", header=False, image=(8, 8, 3))
    path.write_text("0.5,1\n256,0\n")
    with pytest.raises(InputError, match="whole numbers from 0 to 255"):
        table_arrays(path, "2", header=False, image=(1, 1, 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,kind\n1,x\nhigh,y\n", "line 3, column 'a': holds 'high', not a number.*--drop"),
        ("a,kind\n1,x\n,y\n", "line 3, column 'a': has no finite number"),
        ("a,kind\nnan,x\n", "line 2, column 'a': has no finite number"),
        ("a,kind\n1,\n", "line 2, column 'kind': is empty"),
        ("a,kind\n1,x,2\n", "line 2: has 3 cells"),
        ("a,sort\n1,x\n", "no column 'kind'.*it has a, sort"),
        ("a,a,kind\n1,2,x\n", "has two columns 'a'"),
        ("kind\nx\n", "no column is left"),
        ("a,kind\n", "has no rows"),
        ("", "is empty"),
        ("a,kind\n1,0.5\n", "not whole numbers or text"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises((InputError, FileFormatError), match=says):
        table_arrays(path, "kind")


def test_bad_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_text().replace("train", "train?", 1))
    with pytest.raises(InputError, match=r"column 'side' says 'train\?'"):
        table_arrays(path, "kind", split="side", drop=["day"])
    with pytest.raises(InputError, match=r"column 'side': holds .* not a time"):
        table_arrays(path, "kind", time="side", drop=["day"])
    with pytest.raises(InputError, match="different columns"):
        table_arrays(path, "kind", split="kind")
    path.write_bytes(b"\xff\xfe,\n")
    with pytest.raises(FileFormatError, match="line 1: is not in UTF-8"):
        table_arrays(path, "kind")
    with pytest.raises(FileFormatError, match="no such file"):
        table_arrays(tmp_path / "none.csv", "kind")


def test_a_file_is_replaced_only_by_force_and_never_half(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = {"X": X, "y": np.arange(ROWS) % 3}
    path = write_named("mine", arrays)
    before = path.read_bytes()
    with pytest.raises(InputError, match="--force"):
        write_named("mine", arrays)
    with pytest.raises(InputError, match="single class"):
        write_named("mine", {"X": X, "y": np.zeros(ROWS, int)}, force=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", full)
        with pytest.raises(FileFormatError, match="No space left"):
            write_named("mine", arrays, force=True)
    assert path.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["mine.npz"]
    write_named("mine", {**arrays, "X": X + 1}, force=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("name", ["digits", "synthetic", "a/b", "", "..", "mine.npz"])
def test_names_that_will_not_do(name: str) -> None:
    with pytest.raises(InputError):
        write_named(name, {"X": X, "y": np.arange(ROWS) % 3})


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path / "file" / "below"))
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_named("mine", {"X": X, "y": np.arange(ROWS) % 3})
