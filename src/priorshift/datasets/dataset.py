"""What every loader returns, and the checks that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift._validation import as_probabilities, check_finite
from priorshift.errors import InputError
from priorshift.simulation.streams import PoolPopulation, Population
from priorshift.typing import AnyArray, FloatArray, IntArray

_MOST = np.iinfo(np.int64).max
# Probabilities stored in half precision, or with three digits, still add up to 1 within this.
_SUM_TOLERANCE = 5e-3


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """An offline set, and a population that online rows are drawn from.

    Attributes
    ----------
    name : str
        "synthetic", "digits", a name in the data folder, or a file.
    X0 : ndarray, (n0, d), float32 or float64
        Rows of the offline set S_0.
    y0 : ndarray, (n0,)
        Their class indices, 0..K-1.
    X1, y1 : ndarray, (n1, d) and (n1,)
        The online pool; no rows when the population makes its own, as the synthetic one does.
    probabilities : bool
        True when X0 and X1 hold class probabilities (K columns) in place of features.
    focus : int
        The index of the class that mu_2 is concentrated on.
    population : Population
        Draws online rows for given classes.
    classes : ndarray, (K,)
        The label that each class index stands for, sorted.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> load_dataset("digits")
    Dataset('digits', 1198 offline rows, 599 in the pool, 64 features, 10 classes)
    """

    name: str
    X0: AnyArray
    y0: IntArray
    X1: AnyArray
    y1: IntArray
    probabilities: bool
    focus: int
    population: Population
    classes: AnyArray

    def __repr__(self) -> str:
        columns = "probabilities" if self.probabilities else "features"
        return (
            f"Dataset({self.name!r}, {len(self.X0)} offline rows, {len(self.X1)} in the pool, "
            f"{self.X0.shape[1]} {columns}, {self.n_classes} classes)"
        )

    @property
    def n_classes(self) -> int:
        """The number of classes K."""
        return len(self.classes)

    @property
    def mu1(self) -> FloatArray:
        """The uniform class prior, the paper's ``mu_1``, shape (K,)."""
        return np.full(self.n_classes, 1 / self.n_classes)

    @property
    def mu2(self) -> FloatArray:
        """The class prior with everything on the focus class, ``mu_2``, shape (K,)."""
        mix = np.zeros(self.n_classes)
        mix[self.focus] = 1
        return mix


def check_rows(values: AnyArray, where: str) -> AnyArray:
    """Return a table of finite floats, or refuse it."""
    if values.dtype.kind not in "fiub":
        raise InputError(f"{where} is of type {values.dtype}; give real numbers")
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{where} has shape {values.shape}; give (rows, features), at least one")
    # Half precision is only for storage (sums over its columns would overflow); float32 stays, as
    # the wide pools would take twice the memory for digits they do not have.
    dtype = np.result_type(values.dtype, np.float32)
    with np.errstate(over="ignore"):
        rows = values.astype(np.float32 if dtype == np.float32 else np.float64, copy=False)
    check_finite(rows, where)
    return rows


def check_labels(values: AnyArray, rows: int, where: str) -> AnyArray:
    """Return labels as int64 or text, one per row, or refuse them.

    Examples
    --------
    >>> check_labels(np.array([0.0, 2.0]), rows=2, where="y0")
    array([0, 2])
    """
    if values.ndim != 1:
        raise InputError(f"{where} has shape {values.shape}; labels are 1-d, one per row")
    if len(values) != rows:
        raise InputError(f"{where} has {len(values)} labels for {rows} rows; give one per row")
    kind = values.dtype.kind
    if kind in "US":
        return values
    whole = kind in "iub" or (kind == "f" and bool((np.floor(values) == values).all()))
    if not whole or not (np.abs(values.astype(np.float64)) < _MOST).all():
        raise InputError(
            f"{where} (type {values.dtype}) has labels that are not whole numbers or text; "
            "number the classes 0, 1, 2, ..."
        )
    return values.astype(np.int64)


def encode_labels(y0: AnyArray, y1: AnyArray, where: str) -> tuple[AnyArray, IntArray, IntArray]:
    """Return the sorted classes of ``y0``, and both label vectors as class indices.

    Examples
    --------
    >>> encode_labels(np.array(["b", "a"]), np.array(["a", "b"]), "example")
    (array(['a', 'b'], dtype='<U1'), array([1, 0]), array([0, 1]))
    """
    if y0.dtype.kind != y1.dtype.kind:
        raise InputError(
            f"{where}: y0 is of type {y0.dtype}, y1 of {y1.dtype}; label both the same way"
        )
    classes, first = np.unique(y0, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{where}: y0 holds a single class; at least two are needed")
    strange = np.setdiff1d(y1, classes)
    if strange.size:
        raise InputError(
            f"{where}: class {strange[0]} of y1 never occurs in y0; "
            "add offline rows of it or drop it from the pool"
        )
    missing = np.setdiff1d(classes, y1)
    if missing.size:
        raise InputError(
            f"{where}: class {missing[0]} of y0 never occurs in y1, so no online row of it can "
            "be drawn; add rows of it to the pool or drop it from the offline set"
        )
    return classes, first.astype(np.intp), np.searchsorted(classes, y1).astype(np.intp)


def _class_probabilities(values: AnyArray, n_classes: int, where: str) -> FloatArray:
    if values.shape[1] != n_classes:
        raise InputError(
            f"{where} has {values.shape[1]} columns but y0 has {n_classes} classes; give one "
            "column per class, in the sorted order of the labels, and a row of each class"
        )
    return as_probabilities(values.astype(np.float64), where, _SUM_TOLERANCE)


def pool_dataset(
    name: str,
    offline: tuple[AnyArray, AnyArray],
    online: tuple[AnyArray, AnyArray],
    *,
    probabilities: bool = False,
    where: str | None = None,
) -> Dataset:
    """Check two labelled tables and join them to a :class:`Dataset` with a pool population.

    Parameters
    ----------
    name : str
    offline, online : (X, y)
        Rows and labels of the offline set and of the online pool.
    probabilities : bool
        True when the rows are class probabilities.
    where : str, optional
        What to name in an error; by default ``name``.

    Examples
    --------
    >>> X, y = np.eye(2), np.array([0, 1])
    >>> pool_dataset("tiny", (X, y), (X, y))
    Dataset('tiny', 2 offline rows, 2 in the pool, 2 features, 2 classes)
    """
    where = name if where is None else where
    letter = "P" if probabilities else "X"
    X0 = check_rows(offline[0], f"{where}: {letter}0")
    X1 = check_rows(online[0], f"{where}: {letter}1")
    if X0.shape[1] != X1.shape[1]:
        raise InputError(
            f"{where}: {letter}0 has {X0.shape[1]} columns, {letter}1 has {X1.shape[1]}; "
            "give the same columns in both"
        )
    y0 = check_labels(offline[1], len(X0), f"{where}: y0")
    y1 = check_labels(online[1], len(X1), f"{where}: y1")
    classes, y0, y1 = encode_labels(y0, y1, where)
    if probabilities:
        X0 = _class_probabilities(X0, len(classes), f"{where}: P0")
        X1 = _class_probabilities(X1, len(classes), f"{where}: P1")
    population = PoolPopulation(X1, y1, len(classes))
    return Dataset(name, X0, y0, X1, y1, probabilities, 0, population, classes)
