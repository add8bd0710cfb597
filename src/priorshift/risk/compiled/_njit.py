"""How functions are compiled: without the interpreter's lock, kept on disk, NaN left to others."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core import event

_log = logging.getLogger(__name__)
# Inputs are checked before they come here, so there is no NaN and no infinity to be careful with.
# Reciprocals ("arcp") are not allowed: vectors would use an estimate, single numbers a division.
_TRUSTING = {"contract", "nsz", "nnan", "ninf"}


class _Note(event.Listener):
    """Tells a person who waits, once, that functions of ours are being compiled."""

    told = False

    def on_start(self, event: event.Event) -> None:
        ours = str(event.data["dispatcher"].__module__).startswith("priorshift.")
        isatty = getattr(sys.stderr, "isatty", bool)  # stderr may be None, or have no such method
        if ours and not self.told and (hasattr(sys, "ps1") or isatty()):  # ps1: a notebook
            self.told = True
            _log.warning("priorshift compiles its kernels, once on a machine: up to a minute")

    def on_end(self, event: event.Event) -> None:
        """Nothing: the next answer says that it is done."""


NOTE = _Note()
event.register("numba:compile", NOTE)


@cache
def _stamp(folder: Path) -> str:
    """A digest of all sources here and there: compiled code contains code of other files, too."""
    digest = sha256()
    for path in sorted({*Path(__file__).parent.glob("*.py"), *folder.glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(function: Callable[..., Any], flags: set[str], **more: Any) -> Any:
    settings: dict[str, Any] = {"nogil": True, "fastmath": flags, "error_model": "numpy", **more}
    try:
        compiled = numba.njit(cache=True, **settings)(function)
        # numba looks at the function's own file only to tell whether kept code is still right.
        folder = Path(function.__code__.co_filename).parent
        compiled._cache._cache_file._source_stamp = _stamp(folder)
    except (RuntimeError, AttributeError):  # nowhere to keep it safely: compile in every process
        compiled = numba.njit(**settings)(function)
    return compiled


def exact(function: Callable[..., Any]) -> Any:
    """Compile; every operation in the order that is written."""
    return _compile(function, _TRUSTING)


def strict(function: Callable[..., Any]) -> Any:
    """Compile; every operation in the order that is written, and rounded by itself.

    Then a function gives the same bits wherever the compiler puts its code: called alone, or within
    a loop of another function. It also allows NaN and infinity.
    """
    return _compile(function, set())


def inlined(function: Callable[..., Any]) -> Any:
    """As ``strict``, for a few lines that are called often: their code is put where they are."""
    return _compile(function, set(), inline="always")


def borrowing(function: Callable[..., Any]) -> Any:
    """As ``strict``, for code that makes no arrays: it does not count references to those it gets.

    For many small arrays that would take longer than the arithmetic.
    """
    return _compile(function, set(), _nrt=False)


def summing(function: Callable[..., Any]) -> Any:
    """Compile a function whose loops only sum: in any order, so that they become vectors.

    Loops that store must not be compiled like this. They are checked for overlap when they run, and
    that check looks at addresses: arrays that lie close together are then computed one by one, in
    another order than as vectors, and two runs would differ in the last bit.
    """
    return _compile(function, {*_TRUSTING, "reassoc"})
