"""Regimes: a hidden Markov filter over class mixes that were seen before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._validation import check_integer, check_positive
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import (
    LastBatch,
    bayes,
    corrected,
    evidence_rows,
    fingerprint,
    is_last,
    latest_mix,
    latest_size,
    left_out,
    likelihoods,
    look,
    no_batch,
    reweight_by,
    row_nats,
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


class RegimesState(NamedTuple):
    """Rounds seen, the experts, the book of regimes, the trust (2,) in each, the last batch.

    ``trust`` weighs what both say of a batch that was seen, ``foresight`` (2,) their forecasts.
    """

    t: int
    experts: Ensemble
    book: Book
    trust: FloatArray
    foresight: FloatArray
    last: LastBatch


class Beliefs(NamedTuple):
    """What is thought of the next batch before it comes.

    ``counts`` (J + S, K) are the Dirichlet counts of experts and regimes, ``experts`` (J,) and
    ``regimes`` (S,) the weights within each group, ``step`` (S, S) the transitions, ``trust`` (2,)
    and ``foresight`` (2,) the weights of the groups.
    """

    counts: FloatArray
    experts: FloatArray
    regimes: FloatArray
    step: FloatArray
    trust: FloatArray
    foresight: FloatArray

    def mixes(self) -> FloatArray:
        """The class mix (2, K) that experts and regimes each expect."""
        J = len(self.experts)
        weights = np.zeros((2, len(self.counts)))
        weights[0, :J], weights[1, J:] = self.experts, self.regimes
        weights /= self.counts.sum(axis=1)
        return np.asarray(weights @ self.counts)


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

    def __post_init__(self) -> None:
        check_integer(self.slots, "slots", least=2)
        check_rates(self.rates)
        check_share("share", self.share)
        check_positive("smoothing", self.smoothing)
        check_positive("patience", self.patience)

    def start(self, source: Source) -> RegimesState:
        """One regime, of which nothing is known but the source's prior."""
        number, K = len(self.rates), source.n_classes
        return RegimesState(
            t=0,
            experts=fresh_ensemble(number, K),
            book=empty_book(self.slots, K),
            trust=self.first_trust(),
            foresight=self.first_trust(),
            last=no_batch(number + self.slots, K),
        )

    def predict_proba(self, source: Source, state: RegimesState, batch: Batch) -> FloatArray:
        """Reweight f by the class mix; the batch just learned from without each row's own say."""
        ratios = likelihoods(source, batch)
        if is_last(state.last, batch):
            return left_out(state.last, ratios)
        return reweight_by(ratios, self.forecast(source, state))

    def adapt(self, source: Source, state: RegimesState, batch: Batch) -> RegimesState:
        """Filter, then learn experts, regimes and transitions; add a regime that is missing."""
        before = self.beliefs(source, state)
        ratios = evidence_rows(source, batch)
        seen = look(before.counts, ratios)
        J, t = len(self.rates), state.t + 1
        weights, expert_nats = bayes(before.experts, seen.evidence[:J])
        belief, regime_nats = bayes(before.regimes, seen.evidence[J:])
        trust = self.next_trust(before.trust, np.array([expert_nats, regime_nats]))
        foresight = self.next_trust(before.foresight, row_nats(before.mixes(), ratios))
        kept = remembered(state.experts.counts, self.rates)
        experts = Ensemble(kept + seen.counts[:J], weights)
        last = LastBatch(
            fingerprint(batch.proba),
            np.concatenate([trust[0] * weights, trust[1] * belief]),
            before.counts + seen.counts,
            seen.centre,
        )
        book = state.book._replace(belief=belief)
        if self.learn:
            book = learned(state.book, belief, before.regimes, before.step, seen.counts[J:], t)
            surprise = max(0.0, book.surprise + expert_nats - regime_nats)
            if surprise > self.patience:
                book = with_newborn(book, experts.counts[int(weights.argmax())], t)
            else:
                book = book._replace(surprise=surprise)
        return RegimesState(t, experts, book, trust, foresight, last)

    def trace(self, state: RegimesState) -> FloatArray:
        """What a late label needs to know of the last batch, (J + S, K + 2).

        The mixes it was seen under; the belief in each regime; the rows of each regime.
        """
        J = len(self.rates)
        tail = np.zeros((J + self.slots, 2))
        tail[J:, 0], tail[J:, 1] = state.book.belief, state.book.rows
        return np.column_stack([state.last.centre, tail])

    def correct(self, source: Source, state: RegimesState, late: Late) -> RegimesState:
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
        return state._replace(experts=experts, book=book, last=corrected(state.last, change))

    def prior(self, source: Source, state: RegimesState) -> FloatArray:
        """The class mix of the last batch, as it is seen now."""
        return latest_mix(source, state.last)

    def beliefs(self, source: Source, state: RegimesState) -> Beliefs:
        """Everything that is thought of the next batch."""
        counts = state.experts.counts
        base = smoothing_counts(source, counts, self.smoothing)
        step = transitions(state.book)
        return Beliefs(
            np.concatenate([remembered(counts, self.rates), state.book.counts]) + base,
            shared(state.experts.weights, self.share),
            state.book.belief @ step,
            step,
            self.forecast_trust(state.trust),
            self.forecast_trust(state.foresight),
        )

    def forecast(self, source: Source, state: RegimesState) -> FloatArray:
        """The class mix (K,) that is expected of the next batch."""
        now = self.beliefs(source, state)
        mix = now.foresight @ now.mixes()
        return np.asarray(mix / mix.sum())

    def first_trust(self) -> FloatArray:
        """Weights (2,) of experts and regimes at the start: here the regimes alone predict."""
        return np.array([0.0, 1.0])

    def forecast_trust(self, trust: FloatArray) -> FloatArray:
        """Weights (2,) of experts and regimes for the next batch."""
        return trust

    def next_trust(self, trust: FloatArray, nats: FloatArray) -> FloatArray:
        """Weights (2,) of experts and regimes after a batch that both found so likely."""
        return trust

    def weights(self, source: Source, state: RegimesState) -> FloatArray:
        """Weights (J + S,) of experts and regimes after the last batch."""
        return np.concatenate(
            [state.trust[0] * state.experts.weights, state.trust[1] * state.book.belief]
        )

    def effective_size(self, source: Source, state: RegimesState) -> float:
        """How many rows the present mix rests on."""
        return latest_size(state.last)

    def regimes_seen(self, source: Source, state: RegimesState) -> RegimesSeen:
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
