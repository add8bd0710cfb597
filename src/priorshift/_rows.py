"""Rows of whatever a model reads: looked at, counted, and taken.

X goes to the model as it is. All that is asked of it here is that it has rows: arrays of any
number of dimensions, sparse matrices, data frames, and lists of anything.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from priorshift._extras import need
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import IntArray


def is_frame(X: object) -> bool:
    """Say whether ``X`` is a data frame (pandas, polars or alike).

    Examples
    --------
    >>> is_frame([[1.0]])
    False
    """
    return hasattr(X, "__array__") and hasattr(X, "columns")


def frame_library(kind: str) -> Any:
    """The library of a kind of frames, polars or pandas: a name from a file imports no other.

    Examples
    --------
    >>> frame_library("pandas").__name__, frame_library("antigravity").__name__
    ('pandas', 'pandas')
    """
    name = "polars" if kind == "polars" else "pandas"
    need(name)
    return importlib.import_module(name)


def from_arrow(X: Any, library: str | None = None) -> Any:
    """Return a table of Arrow as a frame, and anything else as it is.

    Whatever hands out Arrow's C stream is such a table: those of pyarrow, DuckDB and others.

    Parameters
    ----------
    library : {"pandas", "polars"}, optional
        The frame's; by default polars.

    Examples
    --------
    >>> from_arrow([[1.0]])
    [[1.0]]
    """
    owner = type(X).__module__.split(".")[0]
    if not hasattr(X, "__arrow_c_stream__") or owner in ("pandas", "polars"):
        return X
    need("polars")
    import polars

    frame: Any = polars.DataFrame(X)
    if library == "array":
        return frame.to_numpy()
    if library != "pandas":
        return frame
    need("pandas")
    import pandas

    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def n_rows(X: Any, where: str = "X") -> int:
    """Return the number of rows of ``X``.

    Examples
    --------
    >>> n_rows(np.zeros((3, 28, 28))), n_rows(["a text", "another"]), n_rows([{"age": 3.0}])
    (3, 2, 1)
    >>> n_rows("a text")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: X is one str, not rows: pass a list of them
    """
    if isinstance(X, str | bytes | dict) and not sparse.issparse(X):  # one kind of those is a dict
        raise InputTypeError(f"{where} is one {type(X).__name__}, not rows: pass a list of them")
    shape = getattr(X, "shape", None)
    if shape is not None:
        if len(shape) == 0:
            raise InputError(
                f"{where} is one value, not rows (0 dimensions). Reshape your data with "
                f"{where}.reshape(1, -1) if it is one row"
            )
        return int(shape[0])
    if not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise InputTypeError(
            f"{where} is {type(X).__name__}, whose rows cannot be counted and taken in order: pass "
            "an array, a frame, a sparse matrix or a list"
        )
    return len(X)


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows of ``X``, as the same kind of thing.

    Examples
    --------
    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    >>> take_rows(np.eye(3), np.array([1])).tolist()
    [[0.0, 1.0, 0.0]]
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "shape") or hasattr(X, "columns"):
        return X[rows]
    return [X[int(row)] for row in rows]


def as_rows(X: Any, where: str = "X") -> Any:
    """Return ``X`` as models get it, or say what is wrong with it.

    Lists of lists of numbers become arrays, and so do objects that are arrays in disguise; all else
    stays as it is. What no model can see is refused: no rows at all, a masked value, NaT in an
    array of dates.

    Examples
    --------
    >>> as_rows([[1, 2], [3, 4]]).shape, as_rows(["one text"])
    ((2, 2), ['one text'])
    >>> as_rows([])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: X is empty (0 sample(s), shape=(0,)): skip empty batches
    """
    if type(X) is np.ndarray and X.ndim and X.size and X.dtype.kind in "biuf":
        return X  # the usual case, at once
    if isinstance(X, list | tuple):
        X = _numbers_as_array(X)
    elif not hasattr(X, "shape") and hasattr(X, "__array__"):
        X = np.asarray(X)
    if n_rows(X, where) == 0:
        shape = f", shape={tuple(X.shape)}" if hasattr(X, "shape") else ""
        raise InputError(f"{where} is empty (0 sample(s){shape}): skip empty batches")
    if isinstance(X, np.ma.MaskedArray):
        refuse_cell(np.ma.getmaskarray(X), "a masked value", where)
        return X.data
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        refuse_cell(np.isnat(X), "NaT", where)
    return X


def _numbers_as_array(X: Any) -> Any:
    """A list of numbers, or of rows of numbers, as an array; any other list as it is."""
    first = X[0] if len(X) else None
    if isinstance(first, str | bytes | dict):
        return X
    try:
        masked = any(isinstance(row, np.ma.MaskedArray) for row in X)
        array = np.ma.stack(X) if masked else np.asarray(X)
    except (ValueError, TypeError):  # ragged: it may be what the model wants
        return X
    return array if array.dtype.kind in "biufc" else X


def refuse_cell(bad: Any, kind: str, where: str) -> None:
    """Refuse an array with a cell of which ``bad`` says that it is none, and name the first.

    Examples
    --------
    >>> refuse_cell(np.array([False, True]), "NaT", "X")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: X has NaT in row 1: fill or drop it first
    """
    if bad.any():
        row, *place = (int(index) for index in np.argwhere(bad)[0])
        column = f", column {place[0]}" if place else ""
        raise InputError(f"{where} has {kind} in row {row}{column}: fill or drop it first")


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a frame, None for all else.

    Examples
    --------
    >>> column_names([[1.0]]) is None
    True
    """
    return list(X.columns) if is_frame(X) else None


def missing_text(X: Any) -> int | None:
    """The first row without a text among rows that are texts; None for all else.

    Examples
    --------
    >>> missing_text(["a text", None]), missing_text(["a text"]), missing_text([0.5, None])
    (1, None, None)
    """
    if is_frame(X) or len(getattr(X, "shape", ("rows",))) != 1:
        return None
    rows = list(X)
    if not any(isinstance(row, str) for row in rows):
        return None
    return next((at for at, row in enumerate(rows) if not isinstance(row, str | bytes)), None)


def wrong_rows(found: int, X: Any) -> str:
    """What to say of a model that returned so many rows, and not as many as X has.

    Examples
    --------
    >>> wrong_rows(1, ["a text", "another"])
    'the model returned 1 row for 2 rows of X'
    """
    said = f"the model returned {found} row{'s' * (found != 1)} for {n_rows(X)} rows of X"
    names = column_names(X)
    if names is not None and len(names) == found:
        said += (
            ": it reads the names of the columns, as models of texts do. Pass a list or a series, "
            f"X[{names[0]!r}]"
        )
    return said
