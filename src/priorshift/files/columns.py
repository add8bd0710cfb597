"""From the cells of rows to what a classifier reads, and to labels and times."""

from __future__ import annotations

import datetime
import importlib
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from priorshift._rows import frame_library
from priorshift._validation import check_positive, plain_labels
from priorshift.classifier import LabelShiftClassifier
from priorshift.errors import FileFormatError, InputError, PriorshiftError, SourceError
from priorshift.files.tables import Row, Table, listed
from priorshift.monitoring.history import as_seconds
from priorshift.typing import AnyArray, FloatArray

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_PARTS = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_MISSING = ("", "na", "nan", "null", "none", "n/a")
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
# What a whole number may end in, and times that are no seconds since 1970.
_DECIMALS = re.compile(r"(?<=\d)\.0+$")
_FAR = 1e11
# How models say that a cell has no value they can use, and that it holds text.
_ABOUT_GAPS = re.compile(r"\b(nan|infinity|non-finite|missing values?)\b", re.IGNORECASE)
_ABOUT_TEXT = re.compile(r"could not convert string to float: '(.*)'")


def is_missing(cell: Any) -> bool:
    """Tell whether a cell has no value.

    Examples
    --------
    >>> [is_missing(cell) for cell in ("", " NA", None, "0", 0.0)]
    [True, True, True, False, False]
    """
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def known_names(clf: LabelShiftClassifier) -> list[Any] | None:
    """The names of the columns that a classifier was fitted on; None where they had none."""
    names = getattr(clf, "feature_names_in_", None)
    if names is None:  # scikit-learn keeps only names that are all strings
        names = clf.__dict__.get("_names_in")
    return None if names is None else list(names)


def width_of(clf: LabelShiftClassifier) -> int | None:
    """How many columns a classifier reads that knows no names; None: any number, as dicts have.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> width_of(LabelShiftClassifier.from_probabilities(P, y, learner="fth"))
    2
    """
    width: int | None = getattr(clf, "n_features_in_", None)
    return 1 if width is None and not _is_dicts(clf.source_.sample) else width


def refused_by(kind: str) -> tuple[type[Exception], ...]:
    """What frames of a kind raise where they, or a model that reads them, cannot take a cell.

    Examples
    --------
    >>> refused_by("array")
    (<class 'ValueError'>, <class 'TypeError'>, <class 'OverflowError'>)
    """
    strange = (frame_library(kind).exceptions.PolarsError,) if kind == "polars" else ()
    return (ValueError, TypeError, OverflowError, *strange)


def number_table(
    rows: Sequence[Row], places: Sequence[int], table: Table, first: int
) -> FloatArray:
    """Return some columns as numbers (n, d), NaN where a cell is missing.

    ``first`` is the number of the first of the rows in the table, for messages.

    Examples
    --------
    >>> table = Table("pets.csv", ["name", "weight"], iter([]), lambda: None)
    >>> number_table([["Tom", "4.5"], ["Rex", ""]], [1], table, 0).tolist()
    [[4.5], [nan]]
    >>> number_table([["Tom", "heavy"]], [1], table, 7)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: pets.csv row 8, column 'weight': holds 'heavy', not a number
    """
    chosen = itemgetter(*places) if len(places) > 1 else lambda row: (row[places[0]],)
    try:
        return np.array([list(map(float, chosen(row))) for row in rows], dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        numbers = [
            [_number(row[place], table, first + i, place) for place in places]
            for i, row in enumerate(rows)
        ]
        return np.array(numbers, dtype=np.float64)


def _number(cell: Any, table: Table, row: int, place: int) -> float:
    if is_missing(cell):
        return math.nan
    try:
        return float(cell)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f"{table.where(row, place)}: holds {str(cell)[:40]!r}, not a number"
        ) from None


