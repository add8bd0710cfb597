"""A fixed weighted subset with the whole set's losses and gradients along a learner's path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from priorshift.risk.data import RiskData
from priorshift.risk.losses import Loss, loss_by_name
from priorshift.risk.sketches.bank import Bank, reference_models
from priorshift.risk.sketches.base import Chosen, check_seed, check_size, fixed_sketch
from priorshift.risk.sketches.directions import candidates
from priorshift.risk.sketches.draw import importance, systematic
from priorshift.risk.sketches.error import smallest_size
from priorshift.risk.sketches.weights import calibrated
from priorshift.typing import Float32Array, FloatArray


@dataclass(frozen=True)
class Coreset:
    r"""A fixed weighted subset of the offline set, built once.

    The same number of rows is drawn of each class, those with unusual losses and gradients more
    often. Weights are then as near to the inverse of these chances as they can be while the class's
    mean loss and mean gradient,

    .. math:: \sum_{i} w_i \, \nabla\ell(w, x_i, k) = \frac{1}{|S_0^k|} \sum_{x \in S_0^k}
        \nabla\ell(w, x, k),

    come out as on the whole set for many reference models w: risk minimisers for class mixes all
    over the simplex, and shrunk copies of them.

    Parameters
    ----------
    size : int
        Rows in all. As many as the set has, or more, is the set itself.
    seed : int
        Seed of the draw.
    models : int
        Class mixes whose minimisers are reference models.
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

    size: int = 1000
    seed: int = 0
    models: int = 12
    loss: str = "softmax"
    name: ClassVar[str] = "coreset"
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_size(self.size, "Coreset")
        check_size(self.models, "Coreset's reference models")
        check_seed(self.seed, "Coreset")
        loss_by_name(self.loss)

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
        """The smallest coreset, in doublings, with at most the relative error asked for.

        Measured by ``sketch_error`` at ``W`` (N, K, d) and class mixes (M, K): by default
        reference models that the coreset has not seen. The set itself where nothing less will do.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 4000)
        >>> data = RiskData.of(rng.normal(size=(4000, 2)) + y[:, None], y, n_classes=2)
        >>> Coreset.for_error(data, 0.01).size < 1000
        True
        """
        kind = "softmax" if loss is None else loss.name
        build = partial(cls, seed=seed, loss=kind)
        return smallest_size(build, data, error, loss_by_name(kind), W, mixes, seed)

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return the coreset, the same in every round; it is built when first asked for."""
        return fixed_sketch(self, data, self._choose)

    def _choose(self, data: RiskData, sizes: list[int]) -> list[Chosen]:
        rng = np.random.default_rng(self.seed)
        bank = Bank.of(reference_models(data, self.models, rng), loss_by_name(self.loss), rng)
        chosen = []
        for k, rows in enumerate(sizes):
            seen = candidates(data, k, partial(bank, label=k), rows, rng)
            drawn, base = systematic(importance(seen.whitened), rows, rng)
            chosen.append(Chosen(seen.columns[drawn], calibrated(seen.whitened[drawn], base)))
        return chosen
