r"""Metrics of predictions on held-out rows under a class prior, and how sure they are.

A metric is a functional T of the class prior :math:`\mu` and of the classes' distributions. To
first order it is a sum over rows: a row of class k that is drawn moves it by its influence
:math:`\varphi(x, k)`. Means :math:`g_k` and variances :math:`v_k` of :math:`\varphi` over each
class are all that is needed:

.. math:: \mathrm{Var}\,\hat T = \sum_k \mu_k^2 \frac{v_k}{n_k} + g^\top \Sigma\, g - 2 g^\top c
    + \frac1N \Big( \sum_k \mu_k (v_k + g_k^2) - (\mu^\top g)^2 \Big),

the held-out set with :math:`n_k` rows of class k, the class prior with covariance
:math:`\Sigma`, what the two have in common (the class prior was estimated by way of the same
held-out set: c is the covariance of :math:`\varphi` with the influence of held-out rows on it),
and, where the metric of N rows is asked for and not its expectation, their draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import ndtri

from priorshift._numerics import TINY, class_shares, row_argmax
from priorshift.typing import FloatArray, IntArray

# As in scikit-learn, no probability counts as less.
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
_BINS = 10


class Estimated(NamedTuple):
    """A number that was estimated, or an array of them, and the ends of its interval.

    Examples
    --------
    >>> print(Estimated(0.912, 0.9, 0.93))
    0.912 [0.900, 0.930]
    """

    value: FloatArray | float
    low: FloatArray | float
    high: FloatArray | float

    def __str__(self) -> str:
        if np.ndim(self.value) == 0:
            return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value} [{self.low}, {self.high}]"


@dataclass(frozen=True, eq=False)
class Weighed:
    """Held-out rows with the predictions that are judged, and how much each counts.

    Attributes
    ----------
    proba : (n, K) array
        Predictions.
    labels : (n,) array
        Classes.
    shares : (n,) array
        What each row counts within its class; they add up to 1 there.
    prior : (K,) array
        The class prior, above 0 for every class with rows, and 0 for all others.
    pull : (n, K) array or None
        How far each row of a class has moved the estimated class prior, in units of what it counts:
        the rows of a class add up to 0. None: the class prior does not rest on these rows.
    """

    proba: FloatArray
    labels: IntArray
    shares: FloatArray
    prior: FloatArray
    pull: FloatArray | None = None

    @classmethod
    def of(
        cls,
        proba: FloatArray,
        labels: IntArray,
        prior: FloatArray,
        row_weights: FloatArray | None = None,
        influence: FloatArray | None = None,
    ) -> Weighed:
        """Weigh rows within their classes, and leave out classes without any.

        ``influence`` (n, K) are the values whose mean over rows of the stream is the class prior.
        """
        shares = class_shares(labels, row_weights)
        there = np.bincount(labels, row_weights, minlength=len(prior)) > 0.0
        inside = np.where(there, np.maximum(prior, 1e-9), 0.0)
        pull = None
        if influence is not None:
            means = _summed(labels, shares, len(prior), influence)
            pull = influence - means[labels]
        return cls(proba, labels, shares, inside / inside.sum(), pull)

    @cached_property
    def weights(self) -> FloatArray:
        """What each row counts (n,); they add up to 1."""
        return np.asarray(self.prior[self.labels] * self.shares)

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows of each class (K,), by Kish's effective size; 0 for a class without any."""
        squares = self.by_class(self.shares)
        return np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)

    def by_class(self, values: FloatArray) -> FloatArray:
        """Means of a value of the rows over each class (K,); 0 for a class without rows."""
        found = np.bincount(self.labels, self.shares * values, minlength=len(self.prior))
        return np.asarray(found, dtype=np.float64)

    def common(self, values: FloatArray) -> FloatArray | None:
        """Covariance (1, K) of a mean over the rows with the class prior; None: there is none."""
        return None if self.pull is None else ((values * self.weights**2) @ self.pull)[None]

    @cached_property
    def calls(self) -> IntArray:
        """The class that each row is called (n,)."""
        return row_argmax(self.proba)

    @cached_property
    def right(self) -> FloatArray:
        """1 for each row that is called right, else 0."""
        return np.asarray(self.calls == self.labels, dtype=np.float64)

    @cached_property
    def cells(self) -> IntArray:
        """The cell of the confusion matrix that each row falls into, K times class plus call."""
        return np.asarray(self.labels * len(self.prior) + self.calls)

    @cached_property
    def called(self) -> FloatArray:
        """Shares (K, K) of the rows of each class, in rows, that are called each class."""
        K = len(self.prior)
        return np.asarray(np.bincount(self.cells, self.shares, K * K), np.float64).reshape(K, K)

    @cached_property
    def pull_of_calls(self) -> FloatArray | None:
        """The covariances (K, K, K) with the class prior, by class and call; None: there are none.

        Of the shares of all rows that are of a class and are called one.
        """
        if self.pull is None:
            return None
        K = len(self.prior)
        return _summed(self.cells, self.weights**2, K * K, self.pull).reshape(K, K, K)


