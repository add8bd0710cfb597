"""A few held-out rows and what the model said of them: a wrong model is known by its answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import FileFormatError
from priorshift.saving.frames import TABLES, make_table, table_columns, table_kind
from priorshift.saving.values import Parts
from priorshift.source import Source
from priorshift.source.model import log_probabilities
from priorshift.source.source import SAMPLE as ROWS
from priorshift.typing import FloatArray

# Machines, BLAS libraries and thread counts differ by less; another model by far more.
TOLERANCE = 1e-4
_ENOUGH = 1e-3  # relative, for features, which have no scale of their own


def encode_sample(source: Source, parts: Parts) -> Any:
    """Return the kept rows with f0's answers for JSON, or the reason why that cannot be."""
    if source.sample is None:
        return {"reason": "no rows were kept"}
    from priorshift.saving.estimators import Writer  # it imports most of scikit-learn

    try:
        rows = _encode_rows(source.sample, Writer(parts, "sample"))
        again = _decode_rows(rows, Parts(parts.arrays))
    except Exception as error:  # pandas and polars refuse in many ways, too
        return {"reason": f"the rows are {type(source.sample).__name__}: {error}"}
    proba = source.model.predict_proba(source.sample)
    # Without a map of the user's own there is nothing to compare.
    own = source.features.map is None or source.features.map is log_probabilities
    features = None if own else source.features(source.sample)
    try:
        check_answers(Sample(again, proba, features), source, {"estimator": "", "features": ""})
    except FileFormatError:  # it throws dice, or reads what the file does not keep, as an index
        return {"reason": "asked again with the same values, it answers otherwise"}
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
    """Return the rows of a file; None where it holds none, or their library is not installed."""
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
    kind = table_kind(rows)
    return writer.encode(rows) if kind is None else {kind: writer.encode(table_columns(kind, rows))}


def _decode_rows(encoded: Any, parts: Parts) -> Any:
    from priorshift.saving.estimators import Reader

    kind = next(iter(encoded)) if isinstance(encoded, dict) and len(encoded) == 1 else None
    if kind not in TABLES:
        return Reader(parts).decode(encoded)
    return make_table(kind, Reader(parts).decode(encoded[kind]))
