"""Worker processes: how many, how they start, and that none outlives its parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator

from threadpoolctl import threadpool_limits


def usable_cores() -> int:
    """Count the cores that this process may use.

    Examples
    --------
    >>> 1 <= usable_cores() <= os.cpu_count()
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_method() -> str:
    """Choose how workers come into being.

    A forked one is at work at once; any other has to import everything anew, which takes longer
    than many a job. To fork is safe where no other thread could be caught holding a lock, and while
    BLAS and OpenMP are kept to one thread as they are here.

    Examples
    --------
    >>> start_method() in multiprocessing.get_all_start_methods()
    True
    """
    alone = threading.active_count() == 1
    return "fork" if sys.platform == "linux" and alone else "spawn"


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Let processes that start here inherit a blocked Ctrl-C: only their parent acts on it.

    Examples
    --------
    >>> with interrupts_held():
    ...     pass
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """Prepare a new worker: one BLAS thread, deaf to Ctrl-C, gone when its parent is.

    Examples
    --------
    >>> begin_worker.__name__
    'begin_worker'
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked one has its parent's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(limits=1)


def _end_with_parent() -> None:
    """A worker that waits for work would outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
