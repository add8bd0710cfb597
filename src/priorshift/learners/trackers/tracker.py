"""Tracker: forgetting experts and recurring regimes, mixed by Bayes' rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from priorshift._validation import check_share
from priorshift.learners.trackers.compiled import fields
from priorshift.learners.trackers.components import (
    RATES,
    ComponentLearner,
    Ensemble,
    Latest,
    Posterior,
    bayes,
    look,
    row_nats,
    shared,
    smoothing_counts,
    trends,
)
from priorshift.learners.trackers.late import Late
from priorshift.learners.trackers.records import Plan, make_plan, trends_of
from priorshift.learners.trackers.regimes import Book, Observed, Regimes, RegimesSeen, book_of
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

# Held-out rows a class that make another EM step of the class prior that is told worth its while.
_HELD_A_STEP, _MOST_STEPS = 10, 4


class TrackerState(NamedTuple):
    """Rounds seen, the experts, the book of regimes, how far each group is trusted.

    ``trust`` (2,) weighs what experts and regimes say of a batch that was seen, ``foresight`` (2,)
    their forecasts; ``told`` (2 + G,) are the weights of experts, regimes and trends in ``latest``,
    the class prior after the last batch.
    """

    t: int
    experts: Ensemble
    book: Book
    trust: FloatArray
    foresight: FloatArray
    told: FloatArray
    latest: Latest


@dataclass(frozen=True)
class Tracker(ComponentLearner):
    r"""Follow the class prior, whether it drifts, jumps or comes back; nothing to tune.

    ``EM`` and ``Regimes`` both weigh every batch, and what each made of it decides how far it is
    trusted: for a batch that was seen by the evidence, for the next one by its forecasts. A
    forecast m of the class prior loses the mean of :math:`-\log m^\top r_i` over the rows. Both
    losses are at most those of the better one plus ``ln 2 + T ln(1 / (1 - trust_share))``, that of
    the evidence being as in ``EM``. For batches of one row the two are the same.

    The class prior that is told after a batch also counts trends: beliefs that it goes on as it
    went, on a line through the means of two slow experts (``components.trends``), weighed by their
    evidence. Predictions leave them out: means that lag are the safer side to be wrong on.

    Parameters
    ----------
    trust_share : float
        Trust that experts and regimes lend to each other every round.
    slots, patience, learn
        As in ``Regimes``.
    rates, share, smoothing
        As in ``EM``.

    Examples
    --------
    >>> Tracker().name, Tracker().protocol
    ('tracker', 'adapt-first')
    """

    slots: int = 8
    patience: float = 4.0
    learn: bool = True
    rates: tuple[float, ...] = RATES
    share: float = 1e-3
    smoothing: float | None = None
    trust_share: float = 1e-3
    name: ClassVar[str] = "tracker"
    has_plan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("trust_share", self.trust_share)
        _ = self.regimes  # which checks the other settings

    @cached_property
    def regimes(self) -> Regimes:
        """The experts and regimes that are tracked with."""
        return Regimes(
            self.slots, self.patience, self.learn, self.rates, self.share, self.smoothing
        )

    def start(self, source: Source) -> TrackerState:
        """Experts and regimes at their start, trusted alike."""
        start, even = self.regimes.start(source), np.array([0.5, 0.5])
        members = 2 + trends_of(self.rates)[1]
        told = np.full(members, 1.0 / members)
        return TrackerState(0, start.experts, start.book, even, even, told, start.latest)

    def plan(self, source: Source) -> Plan:
        """Experts, the book, the trust in each, the weights and the class prior that are told."""
        numbers = {
            **self.regimes.numbers(source.n_classes),
            fields.TRUST_SHARE: self.trust_share,
            fields.STEPS: told_steps(source),
        }
        return make_plan(source, self.rates, self.slots, True, numbers)

    def shaped(self, leaves: list[Any]) -> TrackerState:
        """The state whose arrays and numbers are these."""
        t, counts, weights, *book, trust, foresight, told, mass, pull, size = leaves
        experts, latest = Ensemble(counts, weights), Latest(mass, pull, float(size))
        return TrackerState(int(t), experts, book_of(book), trust, foresight, told, latest)

    def followed(
        self, source: Source, state: TrackerState, evidence: FloatArray
    ) -> tuple[TrackerState, Posterior, float]:
        """Let experts and regimes learn from the batch, and trust each by what it made of it."""
        seen = self.regimes.observe(source, state.experts, state.book, evidence, state.t + 1)
        lent = shared(state.trust, self.trust_share)
        trust, nats = trusted(lent, seen.nats), float(np.logaddexp(*(np.log(lent) + seen.nats)))
        forecasts = row_nats(seen.before.forecasts(), evidence)
        foresight = trusted(shared(state.foresight, self.trust_share), forecasts)
        told, latest = self._told(source, state, seen, evidence)
        after = TrackerState(state.t + 1, seen.experts, seen.book, trust, foresight, told, latest)
        return after, seen.posterior(trust), nats

    def _told(
        self, source: Source, state: TrackerState, seen: Observed, evidence: FloatArray
    ) -> tuple[FloatArray, Latest]:
        """Weights of experts, regimes and trends, and the class prior as they see it together."""
        J, H = len(self.rates), len(seen.before.counts)
        alpha = seen.before.counts[:J]
        base = smoothing_counts(source, state.experts.counts, self.smoothing)
        ahead = np.maximum(trends(alpha, alpha.sum(axis=1), self.rates), base)
        of_trends = look(ahead, evidence)
        nats = np.concatenate([seen.nats, of_trends.evidence])
        told, _ = bayes(shared(state.told, self.trust_share), nats)
        own = seen.posterior(told[:2])
        weights = np.concatenate([own.weights, told[2:]])
        counts = np.concatenate([own.counts, ahead + of_trends.counts])
        latest = Latest.of(Posterior(weights, counts, own.centre))
        mass = latest.mass
        if len(evidence) > 1:
            before = np.concatenate([seen.before.counts, ahead])
            fixed, pulled = latest.pull @ before, latest.pull.sum()
            for _ in range(told_steps(source)):
                mass = fixed + pulled * mass * ((1.0 / (evidence @ mass)) @ evidence)
        # What late labels move in the faster expert of a trend moves the trend.
        pull, leader = latest.pull[:H].copy(), trends_of(self.rates)[0]
        pull[leader : leader + 2 * len(ahead) : 2] += latest.pull[H:]
        return told, latest._replace(mass=mass, pull=pull)

    def applied_prior(self, source: Source, state: TrackerState) -> FloatArray:
        """The class prior (K,) as experts and regimes see it, without trends and further steps.

        It is worked out from what they are after the batch. What they start from may have moved by
        less than a row since, and a regime that was born with it counts, too.
        """
        if not state.t:
            return np.asarray(source.prior)
        counts = np.concatenate([state.experts.counts, state.book.counts])
        there = counts.sum(axis=1) > 0.0
        counts = counts[there] + smoothing_counts(source, state.experts.counts, self.smoothing)
        weights = self.weights(source, state)[there]
        prior = (weights / counts.sum(axis=1)) @ counts
        return np.asarray(prior / prior.sum())

    def expected(self, source: Source, state: TrackerState) -> FloatArray:
        """The class prior (K,) that is expected of the next batch."""
        before = self.regimes.beliefs(source, state.experts, state.book)
        prior = shared(state.foresight, self.trust_share) @ before.forecasts()
        return np.asarray(prior / prior.sum())

    def trace(
        self, source: Source, before: TrackerState, after: TrackerState, batch: Batch
    ) -> FloatArray:
        """What a late label needs to know of a batch; see ``Regimes.trace``."""
        return self.regimes.trace(source, before, after, batch)

    def correct(self, source: Source, state: TrackerState, late: Late) -> TrackerState:
        """Count labels that come late, as ``Regimes`` does."""
        return self.regimes.correct(source, state, late)

    def weights(self, source: Source, state: TrackerState) -> FloatArray:
        """Weights (J + S,) of experts and regimes after the last batch."""
        return np.concatenate(
            [state.trust[0] * state.experts.weights, state.trust[1] * state.book.belief]
        )

    def regime(self, source: Source, state: TrackerState) -> int:
        """The round in which the present regime was first seen."""
        return self.regimes.regime(source, state)

    def regimes_seen(self, source: Source, state: TrackerState) -> RegimesSeen:
        """The regimes of the stream so far, oldest first."""
        return self.regimes.regimes_seen(source, state)


def told_steps(source: Source) -> int:
    """EM steps more that the class prior that is told takes with a batch, up to four.

    Components take two, from where the next batch goes on, so that a class that is gone keeps a
    share after a first batch or a jump. Where classes have few held-out rows, likelihood ratios are
    rough, and staying nearer to what was known is as well.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rows = (20, 40, 1000)
    >>> [told_steps(SimpleNamespace(labels=range(n), prior=np.ones(2))) for n in rows]
    [1, 2, 4]
    """
    return int(min(len(source.labels) // (_HELD_A_STEP * len(source.prior)), _MOST_STEPS))


def trusted(trust: FloatArray, nats: FloatArray) -> FloatArray:
    """Bayes' rule for two, as odds: it runs twice in every round.

    Examples
    --------
    >>> trusted(np.array([0.5, 0.5]), np.log([0.1, 0.3])).round(3).tolist()
    [0.25, 0.75]
    """
    lead = math.log(trust[1] / trust[0]) + float(nats[1] - nats[0])
    return np.asarray(expit((-lead, lead)))
