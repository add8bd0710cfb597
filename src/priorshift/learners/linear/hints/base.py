"""What a hint is: a guess of this round's class mix, made from what the stream has shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift.source import Batch, Source
from priorshift.typing import FloatArray


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
        """Return the memory after a batch, given its estimated class mix (K,)."""
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
