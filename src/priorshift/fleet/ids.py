"""Names of streams: whole numbers and strings, each with the place of its record."""

from __future__ import annotations

from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.learners.trackers.late import check_key
from priorshift.typing import IntArray

Key = int | str


def as_keys(ids: Any, rows: int | None = None) -> list[Key]:
    """Names as plain numbers and strings, one for each row; anything else is refused.

    Examples
    --------
    >>> as_keys(np.array([7, 7, 9])), as_keys(["north", 7])
    ([7, 7, 9], ['north', 7])
    >>> as_keys([0.5])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: ids[0] is a float: ids are whole numbers or strings, one for \
each row
    """
    if isinstance(ids, str | bytes | int | np.integer) or not hasattr(ids, "__len__"):
        raise InputError(f"ids is one {type(ids).__name__}: give one id for each row, in a list")
    kind = getattr(getattr(ids, "dtype", None), "kind", "")
    if hasattr(ids, "ndim") and ids.ndim != 1:
        raise InputError(f"ids has {ids.ndim} dimensions: give one id for each row, in a list")
    keys: list[Any] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if kind not in ("i", "u", "U"):
        for place, key in enumerate(keys):
            try:
                keys[place] = check_key(key)
            except InputError:
                raise InputError(
                    f"ids[{place}] is a {type(key).__name__}: ids are whole numbers or strings, "
                    "one for each row"
                ) from None
    if rows is not None and len(keys) != rows:
        raise InputError(f"there are {len(keys)} ids for {rows} rows of X: give one for each row")
    return keys


class Groups(NamedTuple):
    """Rows of a call by their streams.

    ``order`` (n,) sorts the rows by stream and keeps the order within each, ``starts`` (M + 1,)
    says where the rows of each stream begin then, ``slots`` (M,) are the places of their records,
    ascending.
    """

    order: IntArray
    starts: IntArray
    slots: IntArray


def grouped(slots: IntArray) -> Groups:
    """Group rows by the slots (n,) of their streams.

    Examples
    --------
    >>> grouped(np.array([5, 2, 5]))
    Groups(order=array([1, 0, 2]), starts=array([0, 1, 3]), slots=array([2, 5]))
    """
    order = np.argsort(slots, kind="stable")
    there = slots[order]
    firsts = np.flatnonzero(np.concatenate([[True], there[1:] != there[:-1]]))
    return Groups(order, np.append(firsts, len(slots)), there[firsts])


class Names:
    """Which stream has which slot. Slots of streams that are gone are used again.

    Examples
    --------
    >>> names = Names()
    >>> slots, new = names.places(["a", "b", "a"])
    >>> slots.tolist(), new, len(names)
    ([0, 1, 0], {'a': 0, 'b': 1}, 0)
    >>> names.add(new)
    >>> names.slots(["b", "c"]).tolist(), names.of([1]), len(names)
    ([1, -1], ['b'], 2)
    """

    def __init__(self) -> None:
        self._slots: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    @property
    def size(self) -> int:
        """Slots that have been given out, those that are free again included."""
        return len(self._keys)

    def slots(self, keys: list[Key]) -> IntArray:
        """Slots (n,) of streams, -1 for those that are not there."""
        return np.fromiter(map(self._slots.get, keys, repeat(-1)), np.int64, len(keys))

    def places(self, keys: list[Key]) -> tuple[IntArray, dict[Key, int]]:
        """Slots (n,) of all, and those that streams seen for the first time will have."""
        found = self.slots(keys)
        new: dict[Key, int] = {}
        missing = np.flatnonzero(found < 0)
        if len(missing):
            free, size = iter(reversed(self._free)), self.size
            for place in missing.tolist():
                key = keys[place]
                if key not in new:
                    slot = next(free, -1)
                    if slot < 0:
                        slot, size = size, size + 1
                    new[key] = slot
                found[place] = new[key]
        return found, new

    def add(self, new: dict[Key, int]) -> None:
        """Take in what ``places`` found to be new."""
        for key, slot in new.items():
            if slot < self.size:
                self._free.remove(slot) if self._free[-1] != slot else self._free.pop()
                self._keys[slot] = key
            else:
                self._keys.extend([None] * (slot - self.size))
                self._keys.append(key)
            self._slots[key] = slot

    def restore(self, slots: list[int], keys: list[Key]) -> None:
        """Take in streams whose slots are known, as a log tells them."""
        if slots and (min(slots) < 0 or len(set(slots)) != len(slots)):
            raise FileFormatError("the list of streams does not fit together")
        if slots == list(range(self.size, self.size + len(slots))):
            self._keys.extend(keys)
        else:
            self._keys.extend([None] * (max(slots) + 1 - self.size))
            for slot, key in zip(slots, keys, strict=True):
                self._keys[slot] = key
            taken = set(slots)
            self._free = [slot for slot in self._free if slot not in taken]
        before = len(self._slots)
        self._slots.update(zip(keys, slots, strict=True))
        if len(self._slots) != before + len(slots):
            raise FileFormatError("the list of streams names one twice")

    def drop(self, slots: list[int]) -> None:
        """Forget the streams of these slots."""
        for slot in slots:
            key = self._keys[slot]
            if key is not None:
                del self._slots[key]
                self._keys[slot] = None
                self._free.append(slot)

    def of(self, slots: Any) -> list[Key | None]:
        """The names of slots."""
        return [self._keys[int(slot)] for slot in slots]

    def taken(self) -> IntArray:
        """All slots with a stream, ascending."""
        if not self._free:
            return np.arange(self.size)
        return np.array(sorted(self._slots.values()), dtype=np.int64)

    def keys(self) -> list[Key]:
        """All names, by slot."""
        return [key for key in self._keys if key is not None]
