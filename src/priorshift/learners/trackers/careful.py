r"""Careful: the hypothesis that nothing has changed, beside a tracker that thinks it has.

A tracker is as good as what it reads. With few held-out rows, or a poor source model, the mean of
what it reads of the stream differs from that of the held-out set although nothing has changed, and
it follows the difference. So "nothing has changed" is a hypothesis of its own, with half of the
belief at the start. It says that held-out set and stream have one class prior :math:`\nu`, known
as well as the rows of both tell, and it predicts with the source model, corrected by its
calibration as far as the held-out set is sure that this is better.

Its forecast :math:`\nu` starts at the mean m of what the tracker reads of the held-out set, and is
fitted to the held-out set and the batches together: with :math:`\rho_{ik}` the responsibilities of
row i under :math:`\nu`, each class moves by

.. math:: \log\nu_k \mathrel{+}= \frac{g_k}{S_k},\quad g_k = \sum_i (\rho_{ik} - \nu_k),\quad
    S_k = \frac{n_k}{n_k + 10} \sum_{held\ out} \frac{(p_{ik} - m_k)^2}{c\,(1 - m_k)}
    + \sum_{stream} \frac{(\rho_{ik} - \nu_k)^2}{1 - \nu_k},

a Newton step with the information of all rows on each class against the others (exact for two).
Few held-out rows, or rows that say little of a class, let it go further: a difference that such a
held-out set would show by chance is no evidence of a change. Nor is one of 2.5 standard errors of
the held-out set, beyond which it cannot go. c is the caution; :math:`n_k` rows of a class count a
little less than they are, since the calibration was fitted on the same few. A class of which
nothing is known counts half a row. Once a change is more likely than not, what of the belief comes
back starts again from the held-out set; before that, coming back is no reason to forget.

Two states follow each other as a Markov chain, unchanged and changed, and every batch weighs them
by the evidence :math:`p(S_t \mid \nu)` and that of the tracker. Rows of one batch come one by one,
to second order: later ones find :math:`\nu` moved by those before, which adds
:math:`\frac12 \sum_k (g_k^2 - \sum_i (\rho_{ik} - \nu_k)^2) / S_k` to the log evidence. For batches
of one row and any stream, losses being minus log evidence,

.. math:: L_T(mixture) \le \min(L_T(unchanged), L_T(tracker)) + T \ln\frac{1}{1 - chance} + \ln 2 .

Evidence is as good as the rows that likelihood ratios were learned from. So the *chance*, a round,
that a stream changes, or is again what it was, is 1e-3 while some class has up to 10 held-out rows,
and grows with them to 3e-3: what is known well may be believed sooner.

The class probabilities of both are mixed, and as harm weighs more than a gain that is missed, the
odds that nothing has changed count 5 times, and while they are even f0 keeps its answers.

A tracker that changed for good reasons may still go too far: of a class with fewer than 10 held-out
rows, a few that look like another class by chance double what it finds of that class. So
predictions move the logarithm of the odds of such a class by 0.7 of what the tracker does, and its
rows get or lose an answer of f0 only the way that the class prior has moved. The class prior that
is told stays the tracker's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from priorshift._numerics import class_shares
from priorshift._validation import check_number
from priorshift.calibration.base import row_losses
from priorshift.errors import InputTypeError
from priorshift.learners.base import Learner
from priorshift.learners.trackers.calls import (
    TINY,
    Called,
    calls_of,
    first_calls,
    held_out_calls,
    start_calls,
    weigh_calls,
)
from priorshift.learners.trackers.components import (
    Judged,
    evidence_rows,
    likelihoods,
    read_held_out,
)
from priorshift.learners.trackers.late import Late
from priorshift.learners.trackers.records import careful_places, from_row, made_of, to_row
from priorshift.risk import compiled
from priorshift.source import Batch, Source
from priorshift.source.derived import per_source
from priorshift.typing import AnyArray, FloatArray, IntArray

_FIRST_BELIEF = 0.5
# Rows that even a class of which nothing is known is worth, and the longest step of a batch.
_LEAST_ROWS, _LONGEST = 0.5, 1.0
# Standard errors of the held-out set that its class prior may move; rows of a class of which half
# count.
_REACH, _HALF_KNOWN = 2.5, 10.0
# The chance, a round, that a stream changes: for each held-out row, the least, the most.
_CHANCE_A_ROW, _LEAST_CHANCE, _MOST_CHANCE = 1e-4, 1e-3, 3e-3
# How many times harm weighs what a gain does that is missed.
_HARM = 5.0
# Standard errors by which other answers than f0's have to be better: the map that gives them was
# chosen on the same rows.
_SURE = 3.0
# Rows below which a class is moved by so much of what the tracker moves it, as logarithms of odds.
_FEW_ROWS, _MOVED = 10, 0.7
# Beyond this belief that nothing has changed, its class prior cannot be taken out of the mixture.
_NEARLY_SURE = 0.99
# The least share of a class, as of a source's prior.
_SMALLEST_SHARE = 1e-6


class Unchanged(NamedTuple):
    """The hypothesis that nothing has changed, after some batches.

    ``likely`` is the larger one of ``by_evidence`` and ``calls.belief``: the stream has changed if
    both say so. ``belief`` is how far f0 answers: the same with odds that count 5 times. ``moved``
    (K,) is the logarithm of its class prior over the mean of the held-out set, up to a constant,
    ``rows`` (K,) are the squares :math:`S_k`.
    """

    belief: float
    by_evidence: float
    moved: FloatArray
    rows: FloatArray
    calls: Called

    @property
    def likely(self) -> float:
        """How likely nothing has changed is."""
        return max(self.by_evidence, self.calls.belief)


class CarefulState(NamedTuple):
    """Rounds seen, the state of the learner inside, and the belief that nothing has changed."""

    t: int
    inner: Any
    unchanged: Unchanged


class Held(NamedTuple):
    """What the learner inside reads of the held-out set.

    ``source`` is the source with the mean of it as its prior: under that class prior importance
    weights are 1. ``prior`` (K,) is that prior, ``rows`` (K,) the squares of the held-out set.
    ``corrected`` is how far the probabilities that the learner reads are to be preferred to f0's
    own where nothing has changed, ``decides`` whether they may name another class there than f0
    does, ``calls`` how many rows f0 calls each class; (0,) where calls are not asked. ``fewest``
    are the rows of the class with the fewest, of those that have any. ``few`` (K,) says which
    classes have too few to be moved as far as the tracker moves them; None where none has.
    """

    source: Source
    prior: FloatArray
    rows: FloatArray
    corrected: float
    decides: bool
    calls: FloatArray
    fewest: int
    few: AnyArray | None


def _inside(name: str) -> Any:
    """An attribute that is that of the learner inside."""
    return property(lambda careful: getattr(careful.learner, name))


@dataclass(frozen=True)
class Careful(Learner):
    """A learner that adapts only as far as the stream shows that something has changed.

    ``LabelShiftClassifier`` puts "auto" and the trackers into it, unless ``safety="off"``.

    Parameters
    ----------
    learner : Learner
        "auto", "tracker", "em" or "regimes" as an object: one that says how likely it finds every
        batch.
    caution : float
        Divides the held-out rows: with 4, what a held-out set of a quarter of the rows would show
        by chance is no evidence yet. Infinite: nothing is adapted, whatever happens.
    calls : bool
        Whether what f0 calls the rows has to say so, too, before anything has changed (see
        ``calls.py``; from five classes on). ``fit`` asks for it where evidence alone does harm.

    Examples
    --------
    >>> from priorshift.learners import Tracker
    >>> careful = Careful(Tracker())
    >>> careful.name, careful.protocol
    ('tracker', 'adapt-first')
    """

    learner: Any
    caution: float = 1.0
    calls: bool = False
    name = _inside("name")
    calibration = _inside("calibration")
    uses_late_labels = _inside("uses_late_labels")
    derived = _inside("derived")
    reweights = _inside("reweights")
    protocol = _inside("protocol")
    needs_features = _inside("needs_features")
    reads_features = _inside("reads_features")
    remembers_features = _inside("remembers_features")
    guarded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.caution != math.inf:
            check_number("caution", self.caution, 1.0, math.inf, "[")
        if not getattr(self.learner, "weighs_batches", False):
            raise InputTypeError(
                f"learner is {self.learner!r}: give one that weighs every batch, such as Auto() "
                "or Tracker()"
            )

    def held(self, source: Source) -> Held:
        """What the learner inside reads of the held-out set, found once for a source."""
        held: Held = self._known(source)[1]
        return held

    def weighing(self, source: Source) -> tuple[float, FloatArray, FloatArray]:
        """The chance of a change, and the squares (K,) and calls that it all starts from."""
        found: tuple[float, FloatArray, FloatArray] = self._known(source)[2]
        return found

    def _known(self, source: Source) -> Any:
        known = _all_held(source)
        last = known.get("last")
        if last is None or last[0] is not self:  # a hash of all settings takes long in every round
            key = self.learner, self.calls
            if key not in known:
                known[key] = _held(self.learner, source, self.calls)
            held = known[key]
            parts = self.chance(held), self.first_rows(held), first_calls(held.calls, self.caution)
            last = known["last"] = self, held, parts
        return last

    def read(self, source: Source, batch: Batch) -> Batch:
        """The batch as the learner inside reads it."""
        read: Batch = self.learner.read(self.held(source).source, batch)
        return read

    def check(self, source: Source) -> None:
        """Refuse a source that the learner inside cannot work with."""
        self.learner.check(source)

    def threads(self, source: Source, state: CarefulState) -> AbstractContextManager[Any]:
        """Those of the learner inside."""
        found: AbstractContextManager[Any] = self.learner.threads(
            self.held(source).source, state.inner
        )
        return found

    def start(self, source: Source) -> CarefulState:
        """Half of the belief in each of the two."""
        held = self.held(source)
        belief = _FIRST_BELIEF if math.isfinite(self.caution) else 1.0
        moved, calls = np.zeros(source.n_classes), start_calls(len(held.calls), belief)
        nothing = Unchanged(reluctant(belief), belief, moved, self.first_rows(held), calls)
        return CarefulState(0, self.learner.start(held.source), nothing)

    def first_rows(self, held: Held) -> FloatArray:
        """The squares (K,) before the first batch."""
        return held.rows / self.caution + _LEAST_ROWS

    def chance(self, held: Held) -> float:
        """The chance that a batch changes the stream, or back; 0 where nothing is adapted."""
        if math.isinf(self.caution):
            return 0.0
        chance = _CHANCE_A_ROW * held.fewest / self.caution
        return min(max(chance, _LEAST_CHANCE), _MOST_CHANCE)

    def predict_proba(self, source: Source, state: CarefulState, batch: Batch) -> FloatArray:
        """Class probabilities of both hypotheses, mixed."""
        held = self.held(source)
        proba = self.learner.predict_proba(held.source, state.inner, batch)
        read = self.read(source, batch).proba
        belief = self.next_belief(held, state.unchanged.belief)
        return answered(held, belief, read, batch.f0_proba, proba)

    def predict_held_out(self, source: Source, state: CarefulState) -> FloatArray:
        """The same of the held-out set, of each row by what was fitted without it."""
        held = self.held(source)
        proba = self.learner.predict_held_out(held.source, state.inner)
        read = read_held_out(self.learner, held.source)
        belief = self.next_belief(held, state.unchanged.belief)
        return answered(held, belief, read, source.f0_proba, proba)

    def next_belief(self, held: Held, belief: Any) -> Any:
        """Beliefs before the next batch: some of them went, and some of what had gone came back."""
        chance = self.chance(held)
        return belief * (1.0 - chance) + (1.0 - belief) * chance

    def adapt(self, source: Source, state: CarefulState, batch: Batch) -> CarefulState:
        """Let the learner inside learn, and weigh both hypotheses by the batch."""
        return self.observed(source, state, batch, predict=False)[0]

    def adapt_predict(
        self, source: Source, state: CarefulState, batch: Batch
    ) -> tuple[CarefulState, FloatArray]:
        """Learn from a batch and predict its rows, each left out of its own class prior."""
        state, seen = self.observed(source, state, batch)
        assert seen.proba is not None
        held = self.held(source)
        belief = state.unchanged.belief
        return state, answered(held, belief, seen.read, batch.f0_proba, seen.proba)

    def observed(
        self, source: Source, state: CarefulState, batch: Batch, predict: bool = True
    ) -> tuple[CarefulState, Judged]:
        """The state after a batch, and what the learner inside made of it."""
        held = self.held(source)
        seen = self.learner.judged(held.source, state.inner, batch, predict)
        called = calls_of(batch.f0_proba)
        unchanged = self._weighed(source, state.unchanged, seen.evidence, called, seen.nats)
        return CarefulState(state.t + 1, seen.state, unchanged), seen

    def _weighed(
        self,
        source: Source,
        before: Unchanged,
        evidence: FloatArray,
        called: IntArray,
        nats: float,
    ) -> Unchanged:
        """The hypothesis after a batch with these likelihood ratios (n, K) and calls (n,).

        ``nats`` is what the learner inside made of it.
        """
        if math.isinf(self.caution):
            return before
        held, (chance, first, calls) = self.held(source), self.weighing(source)
        if compiled.available():
            return weighed(before, evidence, called, nats, held.prior, chance, first, calls)
        belief, stayed = self.next_belief(held, before.by_evidence), 1.0
        if before.by_evidence < 0.5:
            stayed = before.by_evidence * (1.0 - chance) / belief
        moved = stayed * before.moved
        rows = first + stayed * (before.rows - first)
        prior = held.source.prior * np.exp(moved)
        prior /= prior.sum()
        fit = evidence @ prior
        lead = math.log(max(belief, TINY) / max(1.0 - belief, TINY))
        lead += float(np.log(fit).sum()) - nats
        shares = evidence * prior
        shares /= fit[:, None]
        squares = np.square(shares - prior).sum(axis=0)
        rows = rows + squares / np.maximum(1.0 - prior, TINY)
        ahead = shares.sum(axis=0) - len(fit) * prior
        step, reach = np.clip(ahead / rows, -_LONGEST, _LONGEST), _REACH / np.sqrt(first)
        moved = np.clip(moved + step, -reach, reach)
        if len(fit) > 1:
            lead += float((step * (ahead - 0.5 * step * rows) - 0.5 * squares / rows).sum())
        after, by_calls = float(expit(lead)), weigh_calls(before.calls, called, calls)
        belief = reluctant(max(after, by_calls.belief))
        return Unchanged(belief, after, moved, rows, by_calls)

    def prior(self, source: Source, state: CarefulState) -> FloatArray:
        """The class prior after the last batch: the source's as far as nothing has changed."""
        return self._weighed_prior(source, state, self.learner.prior)

    def applied_prior(self, source: Source, state: CarefulState) -> FloatArray:
        """The class prior that rows of the last batch are predicted by, of both hypotheses.

        Before classes with few held-out rows are drawn back, see ``answered``.
        """
        return self._weighed_prior(source, state, self.learner.applied_prior)

    def _weighed_prior(
        self, source: Source, state: CarefulState, of: Callable[[Source, Any], FloatArray]
    ) -> FloatArray:
        held, belief = self.held(source), state.unchanged.likely
        tracked = self.told(held, source, of(held.source, state.inner))
        return np.asarray((1.0 - belief) * tracked + belief * source.prior)

    def told(self, held: Held, source: Source, prior: FloatArray) -> FloatArray:
        """A class prior of the learner inside, whose unit is the mean of what it reads."""
        scaled = prior * (source.prior / held.source.prior)
        return np.asarray(scaled / np.add.reduce(scaled, axis=-1, keepdims=True))

    def trace(
        self, source: Source, before: CarefulState, after: CarefulState, batch: Batch
    ) -> FloatArray:
        """What the learner inside will need, should labels of a batch come late."""
        found = self.learner.trace(self.held(source).source, before.inner, after.inner, batch)
        return np.asarray(found)

    def correct(self, source: Source, state: CarefulState, late: Late) -> CarefulState:
        """Count labels that come late, as the learner inside does, and weigh what they say."""
        held = self.held(source)
        inner = self.learner.correct(held.source, state.inner, late)
        return state._replace(inner=inner, unchanged=self._relabelled(held, state, late))

    def _relabelled(self, held: Held, state: CarefulState, late: Late) -> Unchanged:
        """The hypothesis with labels of an old batch, as likely under it as under the tracker.

        Both are asked with the class prior that they have now, before the labels are counted.
        """
        if math.isinf(self.caution):
            return state.unchanged
        after = evidence_rows(held.source, late.batch)
        before = evidence_rows(held.source, late.batch._replace(known=late.before))
        # Labels tell the class prior as those of the held-out set do: where f0 tells less, what
        # moved it is how f0 was read.
        labelled = len(held.source.labels) * held.source.prior / self.caution
        kept = np.minimum(self.first_rows(held) / (labelled + _LEAST_ROWS), 1.0)
        own = held.source.prior * np.exp(kept * state.unchanged.moved)
        own /= own.sum()
        gain, shares = 0.0, []
        for sign, prior in ((1.0, own), (-1.0, self.learner.prior(held.source, state.inner))):
            gain += sign * float((np.log(after @ prior) - np.log(before @ prior)).sum())
        for evidence in (after, before):
            parts = evidence * own
            shares.append((parts / parts.sum(axis=1, keepdims=True)).sum(axis=0))
        unchanged = state.unchanged
        step = (shares[0] - shares[1]) / np.maximum(unchanged.rows, labelled)
        by_evidence = _raised(unchanged.by_evidence, gain)
        calls = unchanged.calls
        if len(calls.counts):
            calls = calls._replace(belief=_raised(calls.belief, gain))
        moved = unchanged.moved + np.clip(step, -_LONGEST, _LONGEST)
        belief = reluctant(max(by_evidence, calls.belief))
        return Unchanged(belief, by_evidence, moved, unchanged.rows, calls)

    def weights(self, source: Source, state: CarefulState) -> FloatArray | None:
        """Weights of the members of the learner inside."""
        found: FloatArray | None = self.learner.weights(self.held(source).source, state.inner)
        return found

    def effective_size(self, source: Source, state: CarefulState) -> float | None:
        """How many rows the present class prior rests on."""
        found: float | None = self.learner.effective_size(self.held(source).source, state.inner)
        return found

    def regime(self, source: Source, state: CarefulState) -> int:
        """The round in which the present regime was first seen."""
        return int(self.learner.regime(self.held(source).source, state.inner))

    def unchanged(self, source: Source, state: CarefulState) -> float:
        """How far f0 answers, as far as nothing has changed."""
        return state.unchanged.belief

    def held_out_proba(
        self,
        source: Source,
        state: CarefulState,
        prior: FloatArray,
        unchanged: float,
        step: int = 1,
    ) -> tuple[FloatArray, IntArray]:
        """Predictions of held-out rows by both hypotheses, mixed; see ``Learner``."""
        held = self.held(source)
        tracked, likely = prior, unchanged / (unchanged + _HARM * (1.0 - unchanged))
        if likely < _NEARLY_SURE:  # the class prior is told mixed with the source's
            tracked = np.maximum(prior - likely * source.prior, 0.0)
        scaled = tracked * (held.source.prior / source.prior)
        proba, rows = self.learner.held_out_proba(
            held.source, state.inner, scaled / scaled.sum(), unchanged, step
        )
        read, known = self.learner.held_out(held.source)
        read = read[np.searchsorted(known, rows)]
        return answered(held, unchanged, read, source.f0_proba[rows], proba), rows

    def regimes_seen(self, source: Source, state: CarefulState) -> Any:
        """The regimes of the stream so far, oldest first."""
        held = self.held(source)
        found = self.learner.regimes_seen(held.source, state.inner)
        return found and found._replace(priors=self.told(held, source, found.priors))


