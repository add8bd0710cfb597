r"""Thresholds on the probability of one class, as they are best today.

The labelled held-out rows, weighed by today's class prior, stand for labelled rows of today. With
:math:`TP(t)` and :math:`FP(t)` the weights of the positive and of the other rows whose adapted
probability is at least t, and P the share of positive rows, every measure of a threshold is a
function of the three.

The largest of a measure over thresholds follows the noise of few rows. For measures that are to be
largest or smallest (F, cost) the scores of each class are smoothed before: on the scale of logits,
by a normal kernel of Silverman's bandwidth,

.. math:: TP(t) = \sum_{i : y_i = 1} w_i \,
    \Phi\Big(\frac{\mathrm{logit}\,p_i - \mathrm{logit}\,t}{h_1}\Big),
    \qquad h_k = 0.9 \min(\hat\sigma_k, \mathrm{IQR}_k / 1.34)\, n_k^{-1/5},

and FP likewise. Even so a handful of positive rows says little of where the best threshold is, and
the probabilities themselves say something: of cost, where the expected costs of both answers are
alike; of F, where it is largest if row i counts :math:`w_i p_i` as positive. Between the two, on
the scale of logits, the held-out rows' threshold has the part n / (n + 10), with n the rows of the
kind that has fewer. What has to be kept (precision, recall, a share of rows) is counted as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

from priorshift._numerics import TINY
from priorshift._validation import check_chance, check_choice, check_positive
from priorshift.errors import InputError
from priorshift.monitoring.metrics import kish
from priorshift.typing import AnyArray, FloatArray

# What can be asked for, and the number that has to be given with it.
METRICS: dict[str, str | None] = {
    "f1": None,
    "f-beta": "beta",
    "cost": None,
    "precision": "recall",
    "recall": "precision",
    "top-k": "share",
}
_SMOOTHED = ("f1", "f-beta", "cost")
_ROUNDING = 1e-12
# Probabilities have finite logits within this.
_EDGE = 1e-9
# Cells that logits are counted in, and thresholds that are tried.
_CELLS, _TRIED = 512, 256
# Held-out rows of the rarer kind that know as much of the best threshold as the probabilities do.
_HALF_KNOWN = 10.0


class Curve(NamedTuple):
    """Thresholds from high to low, and what is at or above each.

    Attributes
    ----------
    thresholds : (m + 1,) array
        The first is infinite, which no row reaches; the last is 0, which all do.
    hits, false : (m + 1,) arrays
        Weights of the positive rows at or above each threshold, and of the others.

    Examples
    --------
    >>> curve_of(np.array([0.2, 0.6, 0.8]), np.array([False, True, True]), np.full(3, 1 / 3))
    Curve(thresholds=array([inf, 0.7, 0.4, 0. ]), hits=array([0. , 0.33333333, 0.66666667, \
0.66666667]), false=array([0. , 0. , 0. , 0.33333333]))
    """

    thresholds: FloatArray
    hits: FloatArray
    false: FloatArray

    @property
    def called(self) -> FloatArray:
        """Weights of all rows at or above each threshold."""
        return self.hits + self.false

    @property
    def precision(self) -> FloatArray:
        """Of the rows at or above each threshold, how many are positive; 0 where there are none."""
        return np.asarray(self.hits / np.maximum(self.called, TINY))

    @property
    def recall(self) -> FloatArray:
        """Of the positive rows, how many are at or above each threshold."""
        return np.asarray(self.hits / max(self.hits[-1], TINY))

    def f_beta(self, beta: float) -> FloatArray:
        """The weighted harmonic mean of precision and recall."""
        square = beta * beta
        size = square * self.hits[-1] + self.called  # 0 where no row is positive, nor called it
        return np.asarray((1.0 + square) * self.hits / np.maximum(size, TINY))

    def cost(self, table: FloatArray) -> FloatArray:
        """Mean cost of a row; ``table`` (2, 2) has the positive class last, actions in rows."""
        (c00, c01), (c10, c11) = table
        missed, spared = self.hits[-1] - self.hits, self.false[-1] - self.false
        return np.asarray(c11 * self.hits + c10 * self.false + c01 * missed + c00 * spared)


def curve_of(score: FloatArray, positive: AnyArray, weights: FloatArray) -> Curve:
    """Return the curve of rows with these scores (n,); thresholds are half-way between scores.

    ``positive`` (n,) says which rows are, or how likely each is.
    """
    order = np.argsort(-score, kind="stable")
    score, weights, positive = score[order], weights[order], positive[order]
    hits, false = np.cumsum(weights * positive), np.cumsum(weights * (1.0 - positive))
    last = np.flatnonzero(np.append(score[1:] < score[:-1], True))  # of rows with equal scores
    lower = np.append(score[last[:-1] + 1], -score[last[-1]])
    between = 0.5 * (score[last] + lower)
    return Curve(
        np.concatenate([[np.inf], between]),
        np.concatenate([[0.0], hits[last]]),
        np.concatenate([[0.0], false[last]]),
    )


def smooth_curve(score: FloatArray, positive: AnyArray, weights: FloatArray) -> Curve:
    """Return the curve of the smoothed scores of both kinds of rows, at evenly spaced logits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive = np.arange(2000) % 2 == 0
    >>> score = expit(2.0 * rng.normal(2.0 * positive - 1.0))  # calibrated: the best threshold
    >>> curve = smooth_curve(score, positive, np.full(2000, 1 / 2000))
    >>> best = curve.f_beta(1.0).argmax()                     # is half of the F1 that it has
    >>> round(float(curve.thresholds[best]), 1), round(float(curve.f_beta(1.0)[best]), 1)
    (0.4, 0.8)
    """
    z = logit(np.clip(score, _EDGE, 1.0 - _EDGE))
    edges = np.linspace(z.min() - _EDGE, z.max() + _EDGE, _CELLS + 1)
    tried = np.linspace(edges[-1], edges[0], _TRIED)
    sums = []
    for rows in (positive, ~positive):
        counted, _ = np.histogram(z[rows], edges, weights=weights[rows])
        middle, width = 0.5 * (edges[1:] + edges[:-1]), max(_bandwidth(z[rows]), _EDGE)
        above = ndtr((middle - tried[:, None]) / width) @ counted
        sums.append(np.concatenate([[0.0], above, [counted.sum()]]))
    return Curve(np.concatenate([[np.inf], expit(tried), [0.0]]), sums[0], sums[1])


def _bandwidth(z: FloatArray) -> float:
    """Silverman's rule for a normal kernel."""
    if len(z) < 2:
        return 0.0
    low, high = np.percentile(z, [25, 75])
    return float(0.9 * min(z.std(), (high - low) / 1.34) * len(z) ** -0.2)


