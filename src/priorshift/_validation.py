"""Looking at what users hand in, before anything is computed from it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from priorshift._numerics import row_sums
from priorshift._rows import as_rows, column_names, is_frame, refuse_cell
from priorshift.errors import InputError, InputTypeError, PriorshiftError, PriorshiftWarning
from priorshift.typing import AnyArray, FloatArray, IntArray

_TOLERANCE = 1e-6
SUM_TOLERANCE = 1e-3
"""How far from 1 the sum of class probabilities may be, as numbers that were rounded are."""
# Sums that are off by more are not those of rounded rows, however many classes there are.
_ROUNDED = 0.05
# The class index of a row whose label is not known.
UNKNOWN = -1
_FORMS = "give one for each row, None where it is not known, or a dict {row: label}"


def as_matrix(X: Any, width: int | None = None, where: str = "X") -> FloatArray:
    """Return ``X`` as a finite float64 matrix with at least one row, or say what is wrong with it.

    Examples
    --------
    >>> as_matrix([[1, 2]]).tolist()
    [[1.0, 2.0]]
    >>> as_matrix([[1.0, float("nan")]])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: X has NaN in row 0, column 1 (1 such value): fill or drop it first
    """
    matrix = as_numbers(X, width, where)
    if not np.isfinite(matrix).all():
        check_finite(matrix, where, column_names(X))
    return matrix


def as_numbers(X: Any, width: int | None = None, where: str = "X") -> FloatArray:
    """Return ``X`` as a float64 matrix with at least one row, which may hold NaN and infinity.

    Examples
    --------
    >>> as_numbers([[1, float("nan")]]).tolist()
    [[1.0, nan]]
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype == np.float64:
        _check_width(X.shape[1], width, where)
        return X  # the usual case, at once
    X = as_rows(X, where)
    if sparse.issparse(X):
        _check_width(X.shape[1], width, where)
        X = X.toarray()
    matrix = _frame_as_floats(X, where) if is_frame(X) else _as_floats(X, where)
    if matrix.ndim != 2:
        raise InputError(
            f"{where} has {matrix.ndim} dimension(s), 2 are needed (rows, columns). Reshape your "
            f"data with {where}.reshape(1, -1) if it is one row, with {where}.reshape(-1, 1) if it "
            "is one column"
        )
    _check_width(matrix.shape[1], width, where)
    return matrix


def _check_width(columns: int, width: int | None, where: str) -> None:
    if width is not None and columns != width:
        raise InputError(
            f"{where} has {columns} columns, but the held-out set had {width}: "
            "pass the same columns in the same order"
        )


def check_finite(matrix: AnyArray, where: str, names: list[Any] | None = None) -> None:
    """Refuse a table of numbers (n, d) with NaN or infinity in it, and say where that is.

    Examples
    --------
    >>> check_finite(np.array([[1.0, 2.0]]), "X0")
    """
    if not np.isfinite(matrix).all():
        bad = np.argwhere(~np.isfinite(matrix))
        row, column = bad[0]
        kind = "NaN" if np.isnan(matrix[row, column]) else "infinity (inf)"
        raise InputError(
            f"{where} has {kind} in row {row}, column {column if names is None else names[column]} "
            f"({len(bad)} such value{'s' if len(bad) > 1 else ''}): fill or drop it first",
            row=int(row),
            problem=f"has {kind}: fill or drop it first",
        )


def _frame_as_floats(X: Any, where: str) -> FloatArray:
    """The numbers of a frame; what is none is refused with the name of its column."""
    kinds = [str(kind) for kind in X.dtypes]
    try:
        if "category" in kinds:  # numbers that stand for categories are no numbers
            raise InputError(f"{where} has categories")
        return _as_floats(X, where)
    except PriorshiftError:
        for i, (name, kind) in enumerate(zip(X.columns, kinds, strict=True)):
            if kind == "category":
                raise InputError(
                    f"column {name!r} of {where} holds categories, numbers are needed: encode it "
                    "first"
                ) from None
            column = X.iloc[:, i] if hasattr(X, "iloc") else X[:, i]
            _as_floats(column, f"column {name!r} of {where}")
        raise


