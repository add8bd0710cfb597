"""The file: a head, a manifest and blocks of bytes, one after the other; whole or refused.

    magic (12) | version | size of the manifest | size of the data | SHA-256 of each (32, 32)
    manifest (JSON), padded to 8 | blocks, each padded to 8

There are no offsets, no names of files and nothing compressed: where a block begins follows from
the sizes before it, and all sizes are added up and compared with the file's own before any block
is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from priorshift._validation import check_path
from priorshift.errors import FileFormatError, InputError
from priorshift.typing import AnyArray

VERSION = 6
SAVE_AGAIN = "use another copy of it, or save it again"

_MAGIC = b"priorshift\r\n"
_HEAD = struct.Struct("<12sIQQ32s32s")
_ZIP = b"PK\x03\x04"  # how files of format 3 and older began, with their manifest first
_ZIPPED = (30, b"manifest.json")
# Every kind of block: numbers, truth values, strings, bytes, times.
_DTYPE = re.compile(
    r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[US][1-9][0-9]{0,8}|[Mm]8(\[[0-9]{0,6}[a-zA-Z]{1,2}\])?)"
)


def write(
    path: str | os.PathLike[str], manifest: dict[str, Any], blocks: dict[str, AnyArray]
) -> None:
    """Write one file; under ``path`` there is the old one until the new one is whole.

    It keeps the rights of the file that it replaces; a new one is for its owner alone, because it
    holds labelled rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/file", {"extra": {}}, {"notes": np.arange(3)})
    ...     manifest, blocks = read(Path(folder) / "file")
    >>> manifest, blocks
    ({'extra': {}}, {'notes': array([0, 1, 2])})
    """
    target = _check_target(path)
    form = [[name, block.dtype.str, list(block.shape)] for name, block in blocks.items()]
    text = json.dumps({**manifest, "blocks": form}, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    data = [padded(np.ascontiguousarray(block).tobytes()) for block in blocks.values()]
    digest = hashlib.sha256()
    for part in data:
        digest.update(part)
    head = (len(text), sum(map(len, data)), hashlib.sha256(text).digest(), digest.digest())
    with replacing(target) as file:
        for part in (_HEAD.pack(_MAGIC, VERSION, *head), text, *data):
            file.write(part)


def read(path: Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the manifest and the blocks; every size, sum and name is checked first."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        text, data_size, data_sum = _read_head(file, size)
        manifest = _parse(text)
        forms = _check_forms(manifest.pop("blocks", None), data_size)
        blocks, found_sum = {}, hashlib.sha256()
        for name, dtype, shape, width in forms:
            blocks[name] = _read_block(file, dtype, shape, width, found_sum)
    if found_sum.digest() != data_sum:
        raise FileFormatError(f"its data were altered: {SAVE_AGAIN}")
    return manifest, blocks


def _read_block(
    file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], width: int, digest: Any
) -> AnyArray:
    array = np.empty(shape, dtype)
    padding = file.read(width - _fill(file, array))
    digest.update(array.tobytes())
    digest.update(padding)
    numbers = array.reshape(-1).view(f"{dtype.str[0]}u4" if dtype.kind == "U" else np.uint8)
    if dtype.kind in "bU" and numbers.max(initial=0) > (1 if dtype.kind == "b" else 0x10FFFF):
        raise FileFormatError("holds bytes that are no truth values or characters")
    return array


def _fill(file: BinaryIO, array: AnyArray) -> int:
    if array.nbytes == 0:
        return 0
    return file.readinto(array.reshape(-1).view(np.uint8).data)  # type: ignore[attr-defined, no-any-return]


def _read_head(file: BinaryIO, size: int) -> tuple[bytes, int, bytes]:
    """The manifest's text, and size and sum of the data, which fill the rest of the file."""
    head = file.read(_HEAD.size)
    place, name = _ZIPPED
    if head.startswith(_ZIP) and head[place : place + len(name)] == name:
        raise FileFormatError(
            f"was saved by an older priorshift, in file format 3 or before; this version reads "
            f"format {VERSION}: load it with the version that saved it, or fit and save it again"
        )
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise FileFormatError("is not a priorshift file: give one that priorshift saved")
    _, version, text_size, data_size, text_sum, data_sum = _HEAD.unpack(head)
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise FileFormatError(
            f"has file format {version}, of {age} priorshift; this version reads format {VERSION}: "
            "load it with the version that saved it, or fit and save it again"
        )
    if _HEAD.size + text_size + data_size != size or text_size % 8 or data_size % 8:
        raise FileFormatError(f"is cut short, or longer than it should be: {SAVE_AGAIN}")
    text = file.read(text_size)
    if hashlib.sha256(text).digest() != text_sum:
        raise FileFormatError(f"its manifest was altered: {SAVE_AGAIN}")
    return text, data_size, data_sum


