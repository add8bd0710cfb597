"""Rows of a request as what a classifier reads, and refusals that name the row and the cell."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from priorshift.classifier import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.files.columns import Columns, known_names, naming, width_of
from priorshift.files.tables import Table, listed
from priorshift.river import row_kind

_LONG = 40
_LARGEST = int(sys.float_info.max)


def _table(names: Sequence[Any]) -> Table:
    return Table("batch", list(map(str, names)), iter(()), lambda: None)


def rows_of(
    clf: LabelShiftClassifier,
    names: Sequence[str],
    rows: Any,
    classes: Sequence[Any] | None,
    typed: bool = False,
) -> Any:
    """Return rows whose cells have names, in the classifier's order and as what it reads.

    ``classes`` are those whose probabilities the cells are: their names will do, too, where the
    classifier knows others. A classifier that was made from an array knows no names: there the
    order is trusted. Cells are as in a file, unless they are ``typed``: then None alone is no
    value.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> rows_of(clf, ["p_yes", "p_no"], [["0.25", 0.75]], ["no", "yes"]).tolist()
    [[0.75, 0.25]]
    """
    names = list(names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"columns holds {twice[0][:_LONG]!r} twice: give each a name of its own")
    if not names:
        raise InputError("columns is empty: name each cell of a row, or leave it out")
    if not rows:
        raise InputError("the batch is empty: skip empty batches")
    check_width(rows, names)
    table = _table(names)
    known = known_names(clf)
    if classes is not None and not (known and set(map(str, known)) <= set(names)):
        places = _places(names, list(map(str, classes)), known)
        found = Columns(table, places, row_kind(clf), clf.source_.sample)
    else:
        width = width_of(clf)
        if known is None and width not in (None, len(names)):
            read = "1 is read" if width == 1 else f"{width} are read, in their order"
            raise InputError(f"there are {len(names)} columns, and {read}")
        found = Columns.of(clf, table)
    found = replace(found, words=not typed)
    with naming(table, rows, 0, found.places):
        return found.X(rows, 0)


def _places(names: list[str], classes: list[str], known: list[Any] | None) -> list[int]:
    """Where the columns are that are named after the classes, which may all have one prefix."""
    more = sum(map(len, names)) - sum(map(len, classes))  # the prefix, once for each name
    cut = more // len(classes)
    if len(names) == len(classes) and more >= 0 and len({name[:cut] for name in names}) == 1:
        places = {name[cut:]: place for place, name in enumerate(names)}
        if set(places) == set(classes):
            return [places[name] for name in classes]
    own = "" if known is None else f"{listed(known)}, or "
    raise InputError(
        f"the columns are called {listed(names)}: name them {own}after the classes, "
        f"{listed(classes)}"
    )


def check_width(rows: Any, names: Sequence[Any]) -> None:
    """Refuse rows that have not one cell for each name.

    Examples
    --------
    >>> check_width([[1.0, 2.0], [3.0]], ["a", "b"])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: row 2 has 1 values: each is a list of 2, in the order a, b
    """
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            what = f"has {len(row)} values" if isinstance(row, list) else "is no list"
            order = listed(names)
            raise InputError(
                f"row {number} {what}: each is a list of {len(names)}, in the order {order}"
            )


def wrong_row(rows: Any, width: int | None) -> str:
    """What is wrong with rows that are no table of numbers.

    Examples
    --------
    >>> wrong_row([[1.0, 2.0], [3.0, "x"]], 2)
    "row 2, value 2 holds 'x', no number or null"
    >>> wrong_row([1.0, 2.0], 2)
    'row 1 is no list of 2 numbers'
    """
    if not isinstance(rows, list):
        return f"the tensor has the shape {list(rows.shape)}, not [-1, {width}]"
    wanted = "numbers" if width is None else f"{width} numbers"
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            return f"row {number} is no list of {wanted}"
        if len(row) != (width or len(rows[0])):
            return f"row {number} has {len(row)} values, not {width or len(rows[0])}"
        for place, cell in enumerate(row, start=1):
            if isinstance(cell, str | list | dict):
                shown = str(cell)[:_LONG]
                return f"row {number}, value {place} holds {shown!r}, no number or null"
            if isinstance(cell, int) and abs(cell) > _LARGEST:
                return f"row {number}, value {place} is too large for a number"
    return f"there is no list of {wanted}"


def text_in_numbers(rows: Any, names: Sequence[Any] | None, sample: Any) -> str | None:
    """What is wrong with the first text where the held-out set has numbers; None: there is none.

    Examples
    --------
    >>> import pandas
    >>> text_in_numbers([[1.0, "1"]], ["a", "b"], pandas.DataFrame({"a": [0.5], "b": [1]}))
    "batch row 1, column 'b': holds '1', a text, and the model reads numbers there: send a number, \
or `columns` too, and text is read as in a CSV file"
    """
    if names is None or sample is None:
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None  # which is what is wrong with them
    numeric = [np.asarray(sample[name]).dtype.kind in "iuf" for name in names]
    for number, row in enumerate(rows, start=1):
        for name, wanted, cell in zip(names, numeric, row, strict=True):
            if wanted and isinstance(cell, str):
                return (
                    f"batch row {number}, column {str(name)!r}: holds {cell[:_LONG]!r}, a text, "
                    "and the model reads numbers there: send a number, or `columns` too, and text "
                    "is read as in a CSV file"
                )
    return None


def said_of_rows(error: Exception, rows: Any, names: Sequence[Any] | None) -> str:
    """What a model has refused, in one line, with the row and the cell where these are known.

    Examples
    --------
    >>> said_of_rows(ValueError("Input contains NaN"), [[1.0, None]], ["a", "b"])
    "batch row 1, column 'b': has no value (None), and the model takes no row without one: \
fill it or drop the row"
    """
    if isinstance(rows, list) and rows and isinstance(rows[0], list):
        names = range(1, len(rows[0]) + 1) if names is None else names
        if all(isinstance(row, list) and len(row) == len(names) for row in rows):
            try:
                with naming(_table(names), rows, 0, range(len(names))):
                    raise error
            except Exception as named:  # the same one, where it is about no cell
                error = named
    return " ".join(str(error).split())
