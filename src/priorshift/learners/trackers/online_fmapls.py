"""Online-FMAPLS: MAP label shift with a Dirichlet prior that follows (Hu and Barria, 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import one_hot, reweight
from priorshift._validation import check_positive, check_share
from priorshift.learners.base import Learner
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

# A class without any chance could never come back.
_SMALLEST = 1e-9


class FmaplsState(NamedTuple):
    """Rounds seen, the class prior (K,), its Dirichlet's counts (K,), the mean posterior (K,)."""

    t: int
    prior: FloatArray
    alpha: FloatArray
    mean: FloatArray


@dataclass(frozen=True)
class OnlineFMAPLS(Learner):
    r"""One step of online EM a row, towards the most probable class prior under a Dirichlet.

    With :math:`q_i` the posterior of row i under the present class prior :math:`\pi`,

    .. math:: S \leftarrow S + \gamma (q_i - S), \qquad
        \pi_k \leftarrow \frac{\alpha_k - 1 + S_k}{\sum_j (\alpha_j - 1 + S_j)}, \qquad
        \alpha \leftarrow c\, \pi / \max_j \pi_j ,

    equations 24, 31 and 33 of arXiv 2511.18615. It starts with :math:`\pi` uniform and
    :math:`\alpha = 1`. Counts :math:`\alpha_k - 1` below 0, which classes rarer than a c-th of the
    most common one have, are taken for 0. In (31) the paper writes the one-hot vector of a row's
    own, unknown, label in the place of S; here S is what (24) makes of it.

    Parameters
    ----------
    c : float
        The largest count of the Dirichlet: the larger, the slower and the less noisy. The paper
        gives no number but "large".
    gamma : float
        :math:`\gamma`, the share of the newest row in S.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]), n_classes=2)
    >>> learner = OnlineFMAPLS(c=20.0)
    >>> batch = Batch(np.tile([0.1, 0.9], (200, 1)), np.empty((200, 0)))
    >>> state = learner.adapt(source, learner.start(source), batch)
    >>> bool(learner.prior(source, state)[1] > 0.95)
    True
    """

    c: float = 200.0
    gamma: float = 0.5
    name: ClassVar[str] = "online-fmapls"
    calibration: ClassVar[str] = "auto"
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("c", self.c)
        check_share("gamma", self.gamma)

    def start(self, source: Source) -> FmaplsState:
        """A uniform class prior, and no counts."""
        even = np.full(source.n_classes, 1.0 / source.n_classes)
        return FmaplsState(0, even, np.ones(source.n_classes), even)

    def adapt(self, source: Source, state: FmaplsState, batch: Batch) -> FmaplsState:
        """Row by row; a row whose label is known has that for its posterior."""
        prior, alpha, mean = state.prior, state.alpha, state.mean
        ratios = batch.proba / source.prior
        known = np.full(len(ratios), -1) if batch.known is None else batch.known
        own = one_hot(known, source.n_classes)
        for i, row in enumerate(ratios):
            fit = row * prior
            total = fit.sum()
            posterior = own[i] if known[i] >= 0 else fit / total if total > 0.0 else prior
            mean = mean + self.gamma * (posterior - mean)
            mass = np.maximum(alpha - 1.0, 0.0) + mean
            prior = np.maximum(mass / mass.sum(), _SMALLEST)
            prior = prior / prior.sum()
            alpha = self.c * prior / prior.max()
        return FmaplsState(state.t + 1, prior, alpha, mean)

    def predict_proba(self, source: Source, state: FmaplsState, batch: Batch) -> FloatArray:
        """f0 reweighted by the class prior."""
        return reweight(batch.proba, state.prior / source.prior)

    def prior(self, source: Source, state: FmaplsState) -> FloatArray:
        """The class prior after the last row."""
        return state.prior