def _summed(group: IntArray, weights: FloatArray, groups: int, values: FloatArray) -> FloatArray:
    """Weighted sums (groups, C) of the values (n, C) of the rows of each group."""
    rows = np.arange(len(group) + 1)
    return np.asarray(csr_matrix((weights, group, rows), shape=(len(group), groups)).T @ values)


class Form(NamedTuple):
    """M metrics to first order: values, and what their error is made of.

    Attributes
    ----------
    value : (M,) array
        NaN where a metric is not defined.
    means, variances : (K, M) arrays
        Of the influence of a row, over each class.
    sizes : (M,) array
        About how many rows each metric rests on.
    common : (M, K) array or None
        Covariance of the influence with that on the class prior, over the held-out set.
    mass : (M,) array or None
        Of metrics that count rows, the share of all rows that they are a share of.
    few : (M,) array or None
        How many rows make the variance over the held-out set, about, where some make most of it.
    """

    value: FloatArray
    means: FloatArray
    variances: FloatArray
    sizes: FloatArray
    common: FloatArray | None = None
    mass: FloatArray | None = None
    few: FloatArray | None = None

    def variance(
        self, held: Weighed, covariance: FloatArray, rows: float | None = None
    ) -> FloatArray:
        """Variances (M,) of the estimates; with ``rows``, of what so many rows would show."""
        prior, sizes = held.prior[:, None], np.maximum(held.sizes, 1.0)[:, None]
        # A class whose few rows are all alike may still vary: each counts one row of all.
        pooled = (prior * self.variances).sum(axis=0)
        within = (sizes * self.variances + pooled) / (sizes + 1.0)
        found = (prior**2 * within / sizes).sum(axis=0)
        if self.few is not None:
            # A variance that few rows make is itself uncertain: as for Student's t, with two
            # degrees of freedom for each of them.
            found *= self.few / np.maximum(self.few - 1.0, 0.5 * self.few)
        found += np.einsum("km,kl,lm->m", self.means, covariance, self.means)
        if self.common is not None:
            shared = 2.0 * np.einsum("mk,km->m", self.common, self.means)
            # The first two parts make up for it but for rounding, and for what was added to them.
            found = np.maximum(found - shared, 0.1 * found)
        if rows is not None:
            squares = (prior * (self.variances + self.means**2)).sum(axis=0)
            found += (squares - (prior * self.means).sum(axis=0) ** 2) / rows
        return np.asarray(found)


def rowwise(held: Weighed, influence: FloatArray) -> Form:
    """The form of a mean over rows, of which ``influence`` (n,) is the value at each.

    Examples
    --------
    >>> held = Weighed.of(np.eye(2), np.array([0, 1]), np.array([0.25, 0.75]))
    >>> rowwise(held, np.array([1.0, 5.0])).value.tolist()
    [4.0]
    """
    means = held.by_class(influence)
    apart = (influence - means[held.labels]) ** 2
    squares = held.by_class(apart)
    value = np.array([held.prior @ means])
    size, few = np.array([kish(held.weights)]), np.array([kish(held.weights**2 * apart)])
    return Form(
        value,
        means[:, None],
        squares[:, None],
        size,
        held.common(influence),
        few=np.maximum(few, 1.0),
    )


def kish(weights: FloatArray) -> float:
    """Kish's effective size of weighted rows; 0 of none.

    Examples
    --------
    >>> kish(np.array([1.0, 1.0, 0.0])), kish(np.zeros(2))
    (2.0, 0.0)
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def accuracy(held: Weighed) -> Form:
    """The share of rows that are called right."""
    return rowwise(held, held.right)._replace(mass=np.ones(1))


def log_loss(held: Weighed) -> Form:
    """The mean of minus the logarithm of the class's probability."""
    own = held.proba[np.arange(len(held.labels)), held.labels]
    return rowwise(held, -np.log(np.maximum(own, _LEAST_PROBABILITY)))


def brier(held: Weighed) -> Form:
    """The mean squared error of the probabilities, of two classes that of one of them."""
    gap = held.proba.copy()
    gap[np.arange(len(gap)), held.labels] -= 1.0
    squares = np.einsum("ik,ik->i", gap, gap)
    return rowwise(held, squares / 2.0 if gap.shape[1] == 2 else squares)


