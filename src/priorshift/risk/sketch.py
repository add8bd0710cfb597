"""Sketches of the offline set: less to read each round, at a known price.

Both parts of a loss, the potential and the linear one, are read from the same rows: they nearly
cancel for rows that are classified well, so taking one of them from the whole set would add noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from priorshift.errors import InputError
from priorshift.risk.data import RiskData


@dataclass(frozen=True)
class Blocks:
    """A fresh block of the offline set each round, stratified by class.

    The rows of each class are shuffled once and cut into as many pieces as there are blocks; round
    t reads block ``t mod n``. Each block is a random part of the set, so the risk stays unbiased,
    and a walk through all blocks reads every row once. A class with fewer rows than blocks is read
    whole every time.

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
    >>> blocks.at(whole, 3) is pieces[0]
    True
    """

    size: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"the size of a block is {self.size}: at least 1 row is needed")

    def at(self, data: RiskData, t: int) -> RiskData:
        """Return the block of round t."""
        pieces = cast("list[RiskData] | None", data.sketches.get(self))
        if pieces is None:
            pieces = self._cut(data)
            data.sketches[self] = pieces
        return pieces[t % len(pieces)]

    def _cut(self, data: RiskData) -> list[RiskData]:
        rng = np.random.default_rng(self.seed)
        number = max(1, data.XT.shape[1] // self.size)
        by_class = []
        for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            rows = rng.permutation(np.arange(a, b))
            small = len(rows) < number
            by_class.append([rows] * number if small else np.array_split(rows, number))
        pieces = []
        for parts in zip(*by_class, strict=True):
            offsets = np.cumsum([0, *map(len, parts)]).astype(np.intp)
            XT = np.ascontiguousarray(data.XT[:, np.concatenate(parts)])
            pieces.append(RiskData(XT, offsets, whole=data))
        return pieces
