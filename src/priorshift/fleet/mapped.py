"""Records in a memory-mapped file, changed call by call: a call is whole, or it never was.

    records:  head, 4,096 bytes | records, each with its check sum as its last number
    journal:  status | numbers of the call | slots | records after the call

A call first says in the journal which records it will change (status 1), then what they will be
(status 2), and only then changes them. Whoever opens the file finds status 0, nothing to do; 1, a
call that was lost, and whose; or 2, a call to be finished. That holds for a call of any number of
streams, and a process may be killed at any time; with ``sync`` the machine may lose its power.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.fleet.ids import Key
from priorshift.fleet.log import entry
from priorshift.fleet.memory import Live, Step
from priorshift.typing import AnyArray, FloatArray, IntArray

_MAGIC, VERSION = b"psfleet\n", 3
_HEAD = struct.Struct("<8sII16s")
_PAGE = 4096
_LIVE = _PAGE // 2  # where the numbers begin that change with every call
_NONE, _BEGUN, _WHOLE = range(3)
_STATUS = struct.Struct("<q")
# Status, call, slots, length of the names, how many records; then a check sum of that and of slots.
_NUMBERS = struct.Struct("<qqqq16s")
# Records that are held in memory at a time.
MOST = 1 << 14
_GROWTH = 1 << 16


def check_sums(rows: FloatArray) -> AnyArray:
    """A number (M,) for each row that no change of one number leaves as it is; never 0.

    Examples
    --------
    >>> check_sums(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == check_sums(np.eye(2)).tolist()
    False
    """
    with np.errstate(over="ignore"):
        weights = np.full(rows.shape[1], 0x9E3779B97F4A7C15, dtype=np.uint64).cumprod()
        found = np.ascontiguousarray(rows).view(np.uint64) @ weights
    return np.asarray(np.where(found == 0, np.uint64(1), found))


def sealed(rows: FloatArray) -> FloatArray:
    """Rows with a last number more, their check sum."""
    return np.column_stack([rows, check_sums(rows).view(np.float64)])


def _is_whole(rows: FloatArray) -> AnyArray:
    """Which (M,) of sealed rows have the check sum of what they hold."""
    own = np.ascontiguousarray(rows[:, -1]).view(np.uint64)
    return np.asarray(check_sums(rows[:, :-1]) == own)


def write_records(path: Path, width: int, digest: bytes, live: Live, chunks: Any) -> None:
    """Write a file of records; ``chunks`` yields (M, W) rows in the order of the slots."""
    with path.open("xb") as file:
        file.write(_HEAD.pack(_MAGIC, VERSION, width, digest))
        file.seek(_LIVE)
        file.write(_packed(live))
        file.seek(_PAGE)
        for rows in chunks:
            file.write(sealed(rows).tobytes())
        file.truncate(_PAGE + 8 * (width + 1) * live.size)
        file.flush()
        os.fsync(file.fileno())


def _packed(live: Live) -> bytes:
    data = struct.pack("<qqq", *live)
    return data + blake2b(data, digest_size=16).digest()


class Mapped:
    """Records of a file, with the journal beside it.

    ``lost`` are the slots of a call that a process began and did not live to finish.
    """

    def __init__(
        self, records: Path, journal: Path, names: Path, digest: bytes, sync: bool = False
    ) -> None:
        if not hasattr(os, "pread"):
            raise InputError("memory-mapped fleets need a POSIX system: load without mapped=True")
        self._name, self._sync = records.name, sync
        self._file = os.open(records, os.O_RDWR)
        self._journal = os.open(journal, os.O_RDWR | os.O_CREAT, 0o600)
        self._names = os.open(names, os.O_RDWR)
        self._files = [self._file, self._journal, self._names]
        try:
            lock(self._journal)
            self.width = self._read_head(digest)
            self._table, self._map = self._mapped()
            self.lost = self._recover()
            self.live = self._read_live()
        except BaseException:
            self.close()
            raise

    def __getattr__(self, name: str) -> Any:
        if name in ("_table", "_map"):
            raise InputError("the fleet is closed: load it again")
        raise AttributeError(name)

    def close(self) -> None:
        """Give the files back; a second time changes nothing."""
        self.__dict__.pop("_table", None)
        self.__dict__.pop("_map", None)
        while self._files:
            os.close(self._files.pop())

    def __del__(self) -> None:
        if "_files" in self.__dict__:
            self.close()

    def _read_head(self, digest: bytes) -> int:
        head = os.pread(self._file, _HEAD.size, 0)
        if len(head) < _HEAD.size or not head.startswith(_MAGIC):
            raise FileFormatError(f"{self._name}: holds no records of a fleet")
        _, version, width, own = _HEAD.unpack(head)
        if version != VERSION:
            raise FileFormatError(
                f"{self._name}: has format {version}, this priorshift reads {VERSION}: "
                "load it with the version that saved it"
            )
        if own != digest:
            raise FileFormatError(f"{self._name}: belongs to another source or learner")
        return int(width)

    def _read_live(self) -> Live:
        data = os.pread(self._file, 40, _LIVE)
        live = Live(*struct.unpack_from("<qqq", data))
        if _packed(live) != data or min(live) < 0 or live.size > len(self._table):
            raise FileFormatError(f"{self._name}: its head was altered: use another copy of it")
        return live

    def _mapped(self) -> tuple[FloatArray, mmap.mmap | None]:
        """The records as a table; there may be more room than slots in use."""
        whole = (os.fstat(self._file).st_size - _PAGE) // (8 * (self.width + 1))
        if whole <= 0:
            return np.empty((0, self.width + 1)), None
        found = mmap.mmap(self._file, _PAGE + whole * 8 * (self.width + 1))
        return np.ndarray((whole, self.width + 1), np.float64, found, _PAGE), found

    def _make_room(self, slots: int) -> None:
        if slots > len(self._table):
            rows = max(slots + slots // 4, _GROWTH)
            os.ftruncate(self._file, _PAGE + rows * 8 * (self.width + 1))  # a hole takes no disk
            self._table, self._map = self._mapped()

    def _recover(self) -> IntArray:
        """Finish the call that was whole; return the slots of one that was not."""
        data = os.pread(self._journal, _STATUS.size + _NUMBERS.size, 0)
        status = _STATUS.unpack_from(data)[0] if len(data) >= _STATUS.size else _NONE
        none = np.empty(0, dtype=np.int64)
        if status not in (_BEGUN, _WHOLE):
            return none
        *live, count, check = _NUMBERS.unpack_from(data, _STATUS.size)
        room = os.fstat(self._journal).st_size - len(data)
        raw = os.pread(self._journal, 8 * count, len(data)) if 0 <= 8 * count <= room else b""
        fine = blake2b(data[_STATUS.size : -16] + raw, digest_size=16).digest() == check
        if status == _BEGUN:
            self._set(_NONE)
            # Where they do not fit it was killed while it wrote which: nothing was changed.
            return np.frombuffer(raw, dtype=np.int64) if fine else none
        slots = np.frombuffer(raw, dtype=np.int64)
        if not fine or not all(_is_whole(rows).all() for rows in self._chunks(slots)):
            raise FileFormatError(f"{self._name}: its journal was altered")
        self._apply(slots, Live(*live))
        return none

    def _chunks(self, slots: IntArray) -> Iterator[FloatArray]:
        """The records that the journal has for these slots, some at a time."""
        place, size = _STATUS.size + _NUMBERS.size + 8 * len(slots), 8 * (self.width + 1)
        for a in range(0, len(slots), MOST):
            rows = np.empty((min(MOST, len(slots) - a), self.width + 1))
            _read_into(self._journal, rows, place + a * size)
            yield rows

    def _set(self, status: int) -> None:
        os.pwrite(self._journal, _STATUS.pack(status), 0)
        if self._sync:
            os.fsync(self._journal)

    def log(self, slots: list[int], keys: list[Key] | None) -> int:
        """Note which streams come or go with the next call; return the length of the log then."""
        _ = self._table  # a closed fleet is refused: its file numbers may be another file's by now
        if not slots:
            return self.live.names
        data = entry(slots, keys)
        os.pwrite(self._names, data, self.live.names)
        if self._sync:
            os.fsync(self._names)
        return self.live.names + len(data)

    def named(self) -> tuple[bytes, bytes]:
        """The log of names, and what a call that was lost had added to it."""
        whole = os.pread(self._names, os.fstat(self._names).st_size, 0)
        if len(whole) < self.live.names:
            raise FileFormatError("the list of streams is cut short")
        return whole[: self.live.names], whole[self.live.names :]

    def read(self, slots: IntArray) -> FloatArray:
        """Copies (M, W) of records; one that was altered is refused."""
        found = self._table[slots]
        wrong = ~_is_whole(found)
        # A record that was never written is empty; a check sum, read as a float, may be no number.
        wrong &= found.view(np.uint64).any(axis=1)
        if wrong.any():
            bad = int(slots[np.argmax(wrong)])
            raise FileFormatError(f"{self._name}: record {bad} was altered: use another copy of it")
        self._give_back()
        return np.ascontiguousarray(found[:, :-1])

    def seen(self, slots: IntArray) -> FloatArray:
        """The last number (M,) of records: the call that they were last seen in."""
        found = np.asarray(self._table[slots, -2])
        self._give_back()
        return found

    def _give_back(self) -> None:
        """Let go of the pages that were looked at: they stay in the system's cache."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def update(
        self, slots: IntArray, new: IntArray, start: FloatArray, step: Step, live: Live
    ) -> None:
        """Let records of ascending slots learn; those at the places ``new`` of them start first."""
        fresh = np.zeros(len(slots), dtype=bool)
        fresh[new] = True

        def learned(a: int, b: int) -> FloatArray:
            rows = self.read(slots[a:b])
            rows[fresh[a:b]] = start
            step(rows, np.arange(b - a), a, b)
            return rows

        self._change(slots, learned, live)

    def write(self, slots: IntArray, rows: FloatArray, live: Live) -> None:
        """Put records into ascending slots."""
        self._change(slots, lambda a, b: rows[a:b], live)

    def _change(self, slots: IntArray, after: Callable[[int, int], FloatArray], live: Live) -> None:
        """Change records as a whole; ``after(a, b)`` is what those of slots a to b will be."""
        self._make_room(int(slots.max(initial=-1)) + 1)
        numbers = struct.pack("<qqqq", *live, len(slots))
        which = np.ascontiguousarray(slots, dtype=np.int64).tobytes()
        check = blake2b(numbers + which, digest_size=16).digest()
        os.pwrite(self._journal, numbers + check + which, _STATUS.size)
        self._set(_BEGUN)
        place = _STATUS.size + _NUMBERS.size + len(which)
        for a in range(0, len(slots), MOST):
            rows = sealed(after(a, min(a + MOST, len(slots))))
            _write_from(self._journal, rows, place + a * 8 * (self.width + 1))
        if self._sync:
            os.fsync(self._journal)
        self._set(_WHOLE)
        self._apply(slots, live)

    def _apply(self, slots: IntArray, live: Live) -> None:
        """Do what the journal says; whoever is stopped here finds it there again."""
        self._make_room(int(slots.max(initial=-1)) + 1)
        for a, rows in zip(range(0, len(slots), MOST), self._chunks(slots), strict=True):
            self._table[slots[a : a + MOST]] = rows
            self._give_back()
        os.pwrite(self._file, _packed(live), _LIVE)
        if self._sync:
            if self._map is not None:
                self._map.flush()
            os.fsync(self._file)
        self._set(_NONE)
        if len(slots) > MOST:
            os.ftruncate(self._journal, _STATUS.size)
        self.live = live


def _read_into(file: int, rows: FloatArray, place: int) -> None:
    data = memoryview(rows.data).cast("B")
    done = 0
    while done < len(data):
        got = os.preadv(file, [data[done:]], place + done)
        if got == 0:
            raise FileFormatError("the journal is cut short")
        done += got


def _write_from(file: int, rows: FloatArray, place: int) -> None:
    data = memoryview(np.ascontiguousarray(rows).data).cast("B")
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done:], place + done)


def lock(file: int) -> None:
    """Keep other processes out, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileFormatError("is in use by another process: close the fleet there") from None
