"""Tables of numbers from CSV and Parquet files, with a few columns of another kind."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.typing import AnyArray, FloatArray

__all__ = ["Table", "read_table"]

_ADVICE = "turn it into numbers first, or leave it out with --drop"


class Table(NamedTuple):
    """What a file of rows and columns holds.

    Attributes
    ----------
    names : list of str
        Names of the columns of ``X``.
    X : ndarray, (n, d), float64
    apart : dict of ndarray
        Columns that were asked for by name, as numbers where all cells are, else as text.

    Examples
    --------
    >>> Table._fields
    ('names', 'X', 'apart')
    """

    names: list[str]
    X: FloatArray
    apart: dict[str, AnyArray]


def read_table(
    path: str | os.PathLike[str],
    apart: Sequence[str],
    *,
    drop: Collection[str] = (),
    header: bool = True,
) -> Table:
    r"""Read ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet``.

    Parameters
    ----------
    path : path
        Files with another ending are read as CSV. Cells are separated by commas, or by semicolons
        or tabs where the first line has more of them.
    apart : sequence of str
        Columns to keep apart: labels and the like.
    drop : collection of str
        Columns to leave out.
    header : bool
        Whether the first line of a CSV file names the columns; without it, their names are their
        numbers, "1" for the first.

    Raises
    ------
    FileFormatError
        When the file cannot be read.
    InputError
        When a column is missing, or one that should hold numbers has text or gaps.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     size = path.write_text("weight,kind\n4.5,cat\n20,dog\n")
    ...     read_table(path, ["kind"])
    Table(names=['weight'], X=array([[ 4.5], [20. ]]), apart={'kind': array(['cat', 'dog'], ...)})
    """
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise FileFormatError(f"{file}: there is no such file; check the path")
    if file.suffix == ".parquet":
        return _read_parquet(file, apart, drop)
    try:
        with _open(file) as stream:
            return _read_csv(file, stream, apart, drop, header)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{file}: cannot be read as a table ({error})") from error


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _read_csv(
    file: Path, stream: TextIO, apart: Sequence[str], drop: Collection[str], header: bool
) -> Table:
    first = stream.readline()
    stream.seek(0)
    lines = csv.reader(stream, delimiter=max(",;\t", key=first.count), skipinitialspace=True)
    names: list[str] = []
    rows: list[FloatArray] = []
    cells: list[list[str]] = [[] for _ in apart]
    special: list[int] = []
    for line in lines:
        if not line:
            continue
        if not names:
            names = [name.strip() for name in line]
            names = names if header else [str(i + 1) for i in range(len(line))]
            chosen = _chosen(file, names, apart, drop)
            special = [names.index(name) for name in apart]
            if header:
                continue
        if len(line) != len(names):
            raise InputError(
                f"{file} line {lines.line_num}: has {len(line)} cells, the first line {len(names)}"
            )
        rows.append(_numbers(file, lines.line_num, line, names, chosen))
        for column, i in zip(cells, special, strict=True):
            column.append(line[i].strip())
            if not column[-1]:
                raise InputError(
                    f"{file} line {lines.line_num}, column {names[i]!r}: is empty; "
                    "fill it or drop that row"
                )
    if not rows:
        raise FileFormatError(f"{file}: has no rows")
    columns = {name: _column(column) for name, column in zip(apart, cells, strict=True)}
    return Table([names[i] for i in chosen], np.stack(rows), columns)


def _chosen(
    file: Path, names: Sequence[str], apart: Sequence[str], drop: Collection[str]
) -> list[int]:
    """Numbers of the columns that are features."""
    for name in (*apart, *drop):
        if name not in names:
            some = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise InputError(f"{file}: has no column {name!r}; its columns are {some}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InputError(f"{file}: two columns are called {twice!r}; rename one")
    chosen = [i for i, name in enumerate(names) if name not in apart and name not in drop]
    if not chosen:
        raise InputError(f"{file}: no column is left for the features")
    return chosen


def _numbers(
    file: Path, number: int, line: Sequence[str], names: Sequence[str], chosen: Sequence[int]
) -> FloatArray:
    try:
        row = np.array([float(line[i]) for i in chosen])
    except ValueError:
        row = np.array([np.nan])
    if np.isfinite(row).all():
        return row
    for i in chosen:
        text = line[i].strip()
        _check_cell(f"{file} line {number}, column {names[i]!r}", text)
    return row


def _check_cell(where: str, text: str) -> None:
    try:
        good = bool(np.isfinite(float(text)))
    except ValueError:
        good = False
    if good:
        return
    if text == "" or text.lower() in ("na", "nan", "null", "none", "inf", "-inf"):
        raise InputError(f"{where}: has no finite number ({text!r}); fill it or drop that row")
    raise InputError(f"{where}: holds text ({text[:40]!r}); {_ADVICE}")


def _column(cells: list[str]) -> AnyArray:
    """Whole numbers, numbers, or text, whatever fits all cells."""
    for kind in (np.int64, np.float64):
        try:
            return np.array([kind(cell) for cell in cells])
        except (ValueError, OverflowError):
            continue
    return np.array(cells)


def _read_parquet(file: Path, apart: Sequence[str], drop: Collection[str]) -> Table:
    try:
        import polars
    except ImportError as error:
        raise InputError(
            f"{file}: Parquet files need polars; install it with pip install 'priorshift[frames]', "
            "or save the table as CSV"
        ) from error
    try:
        frame: Any = polars.read_parquet(file, use_pyarrow=False)
    except Exception as error:  # whatever its layers raise, the file cannot be read
        reason = (str(error).splitlines() or [""])[0]
        raise FileFormatError(f"{file}: cannot be read as Parquet ({reason})") from error
    names = list(frame.columns)
    chosen = _chosen(file, names, apart, drop)
    if not len(frame):
        raise FileFormatError(f"{file}: has no rows")
    columns = [_features(file, frame[names[i]]) for i in chosen]
    special = {name: _special(file, frame[name]) for name in apart}
    return Table([names[i] for i in chosen], np.column_stack(columns), special)


def _features(file: Path, series: Any) -> FloatArray:
    where = f"{file} column {series.name!r}"
    if not (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
        raise InputError(f"{where}: is of type {series.dtype}, not a number; {_ADVICE}")
    values: FloatArray = np.asarray(series.cast(float).to_numpy(), dtype=np.float64)
    good = np.isfinite(values)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            f"{where}: has no finite number in row {row} (counted from 0); fill it or drop that row"
        )
    return values


def _special(file: Path, series: Any) -> AnyArray:
    if series.null_count():
        raise InputError(f"{file} column {series.name!r}: has gaps; fill them or drop those rows")
    if series.dtype.is_numeric():
        return np.asarray(series.to_numpy())
    if series.dtype.is_temporal():
        return np.asarray(series.to_numpy()).astype("datetime64[s]").astype(np.str_)
    return np.array([str(cell) for cell in series.to_list()])
