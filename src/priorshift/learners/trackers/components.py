r"""Dirichlet components: beliefs about a batch's class prior, each with its own evidence.

A component is a Dirichlet distribution of the class prior :math:`\mu` of a batch, with counts
:math:`\alpha_h` (K,). Forgetting experts and regimes are both components, so that one pass of
matrix products serves them all. With :math:`r_{ik} = f(x_i)_k / \pi_k`, the evidence of a component
is :math:`\log \int \prod_i (\mu^\top r_i)\, d\mathrm{Dir}(\mu; \alpha_h)`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from priorshift._numerics import TINY, one_hot
from priorshift.learners.base import Learner
from priorshift.learners.trackers.records import (
    Plan,
    advanced,
    forecast_of,
    from_row,
    made_of,
    plan_of,
    rounded,
    to_row,
    trends_of,
)
from priorshift.risk import compiled
from priorshift.source import Batch, Source
from priorshift.typing import AnyArray, FloatArray, IntArray

# A class that f rules out altogether stays possible: f may be wrong, and logarithms stay finite.
_SMALLEST_RATIO = 1e-9
# Components that carry less than this are left out of a prediction; together they change no
# probability by more than their sum.
_NEGLIGIBLE = 1e-6
# Rows of a batch that make another EM step worth its while, and the most steps.
_LARGE, _MOST_STEPS = 256, 10
_LEAST_MOVED = 1e-6  # of the class prior that is told, what late labels leave to a class
RATES = (1.0, 15 / 16, *(2.0**-j for j in range(1, 11)))
"""Forgetting rates of the experts: from "this batch alone" to the last thousand rounds."""

# Of the smoothing counts, this share goes to the source's prior, the rest to the slowest expert.
_SOURCE_SHARE = 0.1


def likelihoods(source: Source, batch: Batch) -> FloatArray:
    """Likelihood ratios r (n, K) of a batch, each row scaled to a largest entry of 1.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.2, 0.8]))
    >>> likelihoods(source, Batch(np.array([[0.5, 0.5]]), np.zeros((1, 1)))).tolist()
    [[1.0, 0.25]]
    """
    if compiled.available():
        found, proba, prior = np.empty(batch.proba.shape), batch.proba, source.prior
        compiled.trackers.scale(
            compiled.plain(proba), compiled.plain(prior), _SMALLEST_RATIO, found
        )
        return found
    ratios = batch.proba / source.prior
    ratios /= np.maximum(np.maximum.reduce(ratios, axis=1, keepdims=True), TINY)
    return np.maximum(ratios, _SMALLEST_RATIO, out=ratios)


def with_labels(ratios: FloatArray, known: IntArray | None) -> FloatArray:
    """Likelihood ratios (n, K) to learn from: a row whose label is known is that of one class.

    Then the evidence of a row is the prior of its class. Ruling the other classes out altogether
    would make logarithms infinite, so they keep the smallest ratio.

    Examples
    --------
    >>> with_labels(np.array([[1.0, 0.25], [1.0, 0.5]]), np.array([-1, 1])).tolist()
    [[1.0, 0.25], [1e-09, 1.0]]
    """
    if known is None:
        return ratios
    has = known >= 0
    ratios = ratios.copy()
    ratios[has] = np.maximum(one_hot(known[has], ratios.shape[1]), _SMALLEST_RATIO)
    return ratios


def evidence_rows(source: Source, batch: Batch) -> FloatArray:
    """Likelihood ratios (n, K) of a batch to learn from, labels that are known included.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.2, 0.8]))
    >>> batch = Batch(np.full((2, 2), 0.5), np.zeros((2, 1)), known=np.array([-1, 1]))
    >>> evidence_rows(source, batch).tolist()
    [[1.0, 0.25], [1e-09, 1.0]]
    """
    return with_labels(likelihoods(source, batch), batch.known)


class Look(NamedTuple):
    """What components make of a batch.

    ``evidence`` (H,) is a lower bound of each log evidence, ``counts`` (H, K) the expected numbers
    of rows of each class, ``centre`` (H, K) the priors that those expectations were taken under.
    """

    evidence: FloatArray
    counts: FloatArray
    centre: FloatArray


def em_steps(rows: int) -> int:
    """How many EM steps a batch takes: one row one, few rows two, and more of them up to ten.

    The next batch goes on from where few rows have led; of many at once nothing may be left over.

    Examples
    --------
    >>> [em_steps(rows) for rows in (1, 100, 256, 1500, 10**6)]
    [1, 2, 3, 7, 10]
    """
    return 1 if rows == 1 else min(2 + rows // _LARGE, _MOST_STEPS)


def look(alpha: FloatArray, ratios: FloatArray) -> Look:
    r"""Weigh components by a batch: EM steps, two of few rows, and a bound of the evidence.

    For rows with responsibilities :math:`\rho_{ik} = m_k r_{ik} / (m^\top r_i)` and counts
    :math:`c = \sum_i \rho_i` Jensen's inequality gives

    .. math:: \log p \ge \sum_i \log m^\top r_i - \sum_k c_k \log m_k
        + E \log \frac{B(\alpha + C)}{B(\alpha)}

    with the whole-numbered C of mean c. The last term is convex in C, so it is at least its linear
    interpolation between whole numbers, which is what is used. For one row the bound is exact.

    Parameters
    ----------
    alpha : (H, K) array
        Positive counts of the components.
    ratios : (n, K) array
        Likelihood ratios of the rows.

    Examples
    --------
    >>> seen = look(np.array([[1.0, 3.0]]), np.array([[1.0, 0.5]]))
    >>> seen.evidence.round(6) == np.log([0.25 * 1.0 + 0.75 * 0.5]).round(6)
    array([ True])
    >>> seen.counts.round(2)
    array([[0.4, 0.6]])
    """
    rows = len(ratios)
    turned = ratios.T
    total = alpha.sum(axis=1)
    centre = alpha / total[:, None]
    fit = centre @ turned
    counts = centre * ((1.0 / fit) @ ratios)
    for _ in range(em_steps(rows) - 1):
        centre = (alpha + counts) / (total + rows)[:, None]
        fit = centre @ turned
        counts = centre * ((1.0 / fit) @ ratios)
    whole = np.floor(counts)
    reached = alpha + whole
    gain = (counts - whole) * np.log(reached) - counts * np.log(centre)
    gain += _log_rising(alpha, whole, reached)
    evidence = np.log(fit).sum(axis=1) + gain.sum(axis=1)
    evidence += gammaln(total) - gammaln(total + rows)
    return Look(evidence, counts, centre)


def _log_rising(alpha: FloatArray, whole: FloatArray, reached: FloatArray) -> FloatArray:
    """Return log Gamma(alpha + whole) - log Gamma(alpha); with many classes most wholes are 0."""
    touched = whole.nonzero()
    found = np.zeros_like(alpha)
    found[touched] = gammaln(reached[touched]) - gammaln(alpha[touched])
    return found


class Posterior(NamedTuple):
    """What components believe after a batch.

    ``weights`` (H,) add up to 1, ``counts`` (H, K) are their Dirichlet counts, ``centre`` (H, K)
    the class priors that the responsibilities of the batch's rows were taken under.
    """

    weights: FloatArray
    counts: FloatArray
    centre: FloatArray


def left_out(posterior: Posterior, ratios: FloatArray) -> FloatArray:
    r"""Probabilities of a batch's rows, each left out of the evidence for its own class prior.

    Row i has the prior :math:`\sum_h w_h^{-i} (a_h - \rho_{hi}) / (A_h - 1)` with
    :math:`a_h = \alpha_h + c_h`, and :math:`w_h^{-i}` the weight without the row's likelihood.
    Dividing the likelihood out is the same as mixing the components' class probabilities with the
    full weights.

    Examples
    --------
    >>> ratios = np.array([[1.0, 0.5]])
    >>> seen = look(np.array([[1.0, 3.0]]), ratios)
    >>> after = Posterior(np.ones(1), np.array([[1.0, 3.0]]) + seen.counts, seen.centre)
    >>> left_out(after, ratios).round(12).tolist()  # one row: the prior knows nothing of it
    [[0.4, 0.6]]
    """
    heavy = posterior.weights > _NEGLIGIBLE
    weights, counts, centre = (part[heavy] for part in posterior)
    turned, squares = ratios.T, ratios * ratios
    fit = centre @ turned
    alone = np.maximum(counts @ turned - (centre @ squares.T) / fit, TINY)
    share = weights[:, None] / alone
    proba = share.T @ counts
    proba *= ratios
    squares *= (share / fit).T @ centre
    proba -= squares
    np.maximum(proba, TINY, out=proba)
    proba /= proba.sum(axis=1, keepdims=True)
    return np.asarray(proba)


class Judged(NamedTuple):
    """A batch learned from: the state after it, its rows' probabilities, and how likely it was.

    ``evidence`` (n, K) are the likelihood ratios that were learned from, ``nats`` the log evidence
    of the batch in their units, ``read`` (n, K) the class probabilities that were read of it.
    """

    state: Any
    proba: FloatArray | None
    evidence: FloatArray
    nats: float
    read: FloatArray


class Latest(NamedTuple):
    """The class prior after the last batch, as the components see it together.

    ``mass`` (K,) is proportional to it, ``pull`` (H,) how far it moves when a count of a component
    moves by 1, ``size`` the rows of a single Dirichlet of the same mean and total variance:
    components that disagree lower it as much as components that know little.

    Examples
    --------
    >>> even = Latest.of(Posterior(np.array([0.5, 0.5]), np.array([[1.0, 3], [30, 10]]), None))
    >>> even.prior.tolist()
    [0.5, 0.5]
    >>> round(Latest.of(Posterior(np.ones(1), np.array([[30.0, 70.0]]), None)).size, 6)
    100.0
    >>> apart = np.array([[90.0, 10.0], [10.0, 90.0]])
    >>> Latest.of(Posterior(np.array([0.5, 0.5]), apart, None)).size < 1
    True
    """

    mass: FloatArray
    pull: FloatArray
    size: float

    @classmethod
    def start(cls, source: Source, components: int) -> Latest:
        """Before the first batch: the source's prior, which rests on no row."""
        return cls(source.prior, np.zeros(components), 0.0)

    @classmethod
    def of(cls, posterior: Posterior) -> Latest:
        """After a batch."""
        weights, counts, _ = posterior
        total = counts.sum(axis=1)
        pull = weights / total
        mass = pull @ counts
        squares = np.einsum("hk,hk->h", counts, counts) / (total * total)
        spread = float(weights @ ((1.0 - squares) / (total + 1.0) + squares))
        mean = float(mass @ mass)
        size = (1.0 - mean) / max(spread - mean, TINY) - 1.0
        return cls(mass, pull, max(size, 0.0))

    @property
    def prior(self) -> FloatArray:
        """The class prior (K,), on the simplex."""
        mass = np.maximum(self.mass, 0.0)
        return np.asarray(mass / np.add.reduce(mass))

    def moved(self, change: FloatArray) -> Latest:
        """Return it with the counts of the components moved by ``change`` (H, K).

        What labels take from a class may be more than EM steps had left it: it keeps a little.
        """
        least = np.minimum(self.mass, _LEAST_MOVED)
        return self._replace(mass=np.maximum(self.mass + self.pull @ change, least))