def as_floats(values: Any, where: str) -> FloatArray:
    """Return numbers of any shape as float64; what is masked, or no real number, is refused.

    Examples
    --------
    >>> as_floats([1, 2], "prior").tolist()
    [1.0, 2.0]
    >>> as_floats([10**400], "prior")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: prior cannot be read as numbers: int too large to convert to float
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if isinstance(values, np.ma.MaskedArray):
        refuse_cell(np.ma.getmaskarray(values), "a masked value", where)
    return _as_floats(values.toarray() if sparse.issparse(values) else values, where)


def _as_floats(X: Any, where: str) -> FloatArray:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{where} is ragged, its rows differ in length: {error}") from None
    if np.iscomplexobj(array):
        raise InputError(f"{where} is complex. Complex data not supported: pass real numbers")
    if array.dtype == object:
        missing = np.frompyfunc(is_no_value, 1, 1)(array).astype(bool)
        array = np.where(missing, np.nan, array)
        first = array[~missing][0] if not missing.all() else np.nan
    else:
        first = array.flat[0] if array.size else None
    if array.dtype.kind in "SUT" or isinstance(first, str):
        raise InputError(f"{where} holds text ({array.dtype}), numbers are needed: encode it first")
    if array.dtype.kind in "mM":
        raise InputError(
            f"{where} holds dates ({array.dtype}), numbers are needed: encode it first"
        )
    if array.dtype == object and array.size and not hasattr(first, "__float__"):
        raise InputTypeError(
            f"{where} holds {type(first).__name__} objects: argument must be a string or a "
            "number, and text has to be encoded as numbers first"
        )
    try:
        return np.asarray(array, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{where} cannot be read as numbers: {error}") from None


def as_labels(y: Any, n_rows: int, where: str = "y") -> AnyArray:
    """Return ``y`` as a vector of ``n_rows`` class labels.

    Examples
    --------
    >>> as_labels(["cat", "dog"], 2).tolist()
    ['cat', 'dog']
    """
    if y is None:
        raise InputError(
            f"{where} is None: the offline stage requires y to be passed, but the target y is None"
        )
    check_labelled(y, where)
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"{where} has shape {labels.shape}: one label a row is needed, shape (n,)")
    if len(labels) != n_rows:
        raise InputError(f"{where} has {len(labels)} labels for {n_rows} rows: they must match")
    if labels.dtype.kind in "fM" and not np.isfinite(labels).all():
        raise InputError(f"{where} has NaN or infinity among the labels: drop those rows")
    return labels


def plain_labels(labels: Any, classes: AnyArray | None = None) -> list[Any]:
    """Return labels as Python's own values, fit to be keys; dates stay NumPy's.

    NumPy's own lists have whole numbers for dates in nanoseconds. Where ``classes`` are dates, a
    label that is a date, as NumPy's, an object or ISO 8601, gets their unit: equal dates are one
    key.

    Examples
    --------
    >>> plain_labels(np.array([3, 5])), plain_labels([np.str_("cat"), None])
    ([3, 5], ['cat', None])
    >>> day, none = plain_labels(["2020-01-01", None], np.array(["2020-01-01T00"], "M8[h]"))
    >>> str(day), none
    ('2020-01-01T00', None)
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "M" and labels.ndim == 1:
        found = list(labels)
    elif hasattr(labels, "tolist"):
        found = labels.tolist()
    else:
        found = [label.item() if _has_item(label) else label for label in labels]
    if classes is None or classes.dtype.kind != "M":
        return found
    return [_as_date(label, classes) for label in found]


