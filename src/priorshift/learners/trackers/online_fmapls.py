"""online-FMAPLS: MAP-EM under a Dirichlet prior that follows the estimate (Hu and Barria, 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import one_hot, reweight
from priorshift._validation import check_choice, check_positive, check_rates
from priorshift.learners.base import Learner
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

_TAKES = {"mean": 0.0, "mode": 1.0}


class FmaplsState(NamedTuple):
    """Rounds seen, the running expectation S (K,), the class prior (K,)."""

    t: int
    expected: FloatArray
    pi: FloatArray


@dataclass(frozen=True)
class OnlineFMAPLS(Learner):
    r"""Online EM for the class prior and for the Dirichlet distribution that it is drawn from.

    Of row :math:`\tau + 1`, with :math:`\bar S_i \propto \pi^\tau_i f(x)_i / \pi_{0,i}`,

    .. math:: S^{\tau+1} = S^\tau + \gamma (\bar S - S^\tau), \qquad
        \pi^{\tau+1}_i = \frac{\alpha^\tau_i - 1 + S^{\tau+1}_i}
            {\sum_k (\alpha^\tau_k - 1 + S^{\tau+1}_k)}, \qquad
        \alpha^{\tau+1} = \frac{c}{\max \pi^{\tau+1}} \pi^{\tau+1}

    (equations 24, 31 and 33), O(K) a row. Before the first row :math:`\alpha` is 1, or, with the
    mean (see below), the source's prior times :math:`c / \max \pi_0`: else one row would lead to
    equal shares. The expectation of all rows of a batch is taken before the first of them moves
    :math:`\pi`, so that their order is nothing. Three things are not as in the paper: :math:`\pi`
    and S begin at the source's prior, not uniform; where :math:`\alpha_i < 1`, and a Dirichlet has
    no mode, :math:`\alpha_i - 1` counts as 0; and S is in the place of the label of the row before,
    which nobody knows online (second line of equation 24).

    By default the Dirichlet's mean is taken, :math:`\alpha_i` in the place of
    :math:`\alpha_i - 1`: online EM with the step :math:`1 / (\hat c + 1)`,
    :math:`\hat c = c / \max \pi`. The paper takes the mode, ``take="mode"``, which does not stay
    at the truth: where rows show their classes, the mean move of :math:`\pi_i` at
    :math:`\pi = \mu` is :math:`(K \mu_i - 1) / (\hat c - K + 1)`, away from equal shares, and the
    prior ends with all of it on one class, the later the larger c. (The paper calls it drift, the
    price of a small c.)

    Parameters
    ----------
    c : float
        How many rows the Dirichlet is worth, of the commonest class. The paper gives no number
        ("sufficiently large"); 100 is ours.
    rate : float
        :math:`\gamma`. The paper gives no number; 0.5 is ours.
    take : {"mean", "mode"}
        What is taken of the Dirichlet; "mode" is the published form.

    References
    ----------
    J. Hu and J. A. Barria, "Bayesian-based online label shift estimation with dynamic Dirichlet
    priors", arXiv 2511.18615, 2025, Algorithm 2.

    Examples
    --------
    >>> OnlineFMAPLS().name, OnlineFMAPLS(c=300.0).c
    ('online-fmapls', 300.0)
    """

    c: float = 100.0
    rate: float = 0.5
    take: str = "mean"
    name: ClassVar[str] = "online-fmapls"
    calibration: ClassVar[str] = "auto"
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("c", self.c)
        check_rates((self.rate,))
        check_choice("take", self.take, tuple(_TAKES))

    def start(self, source: Source) -> FmaplsState:
        """The source's class prior."""
        return FmaplsState(0, source.prior, source.prior)

    def predict_proba(self, source: Source, state: FmaplsState, batch: Batch) -> FloatArray:
        """f0 reweighted to the class prior."""
        return reweight(batch.proba, state.pi / source.prior)

    def adapt(self, source: Source, state: FmaplsState, batch: Batch) -> FmaplsState:
        """One step of EM for each row."""
        rows = reweight(batch.proba, state.pi / source.prior)
        if batch.known is not None:
            has = batch.known >= 0
            rows[has] = one_hot(batch.known[has], source.n_classes)
        mean, S, pi = rows.mean(axis=0), state.expected, state.pi
        less = _TAKES[self.take]
        alpha = np.ones_like(pi) if less and not state.t else pi * (self.c / pi.max())
        for _ in range(len(rows)):
            S = S + self.rate * (mean - S)
            pi = np.maximum(alpha - less, 0.0) + S
            pi /= pi.sum()
            alpha = pi * (self.c / pi.max())
        return FmaplsState(state.t + 1, S, pi)

    def prior(self, source: Source, state: FmaplsState) -> FloatArray:
        """The class prior after the last row."""
        return state.pi
