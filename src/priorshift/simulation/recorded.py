"""Streams that happened: labels in their real order, with their own rows or with drawn ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from priorshift._validation import check_integer
from priorshift.errors import InputError
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import (
    Chunk,
    Population,
    check_indices,
    check_rows,
)
from priorshift.typing import AnyArray, FloatArray, IntArray

_ROUNDS_A_CHUNK = 64
_NEAR = 500


def prior_around(y: IntArray, n_classes: int, batch_size: int, near: int = _NEAR) -> FloatArray:
    """Class shares among the labels of each round and ``near`` labels on either side of it.

    The class prior that recorded labels were drawn from is not known; this stands for it.

    Parameters
    ----------
    y : ndarray, (n,)
        Class indices in their order.
    n_classes : int
        K.
    batch_size : int
        N, labels in a round; what does not fill a round at the end belongs to none.
    near : int
        How far to look, in labels.

    Examples
    --------
    >>> prior_around(np.array([0, 0, 0, 1, 1, 1]), n_classes=2, batch_size=2, near=1)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    sums = np.zeros((len(y) + 1, n_classes))
    np.cumsum(np.eye(n_classes)[y], axis=0, out=sums[1:])
    starts = np.arange(0, len(y) - batch_size + 1, batch_size)
    first = np.maximum(starts - near, 0)
    last = np.minimum(starts + batch_size + near, len(y))
    priors: FloatArray = (sums[last] - sums[first]) / (last - first)[:, np.newaxis]
    return priors


@dataclass(frozen=True, eq=False, repr=False)
class RecordedStream:
    """A stream whose labels are given in the order in which they came; ``evaluate`` reads it.

    Parameters
    ----------
    population : Population
        Draws rows for given classes, where ``X`` is None.
    y : array_like, (n,)
        Class indices, 0..K-1, in their order. Labels at the end that fill no round are left out.
    batch_size : int
        N, rows per round.
    X : array_like, (n, d), optional
        The rows that came with the labels. By default rows are drawn from the population.
    seed : int
        Fixes the drawn rows.
    every : int
        Take each ``every``-th label only, with its row: the same record, sampled less often. It
        has fewer rounds, and the class prior moves faster from one to the next.
    near : int
        ``priors`` are the shares among a round's labels and this many on either side.
    rounds : int, optional
        At most so many rounds; by default all.

    Attributes
    ----------
    priors : ndarray, (T, K)
        What stands for the class prior of each round, see :func:`prior_around`.
    variation : float
        ``V_T`` of ``priors``.

    Examples
    --------
    >>> from priorshift.simulation.streams import GaussianPopulation
    >>> population = GaussianPopulation([[0.0], [5.0]], [[1.0]])
    >>> y = np.repeat([0, 1, 0], 40)
    >>> stream = RecordedStream(population, y, batch_size=10, near=0)
    >>> len(stream), stream.variation
    (12, 4.0)
    >>> RecordedStream(population, y, batch_size=10, near=0, every=4)
    RecordedStream(3 rounds of 10 rows, 2 classes, drawn rows, every=4)
    """

    population: Population
    y: IntArray
    X: AnyArray | None
    batch_size: int
    seed: int
    every: int
    priors: FloatArray

    def __init__(
        self,
        population: Population,
        y: ArrayLike,
        batch_size: int,
        *,
        X: ArrayLike | None = None,
        seed: int = 0,
        every: int = 1,
        near: int = _NEAR,
        rounds: int | None = None,
    ) -> None:
        size = check_integer(batch_size, "batch_size", least=1)
        step = check_integer(every, "every", least=1)
        labels = check_indices(y, population.n_classes)
        rows = None if X is None else check_rows(X, len(labels))
        taken = labels[::step]
        whole = len(taken) // size
        if rounds is not None:
            whole = min(whole, check_integer(rounds, "rounds", least=1))
        if whole == 0:
            raise InputError(
                f"{len(taken)} labels (of {len(labels)}, every {step}) fill no round of {size}; "
                "give more labels or a smaller batch_size"
            )
        taken = taken[: whole * size]
        near = check_integer(near, "near", least=0)
        vars(self).update(
            population=population,
            y=taken,
            X=None if rows is None else rows[::step][: len(taken)],
            batch_size=size,
            seed=check_integer(seed, "seed", least=0),
            every=step,
            priors=prior_around(taken, population.n_classes, size, near),
        )

    def __repr__(self) -> str:
        rows = "drawn rows" if self.X is None else "its own rows"
        return (
            f"RecordedStream({len(self)} rounds of {self.batch_size} rows, "
            f"{self.population.n_classes} classes, {rows}, every={self.every})"
        )

    def __len__(self) -> int:
        return len(self.priors)

    @property
    def variation(self) -> float:
        """How far the class prior travels, ``V_T``."""
        return total_variation(self.priors)

    def __iter__(self) -> Iterator[tuple[AnyArray, IntArray]]:
        for chunk in self.chunks():
            yield from chunk.batches()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rounds in order, several at a time."""
        # One generator for the whole stream: a shorter stream begins like a longer one.
        rng = np.random.default_rng(self.seed)
        for first in range(0, len(self), _ROUNDS_A_CHUNK):
            last = min(first + _ROUNDS_A_CHUNK, len(self))
            rows = slice(first * self.batch_size, last * self.batch_size)
            y = self.y[rows]
            X = self.population.draw(y, rng) if self.X is None else self.X[rows].astype(np.float64)
            yield Chunk(first, X, y, self.priors[first:last])