def json_labels(labels: Any, classes: AnyArray | None = None) -> list[Any]:
    """Return ``plain_labels`` for JSON: dates are text, which it makes dates again.

    Examples
    --------
    >>> json_labels(np.array(["2020-01-01"], "M8[s]"))
    ['2020-01-01T00:00:00']
    """
    found = plain_labels(labels, classes)
    return [str(label) if isinstance(label, np.datetime64) else label for label in found]


def _has_item(label: Any) -> bool:
    return isinstance(label, np.generic) and not isinstance(label, np.datetime64)


def _as_date(label: Any, classes: AnyArray) -> Any:
    """The label in the unit of ``classes``; as it is where it is no date of theirs."""
    try:
        # A time stamp of pandas' may have nanoseconds, which NumPy would leave out.
        date = label.to_datetime64() if hasattr(label, "to_datetime64") else np.datetime64(label)
        found = date.astype(classes.dtype)
    except (ValueError, TypeError, OverflowError):
        return label
    return found if found == date else label


def check_labelled(y: Any, where: str = "y") -> None:
    """Refuse labels of which one is missing (None, NaN, ``pandas.NA``, masked), or no label.

    Examples
    --------
    >>> check_labelled(["cat", None])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: y has no label in row 1: the held-out set needs one for every \
row, drop those without
    >>> check_labelled(["cat", 3])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: y has labels of the types int and str, which have no common \
order: make them all strings, or all numbers
    """
    listed = getattr(y, "tolist", getattr(y, "to_list", None))
    labels = y if listed is None else plain_labels(y)
    if not isinstance(labels, list | tuple):
        return
    for row, label in enumerate(labels):
        if is_unknown(label):
            raise InputError(
                f"{where} has no label in row {row}: the held-out set needs one for every row, "
                "drop those without",
                row=row,
                problem="has no label: the held-out set needs one for every row, drop this one",
            )
    if labels and not isinstance(labels[0], list | tuple | np.ndarray):
        _check_order(labels, where)


def _check_order(labels: Any, where: str) -> None:
    try:
        sorted(set(labels))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        if kinds == ["complex"]:
            raise InputError(
                f"{where} is complex. Complex data not supported: use real numbers"
            ) from None
        if len(kinds) == 1:
            raise InputTypeError(
                f"{where} has labels of the type {kinds[0]}: use numbers or strings"
            ) from None
        raise InputTypeError(
            f"{where} has labels of the types {' and '.join(kinds)}, which have no common order: "
            "make them all strings, or all numbers"
        ) from None


def class_indices(labels: AnyArray, classes: AnyArray, where: str = "y") -> IntArray:
    """Turn labels into indices of the sorted vector ``classes``.

    Examples
    --------
    >>> import numpy as np
    >>> class_indices(np.array(["b", "a"]), np.array(["a", "b"])).tolist()
    [1, 0]
    """
    indices = np.searchsorted(classes, labels)
    known = indices < len(classes)
    known[known] = classes[indices[known]] == labels[known]
    if not known.all():
        strange = plain_labels(np.unique(labels[~known])[:5])
        raise InputError(f"{where} has labels that the model does not know: {strange}")
    return indices.astype(np.intp)