def best_threshold(
    score: FloatArray,
    positive: AnyArray,
    weights: FloatArray,
    metric: str,
    *,
    costs: FloatArray | None = None,
    **given: Any,
) -> float:
    """Return the threshold that is best for a measure; infinite where no row should be positive.

    Parameters
    ----------
    score : (n,) array
        The probability of the positive class, as right as it can be: it is taken at its word where
        few rows are positive, or few are not.
    positive : (n,) array of bool
        Which rows are of it.
    weights : (n,) array
        How much each row counts.
    metric : str
        One of ``METRICS``.
    costs : (2, 2) array
        For "cost": the other class first, actions in rows.
    **given
        The number that belongs to the metric: ``beta``, ``recall``, ``precision`` or ``share``.

    Examples
    --------
    >>> score, positive = np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True])
    >>> weights = np.full(4, 0.25)
    >>> round(best_threshold(score, positive, weights, "f1"), 2)
    0.29
    >>> round(best_threshold(score, positive, weights, "recall", precision=0.9), 3)
    0.7
    >>> round(best_threshold(score, positive, weights, "top-k", share=0.5), 3)
    0.5
    """
    number = check_metric(metric, given)
    if metric == "cost" and costs is None:
        raise InputError("the metric 'cost' needs costs=: what each answer costs for each class")
    smooth = metric in _SMOOTHED
    curve = (smooth_curve if smooth else curve_of)(score, positive, weights)
    found = float(curve.thresholds[_best(curve, metric, number, costs)])
    rows = min(kish(weights[positive]), kish(weights[~positive]))
    if not smooth or rows == 0.0:
        return found
    believed = _believed(score, weights, metric, number, costs)
    if believed == math.inf:  # they say nothing
        return found
    # Beyond all rows held-out rows say no more than that.
    found = min(max(found, float(score.min())), float(np.nextafter(score.max(), 2.0)))
    part = rows / (rows + _HALF_KNOWN)
    ends = logit(np.clip([found, believed], _EDGE, 1.0 - _EDGE))
    return float(expit(part * ends[0] + (1.0 - part) * ends[1]))