@dataclass(frozen=True)
class ComponentLearner(Learner):
    """Base of learners whose beliefs are components: they predict, and leave rows out, alike.

    A learner derived from it says how a batch is followed and what it expects of the next one; its
    states have a field ``latest``.
    """

    protocol: ClassVar[str] = "adapt-first"
    calibration: ClassVar[str] = "auto"
    uses_late_labels: ClassVar[bool] = True
    guarded: ClassVar[bool] = True
    weighs_batches: ClassVar[bool] = True
    reweights: ClassVar[bool] = True
    has_plan: ClassVar[bool] = False

    def plan(self, source: Source) -> Plan:
        """How its states are laid out as rows for the compiled step, where ``has_plan``."""
        raise NotImplementedError(f"{type(self).__name__} has no compiled step")

    def shaped(self, leaves: list[Any]) -> Any:
        """The state whose arrays and numbers are these, in their order, where ``has_plan``."""
        raise NotImplementedError(f"{type(self).__name__} has no compiled step")

    def forecast(self, source: Source, state: Any) -> FloatArray:
        """The class prior (K,) that is expected of the next batch."""
        if self.has_plan and compiled.available():
            return forecast_of(plan_of(self, source), to_row(state))
        return self.expected(source, state)

    @abstractmethod
    def expected(self, source: Source, state: Any) -> FloatArray:
        """The class prior (K,) that is expected of the next batch, in NumPy."""

    @abstractmethod
    def followed(
        self, source: Source, state: Any, evidence: FloatArray
    ) -> tuple[Any, Posterior, float]:
        """The state after a batch with these likelihood ratios (n, K), the beliefs, the nats.

        Nats are the log evidence of the batch, or a lower bound of it. This is NumPy's twin of the
        compiled step.
        """

    def threads(self, source: Source, state: Any) -> AbstractContextManager[Any]:
        """As they are, where a compiled step needs no BLAS."""
        if self.has_plan and compiled.available():
            return nullcontext()
        return super().threads(source, state)

    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """Reweight f0 by the class prior that is expected of the next batch."""
        return reweight_by(likelihoods(source, batch), self.forecast(source, state))

    def adapt(self, source: Source, state: Any, batch: Batch) -> Any:
        """Weigh the components by the batch, and let them learn from it."""
        return self.judged(source, state, batch, predict=False).state

    def adapt_predict(self, source: Source, state: Any, batch: Batch) -> tuple[Any, FloatArray]:
        """Learn from a batch and predict its rows, each left out of its own class prior."""
        seen = self.judged(source, state, batch, predict=True)
        assert seen.proba is not None
        return seen.state, seen.proba

    def judged(self, source: Source, state: Any, batch: Batch, predict: bool) -> Judged:
        """Learn from a batch; say how likely it was, and predict its rows if asked to."""
        ratios = likelihoods(source, batch)
        evidence = with_labels(ratios, batch.known)
        if self.has_plan and compiled.available():
            plan, row = plan_of(self, source), to_row(state)
            proba, nats = advanced(plan, row, ratios, evidence, predict)
            state = made_of(row, self.shaped(from_row(plan.parts, row)))
            return Judged(state, proba, evidence, nats, batch.proba)
        state, posterior, nats = self.followed(source, state, evidence)
        state = self.kept(source, state)
        proba = left_out(posterior, ratios) if predict else None
        return Judged(state, proba, evidence, nats, batch.proba)

    def kept(self, source: Source, state: Any) -> Any:
        """A state that NumPy has found, with values of float32 where states have them."""
        if not self.has_plan:
            return state
        plan = plan_of(self, source)
        return self.shaped(from_row(plan.parts, rounded(plan, to_row(state))))

    def held_out(self, source: Source) -> tuple[FloatArray, AnyArray]:
        """What is read of the held-out set, honestly (n, K), and of which of its rows."""
        return source.proba, np.arange(len(source.labels))

    def prior(self, source: Source, state: Any) -> FloatArray:
        """The class prior after the last batch, as the components see it together."""
        return np.asarray(state.latest.prior)

    def effective_size(self, source: Source, state: Any) -> float:
        """How many rows the present class prior rests on."""
        return float(state.latest.size)


