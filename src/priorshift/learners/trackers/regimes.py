"""Regimes: a hidden Markov filter over class mixes that were seen before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from priorshift._validation import check_integer, check_positive
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import (
    Latest,
    Look,
    Posterior,
    bayes,
    evidence_rows,
    left_out,
    likelihoods,
    look,
    reweight_by,
    with_labels,
)
from priorshift.learners.trackers.em import (
    RATES,
    Ensemble,
    check_rates,
    check_share,
    fresh_ensemble,
    left_after,
    remembered,
    shared,
    smoothing_counts,
)
from priorshift.learners.trackers.late import Late, believed_change, counts_change
from priorshift.learners.trackers.regime_book import (
    Book,
    empty_book,
    learned,
    left_in_book,
    transitions,
    with_newborn,
)
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# A state with experts, a book and a latest prior: that of regimes alone, or of a tracker.
AnyState = TypeVar("AnyState", bound=Any)


class RegimesState(NamedTuple):
    """Rounds seen, the experts, the book of regimes, the class prior after the last batch."""

    t: int
    experts: Ensemble
    book: Book
    latest: Latest


class Beliefs(NamedTuple):
    """What is thought of the next batch before it comes.

    ``counts`` (J + S, K) are the Dirichlet counts of experts and regimes, ``experts`` (J,) and
    ``regimes`` (S,) the weights within each group, ``step`` (S, S) the transitions.
    """

    counts: FloatArray
    experts: FloatArray
    regimes: FloatArray
    step: FloatArray

    def forecasts(self) -> FloatArray:
        """The class prior (2, K) that experts and regimes each expect."""
        J = len(self.experts)
        weights = np.zeros((2, len(self.counts)))
        weights[0, :J], weights[1, J:] = self.experts, self.regimes
        weights /= self.counts.sum(axis=1)
        return np.asarray(weights @ self.counts)


class Observed(NamedTuple):
    """What experts and regimes make of a batch: before it, of it, and after it.

    ``nats`` (2,) are the log evidence of the experts together and of the regimes together.
    """

    before: Beliefs
    look: Look
    nats: FloatArray
    experts: Ensemble
    belief: FloatArray
    book: Book

    def posterior(self, trust: FloatArray) -> Posterior:
        """All components after the batch, with this trust (2,) in experts and regimes."""
        weights = np.concatenate([trust[0] * self.experts.weights, trust[1] * self.belief])
        return Posterior(weights, self.before.counts + self.look.counts, self.look.centre)


class RegimesSeen(NamedTuple):
    """Regimes of a stream, oldest first.

    ``mixes`` (R, K), ``weights`` (R,) how likely each is the present one, ``rows`` (R,) rows seen
    in each, ``first`` and ``last`` (R,) the rounds of its birth and of its last turn.
    """

    mixes: FloatArray
    weights: FloatArray
    rows: FloatArray
    first: IntArray
    last: IntArray


@dataclass(frozen=True)
class Regimes(Learner):
    r"""Recurring regimes: a filter that recognises a class mix when it comes back.

    The class mix of a round is that of one of S regimes, which follow each other as a Markov chain.
    The filter weighs them by the evidence of every batch,

    .. math:: \pi_t(s') \propto p_{s'}(S_t) \sum_s \pi_{t-1}(s) P(s, s'),

    and learns mixes and transitions by online EM. Forgetting experts (those of ``EM``) run along:
    when they have been ahead of the regimes by ``patience`` nats, their mix becomes a new regime.
    With all slots taken, the two regimes that are most alike merge, or the one least used goes.

    Parameters
    ----------
    slots : int
        Most regimes kept.
    patience : float
        Nats of evidence that a new regime needs.
    learn : bool
        False freezes mixes and transitions; the filter goes on.
    rates, share, smoothing
        As in ``EM``.

    Examples
    --------
    >>> Regimes(slots=4).slots
    4
    """

    slots: int = 8
    patience: float = 4.0
    learn: bool = True
    rates: tuple[float, ...] = RATES
    share: float = 1e-3
    smoothing: float | None = None
    name: ClassVar[str] = "regimes"
    protocol: ClassVar[str] = "adapt-first"
    calibration: ClassVar[str] = "auto"
    uses_late_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer(self.slots, "slots", least=2)
        check_rates(self.rates)
        check_share("share", self.share)
        check_positive("smoothing", self.smoothing)
        check_positive("patience", self.patience)

    def start(self, source: Source) -> RegimesState:
        """One regime, of which nothing is known but the source's prior."""
        number, K = len(self.rates), source.n_classes
        latest = Latest.start(source, number + self.slots)
        return RegimesState(0, fresh_ensemble(number, K), empty_book(self.slots, K), latest)

    def predict_proba(self, source: Source, state: RegimesState, batch: Batch) -> FloatArray:
        """Reweight f0 by the class prior that the regimes expect of the next batch."""
        return reweight_by(likelihoods(source, batch), self.forecast(source, state))

    def adapt(self, source: Source, state: RegimesState, batch: Batch) -> RegimesState:
        """Filter, then learn experts, regimes and transitions; add a regime that is missing."""
        return self._followed(source, state, evidence_rows(source, batch))[0]

    def adapt_predict(
        self, source: Source, state: RegimesState, batch: Batch
    ) -> tuple[RegimesState, FloatArray]:
        """Learn from a batch and predict its rows, each left out of its own class prior."""
        ratios = likelihoods(source, batch)
        state, posterior = self._followed(source, state, with_labels(ratios, batch.known))
        return state, left_out(posterior, ratios)

    def _followed(
        self, source: Source, state: RegimesState, evidence: FloatArray
    ) -> tuple[RegimesState, Posterior]:
        seen = self.observe(source, state.experts, state.book, evidence, state.t + 1)
        posterior = seen.posterior(np.array([0.0, 1.0]))  # the regimes alone predict
        latest = Latest.of(posterior)
        return RegimesState(state.t + 1, seen.experts, seen.book, latest), posterior

    def observe(
        self, source: Source, experts: Ensemble, book: Book, evidence: FloatArray, t: int
    ) -> Observed:
        """Weigh experts and regimes by the batch of round t, and let both learn from it.

        ``evidence`` (n, K) are its likelihood ratios. When the experts have been ahead of the
        regimes by ``patience`` nats, the class prior of the best of them becomes a regime.
        """
        before = self.beliefs(source, experts, book)
        seen = look(before.counts, evidence)
        J = len(self.rates)
        weights, expert_nats = bayes(before.experts, seen.evidence[:J])
        belief, regime_nats = bayes(before.regimes, seen.evidence[J:])
        nats = np.array([expert_nats, regime_nats])
        experts = Ensemble(remembered(experts.counts, self.rates) + seen.counts[:J], weights)
        if not self.learn:
            return Observed(before, seen, nats, experts, belief, book._replace(belief=belief))
        book = learned(book, belief, before.regimes, before.step, seen.counts[J:], t)
        surprise = max(0.0, book.surprise + expert_nats - regime_nats)
        if surprise > self.patience:
            book = with_newborn(book, experts.counts[int(weights.argmax())], t)
        else:
            book = book._replace(surprise=surprise)
        return Observed(before, seen, nats, experts, belief, book)

    def beliefs(self, source: Source, experts: Ensemble, book: Book) -> Beliefs:
        """Everything that is thought of the next batch."""
        base = smoothing_counts(source, experts.counts, self.smoothing)
        step = transitions(book)
        return Beliefs(
            np.concatenate([remembered(experts.counts, self.rates), book.counts]) + base,
            shared(experts.weights, self.share),
            book.belief @ step,
            step,
        )

    def forecast(self, source: Source, state: RegimesState) -> FloatArray:
        """The class prior (K,) that the regimes expect of the next batch."""
        prior = self.beliefs(source, state.experts, state.book).forecasts()[1]
        return np.asarray(prior / prior.sum())

    def trace(self, source: Source, before: Any, after: Any, batch: Batch) -> FloatArray:
        """What a late label needs to know of a batch, (J + S, K + 2).

        The class priors it was seen under; the belief in each regime; the rows of each regime.
        """
        J = len(self.rates)
        counts = self.beliefs(source, before.experts, before.book).counts
        tail = np.zeros((J + self.slots, 2))
        tail[J:, 0], tail[J:, 1] = after.book.belief, after.book.rows
        return np.column_stack([look(counts, evidence_rows(source, batch)).centre, tail])

    def correct(self, source: Source, state: AnyState, late: Late) -> AnyState:
        """Count labels that come late: experts as in ``EM``, and the regimes of that round.

        The labels also tell which regime that round was in, so its batch is shared out among the
        regimes anew, times what each still has of those rows; a regime born later has none.
        Weights, the present belief and transitions stay.
        """
        J = len(self.rates)
        centre, belief, rows = late.trace[:, :-2], late.trace[J:, -2], late.trace[J:, -1]
        change = np.zeros_like(centre)
        change[:J] = counts_change(source, late, centre[:J])
        change[:J] *= left_after(self.rates, late.age)[:, None]
        if self.learn:
            left = left_in_book(state.book, rows, state.t - late.age)
            change[J:] = left[:, None] * believed_change(source, late, centre[J:], belief)
        experts = state.experts._replace(counts=np.maximum(state.experts.counts + change[:J], 0.0))
        book = state.book._replace(counts=np.maximum(state.book.counts + change[J:], 0.0))
        latest = state.latest.moved(change)
        after: AnyState = state._replace(experts=experts, book=book, latest=latest)
        return after

    def prior(self, source: Source, state: RegimesState) -> FloatArray:
        """The class prior after the last batch."""
        return state.latest.prior

    def weights(self, source: Source, state: RegimesState) -> FloatArray:
        """Weights (J + S,) of experts, which are 0, and regimes after the last batch."""
        return np.concatenate([np.zeros(len(self.rates)), state.book.belief])

    def effective_size(self, source: Source, state: RegimesState) -> float:
        """How many rows the present class prior rests on."""
        return state.latest.size

    def regimes_seen(self, source: Source, state: AnyState) -> RegimesSeen:
        """The regimes of the stream so far, oldest first."""
        book = state.book
        alive = np.flatnonzero(book.first >= 0)
        alive = alive[np.argsort(book.first[alive], kind="stable")]
        base = smoothing_counts(source, state.experts.counts, self.smoothing)
        counts = book.counts[alive] + base
        return RegimesSeen(
            counts / counts.sum(axis=1, keepdims=True),
            book.belief[alive],
            book.rows[alive],
            book.first[alive],
            book.last[alive],
        )
