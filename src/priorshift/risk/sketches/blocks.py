"""A fresh random block of the held-out set each round.

Both parts of a loss, the potential and the linear one, are read from the same rows: they nearly
cancel for rows that are classified well, so taking one of them from the whole set would add noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np

from priorshift.risk.data import RiskData
from priorshift.risk.losses import Loss, Softmax
from priorshift.risk.sketches.base import check_seed, check_size, refuse_weights
from priorshift.risk.sketches.error import block_size
from priorshift.typing import Float32Array, FloatArray

_MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class Blocks:
    """A fresh block of the held-out set each round, stratified by class.

    The rows of each class are shuffled once and cut into as many pieces as there are blocks; round
    t reads block ``t mod n``. Each block is a random part of the set, so the risk stays unbiased,
    and a walk through all blocks reads every row once. A class with fewer rows than blocks is read
    whole every time.

    The shuffled rows are a second copy of the set; ``source.sketched(Blocks(...))`` keeps that copy
    alone. A block itself is cut out when its round first comes. Blocks are remembered, which is one
    more copy in the end; of sets above 64 MB only the last one is.

    Parameters
    ----------
    size : int
        Rows of a block, about.
    seed : int
        Seed of the shuffle.

    Examples
    --------
    >>> X, y = np.arange(12.0)[:, None], np.repeat([0, 1], 6)
    >>> whole = RiskData.of(X, y, n_classes=2)
    >>> blocks = Blocks(size=4)
    >>> pieces = [blocks.at(whole, t) for t in range(3)]
    >>> sorted(np.concatenate([piece.XT[0] for piece in pieces]).tolist()) == X[:, 0].tolist()
    True
    >>> blocks.at(whole, 5) is pieces[2]
    True
    """

    size: int = 1000
    seed: int = 0
    name: ClassVar[str] = "blocks"
    fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.size, "a block")
        check_seed(self.seed, "a block")

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
        """Blocks whose risk and gradient have about the relative error asked for, or less.

        The size follows from the variances of losses and gradients within each class, at the
        models ``W`` (N, K, d) and the class priors (M, K); by default reference models and priors.
        See ``sketch_error`` for what the errors are relative to.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 4000)
        >>> data = RiskData.of(rng.normal(size=(4000, 2)) + y[:, None], y, n_classes=2)
        >>> sizes = [Blocks.for_error(data, error).size for error in (0.2, 0.1)]
        >>> 2 < sizes[1] / sizes[0] < 4.5
        True
        """
        return cls(block_size(data, error, loss or Softmax(), W, priors, seed), seed)

    def number(self, data: RiskData) -> int:
        """How many blocks the set falls into."""
        return max(1, int(data.XT.shape[1]) // self.size)

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return the block of round t."""
        kept = cast("list[RiskData | None] | None", data.sketches.get(self))
        if kept is None:
            refuse_weights(data, "Blocks")
            kept = [None] * self.number(data)
            data.sketches[self] = kept
        index = t % len(kept)
        piece = kept[index]
        if piece is None:
            if data.XT.nbytes > _MOST_BYTES:
                kept[:] = [None] * len(kept)
            piece = kept[index] = self._cut(self.shuffled(data), data, index)
        return piece

    def shuffled(self, data: RiskData) -> RiskData:
        """The set with the rows of each class in random order; itself where it is so already."""
        if data.shuffled:
            return data
        key = ("shuffled", self.seed)
        found = cast("RiskData | None", data.sketches.get(key))
        if found is None:
            rng = np.random.default_rng(self.seed)
            pieces = zip(data.offsets[:-1], data.offsets[1:], strict=True)
            order = np.concatenate([a + rng.permutation(b - a) for a, b in pieces])
            found = RiskData(
                np.take(data.XT, order, axis=1),
                data.offsets,
                reach=data.largest_norm,
                shuffled=True,
            )
            data.sketches[key] = found
        return found

    def _cut(self, lying: RiskData, whole: RiskData, index: int) -> RiskData:
        number = self.number(lying)
        if number == 1:
            return whole
        parts = []
        for a, b in zip(lying.offsets[:-1].tolist(), lying.offsets[1:].tolist(), strict=True):
            rows = b - a
            first, last = rows * index // number, rows * (index + 1) // number
            parts.append(lying.XT[:, a:b] if rows < number else lying.XT[:, a + first : a + last])
        offsets = np.cumsum([0, *(part.shape[1] for part in parts)]).astype(np.intp)
        return RiskData(np.concatenate(parts, axis=1), offsets, whole=whole)
