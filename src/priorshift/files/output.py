"""Rows written to a file or a pipe; a file can be cut back to where a run was sure of it."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from priorshift._extras import need
from priorshift.errors import InputError, PriorshiftError, PriorshiftWarning
from priorshift.files.tables import PIPE, format_of
from priorshift.saving.archive import replacing
from priorshift.typing import FloatArray

# Nine digits tell apart any two probabilities that matter, and take a third of the time of all.
_NUMBER = "%.9g"


class Output:
    r"""A table that is being written: kept cells, batch, label, probabilities, class prior.

    Parameters
    ----------
    file : binary file
    keep : sequence of str
        Columns of the input that are written as they were.
    classes : list
        The labels.
    kind : {"csv", "ndjson"}

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> output = Output(file, ["id"], ["no", "yes"], "ndjson")
    >>> output.write(0, [["7"]], [1], np.array([[0.25, 0.75]]), np.array([0.5, 0.5]))
    >>> print(file.getvalue().decode(), end="")
    {"id": "7", "batch": 0, "label": "yes", "p_no": 0.25, "p_yes": 0.75, "prior_no": 0.5, ...}
    """

    def __init__(
        self, file: BinaryIO, keep: Sequence[str], classes: Sequence[Any], kind: str
    ) -> None:
        self._file, self._kind = file, kind
        self._cell = _csv_cell if kind == "csv" else _json_cell
        self._labels = [self._cell(label) for label in classes]
        self._names = column_names(keep, classes)
        self._kept = len(keep)

    def start(self) -> None:
        """Write what comes before all rows."""
        if self._kind == "csv":
            self._file.write((",".join(map(_csv_cell, self._names)) + "\n").encode())

    def write(
        self,
        batch: int,
        kept: Sequence[Sequence[Any]],
        best: Sequence[int],
        proba: FloatArray,
        prior: FloatArray,
    ) -> None:
        """Write the rows of a batch; ``best`` are indices of classes.

        ``prior`` is one class prior (K,), or one for each row (n, K).
        """
        line, cell, labels = self._template(batch, prior), self._cell, self._labels
        numbers = proba.tolist()
        if prior.ndim == 2:
            numbers = [[*row, *own] for row, own in zip(numbers, prior.tolist(), strict=True)]
        lines = [
            line % (*map(cell, first), labels[label], *row)
            for first, label, row in zip(kept, best, numbers, strict=True)
        ]
        self._file.write("".join(lines).encode())
        self._file.flush()

    def _template(self, batch: int, prior: FloatArray) -> str:
        """A line of the batch, with places for what differs from row to row."""
        cells = ["%s"] * self._kept + [str(batch), "%s"] + [_NUMBER] * prior.shape[-1]
        if prior.ndim == 1:
            cells += [_NUMBER % share for share in prior.tolist()]
        else:
            cells += [_NUMBER] * prior.shape[-1]
        if self._kind == "csv":
            return ",".join(cells) + "\n"
        names = (_json_cell(name).replace("%", "%%") for name in self._names)
        pairs = (f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        return "{" + ", ".join(pairs) + "}\n"

    def sure(self) -> int:
        """Return the size of the file, once all of it is on the disk; 0 for a pipe."""
        if not self._file.seekable():
            return 0
        os.fsync(self._file.fileno())
        return self._file.tell()


def column_names(keep: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """Return the names of the columns.

    Examples
    --------
    >>> column_names(["id"], ["no", "yes"])
    ['id', 'batch', 'label', 'p_no', 'p_yes', 'prior_no', 'prior_yes']
    """
    made = [f"{what}_{label}" for what in ("p", "prior") for label in classes]
    names = [*keep, "batch", "label", *made]
    for name in keep:
        if names.count(name) > 1:
            raise InputError(f"--keep {name}: the output has a column of that name already")
    return names


def _csv_cell(value: Any) -> str:
    text = "" if value is None else str(value)
    if any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _json_cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@contextmanager
def open_output(
    path: str,
    keep: Sequence[str],
    classes: Sequence[Any],
    kind: str | None = None,
    size: int | None = None,
) -> Iterator[Output]:
    """Open a table for writing: an old one stays until the new one is whole.

    With a ``size`` so many bytes of it are kept, and the file is written as rows come. A Parquet
    file is written at the end, from a CSV file beside it that is then removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for size in (None, 14):
    ...         with open_output(f"{folder}/out.csv", [], ["a"], size=size) as output:
    ...             output.start() if size is None else None
    ...     open(f"{folder}/out.csv").read()
    'batch,label,p_'
    """
    if path.endswith((".gz", ".tsv")):
        raise InputError(f"{path}: output is CSV, NDJSON or Parquet: name it so, compress it later")
    kind = format_of(path, kind)
    if path == PIPE:
        yield Output(sys.stdout.buffer, keep, classes, kind)
        return
    if kind == "parquet":
        need("polars")
    place, whole = spool_of(path, kind), size is None and not _is_stream(path)
    try:
        with _whole(place) if whole and kind != "parquet" else _cut(place, size or 0) as file:
            yield Output(file, keep, classes, "csv" if kind == "parquet" else kind)
            if kind == "parquet":
                file.flush()
                _to_parquet(place, path, column_names(keep, classes))
        if kind == "parquet":
            os.unlink(place)
    except BaseException as error:
        if whole and kind == "parquet":
            with suppress(FileNotFoundError):
                os.unlink(place)
        if whole and isinstance(error, PriorshiftError):
            old = ", what was there stays" if os.path.exists(path) else ""
            raise type(error)(f"{error}; nothing was written to {path}{old}") from error
        raise


def _is_stream(path: str) -> bool:
    """Whether a path leads to a pipe or a device, which have no old content to keep."""
    return path.startswith(("/dev/std", "/dev/fd/", "/proc/")) or (
        os.path.exists(path) and not os.path.isfile(path)
    )


def _whole(path: str) -> AbstractContextManager[BinaryIO]:
    """A new file that takes the place of the old one when it is whole; links are followed."""
    return replacing(Path(os.path.realpath(path)), rights=0o666)


def tell_of_old(path: str, option: str) -> None:
    """Say that an output is replaced: it may be the one of another input."""
    if path != PIPE and os.path.isfile(path) and (size := os.path.getsize(path)):
        warnings.warn(
            f"{path}: was there already, with {size:,} bytes, and this run replaces it; to keep "
            f"it, give another {option}",
            PriorshiftWarning,
            stacklevel=3,
        )


def spool_of(path: str, kind: str) -> str:
    """Return the file that rows are appended to: beside a Parquet file, which has an end.

    Examples
    --------
    >>> spool_of("out.parquet", "parquet"), spool_of("out.csv", "csv")
    ('out.parquet.part.csv', 'out.csv')
    """
    return f"{path}.part.csv" if kind == "parquet" else path


@contextmanager
def _cut(path: str, size: int) -> Iterator[BinaryIO]:
    """The file, open behind its first ``size`` bytes, with nothing after them."""
    if size and (not os.path.isfile(path) or os.path.getsize(path) < size):
        found = os.path.getsize(path) if os.path.isfile(path) else 0
        raise InputError(
            f"{path}: has {found} bytes, the state file says {size}: put the file back, or remove "
            "the state file to start again"
        )
    with open(path, "r+b" if size else "wb") as file:
        if file.seekable():
            file.truncate(size)
            file.seek(size)
        yield file


def _to_parquet(place: str, path: str, names: Sequence[str]) -> None:
    import polars

    made = names[names.index("label") + 1 :]
    numbers = {name: polars.Float64 for name in made}
    lines: Any = polars.scan_csv(place, schema_overrides=numbers, infer_schema_length=None)
    try:
        lines.sink_parquet(f"{path}.part")
        os.replace(f"{path}.part", path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}.part")
