"""EM: an ensemble of forgetting experts that follow the class mix, weighed by Bayes' rule."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_positive
from priorshift.errors import InputError, InputTypeError
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import (
    Latest,
    Posterior,
    bayes,
    evidence_rows,
    left_out,
    likelihoods,
    look,
    reweight_by,
    with_labels,
)
from priorshift.learners.trackers.late import Late, counts_change
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

RATES = (1.0, 15 / 16, *(2.0**-j for j in range(1, 11)))
"""Forgetting rates of the experts: from "this batch alone" to the last thousand rounds."""

# Of the smoothing counts, this share goes to the source's prior, the rest to the slowest expert.
_SOURCE_SHARE = 0.1


class Ensemble(NamedTuple):
    """Forgetting experts: their discounted counts (J, K) and their weights (J,) after the batch."""

    counts: FloatArray
    weights: FloatArray


def smoothing_rows(classes: int) -> float:
    """Rows that the long-run mix is worth by default: sqrt(K), from nine classes on K / 3.

    With few classes it matters little. With many, a batch has fewer rows than there are classes:
    with less than about a third of a row a class, a component follows the noise of its counts.

    Examples
    --------
    >>> smoothing_rows(4), smoothing_rows(9), smoothing_rows(900)
    (2.0, 3.0, 300.0)
    """
    return max(sqrt(classes), classes / 3.0)


def smoothing_counts(source: Source, counts: FloatArray, smoothing: float | None) -> FloatArray:
    """Counts (K,) that every component starts from: rows of the long-run mix.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> smoothing_counts(source, np.array([[0.0, 40.0]]), 1.0).round(3).tolist()
    [0.05, 0.95]
    """
    if smoothing is None:
        smoothing = smoothing_rows(counts.shape[1])
    slowest = counts[-1]
    total = slowest.sum()
    if total <= 0.0:
        return np.asarray(smoothing * source.prior)
    long_run = slowest * ((1.0 - _SOURCE_SHARE) / total)
    return np.asarray(smoothing * (_SOURCE_SHARE * source.prior + long_run))


def shared(weights: FloatArray, share: float) -> FloatArray:
    """Fixed share: every expert lends ``share`` of its weight to all, and none is lost for good.

    Examples
    --------
    >>> shared(np.array([1.0, 0.0]), 0.5).tolist()
    [0.75, 0.25]
    """
    return weights * (1.0 - share) + max(share / len(weights), 1e-300)


def remembered(counts: FloatArray, rates: tuple[float, ...]) -> FloatArray:
    """What the experts still have of their counts a round later.

    Examples
    --------
    >>> remembered(np.array([[8.0], [8.0]]), (1.0, 0.25)).tolist()
    [[0.0], [6.0]]
    """
    return counts * (1.0 - np.asarray(rates))[:, None]


def left_after(rates: tuple[float, ...], age: int) -> FloatArray:
    """Share (J,) of a batch that the experts still have so many rounds later.

    Examples
    --------
    >>> left_after((1.0, 0.5), 0).tolist(), left_after((1.0, 0.5), 2).tolist()
    ([1.0, 1.0], [0.0, 0.25])
    """
    return np.asarray((1.0 - np.asarray(rates)) ** age)


class EmState(NamedTuple):
    """Rounds seen, the experts, the class prior after the last batch."""

    t: int
    experts: Ensemble
    latest: Latest


def check_rates(rates: tuple[float, ...]) -> None:
    """Refuse forgetting rates that are not in (0, 1], or do not fall.

    Examples
    --------
    >>> check_rates((1.0, 0.5))
    """
    if not isinstance(rates, tuple):
        raise InputTypeError(f"rates is {rates!r}: give a tuple of forgetting rates")
    good = len(rates) > 0 and all(0.0 < rate <= 1.0 for rate in rates)
    if not good or any(a <= b for a, b in pairwise(rates)):
        raise InputError(f"rates is {rates}: give falling numbers, each above 0 and at most 1")


def check_share(setting: str, value: float) -> None:
    """Refuse a share that is not between 0 and 1.

    Examples
    --------
    >>> check_share("share", 0.001)
    """
    if not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
        raise InputError(f"{setting} is {value}: it must be at least 0 and below 1")


@dataclass(frozen=True)
class EM(Learner):
    r"""Discounted EM: experts with different memories of the stream, mixed by Bayes' rule.

    Expert j keeps counts that forget, :math:`D_j \leftarrow (1 - \lambda_j) D_j + c_j`, where
    :math:`c_j` are the expected numbers of rows of each class in the batch, found by EM. Its belief
    about the next batch is a Dirichlet with :math:`\alpha_j = (1 - \lambda_j) D_j + a_0 b`; b is
    the long-run mix. Weights follow the evidence of every batch, :math:`w_j \leftarrow w_j
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
        :math:`a_0`, rows that the long-run mix is worth in every expert's belief; by default
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
    protocol: ClassVar[str] = "adapt-first"
    calibration: ClassVar[str] = "auto"
    uses_late_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rates(self.rates)
        check_share("share", self.share)
        check_positive("smoothing", self.smoothing)

    def start(self, source: Source) -> EmState:
        """All experts know the source's prior and nothing else."""
        number = len(self.rates)
        experts = fresh_ensemble(number, source.n_classes)
        return EmState(0, experts, Latest.start(source, number))

    def predict_proba(self, source: Source, state: EmState, batch: Batch) -> FloatArray:
        """Reweight f0 by the class prior that is expected of the next batch."""
        return reweight_by(likelihoods(source, batch), self.forecast(source, state))

    def adapt(self, source: Source, state: EmState, batch: Batch) -> EmState:
        """Weigh the experts by the batch, then let each of them count and forget."""
        return self._followed(source, state, evidence_rows(source, batch))[0]

    def adapt_predict(
        self, source: Source, state: EmState, batch: Batch
    ) -> tuple[EmState, FloatArray]:
        """Learn from a batch and predict its rows, each left out of its own class prior."""
        ratios = likelihoods(source, batch)
        state, posterior = self._followed(source, state, with_labels(ratios, batch.known))
        return state, left_out(posterior, ratios)

    def _followed(
        self, source: Source, state: EmState, evidence: FloatArray
    ) -> tuple[EmState, Posterior]:
        alpha, prior = self.beliefs(source, state)
        seen = look(alpha, evidence)
        weights, _ = bayes(prior, seen.evidence)
        counts = remembered(state.experts.counts, self.rates) + seen.counts
        posterior = Posterior(weights, alpha + seen.counts, seen.centre)
        return EmState(state.t + 1, Ensemble(counts, weights), Latest.of(posterior)), posterior

    def trace(self, source: Source, before: EmState, after: EmState, batch: Batch) -> FloatArray:
        """What a late label needs to know of a batch: the class priors (J, K) it was seen under."""
        return look(self.beliefs(source, before)[0], evidence_rows(source, batch)).centre

    def correct(self, source: Source, state: EmState, late: Late) -> EmState:
        r"""Count labels that come late: each row's counts move by what is left of them.

        Expert j moves by :math:`(1 - \lambda_j)^{age} (e_y - \rho_{ji})`; weights stay.
        """
        change = counts_change(source, late, late.trace)
        change *= left_after(self.rates, late.age)[:, None]
        counts = np.maximum(state.experts.counts + change, 0.0)
        return EmState(state.t, state.experts._replace(counts=counts), state.latest.moved(change))

    def prior(self, source: Source, state: EmState) -> FloatArray:
        """The class prior after the last batch, as the experts see it together."""
        return state.latest.prior

    def beliefs(self, source: Source, state: EmState) -> tuple[FloatArray, FloatArray]:
        """Dirichlet counts (J, K) and weights (J,) for the next batch."""
        base = smoothing_counts(source, state.experts.counts, self.smoothing)
        alpha = remembered(state.experts.counts, self.rates) + base
        return alpha, shared(state.experts.weights, self.share)

    def forecast(self, source: Source, state: EmState) -> FloatArray:
        """The class prior (K,) that is expected of the next batch."""
        alpha, weights = self.beliefs(source, state)
        prior = (weights / alpha.sum(axis=1)) @ alpha
        return np.asarray(prior / prior.sum())

    def weights(self, source: Source, state: EmState) -> FloatArray:
        """Weights (J,) of the experts after the last batch."""
        return state.experts.weights

    def effective_size(self, source: Source, state: EmState) -> float:
        """How many rows the present class prior rests on."""
        return state.latest.size


def fresh_ensemble(experts: int, classes: int) -> Ensemble:
    """Experts that have counted nothing and are trusted alike.

    Examples
    --------
    >>> fresh_ensemble(2, 3).weights.tolist()
    [0.5, 0.5]
    """
    return Ensemble(np.zeros((experts, classes)), np.full(experts, 1.0 / experts))
