"""The paper's synthetic problem: three Gaussian classes in 12 dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from priorshift.datasets.dataset import Dataset
from priorshift.simulation.streams import GaussianPopulation
from priorshift.typing import FloatArray, IntArray

_SEED = 2021
_ROWS = 10_000
_CLASSES = 3
_FEATURES = 12
_VARIANCE = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticProblem:
    """The offline set, the population behind it, and the constants that go with them.

    Attributes
    ----------
    X0 : ndarray, (10000, 12)
        Rows of the offline set S_0.
    y0 : ndarray, (10000,)
        Their classes, 0..2.
    population : GaussianPopulation
        The true densities.
    radius : float
        The weights of the linear model live in the L2 ball of this radius, 5.
    diameter : float
        The ball's diameter, the paper's D (Gamma), 10.
    gradient_bound : float
        The paper's G, 1.
    focus : int
        ``mu_2`` is all on this class, 2. (The text says the first class; its numbers need the
        last.)
    intercept : bool
        False: the linear model has no constant column.
    training : dict
        How f0 is trained: 500 steps of gradient descent on all rows, rate 0.1, from random weights
        as PyTorch's linear layer has them. It ends on the sphere, short of the optimum there, and
        gives the paper's row FIX.

    Examples
    --------
    >>> problem = synthetic_problem()
    >>> problem.X0.shape, problem.diameter, problem.focus
    ((10000, 12), 10.0, 2)
    """

    X0: FloatArray
    y0: IntArray
    population: GaussianPopulation
    radius: ClassVar[float] = 5.0
    diameter: ClassVar[float] = 10.0
    gradient_bound: ClassVar[float] = 1.0
    focus: ClassVar[int] = 2
    intercept: ClassVar[bool] = False
    training: ClassVar[Mapping[str, Any]] = MappingProxyType({"steps": 500, "rate": 0.1, "seed": 2})

    def __repr__(self) -> str:
        return f"SyntheticProblem({len(self.X0)} offline rows, {self.population!r})"


def synthetic_problem() -> SyntheticProblem:
    """Build the synthetic problem; it is the same to the last bit each time.

    The order of the draws is the authors': centres, labels, then the rows of each class in turn.

    Examples
    --------
    >>> np.bincount(synthetic_problem().y0)
    array([3295, 3319, 3386])
    """
    rng = np.random.default_rng(_SEED)
    centres = rng.random((_CLASSES, _FEATURES))
    covariance = _VARIANCE * np.eye(_FEATURES)
    y0 = rng.choice(_CLASSES, _ROWS, p=[1 / _CLASSES] * _CLASSES).astype(np.intp)
    X0 = np.empty((_ROWS, _FEATURES))
    for label, centre in enumerate(centres):
        rows = y0 == label
        X0[rows] = rng.multivariate_normal(centre, covariance, size=np.count_nonzero(rows))
    return SyntheticProblem(X0, y0, GaussianPopulation(centres, covariance))


def synthetic_dataset() -> Dataset:
    """Return the synthetic problem as a :class:`Dataset`: an empty pool, an endless population.

    Examples
    --------
    >>> synthetic_dataset()
    Dataset('synthetic', 10000 offline rows, 0 in the pool, 12 features, 3 classes)
    """
    problem = synthetic_problem()
    return Dataset(
        name="synthetic",
        X0=problem.X0,
        y0=problem.y0,
        X1=np.empty((0, _FEATURES)),
        y1=np.empty(0, dtype=np.intp),
        probabilities=False,
        focus=problem.focus,
        population=problem.population,
        classes=np.arange(_CLASSES),
    )
