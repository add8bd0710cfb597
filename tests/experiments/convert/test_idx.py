"""IDX files that are made here, whole and broken."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from priorshift.errors import FileFormatError
from priorshift.experiments.convert.idx import idx_arrays, read_idx

RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 256, (30, 4, 5), dtype=np.uint8)
TEST = RNG.integers(0, 256, (12, 4, 5), dtype=np.uint8)
LABELS = {"train": np.arange(30, dtype=np.uint8) % 3, "t10k": np.arange(12, dtype=np.uint8) % 3}


def packed(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape)
    return head + array.tobytes()


def fill(folder: Path, style: str = "-idx{}-ubyte", zipped: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, images in (("train", TRAIN), ("t10k", TEST)):
        for what, array in (("images", images), ("labels", LABELS[part])):
            content = packed(array)
            name = f"{part}-{what}" + style.format(array.ndim)
            if zipped:
                name, content = f"{name}.gz", gzip.compress(content)
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("style", ["-idx{}-ubyte", ".idx{}-ubyte"])
@pytest.mark.parametrize("below", ["", "package/data"])
def test_a_folder(tmp_path: Path, style: str, zipped: bool, below: str) -> None:
    fill(tmp_path / below, style, zipped)
    found = idx_arrays(tmp_path)
    np.testing.assert_array_equal(found["X"], np.concatenate([TRAIN, TEST]).reshape(42, -1))
    np.testing.assert_array_equal(found["y"], np.concatenate([LABELS["train"], LABELS["t10k"]]))
    assert found["split"].tolist() == [0] * 30 + [1] * 12
    assert found["image"].tolist() == [4, 5, 1]


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = packed(LABELS["t10k"])
    file = tmp_path / "labels"
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="labels: is"):
            read_idx(file, axes=1)
    file.write_bytes(whole + b"\0")
    with pytest.raises(FileFormatError, match="too long"):
        read_idx(file, axes=1)
    zipped = gzip.compress(whole)
    for length in range(2, len(zipped)):
        file.write_bytes(zipped[:length])
        with pytest.raises(FileFormatError):
            read_idx(file, axes=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "begins with nothing"),
        (b"<html>not found</html>", "no IDX file"),
        (packed(TEST), "with 3 axes"),
        (b"\0\0\x0d\x01" + struct.pack(">I", 1) + b"\0\0\0\0", "type 0x0d"),
        (b"\0\0\x08\x01\xff\xff\xff\xff" + b"\0" * 9, "is cut"),
    ],
)
def test_what_is_no_label_file(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(FileFormatError, match=says):
        read_idx(tmp_path / "it", axes=1)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="has no train-images-idx3-ubyte"):
        idx_arrays(tmp_path)
    fill(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(packed(LABELS["t10k"]))
    with pytest.raises(FileFormatError, match=r"30 images, .* 12 labels"):
        idx_arrays(tmp_path)
    fill(tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(packed(TEST[:, :, :3]))
    with pytest.raises(FileFormatError, match="pixels large"):
        idx_arrays(tmp_path)
    labels.unlink()
    labels.mkdir()
    with pytest.raises(FileFormatError, match="cannot be read"):
        idx_arrays(tmp_path)