def _parse(text: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise FileFormatError("its manifest says one thing twice")
        return found

    def refuse(word: str) -> Any:
        raise FileFormatError(f"its manifest holds {word}, which is no number of JSON")

    # Left to itself, json would guess the encoding, and import what it guesses.
    manifest = json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    if not isinstance(manifest, dict):
        raise FileFormatError("its manifest is no manifest")
    return manifest


def _check_forms(
    forms: Any, data_size: int
) -> list[tuple[str, np.dtype[Any], tuple[int, ...], int]]:
    """Names, types, shapes and widths of the blocks, which fill the data to the last byte."""
    found, names, place = [], set(), 0
    for name, code, sizes in forms:
        dtype, shape = check_block(name, code, sizes, data_size)
        width = prod(shape) * dtype.itemsize
        width += -width % 8
        found.append((name, dtype, shape, width))
        names.add(name)
        place += width
    if place != data_size or len(names) != len(found):
        raise FileFormatError(f"its blocks do not add up to its data: {SAVE_AGAIN}")
    return found


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Say whether a block can be of this type."""
    return bool(_DTYPE.fullmatch(dtype.str))


def check_block(
    name: Any, code: Any, shape: Any, most: int
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Refuse a block of another type than numbers and strings, or of a shape that cannot be.

    An empty array may have a long axis: what is made from it could fill the memory.
    """
    if type(name) is not str or type(code) is not str or type(shape) is not list:
        raise FileFormatError("its list of blocks cannot be read")
    if not _DTYPE.fullmatch(code):
        raise FileFormatError(f"its block {name} is of type {code!r}, which no file holds")
    dtype = np.dtype(code)
    whole = all(type(n) is int and n >= 0 for n in shape)
    if not whole or len(shape) > 8 or prod(max(n, 1) for n in shape) > max(most, 1 << 12):
        raise FileFormatError(f"its block {name} has the shape {shape}")
    if prod(shape) * dtype.itemsize > most:
        raise FileFormatError(f"its block {name} is larger than the file")
    return dtype, tuple(shape)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, if it is one: a pipe would wait for a writer, a device may have no end."""
    if path.is_dir():
        raise FileFormatError("is a folder: give the path of a file")
    if not path.exists():
        raise FileFormatError("no such file")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileFormatError("is a pipe or a device: give the path of a file")
        yield file


_BINARY = getattr(os, "O_BINARY", 0)


def _check_target(path: str | os.PathLike[str]) -> Path:
    check_path(path)
    name = os.fsdecode(path)
    try:
        target = Path(os.path.realpath(name))
        exists = Path(name).exists()  # what a link of /proc leads to need have no path of its own
    except (OSError, ValueError) as error:  # too long, or with a zero byte
        raise InputError(f"{name!r} is no path of a file: {error}") from None
    if target.is_dir():
        raise InputError(f"{name}: is a folder: give the path of a file")
    if not target.parent.is_dir():
        raise InputError(f"{name}: there is no folder {target.parent}: make it first")
    if exists and not target.is_file():
        raise InputError(f"{name}: is a pipe or a device: give the path of a file")
    return target


@contextmanager
def replacing(target: Path, rights: int = 0o600) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``target`` when it is whole and on the disk.

    It has the rights of the old one; where there is none, ``rights``, as far as the umask goes.
    """
    _clear_leftovers(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    made = rights if mode is None else mode
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, made)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _clear_leftovers(target: Path) -> None:
    """Remove what a save to this path left behind when its process was killed."""
    pattern = re.compile(rf"{re.escape(_prefix(target))}([0-9]{{1,9}})-[0-9a-f]{{8}}\.tmp")
    for other in target.parent.iterdir():
        found = pattern.fullmatch(other.name)
        if found and not _alive(int(found.group(1))):
            with suppress(OSError):  # another process may have been quicker
                other.unlink()


def _prefix(target: Path) -> str:
    """How the names of unfinished files begin: one for each target, never too long."""
    return f".priorshift-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"


def _alive(process: int) -> bool:
    # Another thread may be saving to the same path; on Windows, to ask a process is to end it.
    if process != os.getpid() and os.name != "nt":
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except (OSError, OverflowError):
            pass
    return True


def _sync_folder(folder: Path) -> None:
    """Write the folder's entry to the disk too; where folders cannot be opened, that is all."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def padded(data: bytes) -> bytes:
    """Bytes with zeros behind them, up to a multiple of 8."""
    return data + bytes(-len(data) % 8)
