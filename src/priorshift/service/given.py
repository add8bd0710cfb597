"""Rows that a client is given, whatever they come in, as JSON has them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from priorshift._rows import from_arrow, is_frame
from priorshift._validation import is_unknown
from priorshift.errors import InputError, InputTypeError

# What JSON holds as it is.
_PLAIN = {str, int, float, bool, type(None)}


class Given(NamedTuple):
    """Rows of plain values, the names of their cells, and whether they are values of a frame."""

    kind: str
    rows: list[Any]
    columns: list[str] | None = None
    typed: bool = False

    def fields(self) -> dict[str, Any]:
        """The same as fields of a request."""
        return {self.kind: self.rows, "columns": self.columns, "typed": self.typed}


def given(rows: Any, probabilities: Any, columns: Sequence[str] | None) -> Given:
    """Read rows, or probabilities; a frame (pandas, polars, Arrow) names its columns itself.

    Examples
    --------
    >>> given([(1.5, np.float64(2.0))], None, None).rows
    [[1.5, 2.0]]
    >>> import pandas
    >>> found = given(pandas.DataFrame({"b": [None], "a": [1]}), None, None)
    >>> found.columns, found.rows
    (['b', 'a'], [[None, 1]])
    """
    if (rows is None) == (probabilities is None):
        raise InputError("give one of rows and probabilities")
    kind, what = ("rows", rows) if probabilities is None else ("probabilities", probabilities)
    names = None if columns is None else [*map(str, columns)]
    if not hasattr(what, "__array__") or hasattr(what, "columns"):  # else it is no table
        what = from_arrow(what)
    if not is_frame(what):
        return Given(kind, plain_list(what, kind), names)
    own: list[str] | None = [*map(str, what.columns)]
    if list(what.columns) == [*range(len(what.columns))]:  # only numbered, as pandas does by itself
        own = None if names is None else names
    elif names is not None and names != own:
        raise InputError(f"{kind} has the columns {own}, and columns= says {names}: leave it out")
    parts = what.iter_columns() if hasattr(what, "iter_columns") else (c for _, c in what.items())
    cells = [
        _plain(part.to_list(), f"column {name!r} of {kind}", "row")
        for name, part in zip(what.columns, parts, strict=True)
    ]
    return Given(kind, [*map(list, zip(*cells, strict=True))], own, typed=True)


def tensor(name: str, rows: list[Any]) -> tuple[dict[str, Any], bytes]:
    """Rows as a tensor: numbers as bytes that follow the request, or else texts in it.

    Examples
    --------
    >>> about, data = tensor("rows", [[1, 2.5], [None, 0]])
    >>> about["datatype"], about["shape"], np.frombuffer(data).tolist()
    ('FP64', [2, 2], [1.0, 2.5, nan, 0.0])
    >>> tensor("rows", [["rome", 2.5], [None, 0]])[0]["data"]
    ['rome', '2.5', '', '0']
    """
    try:
        cells = np.array(rows)
        if cells.dtype.kind not in "biuf":
            cells = np.array(rows, dtype=object)
    except ValueError:
        raise InputError(f"{name} have not all the same number of values") from None
    found = {"name": name, "shape": list(cells.shape)}
    if not any(isinstance(cell, str | dict | list) for cell in cells.flat):
        data = cells.astype("<f8").tobytes()
        return {**found, "datatype": "FP64", "parameters": {"binary_data_size": len(data)}}, data
    if any(isinstance(cell, dict | list) for cell in cells.flat):
        raise InputError(f"{name}: each row is a list of as many values, or one text")
    texts = ["" if is_unknown(cell) else str(cell) for cell in cells.flat]
    return {**found, "datatype": "BYTES", "data": texts}, b""


def plain_list(values: Any, what: str) -> list[Any]:
    """A list of values as JSON has them.

    Examples
    --------
    >>> plain_list(np.array(["2026-01-31", "NaT"], "M8[D]"), "labels")
    ['2026-01-31', None]
    """
    many = isinstance(values, Iterable) or hasattr(values, "__array__")
    if isinstance(values, str | bytes | Mapping) or not many:
        raise InputTypeError(f"{what} is {type(values).__name__}: give a frame, an array or a list")
    if hasattr(values, "to_list"):  # a column of a frame
        values = values.to_list()
    found = _plain(values if hasattr(values, "__array__") else list(values), what, "row")
    if not isinstance(found, list):
        raise InputError(f"{what} is one value, not rows: give a list of them")
    return found


def _plain(values: Any, where: str, each: str = "value") -> Any:
    """Values as JSON has them: what has no value is None (or NaN), a time is text."""
    if isinstance(values, np.generic):
        return _cell(values, where)
    if hasattr(values, "__array__"):
        array = values if isinstance(values, np.ndarray) else np.asarray(values)
        values = list(array) if array.dtype.kind in "mM" and array.ndim else array.tolist()
    if isinstance(values, dict):
        return {key: _plain(one, f"{where}, {key!r}") for key, one in values.items()}
    if not isinstance(values, list | tuple):
        return _cell(values, where)
    found = list(values)
    if not {*map(type, found)} <= _PLAIN:
        found = [_plain(one, f"{where}, {each} {i}") for i, one in enumerate(found, start=1)]
    if math.inf in found or -math.inf in found:
        place = next(i for i, one in enumerate(found, start=1) if one in (math.inf, -math.inf))
        raise InputError(f"{where}, {each} {place}: is infinite, and JSON has no such number")
    return found


def _cell(cell: Any, where: str) -> Any:
    if is_unknown(cell):
        return None
    if isinstance(cell, np.datetime64):
        return str(cell)
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, datetime.date | datetime.time):  # a time stamp of pandas is one, too
        return cell.isoformat()
    for kind in (bool, str, int, float, Decimal):
        if isinstance(cell, kind):
            return float(cell) if kind is Decimal else kind(cell)
    raise InputTypeError(
        f"{where}: holds a {type(cell).__name__}, which JSON has no form for: make it a number or "
        "a text"
    )
