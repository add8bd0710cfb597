"""Window-Hedge: means over windows of every length, weighed by how well each foretold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_integer, check_positive, check_share
from priorshift.errors import InputError
from priorshift.learners.trackers.components import bayes, shared
from priorshift.learners.trackers.moments import Mean, Moments, Moved, source_noise
from priorshift.source import Source
from priorshift.typing import FloatArray


class WindowsState(NamedTuple):
    """Rounds seen, the last estimates (M, K), each window's sum (L, K) and weight, row noise."""

    t: int
    ring: FloatArray
    sums: FloatArray
    weights: FloatArray
    noise: float
    mean: Mean


@dataclass(frozen=True)
class WindowHedge(Moments):
    r"""One expert for each window length 1, 2, 4, ...: the mean of so many last estimates.

    Hedge weighs the lengths by the distance of their means :math:`x_w` from the next estimate,
    :math:`v_w \leftarrow v_w e^{-\alpha_t |x_w - s_t|^2}`, and every length lends a fixed share to
    all. The prior is the weighted mean, with :math:`s_t` already in every window.

    Parameters
    ----------
    longest : int
        The longest window, a power of two.
    rate : float, optional
        :math:`\alpha_t`; by default :math:`n / (20 v)`, n the rows of the batch and v the variance
        of one row's estimate per class. Bayes' rule for normal noise would be ten times as fast;
        estimates from few rows are far from normal.
    share : float
        Weight that the lengths lend to each other every round.
    estimator
        As in ``Moments``.

    Examples
    --------
    >>> WindowHedge(longest=8).lengths.tolist()
    [1, 2, 4, 8]
    """

    longest: int = 512
    rate: float | None = None
    share: float = 0.01
    name: ClassVar[str] = "window-hedge"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.longest, "longest", least=1)
        if self.longest & (self.longest - 1):
            raise InputError(f"longest is {self.longest}: give a power of two")
        check_positive("rate", self.rate)
        check_share("share", self.share)

    @property
    def lengths(self) -> FloatArray:
        """The window lengths (L,)."""
        return np.asarray(2 ** np.arange(self.longest.bit_length()))

    def start(self, source: Source) -> WindowsState:
        """Empty windows; the source's prior until the first batch."""
        number, K = self.longest.bit_length(), source.n_classes
        noise = float(source_noise(self, source).mean())
        return WindowsState(
            t=0,
            ring=np.zeros((self.longest, K)),
            sums=np.zeros((number, K)),
            weights=np.full(number, 1.0 / number),
            noise=noise,
            mean=Mean(source.prior, 0.0),
        )

    def losses(
        self, source: Source, state: WindowsState, estimate: FloatArray, rows: int
    ) -> FloatArray:
        """Loss (L,) of each window's mean for the next estimate."""
        means = np.broadcast_to(source.prior, state.sums.shape)
        if state.t:
            means = state.sums / np.minimum(self.lengths, state.t)[:, None]
        rate = rows / (20.0 * max(state.noise, 1e-12)) if self.rate is None else self.rate
        return np.asarray(rate * ((means - estimate) ** 2).sum(axis=1))

    def moved(self, source: Source, state: WindowsState, estimate: FloatArray, rows: int) -> Moved:
        """Weigh the lengths, then move every window on by one estimate."""
        t = state.t + 1
        losses = self.losses(source, state, estimate, rows)
        weights, _ = bayes(shared(state.weights, self.share), -losses)
        leaving = t - self.lengths  # the round that falls out of each window; rounds begin at 1
        gone = state.ring[(leaving - 1) % self.longest] * (leaving >= 1)[:, None]
        sums = state.sums + estimate - gone
        ring = state.ring.copy()
        ring[(t - 1) % self.longest] = estimate
        shares = shared(weights, self.share) / np.minimum(self.lengths, t)
        after = state._replace(ring=ring, sums=sums, weights=weights)
        return Moved(after, shares @ sums, shares.sum())

    def weights(self, source: Source, state: WindowsState) -> FloatArray:
        """Weights (L,) of the window lengths after the last batch."""
        return state.weights
