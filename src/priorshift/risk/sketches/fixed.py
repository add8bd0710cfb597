"""Fixed weighted subsets of the held-out set: the same rows in every round, chosen once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self, cast

import numpy as np

from priorshift.errors import InputError
from priorshift.risk.data import RiskData
from priorshift.risk.losses import Loss, loss_by_name
from priorshift.risk.sketches.bank import Bank, reference_models
from priorshift.risk.sketches.base import (
    Chosen,
    assemble,
    check_seed,
    check_size,
    class_rows,
    refuse_weights,
    shares,
)
from priorshift.risk.sketches.choice import calibrated, candidates, importance, systematic
from priorshift.risk.sketches.error import smallest_size
from priorshift.typing import Float32Array, FloatArray, IntArray

_FREQUENCIES = 512
_MEDIAN_ROWS = 500


@dataclass(frozen=True)
class FixedSketch(ABC):
    """What the fixed sketches share; each chooses rows in its own way.

    Parameters
    ----------
    size : int
        Rows in all. As many as the set has, or more, is the set itself.
    seed : int
        Seed of the choice.
    """

    size: int = 1000
    seed: int = 0
    name: ClassVar[str]
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_size(self.size, type(self).__name__)
        check_seed(self.seed, type(self).__name__)

    @classmethod
    def for_error(
        cls,
        data: RiskData,
        error: float,
        *,
        loss: Loss | None = None,
        W: Float32Array | None = None,
        priors: FloatArray | None = None,
        seed: int = 0,
    ) -> Self:
        """The smallest set, in doublings, with at most the relative error asked for.

        Measured by ``sketch_error`` at ``W`` (N, K, d) and class priors (M, K): by default
        reference models that the sketch has not seen. The set itself where nothing less will do.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 4000)
        >>> data = RiskData.of(rng.normal(size=(4000, 2)) + y[:, None], y, n_classes=2)
        >>> Coreset.for_error(data, 0.01).size < 1000
        True
        """
        judged = loss_by_name("softmax" if loss is None else loss.name)
        return smallest_size(cls._for(judged, seed), data, error, judged, W, priors, seed)

    @classmethod
    def _for(cls, loss: Loss, seed: int) -> Callable[[int], Self]:
        """Sketches of any size that serve a loss."""
        return partial(cls, seed=seed)

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return the chosen rows, the same in every round; chosen when first asked for."""
        if self.size >= data.XT.shape[1]:
            return data
        refuse_weights(data, type(self).__name__)
        if data.counts.min() == 0:
            raise InputError(
                f"{type(self).__name__} needs rows of every class, and the held-out set has none "
                "of some: use no sketch, or Blocks"
            )
        found = cast("RiskData | None", data.sketches.get(self))
        if found is None:
            sizes = shares(data.counts, self.size).tolist()
            chosen = self._choose(data, sizes)
            for k, rows in enumerate(sizes):
                if rows == data.counts[k]:  # a class that gives all its rows gives them evenly
                    columns = np.arange(data.offsets[k], data.offsets[k + 1])
                    chosen[k] = Chosen(columns, np.full(rows, 1.0 / rows))
            found = data.sketches[self] = assemble(data, chosen)
        return found

    @abstractmethod
    def _choose(self, data: RiskData, sizes: list[int]) -> list[Chosen]:
        """Choose so many rows of each class, and weigh them."""


