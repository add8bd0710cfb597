"""The held-out set as the risk kernel wants it: sorted by class, samples contiguous, float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.risk.compiled.problem import Samples
from priorshift.typing import AnyArray, Float32Array, FloatArray, IntArray

LARGEST = 1e15
"""Squares and sums of larger features would leave the range of float32."""


def check_magnitude(features: FloatArray, where: str) -> None:
    """Refuse features that are too large for float32.

    Examples
    --------
    >>> check_magnitude(np.array([[1e300]]), "of the batch")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: a feature of the batch is 1e+300: too large for the linear \
learners, scale the features first
    """
    largest = np.abs(features).max()
    if largest > LARGEST:
        raise InputError(
            f"a feature {where} is {largest:.2g}: too large for the linear learners, scale the "
            "features first"
        )


@dataclass(frozen=True, eq=False)
class RiskData:
    """Class-wise data S_0^k of equation 3.

    Parameters
    ----------
    XT : (d, n) float32 array
        Features, one sample a column, columns sorted by class.
    offsets : (K + 1,) array
        Class ``k`` holds the columns ``offsets[k]:offsets[k + 1]``.
    whole : RiskData, optional
        The set that this one is a block of; its norms serve the block too.
    weights : (n,) float32 array, optional
        Share of each sample in its class's risk: not negative, adding up to one within each class.
        None is the plain mean.
    reach : float, optional
        ``max ||x||_2`` of the set that this one stands for, where that is not kept.
    shuffled : bool
        The columns of each class are in random order: ``Blocks`` cuts them as they lie.

    Examples
    --------
    >>> import numpy as np
    >>> data = RiskData.of(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1]), n_classes=2)
    >>> data.XT.tolist(), data.offsets.tolist(), data.means.ravel().tolist()
    ([[2.0, 1.0, 4.0]], [0, 1, 3], [2.0, 2.5])
    """

    XT: Float32Array
    offsets: IntArray
    whole: RiskData | None = None
    weights: Float32Array | None = None
    reach: float | None = None
    shuffled: bool = False

    def __post_init__(self) -> None:
        # Another layout would be read by other compiled code, with other last bits.
        object.__setattr__(self, "XT", read_only(self.XT))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # a pickle forgets what is read-only

    @classmethod
    def of(cls, features: FloatArray, labels: IntArray, n_classes: int) -> RiskData:
        """Sort ``features`` (n, d) by class and lay the samples along the contiguous axis.

        A class without rows has a risk of 0: whatever its weight, it moves no model.
        """
        counts = np.bincount(labels, minlength=n_classes)
        check_magnitude(features, "of the held-out set")
        order = np.argsort(labels, kind="stable")
        XT = np.ascontiguousarray(features[order].T, dtype=np.float32)
        return cls(XT, np.concatenate([[0], np.cumsum(counts)]).astype(np.intp))

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class, |S_0^k|."""
        return np.diff(self.offsets)

    @cached_property
    def means(self) -> FloatArray:
        """Mean feature vector of each class (K, d): the linear part of every class-wise risk."""
        if self.weights is not None:
            return np.array([self.XT[:, a:b] @ w for a, b, w in self._pieces(self.weights)])
        sums = class_sums(self.XT, self.offsets)
        means: FloatArray = np.ascontiguousarray((sums / np.maximum(self.counts, 1)).T)
        return means

    def _pieces(self, weights: Float32Array) -> Iterator[tuple[int, int, FloatArray]]:
        """First and last column of each class, and its rows' weights in float64."""
        for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield a, b, weights[a:b].astype(np.float64)

    @cached_property
    def sketches(self) -> dict[object, object]:
        """Sketches of this set, by recipe, kept for as long as the set itself."""
        return {}

    @cached_property
    def squares(self) -> Float32Array:
        """``||x||_2^2`` of each row (n,)."""
        squares = np.einsum("ij,ij->j", self.XT, self.XT, dtype=np.float64)
        return np.asarray(squares, dtype=np.float32)

    @cached_property
    def largest_norm(self) -> float:
        """``max ||x||_2`` over the held-out set."""
        if self.reach is not None:
            return self.reach
        if self.whole is not None:
            return self.whole.largest_norm
        return float(np.sqrt(self.squares.max()))

    @cached_property
    def scale(self) -> float:
        """Root mean square of the features."""
        if self.whole is not None:
            return self.whole.scale
        return float(np.sqrt(self.squares.mean(dtype=np.float64) / len(self.XT)))

    @cached_property
    def shares(self) -> Float32Array:
        """Each sample's share of its class (n,): they add up to one in every class."""
        if self.weights is not None:
            return self.weights.copy()  # writable, as the others: one compiled kernel serves both
        return np.repeat((1.0 / np.maximum(self.counts, 1)).astype(np.float32), self.counts)

    @cached_property
    def samples(self) -> Samples:
        """The set as the compiled kernels read it."""
        return self.XT, self.shares, self.offsets, self.means, self.largest_norm

    def sample_weights(self, prior: FloatArray) -> Float32Array:
        """Spread class weights over the samples: ``mix_k / |S_0^k|`` for each row of class k.

        With weights of their own, ``mix_k`` times those.
        """
        if self.weights is not None:
            return np.repeat(prior.astype(np.float32), self.counts) * self.weights
        return np.repeat((prior / np.maximum(self.counts, 1)).astype(np.float32), self.counts)


def class_sums(rows: AnyArray, offsets: IntArray, axis: int = -1) -> FloatArray:
    """Sums over the rows of each class, which lie along ``axis``; 0 of a class without rows.

    Examples
    --------
    >>> class_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 1, 3])).tolist()
    [1.0, 0.0, 6.0]
    """
    has = np.diff(offsets) > 0  # NumPy's segments are never empty
    found = np.add.reduceat(rows, offsets[:-1][has], axis=axis, dtype=np.float64)
    if has.all():
        return np.asarray(found)
    shape = list(found.shape)
    shape[axis] = len(has)
    sums = np.zeros(shape)
    np.moveaxis(sums, axis, -1)[..., has] = np.moveaxis(found, axis, -1)
    return sums


def read_only(XT: Float32Array) -> Float32Array:
    """Samples along the contiguous axis, in a view that nobody can write to.

    Examples
    --------
    >>> read_only(np.ones((2, 3), np.float32)).flags.writeable
    False
    """
    view = np.ascontiguousarray(XT).view()
    view.flags.writeable = False
    return view
