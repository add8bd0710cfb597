"""Periodic hint: what recurs after a known number of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift.errors import InputError
from priorshift.learners.linear.hints.base import Hint
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray


class PeriodicState(NamedTuple):
    """Mean estimate and count of every slot of the buffer, and the rounds seen."""

    means: FloatArray
    counts: IntArray
    seen: int


@dataclass(frozen=True)
class Periodic(Hint):
    r"""Running mean of each slot ``t mod period``.

    .. math:: \bar\mu_i \leftarrow \bar\mu_i + \lambda_t (\hat\mu_t - \bar\mu_i),
        \quad i = t \bmod L_p

    Parameters
    ----------
    period : int
        L_p, rounds of the buffer.
    rate : float, optional
        Constant :math:`\lambda`; by default one over the number of visits to the slot.

    Examples
    --------
    >>> hint = Periodic(period=2)
    >>> state = PeriodicState(np.zeros((2, 2)), np.zeros(2, np.intp), 0)
    >>> for share in (1.0, 0.0, 0.5):
    ...     state = hint.update(None, state, None, np.array([share, 1 - share]))
    >>> hint.prior(state).tolist(), hint.forecast(state).tolist()
    ([0.75, 0.25], [0.0, 1.0])
    """

    period: int = 40
    rate: float | None = None
    name: ClassVar[str] = "peri"

    def __post_init__(self) -> None:
        if self.period < 1:
            raise InputError(f"the period is {self.period}: at least 1 round is needed")
        if self.rate is not None and not 0.0 < self.rate <= 1.0:
            raise InputError(f"the rate of the periodic hint is {self.rate}: choose 0 < rate <= 1")

    def start(self, source: Source) -> PeriodicState:
        """Return an empty buffer."""
        means = np.zeros((self.period, source.n_classes))
        return PeriodicState(means, np.zeros(self.period, np.intp), 0)

    def update(
        self, source: Source, state: PeriodicState, batch: Batch, estimate: FloatArray
    ) -> PeriodicState:
        """Move this round's slot towards the estimate."""
        slot = state.seen % self.period
        means, counts = state.means.copy(), state.counts.copy()
        counts[slot] += 1
        rate = 1.0 / counts[slot] if self.rate is None or counts[slot] == 1 else self.rate
        means[slot] += rate * (estimate - means[slot])
        return PeriodicState(means, counts, state.seen + 1)

    def prior(self, state: PeriodicState) -> FloatArray:
        """Mean of the last round's slot."""
        return self._slot(state, state.seen - 1)

    def forecast(self, state: PeriodicState) -> FloatArray:
        """Mean of the next round's slot, or of the last one while that is still empty."""
        if state.counts[state.seen % self.period] == 0:
            return self._slot(state, state.seen - 1)
        return self._slot(state, state.seen)

    def _slot(self, state: PeriodicState, turn: int) -> FloatArray:
        if state.seen == 0:
            return np.zeros(state.means.shape[1])
        return np.asarray(state.means[turn % self.period])