def calibration_error(held: Weighed) -> Form:
    """Expected calibration error of the largest probability, in ten bins of equal width.

    The square of a bin's error is lowered by what chance adds to it, to 0 at the least.
    """
    top = held.proba.max(axis=1)
    excess = held.right - top
    bins = np.minimum((top * _BINS).astype(np.intp), _BINS - 1)
    sums = np.bincount(bins, held.weights * excess, minlength=_BINS)
    noise = np.bincount(bins, (held.weights * excess) ** 2, minlength=_BINS)
    left = np.sqrt(np.maximum(sums**2 - noise, 0.0))
    form = rowwise(held, np.sign(sums)[bins] * excess)
    return form._replace(value=np.array([left.sum()]))


class CallForms(NamedTuple):
    """Metrics of each class's calls, shares of rows all of them.

    ``overlap`` (the Jaccard index): of the rows that are of a class or are called it, how many are
    both. F1 follows from it: 2 J / (1 + J).
    """

    recall: Form
    precision: Form
    overlap: Form
    specificity: Form


def call_forms(held: Weighed) -> CallForms:
    r"""Forms of what depends on calls alone.

    Of rows of class j the influence on a metric of class k is :math:`a_{jk} + d_{jk}` where they
    are called k and :math:`a_{jk}` where not, so that shares of calls say all.
    """
    q, prior = held.called, held.prior[:, None]
    K = len(q)
    own, sizes = np.eye(K), np.maximum(held.sizes, 1.0)[:, None]
    hit, of_class = np.diag(prior * q), held.prior
    called, others = (prior * q).sum(axis=0), 1.0 - held.prior
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = np.where(of_class > 0.0, hit / of_class, np.nan)
        either = of_class + called - hit
        precision, overlap = hit / called, hit / either
        specificity = 1.0 - (called - hit) / others
        squares = prior**2 / sizes
        counted = (q, q + own * (1.0 - q), 1.0 - own)
        rows = [1.0 / (squares * part).sum(axis=0) for part in counted]
        recalled = _call_form(held, q, recall, -own * recall / of_class, own / of_class)
        precise = _call_form(held, q, precision, 0.0 * own, (own - precision) / called)
        shared = _call_form(
            held, q, overlap, -own * overlap / either, (own - (1.0 - own) * overlap) / either
        )
        spared = _call_form(
            held, q, specificity, (1.0 - own) * (1.0 - specificity) / others, (own - 1.0) / others
        )
        return CallForms(
            recalled._replace(sizes=held.sizes, mass=of_class),
            precise._replace(sizes=rows[0] * called**2, mass=called),
            shared._replace(sizes=rows[1] * either**2, mass=either),
            spared._replace(sizes=rows[2] * others**2, mass=others),
        )


def _call_form(
    held: Weighed,
    q: FloatArray,
    value: FloatArray,
    base: FloatArray,
    more: FloatArray,
) -> Form:
    known = np.isfinite(value)
    base, more = np.where(known, base, 0.0), np.where(known, more, 0.0)
    moved = held.pull_of_calls
    common = None if moved is None else np.einsum("jc,jck->ck", more, moved)
    return Form(
        np.where(known, value, np.nan),
        base + more * q,
        more**2 * q * (1.0 - q),
        np.zeros(len(q)),
        common,
    )


def confusion(held: Weighed) -> Form:
    """Shares of all rows that are of class i and called j, as K * K metrics."""
    q = held.called
    K = len(q)
    rows = np.repeat(np.arange(K), K)
    means, variances = np.zeros((K, K * K)), np.zeros((K, K * K))
    means[rows, np.arange(K * K)] = q.ravel()
    variances[rows, np.arange(K * K)] = (q * (1.0 - q)).ravel()
    value = (held.prior[:, None] * q).ravel()
    return Form(value, means, variances, held.sizes[rows])


def ranking(held: Weighed) -> tuple[Form, Form]:
    """Forms of the area under the ROC curve, and of the average precision, each class on its own.

    Rows of a class against all others, in the order of its probability.
    """
    K = len(held.prior)
    found = [_ranked(held, k) for k in range(K)]
    none, known = np.zeros((K, 1)), held.pull is not None
    undefined = Form(np.array([np.nan]), none, none, np.zeros(1), none.T if known else None)
    both = [pair if pair is not None else (undefined, undefined) for pair in found]
    return _joined([pair[0] for pair in both]), _joined([pair[1] for pair in both])