def _believed(
    score: FloatArray, weights: FloatArray, metric: str, number: float, costs: FloatArray | None
) -> float:
    """The threshold that is best if rows are positive as often as their probabilities say.

    Infinite where these say nothing: none is above 0, or one answer costs less whatever is true.
    """
    if metric == "cost":
        assert costs is not None
        (c00, c01), (c10, c11) = costs
        gain, loss = c01 - c11, c10 - c00
        return float(loss / (gain + loss)) if gain > 0.0 and loss > 0.0 else math.inf
    curve = curve_of(score, score, weights)
    best = _best(curve, metric, number, costs)
    return max(float(curve.thresholds[best]), float(score.min()))


def _best(curve: Curve, metric: str, number: float, costs: FloatArray | None) -> int:
    """The place of the best threshold of the curve, the highest of several."""
    if metric == "cost":
        assert costs is not None
        return int(curve.cost(costs).argmin())
    if metric in ("f1", "f-beta"):
        return int(curve.f_beta(number).argmax())
    if metric == "precision":
        return int(np.where(curve.recall >= number - _ROUNDING, curve.precision, -1.0).argmax())
    if metric == "recall":
        return int(np.where(curve.precision >= number - _ROUNDING, curve.recall, 0.0).argmax())
    return int(np.flatnonzero(curve.called <= number + _ROUNDING)[-1])


def doubt(
    score: FloatArray, positive: AnyArray, weights: FloatArray, threshold: float, precision: float
) -> str | None:
    """Say why a precision is not shown to be kept at its threshold, or None where it is.

    Rows that are all positive tell a precision from 1 only if there are enough of them that one
    more, a wrong one, would leave it.

    Examples
    --------
    >>> score, weights = np.array([0.2, 0.4, 0.6, 0.8]), np.full(4, 0.25)
    >>> doubt(score, np.array([False, True, False, True]), weights, 0.7, 0.9)
    'precision=0.9 is not shown: only 1 held-out row is at or above the threshold, and ...'
    """
    called = score >= threshold
    if not called.any():
        most = float(curve_of(score, positive, weights).precision.max())
        return (
            f"no threshold keeps precision={precision}: the most that held-out rows show is "
            f"{most:.4g}; the threshold is infinite, and no row is positive"
        )
    number = int(called.sum())
    if number / (number + 1.0) >= precision:
        return None
    rows = f"{number:,} held-out rows are" if number > 1 else "1 held-out row is"
    return (
        f"precision={precision} is not shown: only {rows} at or above the threshold, and one more "
        "that is wrong would leave less than that; give more held-out rows, or ask for less"
    )


def check_metric(metric: str, given: dict[str, Any]) -> float:
    """Return the number that belongs to a metric, or refuse what is missing or too much.

    Examples
    --------
    >>> check_metric("f1", {"beta": None}), check_metric("top-k", {"share": 0.1})
    (1.0, 0.1)
    >>> check_metric("precision", {})
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: the metric 'precision' needs recall=
    """
    check_choice("metric", metric, tuple(METRICS))
    needed = METRICS[metric]
    for name, value in given.items():
        if name != needed and value is not None:
            other = next((known for known, number in METRICS.items() if number == name), None)
            hint = "" if other is None else f", or ask for threshold_for({other!r}, {name}={value})"
            raise InputError(f"{name}= does not go with the metric {metric!r}: leave it out{hint}")
    if needed is None:
        return 1.0
    value = given.get(needed)
    if value is None:
        raise InputError(f"the metric {metric!r} needs {needed}=")
    if needed == "beta":
        check_positive("beta", value)
        return float(value)
    return check_chance(needed, value, such_as=0.1 if needed == "share" else 0.9)
