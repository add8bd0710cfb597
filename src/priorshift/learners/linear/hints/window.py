"""Window hint: recent data are useful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift.errors import InputError
from priorshift.learners.linear.hints.base import Hint
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray


class WindowState(NamedTuple):
    """The last estimates, a ring of rows, and how many were ever written."""

    ring: FloatArray
    seen: int


@dataclass(frozen=True)
class Window(Hint):
    r"""Mean of the last ``size`` estimates: :math:`h_t = \frac1{L_m} \sum_s \hat\mu_s`.

    Examples
    --------
    >>> hint, state = Window(size=2), WindowState(np.zeros((2, 2)), 0)
    >>> for share in (1.0, 0.0, 0.5):
    ...     state = hint.update(None, state, None, np.array([share, 1 - share]))
    >>> hint.prior(state).tolist()
    [0.25, 0.75]
    """

    size: int = 10
    name: ClassVar[str] = "win"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"the window's size is {self.size}: at least 1 round is needed")

    def start(self, source: Source) -> WindowState:
        """Return an empty ring."""
        return WindowState(np.zeros((self.size, source.n_classes)), 0)

    def update(
        self, source: Source, state: WindowState, batch: Batch, estimate: FloatArray
    ) -> WindowState:
        """Overwrite the oldest estimate."""
        ring = state.ring.copy()
        ring[state.seen % self.size] = estimate
        return WindowState(ring, state.seen + 1)

    def prior(self, state: WindowState) -> FloatArray:
        """Mean of the ring; zero (no hint) before the first batch."""
        filled = min(state.seen, self.size)
        if filled == 0:
            return np.zeros(state.ring.shape[1])
        return np.asarray(state.ring[:filled].mean(axis=0))
