"""Online k-means hint: batches that look alike have alike class mixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift.errors import InputError
from priorshift.learners.linear.hints.base import Hint
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray


class KMeansState(NamedTuple):
    """Prototypes: mean feature vector, mean class mix and count; and the one used last."""

    centres: FloatArray
    priors: FloatArray
    counts: IntArray
    last: int


@dataclass(frozen=True)
class OnlineKMeans(Hint):
    r"""Prototypes of batch means with their class mixes; the nearest one is moved and is the hint.

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
        if self.rate is not None and not 0.0 < self.rate <= 1.0:
            raise InputError(f"the rate of the k-means hint is {self.rate}: choose 0 < rate <= 1")

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
        if not np.logical_and.reduce(state.counts):
            nearest = int(np.argmin(state.counts > 0))
        else:
            # The batch's spread is the same for every prototype, so its mean decides.
            gaps = state.centres - mean
            nearest = int(np.einsum("ij,ij->i", gaps, gaps).argmin())
        centres, priors, counts = state.centres.copy(), state.priors.copy(), state.counts.copy()
        counts[nearest] += 1
        first = counts[nearest] == 1
        rate = 1.0 / counts[nearest] if self.rate is None or first else self.rate
        centres[nearest] += rate * (mean - centres[nearest])
        priors[nearest] += rate * (estimate - priors[nearest])
        return KMeansState(centres, priors, counts, nearest)

    def prior(self, state: KMeansState) -> FloatArray:
        """Class mix of the prototype that was moved last."""
        return np.asarray(state.priors[state.last])