def two_columns(p: AnyArray, n_classes: int) -> AnyArray:
    """Return ``p`` (n,) or (n, 1), the second of two classes, as (n, 2); all else as it is.

    Examples
    --------
    >>> two_columns(np.array([0.25, 1.0]), 2).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    if n_classes != 2 or not (p.ndim == 1 or (p.ndim == 2 and p.shape[1] == 1)):
        return p
    return np.column_stack([1.0 - p.ravel(), p.ravel()])


def as_probabilities(P: FloatArray, where: str, tolerance: float = SUM_TOLERANCE) -> FloatArray:
    """Check that the rows of ``P`` are probability vectors, and make them add up exactly.

    Sums may be off by ``tolerance``, entries below 0 by rounding. Where all entries have been
    rounded to a few digits, a warning says so, and sums may be off by what that explains.

    Examples
    --------
    >>> import numpy as np
    >>> as_probabilities(np.array([[0.25, 0.75]]), "P").tolist()
    [[0.25, 0.75]]
    """
    total = row_sums(P)
    least = float(np.minimum.reduce(P, axis=None)) if P.size else 0.0
    if P.size and not (least >= -1e-6 and np.maximum.reduce(np.abs(total - 1.0)) <= tolerance):
        digits = _digits(P, total)
        if digits is not None:
            warnings.warn(
                f"{where} are rounded to {digits} digits and do not add up to 1: each row was "
                "divided by its sum",
                PriorshiftWarning,
                stacklevel=3,
            )
            return np.asarray(P / total[:, None])
        bad = (P < -1e-6).any(axis=1) | (np.abs(total - 1.0) > tolerance) | ~np.isfinite(total)
        row = int(np.argmax(bad))
        problem = (
            f"is not a probability vector: smallest entry {P[row].min():.4g}, sum "
            f"{total[row]:.4g}; entries must be >= 0 and add up to 1{_remedy(P, total)}"
        )
        raise InputError(
            f"{where} row {row} (counted from 0) {problem}", row=row, problem=f"{where} {problem}"
        )
    if least < 0.0:
        P = np.maximum(P, 0.0)
        total = row_sums(P)
    return np.asarray(P / total[:, None])


def _digits(P: FloatArray, total: FloatArray) -> int | None:
    """The digits that rows were rounded to, where that explains their sums."""
    off = float(np.abs(total - 1.0).max())
    if not (off <= _ROUNDED and P.min() >= 0.0):
        return None
    for digits in (2, 3, 4, 5):
        steps = P * 10.0**digits
        if np.abs(steps - np.rint(steps)).max() < 1e-3:
            return digits if off <= (0.5 * P.shape[1] + 1e-3) / 10.0**digits else None
    return None


def _remedy(P: FloatArray, total: FloatArray) -> str:
    """What rows that are no probability vectors look like, and what to do then."""
    if not np.isfinite(total).all():
        return ""
    if P.min() < -1e-6:
        return ": these look like logits, which from_logits takes (or take their softmax)"
    if np.abs(total - 100.0).max() < 5.0:
        return ": these look like percent, divide by 100"
    if np.abs(total - 1.0).max() < _ROUNDED:
        return ": these look rounded, divide each row by its sum"
    tenths = 10.0 * P
    if np.abs(tenths - np.rint(tenths)).max() < 1e-6:
        return ": these look rounded to one digit, give two or more, or divide each row by its sum"
    return ""


def check_integer(value: object, name: str, least: int) -> int:
    """Return ``value`` as an int, or refuse it when it is not a whole number >= ``least``.

    Examples
    --------
    >>> check_integer(40, "period", least=2)
    40
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise InputError(f"{name} is {value!r}; give a whole number, {least} or more")
    return int(value)


def check_priors(priors: ArrayLike, name: str = "priors") -> FloatArray:
    """Return priors as a float64 array, or refuse what is not on the simplex.

    Parameters
    ----------
    priors : array_like, (K,) or (T, K)
        One class prior, or one per round: non-negative numbers that sum to 1 over the last axis.
    name : str
        What to call them in an error.

    Examples
    --------
    >>> check_priors([0.25, 0.75])
    array([0.25, 0.75])
    >>> check_priors([0.5, 0.6], name="mu1")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: mu1 sums to 1.1, not 1; divide it by its sum
    """
    try:
        values = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a table of numbers: {error}") from error
    if values.ndim not in (1, 2) or values.size == 0:
        raise InputError(f"{name} has shape {values.shape}; give (classes,) or (rounds, classes)")
    # Written so that NaN fails, too.
    bad = np.asarray(~(values >= 0).all(axis=-1))
    if bad.any():
        raise _off_simplex(name, bad, "has a negative or missing entry; shares are >= 0")
    sums = values.sum(axis=-1)
    bad = np.asarray(~(np.abs(sums - 1) <= _TOLERANCE))
    if bad.any():
        total = np.atleast_1d(sums)[np.argmax(bad)]
        raise _off_simplex(name, bad, f"sums to {total:.6g}, not 1; divide it by its sum")
    return values


