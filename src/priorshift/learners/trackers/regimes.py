"""Regimes: a hidden Markov filter over class priors that were seen before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from priorshift._numerics import TINY
from priorshift._validation import check_integer, check_positive, check_rates, check_share
from priorshift.learners.trackers.compiled import fields
from priorshift.learners.trackers.components import (
    RATES,
    ComponentLearner,
    Ensemble,
    Latest,
    Look,
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
from priorshift.learners.trackers.late import Late, believed_change, counts_change
from priorshift.learners.trackers.records import Plan, make_plan
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray, IntArray

# A regime's counts never weigh more than _STRENGTH * rows ** _GROWTH: it may drift while it is old,
# and the rows of its first, uncertain rounds are forgotten first.
_STRENGTH, _GROWTH = 3.0, 0.7
# What the transitions are worth before any was seen: so many rounds, of which one in twenty moves.
_ROUNDS, _MOVING = 100.0, 0.05
_FORGET_MOVES, _FORGET_USE = 1e-4, 1e-3
# Two regimes are one if telling them apart gains fewer nats than this.
_MERGE_NATS = 2.0


class Book(NamedTuple):
    """Slots for S regimes; one whose ``first`` is -1 is empty.

    ``counts`` (S, K) are Dirichlet counts of the priors, ``belief`` (S,) which regime the last
    batch was in, ``moves`` (S, S) expected transitions, ``rows`` (S,) rows seen in each regime,
    ``used`` (S,) rounds lately spent in it, ``first`` and ``last`` (S,) the rounds of its birth and
    of its last turn as the most likely one, ``surprise`` how many nats the experts are ahead.
    """

    counts: FloatArray
    belief: FloatArray
    moves: FloatArray
    rows: FloatArray
    used: FloatArray
    first: IntArray
    last: IntArray
    surprise: float


def empty_book(slots: int, classes: int) -> Book:
    """Return a book with one regime of which nothing is known.

    Examples
    --------
    >>> empty_book(3, 2).belief.tolist()
    [1.0, 0.0, 0.0]
    """
    belief, never = np.zeros(slots), np.full(slots, -1)
    belief[0], never[0] = 1.0, 0
    zeros = np.zeros(slots)
    return Book(
        counts=np.zeros((slots, classes)),
        belief=belief,
        moves=np.zeros((slots, slots)),
        rows=zeros,
        used=zeros,
        first=never,
        last=never,
        surprise=0.0,
    )


def book_of(leaves: list[Any]) -> Book:
    """The book whose arrays and number these are, those of rounds as float64.

    Examples
    --------
    >>> book = empty_book(3, 2)
    >>> book_of([np.asarray(part, dtype=float) for part in book]).first.tolist()
    [0, -1, -1]
    """
    counts, belief, moves, rows, used, first, last, surprise = leaves
    rounds = (first.astype(np.intp), last.astype(np.intp))
    return Book(counts, belief, moves, rows, used, *rounds, float(surprise))


def transitions(book: Book) -> FloatArray:
    """Chances (S, S) of going from one regime to another between batches; rows add up to 1.

    Examples
    --------
    >>> transitions(empty_book(2, 3)).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    alive = book.first >= 0
    others = max(int(np.count_nonzero(alive)) - 1, 1)
    chances = book.moves + alive * (_MOVING * _ROUNDS / others)
    np.einsum("ss->s", chances)[...] += alive * (_ROUNDS * (1.0 - _MOVING - _MOVING / others))
    chances *= alive
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def learned(
    book: Book, belief: FloatArray, prior: FloatArray, step: FloatArray, counts: FloatArray, t: int
) -> Book:
    """Count the batch of round t in: one step of online EM for priors and transitions.

    ``belief`` (S,) is the filter's after the batch, ``prior`` (S,) before it, ``step`` (S, S) the
    transitions, ``counts`` (S, K) the batch as each regime explains it.

    Examples
    --------
    >>> book = empty_book(2, 2)
    >>> sure = np.array([1.0, 0.0])
    >>> counts = np.array([[3.0, 1.0], [2.0, 2.0]])
    >>> learned(book, sure, sure, transitions(book), counts, 1).counts.tolist()
    [[3.0, 1.0], [0.0, 0.0]]
    """
    pairs = book.belief[:, None] * step * (belief / np.maximum(prior, TINY))
    rows = book.rows + belief * float(counts[0].sum())
    grown = limited(book.counts + belief[:, None] * counts, rows)
    last = book.last.copy()
    last[int(belief.argmax())] = t
    return book._replace(
        counts=grown,
        belief=belief,
        moves=book.moves * (1.0 - _FORGET_MOVES) + pairs,
        rows=rows,
        used=book.used * (1.0 - _FORGET_USE) + belief,
        last=last,
    )


