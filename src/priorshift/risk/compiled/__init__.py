"""Compiled kernels, used where numba is installed (``pip install 'priorshift[fast]'``).

Every function here has a NumPy twin that gives the same numbers up to rounding; nothing outside
needs to know which one ran. Set the environment variable ``PRIORSHIFT_COMPILED=0`` to do without.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def available() -> bool:
    """Whether the compiled kernels can be used here.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    return os.environ.get("PRIORSHIFT_COMPILED", "1") != "0" and find_spec("numba") is not None


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
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else array.copy(order="C")
