"""``priorshift data``: listing, converting, refusing in one line."""

from __future__ import annotations

import os
import struct
import sys
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


def test_a_network(call, folder: Path, tmp_path: Path) -> None:
    """The file of a network is data: features by default, probabilities where asked for."""
    pytest.importorskip("torch")
    path = tmp_path / "digits_deep.npz"
    words = ("data", "network", "--data", "digits", "--hidden", 8, "--epochs", 8, "--train", 500)
    answer = call(*words, "-o", path)
    assert answer.status == 0
    start = f"{path}: 698 offline rows, 599 in the pool, 8 features; the network is wrong on "
    assert answer.out.startswith(start)
    assert "of 32 steps" in answer.err  # 8 passes of 4 steps: progress, as it takes seconds
    first = path.read_bytes()
    assert "--force" in call(*words, "-o", path).err
    assert call(*words, "-o", path, "--force", "--quiet").err == ""
    assert path.read_bytes() == first
    short = ("--learner", "fix,uogd,atlas", "--shift", "lin", "--rounds", 200, "--batch-size", 10)
    run = call("run", "--data", path, *short, "--seeds", 1, "--json", "-", "--quiet")
    errors = {record["learner"]: record["error_mean"] for record in run.records}
    assert list(errors) == ["fix", "uogd", "atlas"]
    assert errors["uogd"] < errors["fix"] < 20
    box = tmp_path / "box.npz"
    assert "probabilities;" in call(*words, "-o", box, "--probabilities", "--quiet").out
    with np.load(box) as black, np.load(path) as whole:
        assert sorted(black) == ["P0", "P1", "y0", "y1"]
        np.testing.assert_array_equal(black["P1"], whole["P1"])
    assert load_dataset(box).probabilities


def test_a_network_without_torch(call, folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    answer = call("data", "network", "--data", "digits", "-o", tmp_path / "some.npz")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "pip install '.[deep]' in the folder" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_list_names_every_folder(call, folder: Path, table: Path, monkeypatch) -> None:
    call("data", "convert", "pets", "--from", table, "--label", "kind")
    monkeypatch.setenv("PRIORSHIFT_DATA", os.pathsep.join([str(folder) + "2", str(folder)]))
    answer = call("data", "list")
    assert f"data folder: {folder}2 (not there yet)\ndata folder: {folder}\n" in answer.out
    assert "pets" in answer.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "ACTION"),
        (["convert"], "NAME"),
        (["convert", "pets"], "--from"),
        (["convert", "pets", "--from", "{table}"], "needs --label"),
        (["convert", "pets", "--from", "{table}", "--label", "sort"], "no column 'sort'"),
        (
            ["convert", "pets", "--from", "{table}", "--label", "heavy"],
            "'kind': holds 'cat', not a number",
        ),
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
        (["network", "--data", "digits"], "-o"),
        (["network", "--data", "digits", "-o", "{folder}/some"], "ends in .npz"),
        (["network", "--data", "digits", "-o", "{folder}/no/some.npz"], "there is no folder"),
        (["network", "--data", "nothing", "-o", "{folder}/some.npz"], "no data set 'nothing'"),
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
