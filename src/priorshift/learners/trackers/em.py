"""EM: an ensemble of forgetting experts that follow the class prior, weighed by Bayes' rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive, check_rates, check_share
from priorshift.learners.trackers.compiled import fields
from priorshift.learners.trackers.components import (
    RATES,
    ComponentLearner,
    Ensemble,
    Latest,
    Posterior,
    bayes,
    evidence_rows,
    fresh_ensemble,
    left_after,
    look,
    remembered,
    shared,
    smoothing_counts,
    smoothing_rows,
)
from priorshift.learners.trackers.late import Late, counts_change
from priorshift.learners.trackers.records import Plan, make_plan
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray


class EmState(NamedTuple):
    """Rounds seen, the experts, the class prior after the last batch."""

    t: int
    experts: Ensemble
    latest: Latest


@dataclass(frozen=True)
class EM(ComponentLearner):
    r"""Discounted EM: experts with different memories of the stream, mixed by Bayes' rule.

    Expert j keeps counts that forget, :math:`D_j \leftarrow (1 - \lambda_j) D_j + c_j`, where
    :math:`c_j` are the expected numbers of rows of each class in the batch, found by EM. Its belief
    about the next batch is a Dirichlet with :math:`\alpha_j = (1 - \lambda_j) D_j + a_0 b`; b is
    the long-run prior. Weights follow the evidence of every batch, :math:`w_j \leftarrow w_j
    p_j(S_t)`, and then lend a fixed share to all.

    There is no horizon and no step size. The loss of the mixture is at most that of the best expert
    plus :math:`\ln J + T \ln\frac{1}{1 - share}`, losses being minus the lower bound of the log
    evidence that the weights use; for batches of one row that is the log-loss itself.

    Parameters
    ----------
    rates : tuple of float
        Forgetting rates :math:`\lambda_j`, falling.
    share : float
        Weight that the experts lend to each other every round.
    smoothing : float, optional
        :math:`a_0`, rows that the long-run prior is worth in every expert's belief; by default
        :math:`\max(\sqrt K, K / 3)`.

    Examples
    --------
    >>> len(EM().rates), EM().protocol
    (12, 'adapt-first')
    """

    rates: tuple[float, ...] = RATES
    share: float = 1e-3
    smoothing: float | None = None
    name: ClassVar[str] = "em"
    has_plan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rates(self.rates)
        check_share("share", self.share)
        check_positive("smoothing", self.smoothing)

    def start(self, source: Source) -> EmState:
        """All experts know the source's prior and nothing else."""
        number = len(self.rates)
        experts = fresh_ensemble(number, source.n_classes)
        return EmState(0, experts, Latest.start(source, number))

    def plan(self, source: Source) -> Plan:
        """Experts, and the class prior after the last batch."""
        return make_plan(source, self.rates, 0, False, self.numbers(source.n_classes))

    def numbers(self, classes: int) -> dict[int, float]:
        """Settings of the compiled step."""
        rows = smoothing_rows(classes) if self.smoothing is None else self.smoothing
        return {fields.SHARE: self.share, fields.SMOOTHING: rows}

    def shaped(self, leaves: list[Any]) -> EmState:
        """The state whose arrays and numbers are these."""
        t, counts, weights, mass, pull, size = leaves
        return EmState(int(t), Ensemble(counts, weights), Latest(mass, pull, float(size)))

    def followed(
        self, source: Source, state: EmState, evidence: FloatArray
    ) -> tuple[EmState, Posterior, float]:
        """Weigh the experts by the batch, then let each of them count and forget."""
        alpha, prior = self.beliefs(source, state)
        seen = look(alpha, evidence)
        weights, nats = bayes(prior, seen.evidence)
        counts = remembered(state.experts.counts, self.rates) + seen.counts
        posterior = Posterior(weights, alpha + seen.counts, seen.centre)
        after = EmState(state.t + 1, Ensemble(counts, weights), Latest.of(posterior))
        return after, posterior, nats

    def trace(self, source: Source, before: EmState, after: EmState, batch: Batch) -> FloatArray:
        """What a late label needs to know of a batch: the class priors (J, K) it was seen under."""
        return look(self.beliefs(source, before)[0], evidence_rows(source, batch)).centre

    def correct(self, source: Source, state: EmState, late: Late) -> EmState:
        r"""Count labels that come late: each row's counts move by what is left of them.

        Expert j moves by :math:`(1 - \lambda_j)^{age} (e_y - \rho_{ji})`; weights stay.
        """
        change = counts_change(source, late, late.trace)
        change *= left_after(self.rates, late.age)[:, None]
        return EmState(state.t, state.experts.moved(change), state.latest.moved(change))

    def beliefs(self, source: Source, state: EmState) -> tuple[FloatArray, FloatArray]:
        """Dirichlet counts (J, K) and weights (J,) for the next batch."""
        base = smoothing_counts(source, state.experts.counts, self.smoothing)
        alpha = remembered(state.experts.counts, self.rates) + base
        return alpha, shared(state.experts.weights, self.share)

    def expected(self, source: Source, state: EmState) -> FloatArray:
        """The class prior (K,) that is expected of the next batch."""
        alpha, weights = self.beliefs(source, state)
        prior = (weights / alpha.sum(axis=1)) @ alpha
        return np.asarray(prior / prior.sum())

    def weights(self, source: Source, state: EmState) -> FloatArray:
        """Weights (J,) of the experts after the last batch."""
        return state.experts.weights