def limited(counts: FloatArray, rows: FloatArray) -> FloatArray:
    """Scale counts down to the strength that so many rows may have.

    Examples
    --------
    >>> limited(np.array([[500.0, 500.0]]), np.array([1000.0])).round(2).tolist()
    [[188.84, 188.84]]
    """
    total = np.maximum(counts.sum(axis=-1), TINY)
    scale = np.minimum(1.0, _STRENGTH * rows**_GROWTH / total)
    return np.asarray(counts * scale[..., None])


def left_in_book(book: Book, rows: FloatArray, t: int) -> FloatArray:
    """About what share (S,) regimes still have of rows that they counted in round t.

    ``rows`` (S,) are those that each had seen by then. Counts of a regime at its limit L lose at
    most the share 1 / L a row. A slot whose regime is younger has nothing of them.

    Examples
    --------
    >>> book = with_newborn(empty_book(3, 2), np.array([4.0, 0.0]), t=7)
    >>> left_in_book(book, np.zeros(3), t=5).tolist()
    [1.0, 0.0, 0.0]
    """
    there = (book.first >= 0) & (book.first < t)
    gone = np.maximum(book.rows - rows, 0.0) / np.maximum(book.counts.sum(axis=1), 1.0)
    return np.asarray(there * np.exp(-gone))


def with_newborn(book: Book, counts: FloatArray, t: int) -> Book:
    """Open a regime for a prior that none of the book explains; make room for it if need be.

    The newborn starts with half of the belief.

    Examples
    --------
    >>> book = with_newborn(empty_book(3, 2), np.array([4.0, 0.0]), t=7)
    >>> book.belief.tolist(), book.first.tolist()
    ([0.5, 0.5, 0.0], [0, 7, -1])
    """
    empty = np.flatnonzero(book.first < 0)
    if len(empty) == 0:
        book = with_room(book)
        empty = np.flatnonzero(book.first < 0)
    slot = int(empty[0])
    parts = {name: np.array(getattr(book, name)) for name in Book._fields if name != "surprise"}
    rows = float(counts.sum())
    parts["counts"][slot] = limited(counts, np.asarray(rows))
    parts["rows"][slot] = rows
    parts["belief"] *= 0.5
    parts["belief"][slot] += 0.5
    parts["first"][slot] = parts["last"][slot] = t
    return Book(**parts, surprise=0.0)


def with_room(book: Book) -> Book:
    """Merge the two regimes that are most alike; if none are, forget the one least used.

    Examples
    --------
    >>> book = with_newborn(empty_book(2, 2), np.array([4.0, 0.0]), t=1)
    >>> with_room(book).first.tolist()
    [0, -1]
    """
    keep, go, nats = closest(book.counts)
    parts = {name: np.array(getattr(book, name)) for name in Book._fields if name != "surprise"}
    if nats < _MERGE_NATS:
        for name in ("counts", "belief", "rows", "used"):
            parts[name][keep] += parts[name][go]
        parts["moves"][keep] += parts["moves"][go]
        parts["moves"][:, keep] += parts["moves"][:, go]
        parts["first"][keep] = min(book.first[keep], book.first[go])
        parts["last"][keep] = max(book.last[keep], book.last[go])
    else:
        go = int(np.where(book.belief == book.belief.max(), np.inf, book.used).argmin())
    for name in ("counts", "belief", "rows", "used"):
        parts[name][go] = 0.0
    parts["moves"][go] = 0.0
    parts["moves"][:, go] = 0.0
    parts["first"][go] = parts["last"][go] = -1
    parts["belief"] /= parts["belief"].sum()
    return Book(**parts, surprise=book.surprise)


