"""Seeded label-shift streams: labels follow the round's prior, features follow the label.

That is label shift itself: ``D_t(y)`` changes from round to round, ``D(x | y)`` never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, solve_triangular
from sklearn.utils import gen_batches

from priorshift._validation import check_integer, check_priors
from priorshift.errors import InputError
from priorshift.typing import AnyArray, FloatArray, IntArray

# Rounds are drawn in blocks of at most this many rounds and about this many rows: large enough to
# be fast, small enough that a block of wide rows fits in memory.
_BLOCK_ROUNDS = 64
_BLOCK_ROWS = 8192


@runtime_checkable
class Population(Protocol):
    """Where rows come from once their classes are known: ``x ~ D(x | y)``.

    Examples
    --------
    >>> isinstance(GaussianPopulation([[0.0], [1.0]], [[1.0]]), Population)
    True
    """

    @property
    def n_classes(self) -> int:
        """The number of classes K."""
        ...

    def draw(self, labels: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one row for each label, shape (n, d)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PoolPopulation:
    """Draw rows, with replacement, from a pool of labelled ones.

    Parameters
    ----------
    X : ndarray, (n, d)
        The pool's rows.
    y : ndarray, (n,)
        The class index, 0..K-1, of each row. Every class needs at least one.
    n_classes : int
        K.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0])
    >>> population = PoolPopulation(X, y, n_classes=2)
    >>> population.draw(np.array([1, 1]), np.random.default_rng(0))
    array([[2.],
           [2.]])
    """

    X: AnyArray
    y: IntArray
    n_classes: int
    _order: IntArray = field(init=False)
    _starts: IntArray = field(init=False)
    _counts: IntArray = field(init=False)

    def __post_init__(self) -> None:
        n_classes = check_integer(self.n_classes, "n_classes", least=1)
        y = check_indices(self.y, n_classes, "the pool's y")
        X = check_rows(self.X, len(y), "the pool's X")
        if not np.isfinite(X).all():
            raise InputError("the pool's X holds NaN or infinite values; fill or drop those rows")
        counts = np.bincount(y, minlength=n_classes)
        if not counts.all():
            raise InputError(
                f"class {int(np.argmin(counts))} has no rows in the pool, so none can be drawn; "
                "add rows of that class or leave the class out"
            )
        order, starts = np.argsort(y, kind="stable"), np.cumsum(counts) - counts
        # A frozen dataclass is filled by its dictionary.
        vars(self).update(
            X=X, y=y, n_classes=n_classes, _order=order, _starts=starts, _counts=counts
        )

    def __repr__(self) -> str:
        return f"PoolPopulation({len(self.X)} rows x {self.X.shape[1]}, {self.n_classes} classes)"

    def draw(self, labels: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one row of the right class for each label."""
        within = (rng.random(len(labels)) * self._counts[labels]).astype(np.intp)
        rows = self._order[self._starts[labels] + within]
        drawn: FloatArray = self.X[rows].astype(np.float64)
        return drawn


