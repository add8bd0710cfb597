"""The log of names: which stream has which slot, one entry for each call that brought new ones.

    kind | how many | bytes that follow | CRC-32 of those | slots | names

Names are whole numbers of 8 bytes each, or a list in JSON; an entry of kind "gone" has none.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from priorshift.errors import FileFormatError
from priorshift.fleet.ids import Key

_HEAD = struct.Struct("<IIII")
_NUMBERS, _TEXTS, _GONE = range(1, 4)
_WHOLE = range(-(2**63), 2**63)


def entry(slots: list[int], keys: list[Key] | None) -> bytes:
    """One entry: streams that have come, or where ``keys`` is None, that are gone.

    Examples
    --------
    >>> list(entries(entry([0, 1], ["a", 7]) + entry([1], None)))
    [([0, 1], ['a', 7]), ([1], None)]
    """
    body = np.array(slots, dtype="<i8").tobytes()
    kind = _GONE
    if keys is not None:
        small = all(type(key) is int and key in _WHOLE for key in keys)
        kind = _NUMBERS if small else _TEXTS
        body += np.array(keys, dtype="<i8").tobytes() if small else json.dumps(keys).encode()
    return _HEAD.pack(kind, len(slots), len(body), zlib.crc32(body)) + body


def entries(data: bytes) -> Iterator[tuple[list[int], list[Key] | None]]:
    """What ``entry`` wrote, one after the other; anything else is refused."""
    place = 0
    while place < len(data):
        if place + _HEAD.size > len(data):
            raise FileFormatError("the list of streams is cut short")
        kind, count, size, check = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        body = data[place : place + size]
        place += size
        if len(body) != size or zlib.crc32(body) != check or size < 8 * count:
            raise FileFormatError("the list of streams is cut short or altered")
        slots = np.frombuffer(body, "<i8", count).tolist()
        keys: list[Key] | None = None
        if kind == _NUMBERS:
            keys = np.frombuffer(body, "<i8", count, 8 * count).tolist()
        elif kind == _TEXTS:
            keys = json.loads(body[8 * count :].decode())
        elif kind != _GONE:
            raise FileFormatError(f"the list of streams has an entry of kind {kind}")
        if keys is not None and len(keys) != count:
            raise FileFormatError("the list of streams does not fit together")
        yield slots, keys
