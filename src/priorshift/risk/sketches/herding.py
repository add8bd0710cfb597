"""A fixed weighted subset whose kernel mean is the whole set's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from priorshift.risk.data import RiskData
from priorshift.risk.losses import Loss, Softmax
from priorshift.risk.sketches.base import (
    Chosen,
    check_seed,
    check_size,
    class_rows,
    fixed_sketch,
)
from priorshift.risk.sketches.directions import candidates
from priorshift.risk.sketches.error import smallest_size
from priorshift.risk.sketches.weights import calibrated
from priorshift.typing import Float32Array, FloatArray, IntArray

_FREQUENCIES = 512
_MEDIAN_ROWS = 500


@dataclass(frozen=True)
class Herding:
    r"""A fixed weighted subset of the offline set, chosen by kernel herding.

    Class by class, rows are taken one after the other so that the mean of the features
    :math:`\varphi(x) = \cos(\Omega x + b)` over those taken stays as near as it can to the mean
    over the class; weights then remove what is left along the main directions of :math:`\varphi`.
    The random frequencies belong to a Gaussian kernel as wide as the median distance. It knows
    nothing of losses or models, and so serves all of them, at a larger error than ``Coreset``.

    Parameters
    ----------
    size : int
        Rows in all. As many as the set has, or more, is the set itself.
    seed : int
        Seed of the frequencies.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> data = RiskData.of(rng.normal(size=(2000, 2)) + y[:, None], y, n_classes=2)
    >>> small = Herding(size=100).at(data, 0)
    >>> small.XT.shape, bool(np.abs(small.means - data.means).max() < 0.02)
    ((2, 100), True)
    """

    size: int = 1000
    seed: int = 0
    name: ClassVar[str] = "herding"
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_size(self.size, "Herding")
        check_seed(self.seed, "Herding")

    @classmethod
    def for_error(
        cls,
        data: RiskData,
        error: float,
        *,
        loss: Loss | None = None,
        W: Float32Array | None = None,
        mixes: FloatArray | None = None,
        seed: int = 0,
    ) -> Self:
        """The smallest set, in doublings, with at most the relative error asked for.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 2000)
        >>> data = RiskData.of(rng.normal(size=(2000, 2)) + y[:, None], y, n_classes=2)
        >>> Herding.for_error(data, 0.05).size <= 1024
        True
        """
        return smallest_size(
            partial(cls, seed=seed), data, error, loss or Softmax(), W, mixes, seed
        )

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return the chosen rows, the same in every round; chosen when first asked for."""
        return fixed_sketch(self, data, self._choose)

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
