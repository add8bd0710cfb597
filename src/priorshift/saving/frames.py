"""Frames and series of pandas and polars: their columns as names, plain values and types."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import numpy as np

from priorshift._validation import is_no_value
from priorshift.errors import FileFormatError, InputError
from priorshift.source.source import SAMPLE as ROWS

# What a file calls them, and where they are found.
TABLES = {
    "frame": ("pandas", "DataFrame"),
    "series": ("pandas", "Series"),
    "polars frame": ("polars", "DataFrame"),
    "polars series": ("polars", "Series"),
}
# pandas' types that a list of plain values can be turned into again.
_PANDAS = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "object", "str", "string", "boolean", "Int64", "Float64"),
}
# Zones of the database alone: other names that pandas knows are paths of any file.
_ZONED = re.compile(
    r"datetime64\[(s|ms|us|ns), (?!dateutil/)[A-Za-z][A-Za-z0-9_+:-]*(/[A-Za-z0-9_+-]+){0,2}\]"
)
# The same of polars, with what each type is made with.
_POLARS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Boolean", "Int8", "Int16", "Int32", "Int64"), ()),
    **dict.fromkeys(("UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"), ()),
    **dict.fromkeys(("String", "Categorical", "Null", "Date", "Time"), ()),
    "Datetime": ("time_unit", "time_zone"),
    "Duration": ("time_unit",),
    "Enum": ("categories",),
}


def table_kind(rows: Any) -> str | None:
    """What a file calls ``rows``; None if they are neither a frame nor a series."""
    for kind, (library, name) in TABLES.items():
        if library in sys.modules and isinstance(rows, getattr(sys.modules[library], name)):
            return kind
    return None


def table_columns(kind: str, rows: Any) -> list[Any]:
    """Return name, values, type and settings of the type of every column.

    Examples
    --------
    >>> import polars
    >>> columns = table_columns("polars frame", polars.DataFrame({"size": [1, None]}))
    >>> columns
    [['size', [1, None], 'Int64', []]]
    >>> make_table("polars frame", columns)["size"].to_list()
    [1, None]
    """
    polars = TABLES[kind][0] == "polars"
    encode = _encode_polars if polars else _encode_pandas
    series = _series(kind, rows)
    columns = [[column.name, *encode(column)] for column in series]
    again = make_table(kind, columns)
    if polars:
        same = [made.dtype for made in _series(kind, again)] == [made.dtype for made in series]
    else:
        same = again.equals(rows.reset_index(drop=True))
    if not same:
        raise InputError("a column of it is of a type that no file can hold")
    return columns


def _series(kind: str, table: Any) -> list[Any]:
    if kind.endswith("series"):
        return [table]
    if kind == "polars frame":
        return list(table.get_columns())
    return [table.iloc[:, i] for i in range(table.shape[1])]


def make_table(kind: str, columns: list[Any]) -> Any:
    """Return the frame or series of these columns, which may come from a forged file."""
    for _, values, _, _ in columns:
        if not isinstance(values, list | np.ndarray) or len(values) > ROWS:
            raise FileFormatError("holds a column that is none")
    library = importlib.import_module(TABLES[kind][0])
    make = _make_polars if TABLES[kind][0] == "polars" else _make_pandas
    made = [make(library, *column) for column in columns]
    if kind.endswith("series"):
        (series,) = made
        return series
    if kind == "polars frame":
        return library.DataFrame(made)
    return library.concat(made, axis=1) if made else library.DataFrame()


def _encode_pandas(column: Any) -> tuple[Any, ...]:
    dtype = column.dtype
    if str(dtype) == "category":
        names = dtype.categories
        return _plain(column), "category", (_plain(names), str(names.dtype), bool(dtype.ordered))
    if dtype.kind in "Mm" and isinstance(dtype, np.dtype):
        return column.to_numpy(), None, None
    if _ZONED.fullmatch(str(dtype)):
        return column.dt.tz_convert(None).to_numpy(), str(dtype), None
    return _plain(column), str(dtype), None


def _plain(column: Any) -> list[Any]:
    """The values, None for pandas' NA."""
    return [None if is_no_value(value) else value for value in column.tolist()]


def _make_pandas(pandas: Any, name: Any, values: Any, dtype: Any, about: Any) -> Any:
    if dtype is not None and _ZONED.fullmatch(dtype):
        return pandas.Series(values, name=name).dt.tz_localize("UTC").astype(dtype)
    inner = about[1] if dtype == "category" else dtype
    if inner is not None and inner not in _PANDAS:
        raise FileFormatError(f"holds a column of type {inner!r}")
    if dtype == "category":
        dtype = pandas.CategoricalDtype(pandas.Index(about[0], dtype=inner), ordered=about[2])
    return pandas.Series(values, dtype=dtype, name=name)


def _encode_polars(column: Any) -> tuple[Any, ...]:
    dtype = column.dtype
    kind = dtype.base_type().__name__
    about = [getattr(dtype, setting) for setting in _POLARS.get(kind, ())]
    if kind == "Enum":
        about = [dtype.categories.to_list()]
    return (column.to_physical() if dtype.is_temporal() else column).to_list(), kind, about


def _make_polars(polars: Any, name: Any, values: Any, kind: Any, about: Any) -> Any:
    if kind not in _POLARS or len(about) != len(_POLARS[kind]) or type(values) is not list:
        raise FileFormatError(f"holds a column of type {kind!r}")
    made = polars.Series(name, values, dtype=getattr(polars, kind)(*about))
    # To read a date that is out of range is a panic, which is no Exception.
    if kind in ("Date", "Datetime"):
        held = made.drop_nulls().dt.year().is_between(1, 9999).fill_null(False)
        if not held.all():
            raise FileFormatError("holds a date that is none")
    return made
