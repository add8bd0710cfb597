"""Hints of ATLAS-ADA: guesses of a round's class prior, made from what the stream has shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._registry import Registry
from priorshift.errors import InputError, InputTypeError
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray


class LastPrior(NamedTuple):
    """The state of hints that remember one estimate."""

    last: FloatArray


@dataclass(frozen=True)
class Hint:
    """Base of all hints: settings in the dataclass, memory in a named tuple of arrays and numbers.

    A hint answers twice: `prior` is the hint for the round whose batch was seen last (the paper's
    order, where the hint looks at S_t), `forecast` the hint for the next round, independent of its
    batch, as Theorem 3 asks. Your own hint needs `start`, `update` and `prior`:

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Half(Hint):
    ...     '''Goes half of the way to each new estimate.'''
    ...     def start(self, source):
    ...         return LastPrior(source.prior)
    ...     def update(self, source, state, batch, estimate):
    ...         return LastPrior((state.last + estimate) / 2)
    ...     def prior(self, state):
    ...         return state.last
    >>> Half().prior(LastPrior(np.array([0.5, 0.5]))).tolist()
    [0.5, 0.5]
    """

    name: ClassVar[str] = "custom"

    def start(self, source: Source) -> Any:
        """Return the memory before the first batch."""
        return LastPrior(source.prior)

    def update(self, source: Source, state: Any, batch: Batch, estimate: FloatArray) -> Any:
        """Return the memory after a batch, given its estimated class prior (K,)."""
        return LastPrior(estimate)

    def prior(self, state: Any) -> FloatArray:
        """Hint prior h_t (K,) for the round of the last batch."""
        return np.asarray(state.last)

    def forecast(self, state: Any) -> FloatArray:
        """Hint prior for the round to come; the last one, unless a hint knows better."""
        return self.prior(state)


@dataclass(frozen=True)
class NoHint(Hint):
    """H_t = 0: without a hint ATLAS-ADA makes the updates of ATLAS, with its own pool.

    Examples
    --------
    >>> NoHint().prior(LastPrior(np.zeros(2))).tolist()
    [0.0, 0.0]
    """

    name: ClassVar[str] = "none"

    def start(self, source: Source) -> LastPrior:
        """Return the zero prior."""
        return LastPrior(np.zeros(source.n_classes))

    def update(
        self, source: Source, state: LastPrior, batch: Batch, estimate: FloatArray
    ) -> LastPrior:
        """Remember nothing."""
        return state


@dataclass(frozen=True)
class Forward(Hint):
    r"""Forward hint: transductive learning with the current batch, :math:`h_t = \hat\mu_t`.

    Examples
    --------
    >>> state = Forward().update(None, None, None, np.array([0.2, 0.8]))
    >>> Forward().prior(state).tolist()
    [0.2, 0.8]
    """

    name: ClassVar[str] = "fwd"


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


def _check_rate(hint: str, rate: float | None) -> None:
    if rate is not None and not 0.0 < rate <= 1.0:
        raise InputError(f"the rate of the {hint} hint is {rate}: choose 0 < rate <= 1")


def _share_of_new(visits: int, rate: float | None) -> float:
    """How far a running mean goes to a new estimate: all the way at the first visit."""
    return 1.0 / visits if rate is None or visits == 1 else rate


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
        _check_rate("periodic", self.rate)

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
        rate = _share_of_new(int(counts[slot]), self.rate)
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


class KMeansState(NamedTuple):
    """Prototypes: mean feature vector, mean class prior and count; and the one used last."""

    centres: FloatArray
    priors: FloatArray
    counts: IntArray
    last: int


@dataclass(frozen=True)
class OnlineKMeans(Hint):
    r"""Prototypes of batch means with their class priors; the nearest one is moved and is the hint.

    .. math:: i_t = \arg\min_i \frac{1}{|S_t|} \sum_{x \in S_t} \|\bar x_i - x\|^2, \qquad
        \bar\mu_{i_t} \leftarrow \bar\mu_{i_t} + \kappa_t (\hat\mu_t - \bar\mu_{i_t})

    Parameters
    ----------
    prototypes : int
        L_k. Empty prototypes are filled first.
    rate : float, optional
        Constant :math:`\kappa`; by default one over the number of visits to the prototype.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> hint = OnlineKMeans(prototypes=1)
    >>> state = KMeansState(np.zeros((1, 1)), np.zeros((1, 2)), np.zeros(1, np.intp), 0)
    >>> for share in (1.0, 0.5):
    ...     batch = SimpleNamespace(features=np.array([[share]]))
    ...     state = hint.update(None, state, batch, np.array([share, 1 - share]))
    >>> hint.prior(state).tolist(), state.centres.tolist()
    ([0.75, 0.25], [[0.75]])
    """

    prototypes: int = 5
    rate: float | None = None
    name: ClassVar[str] = "okm"

    def __post_init__(self) -> None:
        if self.prototypes < 1:
            raise InputError(f"{self.prototypes} prototypes asked for: at least 1 is needed")
        _check_rate("k-means", self.rate)

    def start(self, source: Source) -> KMeansState:
        """Return empty prototypes."""
        return KMeansState(
            np.zeros((self.prototypes, source.risk.XT.shape[0])),
            np.zeros((self.prototypes, source.n_classes)),
            np.zeros(self.prototypes, np.intp),
            0,
        )

    def update(
        self, source: Source, state: KMeansState, batch: Batch, estimate: FloatArray
    ) -> KMeansState:
        """Fill an empty prototype, else move the nearest."""
        mean = np.add.reduce(batch.features, axis=0) / len(batch.features)
        visits = state.counts.tolist()
        if 0 in visits:
            nearest = visits.index(0)
        else:
            # The batch's spread is the same for every prototype, so its mean decides.
            gaps = state.centres - mean
            nearest = int(np.add.reduce(gaps * gaps, axis=1).argmin())
        centres, priors, counts = state.centres.copy(), state.priors.copy(), state.counts.copy()
        counts[nearest] += 1
        rate = _share_of_new(visits[nearest] + 1, self.rate)
        centre, prior = centres[nearest], priors[nearest]
        centre += rate * (mean - centre)
        prior += rate * (estimate - prior)
        return KMeansState(centres, priors, counts, nearest)

    def prior(self, state: KMeansState) -> FloatArray:
        """Class mix of the prototype that was moved last."""
        return np.asarray(state.priors[state.last])


HINTS: Registry[type[Hint]] = Registry(
    "hint", Forward, Window, Periodic, OnlineKMeans, NoHint, otherwise="a Hint object"
)


def as_hint(hint: object) -> Hint:
    """Return a hint from its name, or the hint itself.

    Examples
    --------
    >>> as_hint("win")
    Window(size=10)
    >>> as_hint("crystal-ball")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no hint is called 'crystal-ball'; choose one of 'fwd', 'win', \
'peri', 'okm', 'none', or pass a Hint object
    """
    if isinstance(hint, str):
        return HINTS[hint]()
    if not isinstance(hint, Hint):
        raise InputTypeError(
            f"hint is {hint!r}: pass a name, or an object derived from priorshift.Hint"
        )
    return hint