@contextmanager
def naming(table: Table, rows: Sequence[Row], first: int, places: Sequence[int]) -> Iterator[None]:
    """Say of a refusal which line of the table it is about, and which column, where that is known.

    ``rows`` are those that are being read, the first of which has the number ``first``, and
    ``places`` the columns that the model gets. Cells without a value are looked for only when they
    were refused: there are models that take them.

    Examples
    --------
    >>> table = Table("pets.csv", ["name", "weight"], iter([]), lambda: None)
    >>> with naming(table, [["Tom", "4.5"], ["Rex", ""]], 0, [1]):
    ...     raise ValueError("Input X contains NaN. Some model takes none.")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: pets.csv row 2, column 'weight': has no value (''), and the \
model takes no row without one: fill it or drop the row
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        if isinstance(error, PriorshiftError) and _about_no_row(error, table):
            raise
        raise InputError(_named(table, rows, first, places, error)) from error


def _about_no_row(error: PriorshiftError, table: Table) -> bool:
    """Whether a refusal of ours names its place itself, or is about a setting or a file."""
    if isinstance(error, SourceError | FileFormatError) or str(error).startswith(table.path):
        return True
    return getattr(error, "row", None) is None and not _ABOUT_GAPS.search(str(error))


def _named(
    table: Table, rows: Sequence[Row], first: int, places: Sequence[int], error: Exception
) -> str:
    start, some = 0, rows
    row = getattr(error, "row", None)
    if row is not None and row < len(rows):
        start, some = row, rows[row : row + 1]
    if _ABOUT_GAPS.search(str(error)) and (gap := _not_finite(some, places)) is not None:
        return _no_value(table, rows, first, start + gap[0], gap[1])
    if row is not None and row < len(rows):
        return f"{table.where(first + row)}: {getattr(error, 'problem', error)}"
    for text in _ABOUT_TEXT.findall(str(error))[:1]:
        for i, cells in enumerate(rows):
            for place in places:
                if str(cells[place]) == text:
                    return f"{table.where(first + i, place)}: holds {text[:40]!r}, not a number"
    return f"{table.where(first, last=first + len(rows) - 1)}: {error}"


def _not_finite(rows: Sequence[Row], places: Sequence[int]) -> tuple[int, int] | None:
    """The first cell without a finite value: the number of its row, from 0, and its place.

    A word for nothing, such as "none", may be a category: it counts where no cell is plainly empty.
    """
    for refused in (_is_empty, is_missing):
        for i, cells in enumerate(rows):
            for place in places:
                if refused(cells[place]):
                    return i, place
    return None


def _is_empty(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in ("", "nan") or _is_infinite(cell)


def _is_infinite(cell: Any) -> bool:
    try:
        return math.isinf(float(cell))
    except (ValueError, TypeError, OverflowError):
        return False


def _no_value(table: Table, rows: Sequence[Row], first: int, row: int, place: int) -> str:
    cell = rows[row][place]
    what = "is infinite" if _is_infinite(cell) else "has no value"
    return (
        f"{table.where(first + row, place)}: {what} ({cell!r}), and the model takes no row "
        f"{'with such a' if _is_infinite(cell) else 'without'} one: fill it or drop the row"
    )


def label_values(rows: Sequence[Row], place: int, classes: AnyArray) -> list[Any]:
    """Return the labels of rows as the classifier knows them, None where there is none.

    A label is known by how it is written: ``"1"`` in a CSV file is the class 1, and so is ``"1.0"``
    where no class is called so.

    Examples
    --------
    >>> label_values([["1"], [""], ["0.0"]], 0, np.array([0, 1]))
    [1, None, 0]
    """
    labels = plain_labels(classes)
    known = {**{_whole(label): label for label in labels}, **{str(one): one for one in labels}}

    def label_of(cell: Any) -> Any:
        found = known.get(str(cell).strip(), known.get(_whole(cell)))
        return cell if found is None else found

    found = [None if is_missing(row[place]) else label_of(row[place]) for row in rows]
    return plain_labels(found, classes)


def _whole(cell: Any) -> str:
    """A cell as text, a whole number without decimals: columns with gaps are written with them."""
    text = str(cell).strip()
    return _DECIMALS.sub("", text)


def typed_labels(cells: Sequence[Any]) -> AnyArray:
    """Return labels as whole numbers where all are such, 2.0 too, else as text.

    Examples
    --------
    >>> typed_labels(["1", "0.0"]).tolist(), typed_labels(["1", "b"]).tolist()
    ([1, 0], ['1', 'b'])
    """
    texts = [_whole(cell) for cell in cells]
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
        if list(map(str, numbers.tolist())) == texts:
            return numbers
    except (ValueError, OverflowError):
        pass
    return np.array([str(cell).strip() for cell in cells])


def seconds(cell: Any) -> float:
    """Return a time as seconds since 1970: a number, or ISO 8601 (without a zone, UTC).

    Examples
    --------
    >>> seconds("1970-01-01T01:00:00Z"), seconds("1970-01-02"), seconds("12.5")
    (3600.0, 86400.0, 12.5)
    """
    found = cell
    if isinstance(cell, str):
        with suppress(ValueError):
            found = float(cell)
    elif isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        found = datetime.datetime(cell.year, cell.month, cell.day)
    try:
        number = as_seconds(found)
    except PriorshiftError:
        number = math.nan
    if not abs(number) < _FAR * max(_PARTS.values()):
        raise InputError(
            f"holds {str(cell)[:40]!r}, not a time; give ISO 8601, as 2026-01-31T12:00, "
            "or seconds since 1970"
        )
    if abs(number) >= _FAR:
        unit, many = next((u, n) for u, n in _PARTS.items() if abs(number) / n < _FAR)
        raise InputError(
            f"holds {str(cell)[:40]!r}, which as seconds since 1970 is beyond the year 5000; if "
            f"they are {unit}, divide them by {many:,}"
        )
    return number


def time_span(given: str | float) -> float:
    """Return a span of time as seconds: a number of them, or a text as ``"1h"``.

    Examples
    --------
    >>> time_span("1h"), time_span("90s"), time_span("1.5d"), time_span(60)
    (3600.0, 90.0, 129600.0, 60.0)
    """
    if not isinstance(given, str):
        check_positive("window", given)
        return float(given)
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)", given.strip().lower())
    if found is None or found.group(2) not in _UNITS or float(found.group(1)) == 0:
        raise InputError(f"{given!r} will not do; give a span of time as 30s, 10min, 1h, 1d or 1w")
    return float(found.group(1)) * _UNITS[found.group(2)]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table a classifier reads, and as what.

    Parameters
    ----------
    table : Table
    places : list of int
        The columns, in the classifier's order.
    kind : str
        "array", "rows" (a list of texts, dicts or scores), "pandas" or "polars".
    sample : frame or list or None
        Rows of the held-out set, whose types those of the table get.
    words : bool
        Whether words such as NA stand for nothing in a column of text, as they do in files; False:
        None alone does.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> table = Table("some.csv", ["id", "p_no", "p_yes"], iter([]), lambda: None)
    >>> Columns.of(clf, table, apart=["id"]).X([["7", "0.5", "0.5"]], first=0).tolist()
    [[0.5, 0.5]]
    """

    table: Table
    places: list[int]
    kind: str
    sample: Any = None
    words: bool = True

    @classmethod
    def of(cls, clf: LabelShiftClassifier, table: Table, apart: Sequence[str] = ()) -> Columns:
        """Find the columns of a classifier: by their names, or all but those ``apart``."""
        kind, sample = str(clf.__dict__.get("_kind_in", "array")), clf.source_.sample
        names = known_names(clf)
        if names is not None:
            at = {name: place for place, name in enumerate(table.names)}
            found = [at.get(n) or table.place(n, "of the source") for n in map(str, names)]
            return cls(table, found, kind, sample)
        places = [i for i, name in enumerate(table.names) if name not in apart]
        width = width_of(clf)
        if width is not None and len(places) != width:
            shown = [table.names[place] for place in places]
            raise InputError(
                f"{table.path}: has {len(places)} columns to read ({listed(shown)}), the "
                f"source was made from {width} without names; leave the others out with --drop "
                "(drop= in Python)"
            )
        return cls(table, places, "rows" if width == 1 and kind == "rows" else kind, sample)

    def X(self, rows: Sequence[Row], first: int) -> Any:
        """Return the rows as the classifier takes them."""
        if self.kind == "rows":
            return self._list(rows, first)
        if self.kind == "array":
            if isinstance(self.sample, np.ndarray) and self.sample.dtype.kind == "b":
                columns = [self._truths(rows, place, first, gaps=False) for place in self.places]
                return np.array(columns).T
            return number_table(rows, self.places, self.table, first)
        return self._frame(rows, first)

    def _list(self, rows: Sequence[Row], first: int) -> Any:
        names = [self.table.names[place] for place in self.places]
        if _is_dicts(self.sample):
            return [dict(zip(names, (row[p] for p in self.places), strict=True)) for row in rows]
        if isinstance(self.sample, np.ndarray) and self.sample.dtype.kind in "fiu":
            return number_table(rows, self.places, self.table, first)[:, 0]
        return [self._text(row[self.places[0]], first + i) for i, row in enumerate(rows)]

    def _text(self, cell: Any, row: int) -> str:
        if isinstance(cell, str | int | float):
            return str(cell)
        raise InputError(f"{self.table.where(row, self.places[0])}: holds {cell!r:.40}, not a text")

    def _frame(self, rows: Sequence[Row], first: int) -> Any:
        library, names = frame_library(self.kind), [self.table.names[p] for p in self.places]
        if self.sample is None:
            columns = (guessed([row[place] for row in rows]) for place in self.places)
            return library.DataFrame(dict(zip(names, columns, strict=True)))
        names = list(self.sample.columns)
        try:
            if self.kind == "polars":
                return library.DataFrame(
                    [
                        self._polars_column(self.sample[name], rows, place, first)
                        for name, place in zip(names, self.places, strict=True)
                    ]
                )
            kinds = self.sample.dtypes.to_dict()
            if all(map(_is_number, kinds.values())):
                numbers = number_table(rows, self.places, self.table, first)
                return _typed(library.DataFrame(numbers, columns=names), kinds)
            columns = (
                self._pandas_column(self.sample[name], rows, place, first)
                for name, place in zip(names, self.places, strict=True)
            )
            return _typed(library.DataFrame(dict(zip(names, columns, strict=True))), kinds)
        except InputError:
            raise
        except refused_by(self.kind) as error:
            raise InputError(
                f"{self.table.where(first, last=first + len(rows) - 1)}: do not have the types of "
                f"the held-out set ({str(error).splitlines()[0]})"
            ) from error

    def _pandas_column(self, known: Any, rows: Sequence[Row], place: int, first: int) -> Any:
        if _is_number(known.dtype):
            return number_table(rows, [place], self.table, first)[:, 0]
        if _holds_truths(known):
            return self._truths(rows, place, first, gaps=known.dtype != bool)
        return [None if self._is_gap(row[place]) else row[place] for row in rows]

    def _polars_column(self, known: Any, rows: Sequence[Row], place: int, first: int) -> Any:
        kind = str(known.dtype)
        cells = [row[place] for row in rows]
        if kind == "Boolean":
            cells = self._truths(rows, place, first, gaps=True)
        elif kind.startswith(("String", "Categorical", "Enum")):
            cells = [None if self._is_gap(cell) else str(cell) for cell in cells]
        elif kind.startswith("Date"):  # and Datetime, with or without a zone
            read = datetime.date if kind == "Date" else datetime.datetime
            cells = [self._time(cell, read, first + i, place) for i, cell in enumerate(cells)]
        else:
            return type(known)(known.name, guessed(cells))
        return type(known)(known.name, cells, dtype=known.dtype)

    def _is_gap(self, cell: Any) -> bool:
        return is_missing(cell) if self.words else cell is None

    def _time(self, cell: Any, read: type[datetime.date], row: int, place: int) -> Any:
        if is_missing(cell):
            return None
        try:
            found = read.fromisoformat(str(cell).strip())
            if isinstance(found, datetime.datetime) and found.tzinfo:
                found = found.astimezone(datetime.UTC).replace(tzinfo=None)  # as polars counts
            return found
        except (ValueError, OverflowError):
            where, text = self.table.where(row, place), str(cell)[:40]
            raise InputError(f"{where}: holds {text!r}, no time in ISO 8601") from None

    def _truths(self, rows: Sequence[Row], place: int, first: int, gaps: bool) -> list[bool | None]:
        """A column of truth values; where there is none is None, if there may be ``gaps``."""
        found = []
        for i, row in enumerate(rows):
            cell = row[place]
            truth = _TRUTHS.get(str(cell).strip().lower())
            if truth is None and not (gaps and is_missing(cell)):
                where = self.table.where(first + i, place)
                text = repr(str(cell)[:40])
                what = f"has no value ({text})" if is_missing(cell) else f"holds {text}"
                raise InputError(
                    f"{where}: {what}, and the held-out set has truth values "
                    "there: give true or false, or 1 or 0"
                )
            found.append(truth)
        return found


