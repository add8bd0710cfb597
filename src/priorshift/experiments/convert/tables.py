"""A table of numbers, with a few columns of another kind, from a CSV, NDJSON or Parquet file."""

from __future__ import annotations

import csv
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.files.columns import number_table
from priorshift.files.tables import Table, csv_delimiter, format_of, open_table, open_text
from priorshift.typing import AnyArray, FloatArray

_ADVICE = "turn it into numbers first, or leave it out with --drop"
# Rows whose cells are in memory as text at a time.
_AT_ONCE = 1000


class Numbers(NamedTuple):
    """The columns of numbers: their names and X (n, d); and those that were asked for by name."""

    names: list[str]
    X: FloatArray
    apart: dict[str, AnyArray]


def read_table(
    path: str | os.PathLike[str],
    apart: Sequence[str],
    *,
    drop: Collection[str] = (),
    header: bool = True,
) -> Numbers:
    r"""Read a table; a file whose name says no format is CSV.

    Columns ``apart`` (labels and the like) are numbers where all cells are, else text; those of
    ``drop`` are left out; all others are numbers. Without a ``header`` the first line of a CSV file
    is a row, and columns are called "1", "2", ...

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("weight,kind\n4.5,cat\n20,dog", file=file, flush=True)
    ...     read_table(file.name, ["kind"])
    Numbers(names=['weight'], X=array([[ 4.5], [20. ]]), apart={'kind': array(['cat', 'dog'], ...)})
    """
    with _opened(os.path.expanduser(os.fspath(path)), header) as table:
        places = _places(table, apart, drop)
        special = [table.names.index(name) for name in apart]
        blocks: list[FloatArray] = []
        cells: list[list[str]] = [[] for _ in apart]
        while rows := list(islice(table.rows, _AT_ONCE)):
            first = _AT_ONCE * len(blocks)
            blocks.append(_numbers(rows, places, table, first))
            for column, place in zip(cells, special, strict=True):
                column += [_text(row[place], table, first + i, place) for i, row in enumerate(rows)]
    if not blocks:
        raise FileFormatError(f"{path}: has no rows")
    columns = {name: _column(column) for name, column in zip(apart, cells, strict=True)}
    return Numbers([table.names[place] for place in places], np.concatenate(blocks), columns)


@contextmanager
def _opened(path: str, header: bool) -> Iterator[Table]:
    try:
        kind = format_of(path)
    except InputError:
        kind = "csv"
    if header or kind != "csv" or not os.path.isfile(path):
        with open_table(path, kind) as table:
            yield table
        return
    try:
        with open(path, "rb") as raw:
            yield _without_names(path, open_text(path, raw))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path}: cannot be read as a table ({error})") from error


def _without_names(path: str, text: Any) -> Table:
    first = text.readline()
    text.seek(0)
    lines = csv.reader(text, delimiter=csv_delimiter(first), skipinitialspace=True)
    width = len(next(csv.reader([first], delimiter=csv_delimiter(first))))

    def rows() -> Iterator[list[str]]:
        for cells in filter(None, lines):
            if len(cells) != width:
                where = f"{path} line {lines.line_num}"
                raise InputError(f"{where}: has {len(cells)} cells, the first line {width}")
            yield cells

    return Table(path, [str(i + 1) for i in range(width)], rows(), lambda: None)


def _places(table: Table, apart: Sequence[str], drop: Collection[str]) -> list[int]:
    """Numbers of the columns that are features."""
    for name in (*apart, *drop):
        table.place(name, "given as an option")
    places = [i for i, name in enumerate(table.names) if name not in {*apart, *drop}]
    if not places:
        raise InputError(f"{table.path}: no column is left for the features")
    return places


def _numbers(rows: Sequence[Any], places: Sequence[int], table: Table, first: int) -> FloatArray:
    try:
        found = number_table(rows, places, table, first)
    except InputError as error:
        raise InputError(f"{error}; {_ADVICE}") from None
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        where = table.where(first + int(row), places[column])
        cell = rows[row][places[column]]
        raise InputError(f"{where}: has no finite number ({cell!r}); fill it or drop that row")
    return found


def _text(cell: Any, table: Table, row: int, place: int) -> str:
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise InputError(f"{table.where(row, place)}: is empty; fill it or drop that row")
    return text


def _column(cells: list[str]) -> AnyArray:
    """Whole numbers, numbers, or text, whatever fits all cells."""
    for kind in (np.int64, np.float64):
        try:
            return np.array([kind(cell) for cell in cells])
        except (ValueError, OverflowError):
            continue
    return np.array(cells)