@dataclass(frozen=True)
class Coreset(FixedSketch):
    r"""A fixed weighted subset of the held-out set, built once.

    The same number of rows is drawn of each class, those with unusual losses and gradients more
    often. Weights are then as near to the inverse of these chances as they can be while the class's
    mean loss and mean gradient,

    .. math:: \sum_{i} w_i \, \nabla\ell(w, x_i, k) = \frac{1}{|S_0^k|} \sum_{x \in S_0^k}
        \nabla\ell(w, x, k),

    come out as on the whole set for many reference models w: risk minimisers for class priors all
    over the simplex, and shrunk copies of them.

    Parameters
    ----------
    size : int
        Rows in all. As many as the set has, or more, is the set itself.
    seed : int
        Seed of the draw.
    models : int
        Class priors whose minimisers are reference models.
    loss : {"softmax", "hinge"}
        Whose losses and gradients are matched.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> data = RiskData.of(rng.normal(size=(2000, 2)) + y[:, None], y, n_classes=2)
    >>> small = Coreset(size=100).at(data, 0)
    >>> small.XT.shape, bool(np.abs(small.means - data.means).max() < 1e-3)
    ((2, 100), True)
    """

    models: int = 12
    loss: str = "softmax"
    name: ClassVar[str] = "coreset"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.models, "Coreset's reference models")
        loss_by_name(self.loss)

    @classmethod
    def _for(cls, loss: Loss, seed: int) -> Callable[[int], Self]:
        return partial(cls, seed=seed, loss=loss.name)

    def _choose(self, data: RiskData, sizes: list[int]) -> list[Chosen]:
        rng = np.random.default_rng(self.seed)
        bank = Bank.of(reference_models(data, self.models, rng), loss_by_name(self.loss), rng)
        chosen = []
        for k, rows in enumerate(sizes):
            seen = candidates(data, k, partial(bank, label=k), rows, rng)
            drawn, base = systematic(importance(seen.whitened), rows, rng)
            chosen.append(Chosen(seen.columns[drawn], calibrated(seen.whitened[drawn], base)))
        return chosen


@dataclass(frozen=True)
class Herding(FixedSketch):
    r"""A fixed weighted subset of the held-out set, chosen by kernel herding.

    Class by class, rows are taken one after the other so that the mean of the features
    :math:`\varphi(x) = \cos(\Omega x + b)` over those taken stays as near as it can to the mean
    over the class; weights then remove what is left along the main directions of :math:`\varphi`.
    The random frequencies belong to a Gaussian kernel as wide as the median distance. It knows
    nothing of losses or models, and so serves all of them, at a larger error than ``Coreset``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> data = RiskData.of(rng.normal(size=(2000, 2)) + y[:, None], y, n_classes=2)
    >>> small = Herding(size=100).at(data, 0)
    >>> small.XT.shape, bool(np.abs(small.means - data.means).max() < 0.02)
    ((2, 100), True)
    """

    name: ClassVar[str] = "herding"

    def _choose(self, data: RiskData, sizes: list[int]) -> list[Chosen]:
        rng = np.random.default_rng(self.seed)
        chosen = []
        for k, rows in enumerate(sizes):
            seen = candidates(data, k, _Fourier.of(data, k, rng), rows, rng)
            taken = np.sort(herded(seen.centred, rows))
            chosen.append(Chosen(seen.columns[taken], calibrated(seen.whitened[taken])))
        return chosen


@dataclass(frozen=True, eq=False)
class _Fourier:
    """Random Fourier features of a Gaussian kernel."""

    frequencies: Float32Array
    phases: Float32Array

    @classmethod
    def of(cls, data: RiskData, k: int, rng: np.random.Generator) -> _Fourier:
        rows = data.XT[:, class_rows(data, k, _MEDIAN_ROWS, rng)].T.astype(np.float64)
        other = rows[rng.permutation(len(rows))]
        width = float(np.median(np.linalg.norm(rows - other, axis=1))) or 1.0
        frequencies = rng.normal(size=(data.XT.shape[0], _FREQUENCIES)) / width
        phases = rng.uniform(0.0, 2.0 * np.pi, _FREQUENCIES)
        return cls(frequencies.astype(np.float32), phases.astype(np.float32))

    def __call__(self, X: Float32Array) -> Float32Array:
        return np.asarray(np.cos(X @ self.frequencies + self.phases))


def herded(centred: Float32Array, rows: int) -> IntArray:
    """Take rows one by one so that their sum of ``centred`` features (n, c) stays smallest.

    Examples
    --------
    >>> herded(np.array([[3.0], [1.0], [-1.1], [-3.0]], np.float32), 2).tolist()
    [1, 2]
    """
    own = np.einsum("ij,ij->i", centred, centred)
    score, total = own.copy(), np.zeros(centred.shape[1], np.float32)
    taken = np.empty(rows, np.intp)
    for place in range(rows):
        taken[place] = best = int(score.argmin())
        total += centred[best]
        own[best] = np.inf
        score = own + 2.0 * (centred @ total)
    return taken