def _joined(forms: list[Form]) -> Form:
    value, means, variances, sizes = (
        np.concatenate([form[place] for form in forms], axis=-1) for place in range(4)
    )
    common = [form.common for form in forms if form.common is not None]
    few = np.concatenate([np.ones(1) if form.few is None else form.few for form in forms])
    return Form(value, means, variances, sizes, np.concatenate(common) if common else None, few=few)


def _ranked(held: Weighed, k: int) -> tuple[Form, Form] | None:
    """AUC and average precision of class k, with every row's influence on both."""
    weights, mine = held.weights, held.labels == k
    share = float(held.prior[k])
    if not 0.0 < share < 1.0 or not mine.any():
        return None
    order = np.argsort(-held.proba[:, k], kind="stable")
    score, own, w = held.proba[order, k], mine[order], weights[order]
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
    group = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    positive, negative = np.cumsum(w * own)[ends], np.cumsum(w * ~own)[ends]
    before_p, before_n = np.append(0.0, positive[:-1]), np.append(0.0, negative[:-1])
    # Of a tie half is above.
    below = 1.0 - (negative + before_n) / (2.0 * (1.0 - share))
    above = (positive + before_p) / (2.0 * share)
    area = float(w[own] @ below[group][own]) / share
    placed = np.where(own, (below[group] - area) / share, (above[group] - area) / (1.0 - share))
    precision = positive / np.maximum(positive + negative, TINY)
    average = float(w[own] @ precision[group][own]) / share
    # A row moves the precision at its own score and at every lower one.
    lower = np.diff(positive, prepend=0.0) / (share * np.maximum(positive + negative, TINY))
    at = np.cumsum(lower[::-1])[::-1][group]
    lost = np.cumsum((lower * precision)[::-1])[::-1][group]
    moved = np.where(own, (precision[group] - average) / share + at, 0.0) - lost
    size = 1.0 / (1.0 / kish(w[own]) + 1.0 / kish(w[~own]))
    forms = []
    for value, influence, rows in ((area, placed, size), (average, moved, kish(w[own]))):
        back = np.empty(len(order))
        back[order] = influence
        form = rowwise(held, back)
        forms.append(form._replace(value=np.array([value]), sizes=np.array([rows])))
    return forms[0], forms[1]


def share_interval(
    value: FloatArray,
    variance: FloatArray,
    sizes: FloatArray,
    level: float,
    drawn: float = np.inf,
) -> tuple[FloatArray, FloatArray]:
    r"""Wilson's interval for numbers in [0, 1] with variances of any cause.

    It holds every m from which the value is at most z deviations away, by the variance at m,
    :math:`a\,m(1 - m) + b`. As far as a share of ``sizes`` rows explains the variance, or one
    of the ``drawn`` rows behind the class prior, it is a, which falls towards 0 and 1; the rest is
    b, which does not. What is not defined lies anywhere in [0, 1].

    Examples
    --------
    >>> value, n = np.array([0.9, 1.0]), np.array([100.0, 100.0])
    >>> low, high = share_interval(value, value * (1 - value) / n, n, 0.9)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.84, 0.974], [0.939, 1.0])
    """
    z = float(ndtri((1.0 + level) / 2.0))
    rows, spread = np.maximum(np.nan_to_num(sizes), 1.0), value * (1.0 - value)
    # At 0 and 1, where the variance of a share says nothing, it is that of so many rows.
    a = np.minimum((variance + 0.5 / rows**3) / (spread + 0.5 / rows**2), 1.0 / rows + 1.0 / drawn)
    b = np.maximum(variance - a * spread, 0.0)
    whole = 1.0 + z**2 * a
    middle = (value + z**2 * a / 2.0) / whole
    width = z * np.sqrt(a * spread + b * whole + (z * a) ** 2 / 4.0) / whole
    low, high = np.clip(middle - width, 0.0, value), np.clip(middle + width, value, 1.0)
    return np.where(np.isnan(value), 0.0, low), np.where(np.isnan(value), 1.0, high)


def positive_interval(
    value: FloatArray, variance: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of a positive number, normal in its logarithm.

    Examples
    --------
    >>> low, high = positive_interval(np.array([0.5]), np.array([0.0025]), 0.9)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.424], [0.589])
    """
    z = float(ndtri((1.0 + level) / 2.0))
    half = z * np.sqrt(variance)
    steep = np.maximum(half / np.maximum(value, TINY), TINY)
    # Where the deviation is larger than the number, the upper end grows no faster than it does.
    some = np.minimum(steep, 1.0)
    return np.asarray(value * np.exp(-steep)), np.asarray(value + half * np.expm1(some) / some)
