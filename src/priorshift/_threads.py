"""The cores that there are, and one BLAS thread where that is faster or the bits depend on it."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """One BLAS thread, for as long as any thread of the program is inside: it is one setting.

    Whoever comes first remembers what it was, and who leaves last restores it. Two that remember
    and restore by themselves would leave what the other had set.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


ONE_THREAD = _OneThread()


def usable_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