def _off_simplex(name: str, bad: AnyArray, problem: str) -> InputError:
    if not bad.ndim:
        return InputError(f"{name} {problem}")
    row = int(np.argmax(bad))
    return InputError(f"{name} in round {row} (counted from 0) {problem}", row=row, problem=problem)


def check_number(setting: str, value: Any, low: float, high: float, closed: str = "") -> None:
    """Refuse what is not a number between ``low`` and ``high``.

    ``closed`` holds "[" where ``low`` itself is allowed, "]" where ``high`` is.

    Examples
    --------
    >>> check_number("rate", 1.0, 0, 1, "]")
    >>> check_number("alpha", -1.0, 0, math.inf, "[")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: alpha is -1.0: it must be at least 0 and finite
    """
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.nan
    above = number > low or ("[" in closed and number == low)
    if not above or not (number < high or ("]" in closed and number == high)):
        least = f"{'at least' if '[' in closed else 'above'} {low:g}"
        most = (
            f"{'at most' if ']' in closed else 'below'} {high:g}" if high < math.inf else "finite"
        )
        raise InputError(f"{setting} is {value}: it must be {least} and {most}")


def check_positive(setting: str, value: float | None) -> None:
    """Refuse a setting that is given but not a positive, finite number.

    Examples
    --------
    >>> check_positive("step", None)
    >>> check_positive("step", float("inf"))
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: step is inf: it must be above 0 and finite
    """
    if value is not None:
        check_number(setting, value, 0, math.inf)


def check_share(setting: str, value: float) -> None:
    """Refuse a share that is not at least 0 and below 1.

    Examples
    --------
    >>> check_share("share", 0.001)
    """
    check_number(setting, value, 0, 1, "[")


def check_rates(rates: tuple[float, ...]) -> None:
    """Refuse forgetting rates that are not in (0, 1], or do not fall.

    Examples
    --------
    >>> check_rates((1.0, 0.5))
    """
    if not isinstance(rates, tuple):
        raise InputTypeError(f"rates is {rates!r}: give a tuple of forgetting rates")
    good = len(rates) > 0 and all(0.0 < rate <= 1.0 for rate in rates)
    if not good or any(a <= b for a, b in pairwise(rates)):
        raise InputError(f"rates is {rates}: give falling numbers, each above 0 and at most 1")


