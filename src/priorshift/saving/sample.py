"""A few held-out rows and what the model said of them: a wrong model is known by its answers."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.saving.values import Parts
from priorshift.source import Source
from priorshift.source.model import log_probabilities
from priorshift.source.source import SAMPLE as ROWS
from priorshift.typing import FloatArray

# Machines, BLAS libraries and thread counts differ by less; another model by far more.
TOLERANCE = 1e-4
_ENOUGH = 1e-3  # relative, for features, which have no scale of their own

# pandas' types that a list of plain values can be turned into again.
_FRAME_DTYPES = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "object", "str", "string", "boolean", "Int64", "Float64"),
}


def encode_sample(source: Source, parts: Parts) -> Any:
    """Return the kept rows with f0's answers for JSON, or the reason why that cannot be."""
    if source.sample is None:
        return {"reason": "no rows were kept"}
    from priorshift.saving.estimators import Writer  # it imports most of scikit-learn

    try:
        rows = _encode_rows(source.sample, Writer(parts, "sample"))
    except (InputError, RecursionError) as error:
        return {"reason": f"the rows are {type(source.sample).__name__}: {error}"}
    proba = source.model.predict_proba(source.sample)
    if not _agree(proba, source.model.predict_proba(source.sample)):
        return {"reason": "the model answers otherwise each time"}
    # Without a map of the user's own there is nothing to compare.
    own = source.features.map is None or source.features.map is log_probabilities
    features = None if own else source.features(source.sample)
    return {
        "rows": rows,
        "proba": parts.encode(np.ascontiguousarray(proba), "sample/proba"),
        "features": parts.encode(features, "sample/features"),
    }


class Sample(NamedTuple):
    """Held-out rows of a file, and what the saved model and features map made of them."""

    rows: Any
    proba: FloatArray
    features: FloatArray | None


def decode_sample(encoded: Any, parts: Parts) -> Sample | None:
    """Return the rows of a file; None where it holds none, or no pandas is there to hold them."""
    if tuple(encoded) == ("reason",):
        return None
    proba, features = (parts.decode(encoded[name]) for name in ("proba", "features"))
    for array in (proba, features):
        fits = isinstance(array, np.ndarray) and array.ndim == 2 and len(array) <= ROWS
        if not fits and not (array is features is None):
            raise FileFormatError("holds answers for something else than its few held-out rows")
    try:
        return Sample(_decode_rows(encoded["rows"], parts), proba, features)
    except ImportError:
        return None


def check_answers(sample: Sample | None, source: Source, asked: dict[str, str]) -> None:
    """Refuse a model or features map that answers otherwise than the saved one.

    Parameters
    ----------
    sample : Sample or None
    source : Source
        With the model and features map in question.
    asked : dict
        What to check, "estimator" or "features", and what it is called in the refusal.
    """
    if sample is None:
        return
    for role, name in asked.items():
        ask = source.model.predict_proba if role == "estimator" else source.features
        expected = sample.proba if role == "estimator" else sample.features
        if expected is None:
            continue
        try:
            found = ask(sample.rows)
        except Exception as error:  # a model of another kind of rows may fail in any way
            raise FileFormatError(
                f"{name} cannot read the {len(expected)} held-out rows of the file "
                f"({type(error).__name__}: {error}): pass the {role} that was saved"
            ) from error
        if not _agree(found, expected):
            raise FileFormatError(
                f"{name} answers otherwise than it did when saved, on the {len(expected)} held-out "
                f"rows of the file{_by_how_much(found, expected)}: pass the {role} that was saved"
            )


def _agree(found: FloatArray, expected: FloatArray) -> bool:
    if found.shape != expected.shape:
        return False
    return bool(np.allclose(found, expected, rtol=_ENOUGH, atol=TOLERANCE))


def _by_how_much(found: FloatArray, expected: FloatArray) -> str:
    if found.shape != expected.shape:
        return f" (shape {found.shape}, not {expected.shape})"
    return f" (by up to {np.abs(found - expected).max():.2g})"


def _encode_rows(rows: Any, writer: Any) -> Any:
    """Rows of any kind that a file can hold: arrays, sparse matrices, frames, lists of values."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(rows, pandas.DataFrame):
        return writer.encode(rows)
    columns = [[name, *_encode_column(rows.iloc[:, i])] for i, name in enumerate(rows.columns)]
    if not _frame(pandas, columns).equals(rows.reset_index(drop=True)):
        raise InputError("a frame with columns that no file can hold")
    return {"frame": writer.encode(columns)}


def _encode_column(column: Any) -> tuple[Any, ...]:
    dtype = column.dtype
    if str(dtype) == "category":
        categories = dtype.categories
        return (
            _plain(column),
            "category",
            (_plain(categories), str(categories.dtype), bool(dtype.ordered)),
        )
    if dtype.kind in "Mm" and isinstance(dtype, np.dtype):
        return column.to_numpy(), None, None
    if str(dtype) not in _FRAME_DTYPES:
        raise InputError(f"a frame with a column of type {dtype}")
    return _plain(column), str(dtype), None


def _plain(column: Any) -> list[Any]:
    """The values, None for a missing one of types that are not numbers."""
    values = [None if value is not value or value is None else value for value in column.tolist()]
    missing = [None if type(value).__name__ == "NAType" else value for value in values]
    return missing


def _frame(pandas: Any, columns: list[Any]) -> Any:
    made = []
    for name, values, dtype, about in columns:
        kind = dtype
        if dtype == "category":
            names, inner, ordered = about
            kind = pandas.CategoricalDtype(pandas.Index(names, dtype=inner), ordered=ordered)
        made.append(pandas.Series(values, dtype=kind, name=name))
    return pandas.concat(made, axis=1) if made else pandas.DataFrame()


def _decode_rows(encoded: Any, parts: Parts) -> Any:
    from priorshift.saving.estimators import Reader

    if not isinstance(encoded, dict) or tuple(encoded) != ("frame",):
        return Reader(parts).decode(encoded)
    columns = Reader(parts).decode(encoded["frame"])
    for _, values, dtype, about in columns:
        inner = about[1] if dtype == "category" else dtype
        if inner is not None and inner not in _FRAME_DTYPES:
            raise FileFormatError(f"holds a column of type {inner!r}")
        if not isinstance(values, list | np.ndarray) or len(values) > ROWS:
            raise FileFormatError("holds a column that is none")
    import pandas

    return _frame(pandas, columns)
