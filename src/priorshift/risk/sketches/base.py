"""What a sketch is, and how a fixed one is put together."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from priorshift.errors import InputError, InputTypeError
from priorshift.risk.data import RiskData
from priorshift.typing import Float32Array, FloatArray, IntArray


class Sketch(Protocol):
    """Less to read each round in the place of the held-out set.

    ``fixed`` sketches show the same rows in every round, and can replace the set.
    """

    name: ClassVar[str]
    fixed: ClassVar[bool]

    @property
    def size(self) -> int:
        """Rows that a round reads, about."""
        ...

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return what round t reads of ``data``."""
        ...


class Chosen(NamedTuple):
    """Rows of one class, as columns of the held-out set, and their weights, adding up to one."""

    columns: IntArray
    weights: FloatArray


def check_size(size: int, what: str) -> None:
    """Refuse a size that is not a whole number of at least one row."""
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise InputTypeError(f"the size of {what} is {size!r}: give a whole number of rows")
    if size < 1:
        raise InputError(f"the size of {what} is {size}: at least 1 row is needed")


def check_seed(seed: int, what: str) -> None:
    """Refuse a seed that is not a whole number from 0 on."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"the seed of {what} is {seed!r}: give a whole number from 0 on")


def shares(counts: IntArray, size: int) -> IntArray:
    """Rows that each class gives: equal shares, since any class may become the whole prior.

    A class with fewer rows gives all of them, and the others share what is left. No class gives
    nothing, so that more classes than ``size`` make a larger sketch.

    Examples
    --------
    >>> shares(np.array([1000, 500, 3]), 23).tolist()
    [10, 10, 3]
    """
    given = np.zeros(len(counts), dtype=np.intp)
    left = max(size, len(counts))
    for place, k in enumerate(np.argsort(counts, kind="stable")):
        given[k] = min(counts[k], -(-left // (len(counts) - place)))
        left -= given[k]
    return given


def class_rows(data: RiskData, k: int, most: int, rng: np.random.Generator) -> IntArray:
    """Columns of class k, or ``most`` of them at random where it has more."""
    a, b = int(data.offsets[k]), int(data.offsets[k + 1])
    if b - a <= most:
        return np.arange(a, b)
    return np.sort(a + rng.choice(b - a, most, replace=False))


def chunks(data: RiskData, k: int, rows: int) -> Iterator[Float32Array]:
    """All rows of class k, (m, d), ``rows`` at a time."""
    a, b = int(data.offsets[k]), int(data.offsets[k + 1])
    for start in range(a, b, rows):
        yield data.XT[:, start : min(b, start + rows)].T


def assemble(data: RiskData, chosen: list[Chosen]) -> RiskData:
    """Make the weighted set of the chosen rows, one entry of ``chosen`` a class."""
    offsets = np.cumsum([0, *(len(piece.columns) for piece in chosen)]).astype(np.intp)
    XT = np.ascontiguousarray(data.XT[:, np.concatenate([piece.columns for piece in chosen])])
    weights = np.concatenate([piece.weights for piece in chosen]).astype(np.float32)
    return RiskData(XT, offsets, weights=weights, reach=data.largest_norm)


def refuse_weights(data: RiskData, what: str) -> None:
    """Refuse to sketch a weighted set: it is a sketch already."""
    if data.weights is not None:
        raise InputError(
            f"{what} cannot sketch an held-out set that a fixed sketch has replaced already: give "
            "the learner no sketch of its own"
        )
