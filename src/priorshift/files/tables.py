"""Rows of CSV, NDJSON and Parquet files, one after the other, whatever the size of the file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from priorshift._extras import need
from priorshift.errors import FileFormatError, InputError

FORMATS = ("csv", "ndjson", "parquet")
PIPE = "-"
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
}
# Rows of a Parquet file that are in memory at a time.
_SLICE = 1 << 16
# Names that a message shows, and characters of each.
_SHOWN, _LONG = 20, 40

Row = Sequence[Any]
"""The cells of a row: text in CSV, values in NDJSON and Parquet; None where one is missing."""


def listed(names: Sequence[Any]) -> str:
    """Names as a message shows them: some of them, and the beginning of long ones.

    Examples
    --------
    >>> listed(["a", 7])
    'a, 7'
    """
    shown = ", ".join(str(name)[:_LONG] for name in names[:_SHOWN])
    return shown + (", ..." if len(names) > _SHOWN else "")


class Table(NamedTuple):
    """A table that is being read.

    Attributes
    ----------
    path : str
        What to call it in a message.
    names : list of str
        Names of the columns.
    rows : iterator
        The rows that have not been read yet.
    share : callable
        How much of the file has been read, 0 to 1; None where nobody knows.
    line : callable
        The line on which a row begins, as an editor counts, by the row's number from 0; None where
        there are no lines, or they are gone.

    Examples
    --------
    >>> Table("a pipe", ["x"], iter([["1"]]), lambda: None).names
    ['x']
    """

    path: str
    names: list[str]
    rows: Iterator[Row]
    share: Callable[[], float | None]
    line: Callable[[int], int | None] = lambda row: None

    def place(self, name: str, option: str) -> int:
        """Return the number of a column, or say what named one that is not there."""
        if name not in self.names:
            raise InputError(
                f"{self.path}: has no column {name!r} ({option}); it has {listed(self.names)}"
            )
        return self.names.index(name)

    def where(self, row: int, place: int | None = None, *, last: int | None = None) -> str:
        """What messages call a row, by its number from 0, or a cell of it, or rows up to ``last``.

        Without lines the first row after the names is row 1.

        Examples
        --------
        >>> Table("a pipe", ["x"], iter([]), lambda: None).where(4, 0)
        "a pipe row 5, column 'x'"
        """
        line = self.line(row)
        told = f"row {row + 1}" if line is None else f"line {line}"
        if last is not None and last > row:
            end = last + 1 if line is None else self.line(last)
            told = f"{told.replace(' ', 's ')} to {end}"
        column = "" if place is None else f", column {self.names[place]!r}"
        return f"{self.path} {told}{column}"


def format_of(path: str, given: str | None = None) -> str:
    """Return the format of a table, by its name's ending where none is given; a pipe has NDJSON.

    Examples
    --------
    >>> format_of("data.csv.gz"), format_of("-"), format_of("-", "csv")
    ('csv', 'ndjson', 'csv')
    """
    if given is not None:
        return given
    if path == PIPE:
        return "ndjson"
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise InputError(f"{path}: what kind of table is it? Its name should end in one of {known}")
    return _ENDINGS[ending]


@contextmanager
def open_table(path: str | os.PathLike[str], kind: str | None = None) -> Iterator[Table]:
    r"""Open a table for reading; its rows come when they are asked for.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.tsv`` (separated by commas, semicolons or tabs; the first line has the
        names), ``.ndjson`` or ``.jsonl`` (an object a line), each also with ``.gz``; or
        ``.parquet``; "-" is standard input.
    kind : {"csv", "ndjson", "parquet"}, optional
        By default what the ending says.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     size = path.write_text("weight,kind\n4.5,cat\n20,dog\n")
    ...     with open_table(path) as table:
    ...         table.names, list(table.rows)
    (['weight', 'kind'], [['4.5', 'cat'], ['20', 'dog']])
    """
    name = os.path.expanduser(os.fspath(path))
    kind = format_of(name, kind)
    if name != PIPE and not os.path.isfile(name):
        raise FileFormatError(f"{name}: there is no such file; check the path")
    shown = _shown(name)
    with _refusing(name):
        if kind == "parquet":
            yield _parquet(name)
            return
        with _opened(name) as raw:
            read = _csv if kind == "csv" else _ndjson
            text = open_text(name, raw)
            names, rows = read(name, text)
            if len(set(names)) < len(names):
                twice = next(one for one in names if names.count(one) > 1)
                raise FileFormatError(f"{shown}: has two columns {twice!r}; rename one")
            yield Table(shown, names, rows, _share(name, raw), _lines(name, kind))
            text.detach()  # let go, it would close what it reads: standard input is not ours


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Whatever layer a broken file fails in, it means the same to the user."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{_shown(name)}{_strange_line(name)}: is not in UTF-8; convert the file to it, as "
            "iconv -f LATIN1 -t UTF-8 does"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, csv.Error) as error:
        raise FileFormatError(f"{_shown(name)}: cannot be read as a table ({error})") from error


def _shown(name: str) -> str:
    return "standard input" if name == PIPE else name


def _strange_line(name: str) -> str:
    """The first line that is not in UTF-8, as messages have it; a pipe cannot be read again."""
    if name == PIPE:
        return ""
    with _opened(name) as raw:
        for number, line in enumerate(_unpacked(name, raw), start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f" line {number}"
    return ""


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == PIPE:
        yield sys.stdin.buffer
        return
    with open(name, "rb") as raw:
        yield raw


def open_text(name: str, raw: BinaryIO) -> io.TextIOWrapper:
    """Return the text of an open file, unpacked where its name ends in ``.gz``.

    Examples
    --------
    >>> open_text("some.csv", io.BytesIO("ä".encode("utf-8-sig"))).read()
    'ä'
    """
    return io.TextIOWrapper(_unpacked(name, raw), encoding="utf-8-sig", newline="")


def _unpacked(name: str, raw: BinaryIO) -> Any:
    return gzip.GzipFile(fileobj=raw) if name.endswith(".gz") else raw


def _share(name: str, raw: BinaryIO) -> Callable[[], float | None]:
    if name == PIPE:
        return lambda: None
    size = max(os.path.getsize(name), 1)
    return lambda: raw.tell() / size


def _lines(name: str, kind: str) -> Callable[[int], int | None]:
    """Find the line of a row by reading the file again, up to it: it is asked for once."""

    def line(row: int) -> int | None:
        with _opened(name) as raw:
            text = open_text(name, raw)
            starts = _csv_starts(text) if kind == "csv" else _ndjson_starts(text)
            return next(islice(starts, row, None), None)

    return (lambda row: None) if name == PIPE else line


def _csv_starts(text: TextIO) -> Iterator[int]:
    """The lines on which the rows begin: cells may hold line breaks, and lines may be empty."""
    lines = _csv_reader(text.readline(), text)
    next(lines)
    before = lines.line_num
    for cells in lines:
        if cells:
            yield before + 1
        before = lines.line_num


def _ndjson_starts(text: TextIO) -> Iterator[int]:
    return (number for number, line in enumerate(text, start=1) if line.strip())


def csv_delimiter(line: str) -> str:
    """Return what separates the cells of a CSV file, by its first line.

    Examples
    --------
    >>> csv_delimiter("a;b;c")
    ';'
    """
    return max(",;\t", key=line.count)


def _csv(name: str, text: TextIO) -> tuple[list[str], Iterator[Row]]:
    first = text.readline()
    if not first.strip():
        raise FileFormatError(f"{_shown(name)}: is empty; its first line should name the columns")
    lines = _csv_reader(first, text)
    names = [cell.strip() for cell in next(lines)]
    return names, _csv_rows(name, lines, len(names))


def _csv_reader(first: str, text: TextIO) -> Any:
    """A reader of text whose first line was read; it may go on: a name can hold a line break."""
    return csv.reader(_after(first, text), delimiter=csv_delimiter(first), skipinitialspace=True)


def _after(first: str, text: TextIO) -> Iterator[str]:
    yield first
    yield from text


def _csv_rows(name: str, lines: Any, width: int) -> Iterator[Row]:
    with _refusing(name):
        for cells in lines:
            if len(cells) == width:
                yield cells
            elif cells:
                raise FileFormatError(
                    f"{_shown(name)} line {lines.line_num}: has {len(cells)} cells, the first line "
                    f"names {width} columns"
                )


def _ndjson(name: str, text: TextIO) -> tuple[list[str], Iterator[Row]]:
    objects = _objects(name, text)
    first = next(objects, None)
    if first is None:
        raise FileFormatError(f"{_shown(name)}: is empty; it should hold a JSON object a line")
    names = list(first)
    return names, _values(names, first, objects)


def _values(
    names: list[str], first: dict[str, Any], objects: Iterator[dict[str, Any]]
) -> Iterator[Row]:
    yield [first[name] for name in names]
    for one in objects:
        yield [one.get(name) for name in names]


def _objects(name: str, text: TextIO) -> Iterator[dict[str, Any]]:
    shown = _shown(name)
    with _refusing(name):
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                other = "; if it is CSV, give --in-format csv" if number == 1 else ""
                message = f"{shown} line {number}: is not JSON ({error}){other}"
                raise FileFormatError(message) from error
            if not isinstance(found, dict):
                raise FileFormatError(
                    f"{shown} line {number}: is no JSON object; give one a line, with a value for "
                    "each column"
                )
            yield found


def _parquet(name: str) -> Table:
    if name == PIPE:
        raise InputError("Parquet cannot be read from a pipe: give a file, or pipe NDJSON")
    need("polars")
    import polars

    try:
        frame: Any = polars.scan_parquet(name)
        names = frame.collect_schema().names()
        size = int(frame.select(polars.len()).collect().item())
    except Exception as error:  # whatever its layers raise, the file cannot be read
        reason = (str(error).splitlines() or [""])[0]
        raise FileFormatError(f"{name}: cannot be read as Parquet ({reason})") from error
    read = [0]

    def rows() -> Iterator[Row]:
        for first in range(0, size, _SLICE):
            part = frame.slice(first, _SLICE).collect()
            read[0] = first + len(part)
            yield from part.iter_rows()

    return Table(name, list(names), rows(), lambda: read[0] / max(size, 1))
