"""Compiled kernels, used where numba is installed (``pip install 'priorshift[fast]'``).

Every function here has a NumPy twin that gives the same numbers up to rounding; nothing outside
needs to know which one ran. Set the environment variable ``PRIORSHIFT_COMPILED=0`` to do without.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec


@cache
def available() -> bool:
    """Whether the compiled kernels can be used here.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    return os.environ.get("PRIORSHIFT_COMPILED", "1") != "0" and find_spec("numba") is not None
