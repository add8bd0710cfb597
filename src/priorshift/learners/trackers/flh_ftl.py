"""FLH-FTL: follow the leading history over means of past estimates (Baby et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_choice, check_positive
from priorshift.learners.trackers.moments import Mean, Moments, Moved
from priorshift.learners.trackers.window_hedge import WindowHedge, WindowsState
from priorshift.source import Source
from priorshift.typing import FloatArray, IntArray

_LEVELS = 31
# An expert lives for two births of its level and a round, so that three of a level can be alive.
_ALIVE = 3
EXPERTS = ("lengths", "births")
# Weight that window lengths lend to each other every round, so that none is lost for good.
_LENT = 1e-3


class FlhState(NamedTuple):
    """Rounds seen, the experts' sums (E, K), rounds of birth (0: none) and weights, the mean."""

    t: int
    sums: FloatArray
    born: IntArray
    weights: FloatArray
    mean: Mean


def level(born: int) -> int:
    """How often 2 divides the round of birth: the expert lives for ``4 * 2^level + 1`` rounds.

    Examples
    --------
    >>> level(12), level(7)
    (2, 0)
    """
    return min((born & -born).bit_length() - 1, _LEVELS - 1)


def slot(born: int) -> int:
    """The place that the expert of a round takes: no expert that is still alive has it.

    Examples
    --------
    >>> slot(1), slot(3), slot(5), slot(7)
    (0, 1, 2, 0)
    """
    k = level(born)
    return _ALIVE * k + (born >> (k + 1)) % _ALIVE


_LIVES = np.repeat(4 * 2 ** np.arange(_LEVELS, dtype=np.int64) + 1, _ALIVE)


@dataclass(frozen=True)
class FLHFTL(Moments):
    r"""Means of past estimates that go back differently far, weighed by how well they foretell.

    In the published form, ``experts="births"``, experts begin at different rounds, each the mean of
    all estimates since. Expert j predicts :math:`x_j = \frac{1}{t - j} \sum_{i=j}^{t-1} s_i`. After
    round t

    .. math:: v_j \leftarrow \frac{t}{t+1} \cdot
        \frac{v_j e^{-\alpha |x_j - s_t|^2}}{\sum_i v_i e^{-\alpha |x_i - s_t|^2}}, \qquad
        v_t = \frac{1}{t+1}

    and the class prior is :math:`\sum_j v_j x_j`. An expert born at round :math:`r 2^k`, r odd,
    lives for :math:`4 \cdot 2^k + 1` rounds, so that O(log t) are alive and every stretch of rounds
    has one that began in its first half.

    By default weights belong to the *lengths* 1, 2, 4, ... of windows, as in ``WindowHedge``, with
    the rate from above. Measured, most of what that gains is the set of windows itself: see
    docs/learners/flh-ftl.md.

    Parameters
    ----------
    rate : float, optional
        :math:`\alpha`; by default 1 / K, as in the authors' code.
    experts : {"lengths", "births"}
        What a weight belongs to: a window's length, or the round in which an expert began.
    estimator
        As in ``Moments``.

    Examples
    --------
    >>> FLHFTL().name, FLHFTL(experts="births").experts
    ('flh-ftl', 'births')
    """

    rate: float | None = None
    experts: str = "lengths"
    name: ClassVar[str] = "flh-ftl"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("rate", self.rate)
        check_choice("experts", self.experts, EXPERTS)

    def _rate(self, source: Source) -> float:
        return 1.0 / source.n_classes if self.rate is None else self.rate

    def _windows(self, source: Source) -> WindowHedge:
        return WindowHedge(self.estimator, rate=self._rate(source), share=_LENT)

    def start(self, source: Source) -> FlhState | WindowsState:
        """No expert yet: the source's prior."""
        if self.experts == "lengths":
            return self._windows(source).start(source)
        number = _LEVELS * _ALIVE
        sums = np.zeros((number, source.n_classes))
        born = np.zeros(number, dtype=np.int64)
        return FlhState(0, sums, born, np.zeros(number), Mean(source.prior, 0.0))

    def moved(self, source: Source, state: Any, estimate: FloatArray, rows: int) -> Moved:
        """Weigh the experts by the new estimate, let the old go, and let one be born."""
        if self.experts == "lengths":
            return self._windows(source).moved(source, state, estimate, rows)
        t = state.t + 1
        alive = state.born > 0
        ages = np.where(alive, t - state.born, 1)
        gaps = ((state.sums / ages[:, None] - estimate) ** 2).sum(axis=1)
        gaps -= gaps[alive].min() if alive.any() else 0.0
        weights = np.where(
            alive, state.weights * np.exp(-self._rate(source) * np.maximum(gaps, 0.0)), 0.0
        )
        stays = alive & (t - state.born < _LIVES)
        weights = np.where(stays, weights, 0.0)
        sums = np.where(stays[:, None], state.sums + estimate, 0.0)
        born = np.where(stays, state.born, 0)
        total = float(weights.sum())
        if total > 0.0:
            weights *= t / ((t + 1) * total)
        place = slot(t)
        sums[place], born[place] = estimate, t
        weights[place] = 1.0 / (t + 1) if total > 0.0 else 1.0
        shares = weights / np.maximum(np.where(born > 0, t + 1 - born, 1), 1)
        after = state._replace(sums=sums, born=born, weights=weights)
        return Moved(after, shares @ sums, shares.sum())

    def weights(self, source: Source, state: Any) -> FloatArray:
        """Weights of the lengths, or of the experts by place (0 where there is none)."""
        return np.asarray(state.weights)