def read_held_out(learner: Any, source: Source) -> FloatArray:
    """What a learner that weighs batches reads of all held-out rows (n, K), honestly.

    Its ``held_out`` may be of some rows, those that what it reads by was fitted to; it reads the
    others as it reads a batch.
    """
    proba, rows = learner.held_out(source)
    if len(rows) == len(source.labels):
        return np.asarray(proba)
    read = np.array(learner.read(source, source.held_out).proba)
    read[rows] = proba
    return read


def reweight_by(ratios: FloatArray, prior: FloatArray) -> FloatArray:
    r"""Class probabilities :math:`p(k \mid x) \propto \mu_k r_k(x)` under one class prior.

    Examples
    --------
    >>> reweight_by(np.array([[1.0, 0.5]]), np.array([0.25, 0.75])).tolist()
    [[0.4, 0.6]]
    """
    weighted = ratios * prior
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def row_nats(forecasts: FloatArray, ratios: FloatArray) -> FloatArray:
    r"""Mean log-likelihood (G,) of a batch's rows under forecasts (G, K) of its class prior.

    That is minus the loss of predicting first. Its exponential, the geometric mean of the
    :math:`m^\top r_i`, is concave in m.

    Examples
    --------
    >>> ratios = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> np.exp(row_nats(np.array([[1.0, 0.0], [0.5, 0.5]]), ratios)).round(3).tolist()
    [0.707, 0.75]
    """
    return np.asarray(np.log(forecasts @ ratios.T).mean(axis=1))