def weighed(
    before: Unchanged,
    evidence: FloatArray,
    called: IntArray,
    nats: float,
    prior: FloatArray,
    chance: float,
    first: FloatArray,
    calls: FloatArray,
) -> Unchanged:
    """The hypothesis after a batch, by compiled code."""
    x, (parts, at) = to_row(before), careful_places(len(prior), len(calls))
    compiled.trackers.weigh(
        x, compiled.plain(evidence), called, nats, at, prior, chance, first, calls
    )
    return made_of(x, unchanged_of(from_row(parts, x)))


def unchanged_of(parts: list[Any]) -> Unchanged:
    """The hypothesis of its parts, one after the other."""
    belief, by_evidence, moved, rows, called, *counts = parts
    calls = Called(float(called), *counts)
    return Unchanged(float(belief), float(by_evidence), moved, rows, calls)


def reluctant(belief: float) -> float:
    """How far f0 answers, where nothing has changed with this belief.

    Examples
    --------
    >>> [round(reluctant(belief), 2) for belief in (0.0, 0.001, 0.05, 0.5, 1.0)]
    [0.0, 0.0, 0.21, 0.83, 1.0]
    """
    return _HARM * belief / (_HARM * belief + 1.0 - belief)


def _raised(belief: float, nats: float) -> float:
    """A belief after so many nats in its favour."""
    belief = min(max(belief, TINY), 1.0 - TINY)
    return float(expit(math.log(belief / (1.0 - belief)) + nats))