def _typed(frame: Any, kinds: dict[Any, Any]) -> Any:
    """The frame of pandas with these types; numbers that a type would change stay as they are."""
    has = frame.dtypes.to_dict()
    others = {
        name: kind
        for name, kind in kinds.items()
        if has[name] != kind and _holds(kind, frame[name])
    }
    return frame.astype(others) if others else frame


def _holds(kind: Any, column: Any) -> bool:
    """Whether a type has a place for every number; a type of whole numbers may not."""
    if not importlib.import_module("pandas").api.types.is_integer_dtype(kind):
        return True
    limits = np.iinfo(getattr(kind, "numpy_dtype", kind))  # types of pandas name NumPy's
    numbers = np.asarray(column, dtype=np.float64)
    if not isinstance(kind, np.dtype):  # one of those of pandas, in which values may be missing
        numbers = numbers[~np.isnan(numbers)]
    inside = (numbers >= limits.min) & (numbers < float(limits.max) + 1.0)
    return bool((inside & (numbers == np.floor(numbers))).all())


def _is_number(kind: Any) -> bool:
    """Whether a type of pandas holds numbers; truth values are none."""
    types = importlib.import_module("pandas").api.types
    return bool(types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind))


def _holds_truths(known: Any) -> bool:
    """Whether a column of pandas holds truth values, perhaps with gaps among them."""
    if known.dtype == object:
        there = known.dropna()
        return len(there) > 0 and all(isinstance(cell, bool | np.bool_) for cell in there)
    return bool(importlib.import_module("pandas").api.types.is_bool_dtype(known.dtype))


def guessed(cells: Sequence[Any]) -> Any:
    """Return a column as numbers or truth values where all cells are or are missing, else as texts.

    Examples
    --------
    >>> guessed(["1", "", "2.5"]).tolist(), guessed(["1", "b"])
    ([1.0, nan, 2.5], ['1', 'b'])
    >>> guessed(["True", "", "false"])
    [True, None, False]
    """
    try:
        return np.array([math.nan if is_missing(cell) else float(cell) for cell in cells])
    except (ValueError, TypeError, OverflowError):
        texts = [None if is_missing(cell) else str(cell) for cell in cells]
    truths = [None if text is None else _TRUTHS.get(text.strip().lower()) for text in texts]
    words = all(text is None or text.strip().lower() in ("true", "false") for text in texts)
    return truths if words else texts


def _is_dicts(sample: Any) -> bool:
    return isinstance(sample, list) and bool(sample) and isinstance(sample[0], dict)