def bayes(prior: FloatArray, evidence: FloatArray) -> tuple[FloatArray, float]:
    """Posterior weights and the log evidence of the whole mixture; a prior of 0 stays 0.

    Examples
    --------
    >>> weights, total = bayes(np.array([0.5, 0.5]), np.log([0.1, 0.3]))
    >>> weights.round(3).tolist(), round(float(np.exp(total)), 3)
    ([0.25, 0.75], 0.2)
    """
    possible = prior > 0.0
    scores = np.where(possible, np.log(np.where(possible, prior, 1.0)) + evidence, -np.inf)
    top = float(scores.max())
    weights = np.exp(scores - top)
    total = float(weights.sum())
    return weights / total, top + math.log(total)


class Ensemble(NamedTuple):
    """Forgetting experts: their discounted counts (J, K) and their weights (J,) after the batch.

    Counts have values of float32, see ``records.py``.
    """

    counts: FloatArray
    weights: FloatArray

    def moved(self, change: FloatArray) -> Ensemble:
        """Return them with counts moved by ``change`` (J, K), none below 0."""
        counts = np.maximum(self.counts + change, 0.0).astype(np.float32)
        return self._replace(counts=counts.astype(np.float64))


def fresh_ensemble(experts: int, classes: int) -> Ensemble:
    """Experts that have counted nothing and are trusted alike.

    Examples
    --------
    >>> fresh_ensemble(2, 3).weights.tolist()
    [0.5, 0.5]
    """
    return Ensemble(np.zeros((experts, classes)), np.full(experts, 1.0 / experts))


