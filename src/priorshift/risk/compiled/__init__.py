"""Compiled kernels, used where numba is installed (``pip install '.[fast]'``).

Every function here has a NumPy twin that gives the same numbers up to rounding; nothing outside
needs to know which one ran. Set the environment variable ``PRIORSHIFT_COMPILED=0`` to do without.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_FILES = {
    **{name: f"{__name__}.{name}" for name in ("lbfgs", "newton_cg", "softmax", "steps")},
    "calibration": "priorshift.calibration.compiled",
    "monitoring": "priorshift.monitoring.compiled",
    "trackers": "priorshift.learners.trackers.compiled.step",
}


def __getattr__(name: str) -> Any:
    """A file of kernels: ``compiled.steps`` imports numba, which is slow, when it is first used."""
    if name in _FILES:
        found = globals()[name] = import_module(_FILES[name])
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def available() -> bool:
    """Whether the compiled kernels can be used here."""
    wanted = os.environ.get("PRIORSHIFT_COMPILED", "1") != "0"
    # Without its compiler numba would run the kernels as Python, which not all of them can.
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return wanted and not disabled and find_spec("numba") is not None


class interruptible:
    """Let Ctrl-C be a ``KeyboardInterrupt`` also while compiled code runs.

    There the interpreter may turn it into a ``SystemError`` that has it as its cause, or as the
    cause of its cause.

    Examples
    --------
    >>> inner = SystemError("returned NULL")
    >>> inner.__cause__ = KeyboardInterrupt()
    >>> try:
    ...     with interruptible():
    ...         raise SystemError("returned a result with an exception") from inner
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        while isinstance(error, SystemError):
            error = error.__cause__ or error.__context__
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt from None


def plain(array: Any) -> Any:
    """The array in the one layout that the kernels are compiled for: contiguous and writable.

    For every other layout numba would compile them once more, which takes seconds. (The samples of
    a risk are the exception: they are always read-only.)

    Examples
    --------
    >>> import numpy as np
    >>> frozen = np.ones(3)
    >>> frozen.flags.writeable = False
    >>> plain(frozen).flags.writeable
    True
    """
    return array if array.flags.carray else array.copy(order="C")
