"""IDX files, the format of MNIST and of what is shaped like it."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path

import numpy as np

from priorshift.errors import FileFormatError
from priorshift.typing import AnyArray

_BYTES = 0x08
_GZIP = b"\x1f\x8b"
_USUAL = ("{part}-{what}-idx{axes}-ubyte", "{part}-{what}.idx{axes}-ubyte")


def read_idx(path: str | os.PathLike[str], axes: int) -> AnyArray:
    """Read one IDX file of bytes with so many axes (3 for images, 1 for labels), gzipped or not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels"
    ...     size = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(path, axes=1)
    array([7, 8, 9], dtype=uint8)
    """
    content = _content(Path(path))
    start = 4 + 4 * axes
    if len(content) < start or content[:2] != b"\0\0":
        raise FileFormatError(
            f"{path}: is no IDX file (it begins with {content[:4].hex(' ') or 'nothing'}, not with "
            f"00 00 08 {axes:02x}); fetch it again"
        )
    if content[2] != _BYTES or content[3] != axes:
        raise FileFormatError(
            f"{path}: holds IDX type {content[2]:#04x} with {content[3]} axes; "
            f"bytes (0x08) with {axes} are needed: is it the file that its name says?"
        )
    shape = struct.unpack(f">{axes}I", content[4:start])
    promised, there = math.prod(shape), len(content) - start
    if promised != there:
        what = "is cut" if there < promised else "is too long"
        raise FileFormatError(
            f"{path}: {what}: its head promises {promised} bytes of data, it has {there}; "
            "fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == _GZIP else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(
            f"{path}: is a damaged or cut gzip file ({error}); fetch it again"
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileFormatError(f"{path}: cannot be read ({reason})") from error


def idx_arrays(folder: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Return X, y, split (0 train, 1 test) and image of the files below a folder, train rows first.

    Files have their usual names, as ``train-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``,
    with or without ``.gz``.

    Examples
    --------
    >>> idx_arrays("no/such/folder")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no/such/folder: there is no such folder
    """
    root = Path(os.path.expanduser(folder))
    if not root.is_dir():
        raise FileFormatError(f"{root}: there is no such folder")
    images, labels = [], []
    for part in ("train", "t10k"):
        picture = _find(root, part, "images", 3)
        name = _find(root, part, "labels", 1)
        images.append(read_idx(picture, axes=3))
        labels.append(read_idx(name, axes=1))
        if len(images[-1]) != len(labels[-1]) or not len(labels[-1]):
            raise FileFormatError(
                f"{picture} has {len(images[-1])} images, {name} {len(labels[-1])} labels; "
                "they do not belong together"
            )
    if images[0].shape[1:] != images[1].shape[1:]:
        raise FileFormatError(
            f"{root}: train images are {images[0].shape[1:]}, test images {images[1].shape[1:]} "
            "pixels large; they do not belong together"
        )
    split = np.repeat(np.array([0, 1], dtype=np.uint8), [len(y) for y in labels])
    pictures = np.concatenate(images)
    return {
        "X": pictures.reshape(len(pictures), -1),
        "y": np.concatenate(labels),
        "split": split,
        "image": np.array([*pictures.shape[1:], 1]),
    }


def _find(root: Path, part: str, what: str, axes: int) -> Path:
    names = [usual.format(part=part, what=what, axes=axes) for usual in _USUAL]
    wanted = {name + ending for name in names for ending in ("", ".gz")}
    found = [path for path in root.rglob(f"{part}-{what}*") if path.name in wanted]
    if not found:
        raise FileFormatError(
            f"{root}: has no {names[0]} (nor {names[0]}.gz), in no folder below it either"
        )
    # The nearest one; of two in the same folder the unpacked one.
    return min(found, key=lambda path: (len(path.parts), path.name.endswith(".gz"), str(path)))