def trends(counts: FloatArray, sums: FloatArray, rates: tuple[float, ...]) -> FloatArray:
    r"""Counts (G, K) of trends: where the class prior is, if it goes on as it went.

    A mean that forgets at the rate :math:`\lambda` looks :math:`1 / \lambda` rounds back from the
    next batch. On the line through the means of two experts the next batch is as far ahead of the
    faster one as that says: :math:`m_1 + (m_1 - m_2) \lambda_2 / (\lambda_1 - \lambda_2)`. A
    trend rests on as many rows as the faster one: with half the rate for the slower one it has the
    variance, within a tenth, of a Dirichlet distribution of so many. ``sums`` (J,) are those of
    ``counts`` (J, K).

    Examples
    --------
    >>> rates = (1 / 16, 1 / 32)  # 16 and 32 rounds back, where a class fell by 0.01 a round
    >>> trends(np.array([[0.46, 0.54], [0.62, 0.38]]), np.ones(2), rates).round(6).tolist()
    [[0.3, 0.7]]
    """
    leader, number = trends_of(rates)
    one = leader + 2 * np.arange(number)
    fast, slow = np.asarray(rates)[one], np.asarray(rates)[one + 1]
    ahead = slow / (fast - slow)
    other = ahead * sums[one] / sums[one + 1]
    return np.asarray((1.0 + ahead)[:, None] * counts[one] - other[:, None] * counts[one + 1])


def smoothing_rows(classes: int) -> float:
    """Rows that the long-run prior is worth by default: sqrt(K), from nine classes on K / 3.

    With few classes it matters little. With many, a batch has fewer rows than there are classes:
    with less than about a third of a row a class, a component follows the noise of its counts.

    Examples
    --------
    >>> smoothing_rows(4), smoothing_rows(9), smoothing_rows(900)
    (2.0, 3.0, 300.0)
    """
    return max(sqrt(classes), classes / 3.0)


def smoothing_counts(source: Source, counts: FloatArray, smoothing: float | None) -> FloatArray:
    """Counts (K,) that every component starts from: rows of the long-run prior.

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
    return weights * (1.0 - share) + max(share / len(weights), TINY)


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