@dataclass(frozen=True, eq=False, repr=False)
class GaussianPopulation:
    """Draw ``x ~ N(centre_y, Sigma)``: a population whose densities are known.

    Parameters
    ----------
    centres : array_like, (K, d)
        The mean of each class.
    covariance : array_like, (d, d)
        Sigma, shared by all classes.

    Examples
    --------
    >>> import numpy as np
    >>> population = GaussianPopulation([[0.0, 0.0], [4.0, 0.0]], np.eye(2))
    >>> population.draw(np.array([0, 1, 1]), np.random.default_rng(0)).shape
    (3, 2)
    >>> population.log_densities(np.array([[0.0, 0.0]])).round(3)
    array([[-1.838, -9.838]])
    """

    centres: FloatArray
    covariance: FloatArray
    _factor: FloatArray = field(init=False)

    def __init__(self, centres: ArrayLike, covariance: ArrayLike) -> None:
        means = np.array(centres, dtype=np.float64)
        sigma = np.array(covariance, dtype=np.float64)
        if means.ndim != 2 or means.size == 0 or not np.isfinite(means).all():
            raise InputError(
                f"centres has shape {means.shape}; give finite numbers, shape (classes, features)"
            )
        size = means.shape[1]
        if sigma.shape != (size, size) or not np.allclose(sigma, sigma.T):
            raise InputError(
                f"covariance has shape {sigma.shape}; give a symmetric ({size}, {size}) matrix"
            )
        try:
            factor = np.linalg.cholesky(sigma)
        except np.linalg.LinAlgError as error:
            raise InputError(
                "covariance is not positive definite; its eigenvalues must be above 0"
            ) from error
        for array in (means, sigma, factor):
            array.flags.writeable = False
        vars(self).update(centres=means, covariance=sigma, _factor=factor)

    def __repr__(self) -> str:
        return f"GaussianPopulation({self.n_classes} classes in {self.centres.shape[1]} dimensions)"

    @property
    def n_classes(self) -> int:
        """The number of classes K."""
        return len(self.centres)

    def draw(self, labels: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one row for each label."""
        noise = rng.standard_normal((len(labels), self.centres.shape[1]))
        scale = np.diag(self._factor)
        # Independent features need no matrix product, and then each row's bits do not depend on
        # how many rows are drawn with it.
        independent = np.count_nonzero(self._factor) == np.count_nonzero(scale)
        if independent:
            noise *= scale
        else:
            noise = noise @ self._factor.T
        noise += self.centres.take(labels, axis=0)
        return noise

    def log_densities(self, X: ArrayLike) -> FloatArray:
        """Return ``log p(x | y)`` of each row under each class, shape (n, K).

        With the true prior these give the oracle: no classifier has a smaller error than
        ``argmax_y log p(x | y) + log mu_t(y)``.
        """
        rows, size = self._rows(X), self.centres.shape[1]
        middle = self.centres.mean(axis=0)  # near the origin the squares lose no digits
        whitener = solve_triangular(self._factor, np.eye(size), lower=True).T
        white, centres = (rows - middle) @ whitener, (self.centres - middle) @ whitener
        constant = size * np.log(2 * np.pi) + 2 * np.log(np.diag(self._factor)).sum()
        densities: FloatArray = white @ centres.T
        densities -= 0.5 * (np.einsum("kd,kd->k", centres, centres) + constant)
        densities -= 0.5 * np.einsum("nd,nd->n", white, white)[:, None]
        return densities

    def discriminants(self, X: ArrayLike) -> FloatArray:
        """Return ``log p(x | y)`` less what all classes of a row have in common, shape (n, K).

        The oracle needs no more, and the square of every row is what costs.

        Examples
        --------
        >>> population = GaussianPopulation([[0.0], [4.0]], [[1.0]])
        >>> population.discriminants([[1.0], [3.0]]).argmax(axis=1).tolist()
        [0, 1]
        """
        middle = self.centres.mean(axis=0)
        gaps = self.centres - middle
        slopes = cho_solve((self._factor, True), gaps.T)
        # For x, half way between middle and centre is where a class begins to be likelier.
        found: FloatArray = self._rows(X) @ slopes
        found -= np.einsum("kd,dk->k", middle + 0.5 * gaps, slopes)
        return found

    def _rows(self, X: ArrayLike) -> FloatArray:
        rows = np.asarray(X, dtype=np.float64)
        size = self.centres.shape[1]
        if rows.ndim != 2 or rows.shape[1] != size:
            raise InputError(
                f"X has shape {rows.shape}; this population's rows have {size} features"
            )
        return rows


class Chunk(NamedTuple):
    """Some rounds of a stream, one after the other in the same arrays.

    Attributes
    ----------
    first : int
        The number of the chunk's first round, counted from 0.
    X : ndarray, (r * N, d)
        The rows of r rounds.
    y : ndarray, (r * N,)
        Their class indices, which a learner never sees.
    priors : ndarray, (r, K)
        The true class prior of each round.

    Examples
    --------
    >>> population = GaussianPopulation([[0.0], [1.0]], [[1.0]])
    >>> chunk = next(SimulatedStream(population, [[0.5, 0.5]] * 10, batch_size=5, seed=0).chunks(4))
    >>> chunk.first, chunk.rounds, chunk.X.shape
    (0, 4, (20, 1))
    """

    first: int
    X: FloatArray
    y: IntArray
    priors: FloatArray

    @property
    def rounds(self) -> int:
        """The number of rounds r."""
        return len(self.priors)

    def batches(self) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield rows and class indices of one round after the other."""
        for part in gen_batches(len(self.y), len(self.y) // self.rounds):
            yield self.X[part], self.y[part]


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedStream:
    """A label-shift stream that can be replayed to the last bit.

    Round t has ``N`` rows: ``y ~ mu_t``, then ``x ~ D(x | y)``. The data depend on the
    population, the priors, the batch size and the seed, never on how they are read. Iterate for one
    round ``(X_t, y_t)`` at a time, or take :meth:`chunks`.

    Parameters
    ----------
    population : Population
        Draws rows for given classes.
    priors : array_like, (T, K)
        ``mu_t``, the class prior of each round.
    batch_size : int
        N, rows per round.
    seed : int
        A whole number, 0 or more.

    Examples
    --------
    >>> from priorshift.simulation.shifts import Linear
    >>> population = GaussianPopulation([[0.0], [1.0]], [[1.0]])
    >>> priors = Linear().priors([0.5, 0.5], [1, 0], rounds=100, rng=0)
    >>> stream = SimulatedStream(population, priors, batch_size=20, seed=1)
    >>> len(stream)
    100
    >>> for X_t, y_t in stream:
    ...     pass
    >>> X_t.shape, int(y_t.sum())  # the last round is all class 0
    ((20, 1), 0)
    """

    population: Population
    priors: FloatArray
    batch_size: int
    seed: int

    def __init__(
        self, population: Population, priors: ArrayLike, batch_size: int, seed: int
    ) -> None:
        table = np.array(check_priors(priors))
        if table.ndim != 2 or table.shape[1] != population.n_classes:
            raise InputError(
                f"priors has shape {table.shape}; give one row per round and one column for each "
                f"of the population's {population.n_classes} classes"
            )
        size = check_integer(batch_size, "batch_size", least=1)
        seed = check_integer(seed, "seed", least=0)
        table.flags.writeable = False
        vars(self).update(population=population, priors=table, batch_size=size, seed=seed)

    def __repr__(self) -> str:
        return (
            f"SimulatedStream({self.population!r}, {len(self)} rounds of {self.batch_size} rows, "
            f"seed={self.seed})"
        )

    def __len__(self) -> int:
        return len(self.priors)

    def __iter__(self) -> Iterator[tuple[FloatArray, IntArray]]:
        for chunk in self.chunks():
            yield from chunk.batches()

    def chunks(self, rounds_per_chunk: int | None = None) -> Iterator[Chunk]:
        """Yield the rounds in order, several at a time.

        Parameters
        ----------
        rounds_per_chunk : int, optional
            Rounds in each chunk (the last may have fewer). By default, what is fastest.
        """
        size = self._block_rounds if rounds_per_chunk is None else rounds_per_chunk
        return self._chunks(check_integer(size, "rounds_per_chunk", least=1))

    def _chunks(self, size: int) -> Iterator[Chunk]:
        block = self._block_rounds
        draw = lru_cache(maxsize=1)(self._draw_block)  # two chunks may share a block
        for first in range(0, len(self), size):
            last = min(first + size, len(self))
            blocks = range(first // block, -(-last // block))
            X, y = (
                parts[0] if len(parts) == 1 else np.concatenate(parts)
                for parts in zip(*map(draw, blocks), strict=True)
            )
            start = (first - blocks[0] * block) * self.batch_size
            rows = slice(start, start + (last - first) * self.batch_size)
            yield Chunk(first, X[rows], y[rows], self.priors[first:last])

    @property
    def _block_rounds(self) -> int:
        return min(_BLOCK_ROUNDS, max(1, _BLOCK_ROWS // self.batch_size))

    def _draw_block(self, number: int) -> tuple[FloatArray, IntArray]:
        """Draw one fixed block of rounds from generators of its own.

        Labels and features have separate generators, so that a block which the stream's end cuts
        short begins like the whole one.
        """
        block = self._block_rounds
        priors = self.priors[number * block : (number + 1) * block]
        for_labels, for_rows = np.random.SeedSequence([self.seed, number]).spawn(2)
        labels = _draw_labels(priors, self.batch_size, np.random.default_rng(for_labels))
        return self.population.draw(labels, np.random.default_rng(for_rows)), labels


def _draw_labels(priors: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw ``size`` labels from each row of ``priors`` by the inverse of its distribution."""
    cumulative = np.cumsum(priors, axis=1)
    # Divided by its end, so that rounding never leaves room for a class of share 0 after the last.
    cumulative /= cumulative[:, -1:]
    uniform = rng.random((len(priors), size))
    labels = np.zeros(uniform.shape, dtype=np.intp)
    for edge in cumulative.T[:-1]:
        labels += uniform >= edge[:, np.newaxis]
    return labels.ravel()


def check_indices(y: ArrayLike, n_classes: int, where: str = "y") -> IntArray:
    """Return class indices as a vector of whole numbers from 0 to K - 1, or refuse them.

    Examples
    --------
    >>> check_indices([0, 3], 3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: y goes from 0 to 3; class indices go from 0 to 2
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(
            f"{where} has shape {labels.shape} and type {labels.dtype}; "
            "give one class index per row"
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < n_classes:
        raise InputError(
            f"{where} goes from {labels.min()} to {labels.max()}; "
            f"class indices go from 0 to {n_classes - 1}"
        )
    return labels.astype(np.intp)


def check_rows(X: ArrayLike, n_rows: int, where: str = "X") -> AnyArray:
    """Return rows as a table of numbers of any type, one for each of ``n_rows`` labels."""
    rows = np.asarray(X)
    if rows.ndim != 2 or len(rows) != n_rows or rows.dtype.kind not in "fiub":
        raise InputError(
            f"{where} has shape {rows.shape} and type {rows.dtype} for {n_rows} labels; "
            "give numbers of shape (rows, features), one row for each label"
        )
    return rows
