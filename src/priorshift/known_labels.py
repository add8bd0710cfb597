"""Labels of some rows of a batch, in the forms that users have them in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, IntArray

UNKNOWN = -1
_FORMS = "give one for each row, None where it is not known, or a dict {row: label}"


def known_classes(y: Any, n_rows: int, classes: AnyArray, where: str = "y") -> IntArray:
    """Class indices (n,) of the rows whose label is known, -1 of all others.

    ``y`` holds one entry a row, and None, NaN, ``pandas.NA`` or a masked entry where nothing is
    known; or it is a dict from row numbers to labels.

    Examples
    --------
    >>> classes = np.array(["cat", "dog"])
    >>> known_classes(["dog", None, "cat"], 3, classes).tolist()
    [1, -1, 0]
    >>> known_classes({1: "dog"}, 3, classes).tolist()
    [-1, 1, -1]
    >>> known_classes(np.array([np.nan, 5.0]), 2, np.array([3, 5])).tolist()
    [-1, 1]
    """
    index = {label: k for k, label in enumerate(classes.tolist())}
    known = np.full(n_rows, UNKNOWN)
    for row, label in _entries(y, n_rows, where):
        if not _is_unknown(label):
            known[row] = _index(index, label, row, where)
    return known


def _entries(y: Any, n_rows: int, where: str) -> list[tuple[int, Any]]:
    """Pairs of a row and its label."""
    if isinstance(y, Mapping):
        return [(_row(row, n_rows, where), label) for row, label in y.items()]
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise InputTypeError(f"{where} is {type(y).__name__}, not labels: {_FORMS}")
    shape = np.shape(y) if hasattr(y, "shape") else (len(y),)
    if len(shape) != 1:
        raise InputError(f"{where} has shape {shape}: {_FORMS}")
    if len(y) != n_rows:
        raise InputError(f"{where} has {len(y)} labels for {n_rows} rows: {_FORMS}")
    # A masked array's list has None where it is masked.
    return list(enumerate(y.tolist() if hasattr(y, "tolist") else y))


def _row(row: Any, n_rows: int, where: str) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer):
        raise InputTypeError(f"{where} has the key {row!r}: keys are row numbers, from 0")
    if not 0 <= row < n_rows:
        raise InputError(f"{where} has a label for row {row}, but rows go from 0 to {n_rows - 1}")
    return int(row)


def _is_unknown(label: Any) -> bool:
    # pandas' NA and NaT are told by name: pandas is no dependency, and NA compares to nothing.
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float | np.floating) and math.isnan(label)


def _index(index: dict[Any, int], label: Any, row: int, where: str) -> int:
    try:
        return index[label]
    except (KeyError, TypeError):
        some = list(index)[:5]
        raise InputError(
            f"{where} has the label {label!r} in row {row}, which the model does not know; it "
            f"knows {some} ({len(index)} in all)"
        ) from None