def closest(counts: FloatArray) -> tuple[int, int, float]:
    """The pair of priors that loses least when it becomes one, and the nats it loses.

    Examples
    --------
    >>> closest(np.array([[9.0, 1.0], [1.0, 9.0], [8.0, 2.0]]))[:2]
    (0, 2)
    """

    def fit(part: FloatArray) -> FloatArray:
        total = part.sum(axis=-1, keepdims=True)
        return np.asarray((part * np.log((part + TINY) / (total + TINY))).sum(axis=-1))

    own = fit(counts)
    lost = own[:, None] + own - fit(counts[:, None] + counts)
    lost[np.tril_indices(len(counts))] = np.inf
    keep, go = divmod(int(lost.argmin()), len(counts))
    return keep, go, float(lost[keep, go])


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

    ``priors`` (R, K), ``weights`` (R,) how likely each is the present one, ``rows`` (R,) rows that
    each rests on (those that showed a new one are counted in the one before it, too), ``first`` and
    ``last`` (R,) the rounds of its birth and of its last turn.
    """

    priors: FloatArray
    weights: FloatArray
    rows: FloatArray
    first: IntArray
    last: IntArray


@dataclass(frozen=True)
class Regimes(ComponentLearner):
    r"""Recurring regimes: a filter that recognises a class prior when it comes back.

    The class prior of a round is that of one of S regimes, which follow each other as a Markov
    chain. The filter weighs them by the evidence of every batch,

    .. math:: \pi_t(s') \propto p_{s'}(S_t) \sum_s \pi_{t-1}(s) P(s, s'),

    and learns priors and transitions by online EM. Forgetting experts (those of ``EM``) run along:
    when they have been ahead of the regimes by ``patience`` nats, their prior becomes a new regime.
    With all slots taken, the two regimes that are most alike merge, or the one least used goes.

    Parameters
    ----------
    slots : int
        Most regimes kept.
    patience : float
        Nats of evidence that a new regime needs.
    learn : bool
        False freezes priors and transitions; the filter goes on.
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
    has_plan: ClassVar[bool] = True

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

    def plan(self, source: Source) -> Plan:
        """Experts, the book, the class prior after the last batch."""
        return make_plan(source, self.rates, self.slots, False, self.numbers(source.n_classes))

    def numbers(self, classes: int) -> dict[int, float]:
        """Settings of the compiled step."""
        rows = smoothing_rows(classes) if self.smoothing is None else self.smoothing
        return {
            fields.SHARE: self.share,
            fields.SMOOTHING: rows,
            fields.PATIENCE: self.patience,
            fields.LEARN: float(self.learn),
        }

    def shaped(self, leaves: list[Any]) -> RegimesState:
        """The state whose arrays and numbers are these."""
        t, counts, weights, *book, mass, pull, size = leaves
        experts, latest = Ensemble(counts, weights), Latest(mass, pull, float(size))
        return RegimesState(int(t), experts, book_of(book), latest)

    def followed(
        self, source: Source, state: RegimesState, evidence: FloatArray
    ) -> tuple[RegimesState, Posterior, float]:
        """Filter, then learn experts, regimes and transitions; add a regime that is missing."""
        seen = self.observe(source, state.experts, state.book, evidence, state.t + 1)
        posterior = seen.posterior(np.array([0.0, 1.0]))  # the regimes alone predict
        latest = Latest.of(posterior)
        after = RegimesState(state.t + 1, seen.experts, seen.book, latest)
        return after, posterior, float(seen.nats[1])

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

    def expected(self, source: Source, state: RegimesState) -> FloatArray:
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
        experts = state.experts.moved(change[:J])
        book = state.book._replace(counts=np.maximum(state.book.counts + change[J:], 0.0))
        latest = state.latest.moved(change)
        after: AnyState = state._replace(experts=experts, book=book, latest=latest)
        return after

    def weights(self, source: Source, state: RegimesState) -> FloatArray:
        """Weights (J + S,) of experts, which are 0, and regimes after the last batch."""
        return np.concatenate([np.zeros(len(self.rates)), state.book.belief])

    def regime(self, source: Source, state: AnyState) -> int:
        """The round in which the present regime was first seen; a newborn shares the belief."""
        book = state.book
        return int(max(zip(book.belief.tolist(), book.first.tolist(), strict=True))[1])

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