def mixed(share: float | FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """Probabilities of the one with this share, of the other with the rest."""
    return np.asarray(share * one + (1.0 - share) * other)


def still_proba(held: Held, read: FloatArray, f0: FloatArray) -> FloatArray:
    """Class probabilities where nothing has changed: f0's, corrected as far as that is sure.

    Better probabilities are found by far fewer rows than better answers: unless the held-out set is
    sure of those as well, every row is corrected only as far as f0 keeps its answer.
    """
    if held.decides:
        return mixed(held.corrected, read, f0)
    return _kept(read, f0, np.array([held.corrected]), 1.0)


def settled(
    held: Held, belief: float | FloatArray, still: FloatArray, tracked: FloatArray
) -> FloatArray:
    """Class probabilities of both hypotheses, mixed by the belief that nothing has changed.

    While that is at least a half f0 keeps its answers: of one whose probabilities are nearly equal
    a few percent of another's would take them. Not where the held-out set is sure of other answers.
    """
    if held.decides:
        return mixed(np.reshape(belief, (-1, 1)), still, tracked)
    return _kept(tracked, still, np.atleast_1d(1.0 - belief), 0.5)


def answered(
    held: Held, belief: float | FloatArray, read: FloatArray, f0: FloatArray, tracked: FloatArray
) -> FloatArray:
    """Class probabilities of both hypotheses, as far as few held-out rows of a class can tell.

    What the tracker makes of a row, over what it reads of it, is the class prior that it goes by,
    over that of the held-out set. A class with few rows is moved by a part of that only, and f0
    keeps an answer that this has made likelier than the other one. A belief of 1 changes no answer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> even = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> few = np.array([False, True])
    >>> held = Held(even, even.prior, even.prior, 0.5, False, np.empty(0), 5, few)
    >>> read, tracked = np.array([[0.5, 0.5]]), np.array([[0.1, 0.9]])
    >>> answered(held, 0.0, read, read, tracked).round(3).tolist()
    [[0.177, 0.823]]
    """
    if held.few is None:
        return settled(held, belief, still_proba(held, read, f0), tracked)
    ratios = likelihoods(held.source, Batch(read, read))
    prior = tracked / ratios
    prior /= prior.sum(axis=1, keepdims=True)
    tracked = ratios * drawn_back(prior, held.prior, held.few)
    tracked /= tracked.sum(axis=1, keepdims=True)
    proba = settled(held, belief, still_proba(held, read, f0), tracked)
    lifts = prior / held.prior
    rows, top, answer = np.arange(len(f0)), f0.argmax(axis=1), proba.argmax(axis=1)
    lost = (lifts[rows, answer] <= lifts[rows, top]) & (held.few[answer] | held.few[top])
    lost &= (answer != top) & (np.asarray(belief) < 1.0)
    proba[lost] = mixed(_keeping(proba[lost], f0[lost])[:, None], proba[lost], f0[lost])
    return proba


def drawn_back(prior: FloatArray, mean: FloatArray, few: AnyArray) -> FloatArray:
    """Class priors (n, K) in which classes with ``few`` rows have moved less far from ``mean``.

    The odds of such a class against all others move by a part of the way; the others share what
    is left as they did.

    Examples
    --------
    >>> mean, few = np.array([0.1, 0.45, 0.45]), np.array([True, False, False])
    >>> drawn_back(np.array([[0.9, 0.02, 0.08]]), mean, few).round(2).tolist()
    [[0.71, 0.06, 0.23]]
    """
    own = np.clip(prior, TINY, 1.0 - TINY)
    odds = (1.0 - _MOVED) * logit(mean) + _MOVED * logit(own)
    held_back = np.where(few, expit(odds), 0.0)
    rest, left = np.where(few, 0.0, own), 1.0 - held_back.sum(axis=1, keepdims=True)
    shared = np.maximum(left, 0.0) * rest / np.maximum(rest.sum(axis=1, keepdims=True), TINY)
    after = held_back + shared
    return np.asarray(after / after.sum(axis=1, keepdims=True))


def _kept(read: FloatArray, f0: FloatArray, most: FloatArray, bound: float) -> FloatArray:
    """Shares up to ``most`` of ``read`` that keep f0's answers, as far as that is at most so.

    ``most`` (n,) has one for each row, (1,) one for all.

    Examples
    --------
    >>> f0, read = np.array([[0.6, 0.4], [0.6, 0.4]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> _kept(read, f0, np.array([0.5, 0.75]), 0.5).round(3).tolist()
    [[0.55, 0.45], [0.15, 0.85]]
    """
    if compiled.available():
        found = np.empty(f0.shape)
        compiled.trackers.keep_answers(compiled.plain(read), compiled.plain(f0), most, bound, found)
        return found
    least = np.where(most <= bound, np.minimum(most, _keeping(read, f0)), most)
    return mixed(least[:, None], read, f0)


def _keeping(read: FloatArray, f0: FloatArray) -> FloatArray:
    """The largest share of ``read`` in each row (n,) that leaves f0 its answer and half its lead.

    Examples
    --------
    >>> f0, read = np.array([[0.6, 0.4], [0.6, 0.4]]), np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> _keeping(read, f0).round(3).tolist()
    [1.0, 0.25]
    """
    top = f0.argmax(axis=1)[:, None]
    lead = np.take_along_axis(f0, top, axis=1) - f0
    lost = lead - (np.take_along_axis(read, top, axis=1) - read)
    share = np.divide(lead, 2.0 * lost, out=np.ones_like(lead), where=2.0 * lost > lead)
    return np.asarray(share.min(axis=1))


@per_source
def _all_held(source: Source) -> dict[Any, Any]:
    return {}


def _held(learner: Any, source: Source, calls: bool) -> Held:
    proba, rows = learner.held_out(source)
    weights = source_weights(source, rows)
    counts = np.bincount(source.labels[rows], minlength=source.n_classes)
    mean = np.where(counts > 0, np.maximum(weights @ proba, _SMALLEST_SHARE), source.prior)
    reading = replace(source, prior=mean / mean.sum())
    reading.derived.update(source.derived)
    squares = len(rows) * (weights @ np.square(proba - mean)) / np.maximum(1.0 - mean, TINY)
    squares *= counts / (counts + _HALF_KNOWN)
    labels = source.labels[rows]
    f0 = source.f0_proba[rows]
    gains = row_losses(f0, labels) - row_losses(proba, labels)
    righted = (f0.argmax(axis=1) != labels) * 1.0 - (proba.argmax(axis=1) != labels)
    gained, noise = _mean_and_noise(righted, weights)
    few = source.counts < _FEW_ROWS
    return Held(
        reading,
        np.array(reading.prior),
        squares,
        _certainty(gains, weights),
        gained > _SURE * noise,
        held_out_calls(f0, weights) if calls else np.empty(0),
        int(counts[counts > 0].min()),
        few if few.any() else None,
    )


def source_weights(source: Source, rows: IntArray) -> FloatArray:
    """Weights (n,) of held-out rows that add up to 1, and give every class its source share.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> labels, prior = np.array([0, 0, 1]), np.array([0.5, 0.5])
    >>> source = SimpleNamespace(labels=labels, prior=prior, n_classes=2, row_weights=None)
    >>> source_weights(source, np.arange(3)).tolist()
    [0.25, 0.25, 0.5]
    """
    labels = source.labels[rows]
    within = None if source.row_weights is None else source.row_weights[rows]
    weights = source.prior[labels] * class_shares(labels, within)
    return np.asarray(weights / weights.sum())


def _certainty(gains: FloatArray, weights: FloatArray) -> float:
    """How sure the held-out set is of probabilities that gain so many nats a row over f0's own.

    The nats that are gained in all, less their standard error, are the odds.

    Examples
    --------
    >>> even = np.full(100, 0.01)
    >>> _certainty(np.full(100, 0.1), even) > 0.99, _certainty(np.zeros(100), even)
    (True, 0.5)
    """
    mean, noise = _mean_and_noise(gains, weights)
    return float(expit(len(gains) * (mean - noise)))


def _mean_and_noise(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """The weighted mean of values, and its standard error."""
    mean = float(weights @ values)
    return mean, math.sqrt(float(weights**2 @ (values - mean) ** 2))