def check_choice(setting: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a setting that is none of the known words.

    Examples
    --------
    >>> check_choice("preset", "paper", ("paper", "theory"))
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{setting} is {value!r}: choose one of {', '.join(map(repr, known))}")


def check_path(path: Any) -> None:
    """Refuse what cannot be the name of a file.

    Examples
    --------
    >>> check_path(3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: path is 3: give the name of a file, as text or a pathlib.Path
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise InputTypeError(
            f"path is {str(path)[:60]}: give the name of a file, as text or a pathlib.Path"
        )


def check_chance(setting: str, value: float, such_as: float) -> float:
    """Return a probability as a float, or refuse what does not lie between 0 and 1.

    Examples
    --------
    >>> check_chance("level", 90, such_as=0.9)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: level is 90: give a chance between 0 and 1, such as 0.9
    """
    if not (isinstance(value, Real) and 0.0 < value < 1.0):
        raise InputError(
            f"{setting} is {value!r}: give a chance between 0 and 1, such as {such_as}"
        )
    return float(value)


def known_classes(y: Any, n_rows: int, classes: AnyArray, where: str = "y") -> IntArray:
    """Class indices (n,) of the rows whose label is known, -1 of all others.

    ``y`` holds one entry a row, and None, NaN, ``pandas.NA`` or a masked entry where nothing is
    known; or it is a dict from row numbers to labels.

    Examples
    --------
    >>> classes = np.array(["cat", "dog"])
    >>> known_classes(["dog", None, "cat"], 3, classes).tolist()
    [1, -1, 0]
    >>> known_classes({1: "dog"}, 3, classes).tolist()
    [-1, 1, -1]
    >>> known_classes(np.array([np.nan, 5.0]), 2, np.array([3, 5])).tolist()
    [-1, 1]
    """
    index = {label: k for k, label in enumerate(plain_labels(classes))}
    known = np.full(n_rows, UNKNOWN)
    rows, labels = _label_entries(y, n_rows, where)
    for row, label in zip(rows, plain_labels(labels, classes), strict=True):
        if not is_unknown(label):
            known[row] = _class_index(index, label, row, where)
    return known


def _label_entries(y: Any, n_rows: int, where: str) -> tuple[Sequence[int], Any]:
    """Rows, and their labels."""
    if isinstance(y, Mapping):
        return [_row_number(row, n_rows, where) for row in y], y.values()
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise InputTypeError(f"{where} is {type(y).__name__}, not labels: {_FORMS}")
    shape = np.shape(y) if hasattr(y, "shape") else (len(y),)
    if len(shape) != 1:
        raise InputError(f"{where} has shape {shape}: {_FORMS}")
    if len(y) != n_rows:
        raise InputError(f"{where} has {len(y)} labels for {n_rows} rows: {_FORMS}")
    return range(n_rows), y


def _row_number(row: Any, n_rows: int, where: str) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer):
        raise InputTypeError(f"{where} has the key {row!r}: keys are row numbers, from 0")
    if not 0 <= row < n_rows:
        raise InputError(f"{where} has a label for row {row}, but rows go from 0 to {n_rows - 1}")
    return int(row)


def by_label(given: Mapping[Any, Any], classes: AnyArray, what: str) -> list[Any]:
    """Values in the order of the classes that they are named by.

    Examples
    --------
    >>> by_label({"yes": 0.75, "no": 0.25}, np.array(["no", "yes"]), "prior")
    [0.25, 0.75]
    """
    labels = plain_labels(classes)
    values = dict(zip(plain_labels(given, classes), given.values(), strict=True))
    if values.keys() != set(labels):
        strange = [f"there is no {label!r}" for label in values if label not in labels]
        missing = [f"{label!r} is missing" for label in labels if label not in values]
        raise InputError(
            f"{what} names {len(given)} classes: name each of the {len(labels)} classes once; "
            + (strange + missing)[0]
        )
    return [values[label] for label in labels]


def is_no_value(value: Any) -> bool:
    """Whether a value is None or pandas' NA.

    Examples
    --------
    >>> is_no_value(None), is_no_value(0)
    (True, False)
    """
    # NA is told by name: pandas is no dependency, and NA compares to nothing.
    return value is None or type(value).__name__ == "NAType"


def is_unknown(label: Any) -> bool:
    """Whether a label or a cell has no value: None, NaN, NaT, pandas' NA, a masked one.

    Examples
    --------
    >>> is_unknown(np.datetime64("NaT")), is_unknown("none")
    (True, False)
    """
    if is_no_value(label) or label is np.ma.masked or type(label).__name__ == "NaTType":
        return True
    if isinstance(label, np.datetime64):
        return bool(np.isnat(label))
    return isinstance(label, float | np.floating) and math.isnan(label)


def _class_index(index: dict[Any, int], label: Any, row: int, where: str) -> int:
    try:
        return index[label]
    except (KeyError, TypeError):
        strange = f"which the model does not know; it knows {list(index)[:5]} ({len(index)} in all)"
        raise InputError(
            f"{where} has the label {label!r} in row {row}, {strange}",
            row=row,
            problem=f"has the label {label!r}, {strange}",
        ) from None
