"""How functions are compiled: without the interpreter's lock, kept on disk, NaN left to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# Inputs are checked before they come here, so there is no NaN and no infinity to be careful with.
_TRUSTING = {"contract", "arcp", "nsz", "nnan", "ninf"}


def _compile(function: Callable[..., Any], flags: set[str]) -> Any:
    settings: dict[str, Any] = {"nogil": True, "fastmath": flags, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # no folder to keep compiled code in: compile once in every process
        return numba.njit(**settings)(function)


def fast(function: Callable[..., Any]) -> Any:
    """Compile; sums may be taken in any order, so that they become vectors."""
    return _compile(function, {*_TRUSTING, "reassoc"})


def exact(function: Callable[..., Any]) -> Any:
    """Compile; every operation in the order that is written."""
    return _compile(function, _TRUSTING)
