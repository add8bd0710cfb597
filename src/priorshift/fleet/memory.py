"""Records in memory, in blocks: a fleet grows without copying what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from priorshift.fleet.ids import Key
from priorshift.typing import FloatArray, IntArray

# Records of a block. The system gives memory to those that are used.
_BLOCK = 1 << 16

Step = Callable[[FloatArray, IntArray, int, int], None]
"""``step(records, which, a, b)``: rows ``which`` of ``records`` learn, streams a to b of a call."""


class Live(NamedTuple):
    """What changes with every call: the calls so far, the slots in use, the length of the log."""

    calls: int
    size: int
    names: int


class Memory:
    """Records of ``width`` numbers.

    With ``in_place`` they learn where they are, by steps that cannot fail; without, aside, so that
    a step that fails changes nothing.

    Examples
    --------
    >>> store = Memory(2)
    >>> store.write(np.array([3]), np.array([[1.0, 2.0]]), Live(1, 4, 0))
    >>> store.read(np.array([3])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, width: int, in_place: bool = True) -> None:
        self.width, self.in_place, self.live = width, in_place, Live(0, 0, 0)
        self._blocks: list[FloatArray] = []

    def _pieces(self, slots: IntArray) -> list[tuple[FloatArray, int, int, int]]:
        """Blocks of ascending slots: the block, its first slot, and which of the slots it holds."""
        if len(slots) == 0:
            return []
        while len(self._blocks) * _BLOCK <= int(slots[-1]):
            self._blocks.append(np.empty((_BLOCK, self.width)))
        numbers = np.arange(int(slots[0]) // _BLOCK, int(slots[-1]) // _BLOCK + 2)
        ends = np.searchsorted(slots, numbers * _BLOCK)
        return [
            (self._blocks[number], number * _BLOCK, a, b)
            for number, a, b in zip(
                numbers.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=False
            )
            if a < b
        ]

    def read(self, slots: IntArray) -> FloatArray:
        """Copies (M, W) of records, in the order of the slots."""
        order = np.argsort(slots, kind="stable")
        found, there = np.empty((len(slots), self.width)), slots[order]
        for block, first, a, b in self._pieces(there):
            found[order[a:b]] = block[there[a:b] - first]
        return found

    def seen(self, slots: IntArray) -> FloatArray:
        """The last number (M,) of records: the call that they were last seen in."""
        order = np.argsort(slots, kind="stable")
        found, there = np.empty(len(slots)), slots[order]
        for block, first, a, b in self._pieces(there):
            found[order[a:b]] = block[there[a:b] - first, -1]
        return found

    def log(self, slots: list[int], keys: list[Key] | None) -> int:
        """Names are not kept here: the fleet has them."""
        return 0

    def write(self, slots: IntArray, rows: FloatArray, live: Live) -> None:
        """Put records into ascending slots."""
        for block, first, a, b in self._pieces(slots):
            block[slots[a:b] - first] = rows[a:b]
        self.live = live

    def update(
        self, slots: IntArray, new: IntArray, start: FloatArray, step: Step, live: Live
    ) -> None:
        """Let records of ascending slots learn; those at the places ``new`` of them start first."""
        if not self.in_place:
            rows = self.read(slots)
            rows[new] = start
            step(rows, np.arange(len(slots)), 0, len(slots))
            self.write(slots, rows, live)
            return
        self.write(slots[new], np.broadcast_to(start, (len(new), self.width)), self.live)
        for block, first, a, b in self._pieces(slots):
            step(block, slots[a:b] - first, a, b)
        self.live = live
