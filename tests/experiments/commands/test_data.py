"""``priorshift data``: listing, converting, refusing in one line."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from priorshift.datasets import load_dataset
from priorshift.datasets.files import ORIGINS

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"{x:.3f},{y:.3f},{'cat' if x > 0 else 'dog'}" for x, y in RNG.normal(size=(60, 2))]
    path = tmp_path / "pets.csv"
    path.write_text("\n".join(["long,heavy,kind", *rows]))
    return path


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    for part, rows in (("train", 40), ("t10k", 20)):
        images = RNG.integers(0, 256, (rows, 8, 8), dtype=np.uint8)
        labels = np.arange(rows, dtype=np.uint8) % 4
        for what, array in (("images", images), ("labels", labels)):
            head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            name = f"{part}-{what}-idx{array.ndim}-ubyte"
            (tmp_path / name).write_bytes(head + array.tobytes())
    return tmp_path


def test_list(call, folder: Path, table: Path) -> None:
    answer = call("data", "list")
    assert answer.status == 0
    assert "(not there yet)" in answer.out
    assert all(name in answer.out for name in ("synthetic", "digits", *ORIGINS))
    assert answer.out.count("missing") == len(ORIGINS)
    call("data", "convert", "pets", "--from", table, "--label", "kind")
    np.savez(folder / "mnist.npz", X=np.zeros(250_000))
    lines = call("data", "list").out.splitlines()
    assert next(line for line in lines if line.startswith("mnist ")).split()[1:3] == ["2.0", "MB"]
    assert next(line for line in lines if line.startswith("pets ")).endswith("your own")


def test_a_table(call, folder: Path, table: Path) -> None:
    answer = call("data", "convert", "pets", "--from", table, "--label", "kind")
    assert answer.err == ""
    assert answer.out == f"{folder / 'pets.npz'}: 60 rows x 2 features, 2 classes\n"
    short = ("--learner", "fix", "--shift", "lin", "--rounds", "5", "--seeds", "1", "--quiet")
    run = call("run", "--data", "pets", *short)
    assert run.status == 0


def test_images(call, folder: Path, originals: Path) -> None:
    answer = call("data", "convert", "mnist", "--from", originals)
    assert answer.out.endswith("60 rows x 64 features, 4 classes\n")
    data = load_dataset("mnist")
    assert (len(data.X0), len(data.X1)) == (40, 20)
    assert data.X0.max() <= 1


def test_patch_features_of_images(call, folder: Path, originals: Path) -> None:
    answer = call("data", "convert", "mine", "--from", originals, "--features", "patches")
    assert answer.out.endswith("60 rows x 40 features, 4 classes\n")  # 40 rows to fit on
    data = load_dataset("mine")
    assert (len(data.X0), len(data.X1)) == (40, 20)


def test_force(call, folder: Path, table: Path) -> None:
    words = ("data", "convert", "pets", "--from", table, "--label", "kind")
    assert call(*words).status == 0
    assert "--force" in call(*words).err
    assert call(*words, "--force").status == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "ACTION"),
        (["convert"], "NAME"),
        (["convert", "pets"], "--from"),
        (["convert", "pets", "--from", "{table}"], "needs --label"),
        (["convert", "pets", "--from", "{table}", "--label", "sort"], "no column 'sort'"),
        (["convert", "pets", "--from", "{table}", "--label", "heavy"], "'kind': holds text"),
        (["convert", "a/b", "--from", "{table}", "--label", "kind"], "no name of a data set"),
        (["convert", "digits", "--from", "{table}", "--label", "kind"], "built in"),
        (["convert", "pets", "--from", "{folder}"], "has no train-images"),
        (["convert", "pets", "--from", "{folder}", "--label", "kind"], "--label is for tables"),
        (["convert", "pets", "--from", "{folder}", "--no-header"], "--no-header is for tables"),
        (
            ["convert", "p", "--from", "{table}", "--label", "kind", "--features", "patches"],
            "--image",
        ),
        (["convert", "pets", "--from", "nowhere", "--label", "kind"], "no such file"),
        (["convert", "pets", "--from", "{table}", "--image", "8"], "no shape of an image"),
        (["convert", "pets", "--from", "{table}", "--image", "0x8"], "no shape of an image"),
    ],
)
def test_refusals_are_one_line(call, folder: Path, table: Path, words: list, says: str) -> None:
    empty = table.parent / "empty"
    empty.mkdir()
    filled = [word.format(table=table, folder=empty) for word in words]
    answer = call("data", *filled)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("priorshift: error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err
    assert not folder.exists()
