r"""Performance without labels: accuracy, recall and precision under a class prior.

Under label shift a class looks today as it did in the held-out set, so what that set says of each
class, weighed by today's class prior, is true today. With the adapted predictions on the held-out
set, their largest probability :math:`g`, and whether they are right :math:`z`,

.. math:: \widehat{\mathrm{acc}} = \frac1N \sum_{i \in \text{rows}} g(x_i)
    + \sum_k \mu_k\, \frac{1}{n_k} \sum_{i : y_i = k} (z_i - g_i).

The first part reads the rows themselves, the second corrects probabilities that are too proud or
too modest; the rows need no labels, and f0 need not be calibrated. Without rows the estimate is
:math:`\sum_k \mu_k \cdot \mathrm{recall}_k`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from priorshift._validation import check_chance, check_positive
from priorshift.errors import InputError
from priorshift.monitoring.influence import check_prior, check_proba, class_averages, influence_at
from priorshift.monitoring.intervals import held_out_size
from priorshift.priors.mlls import density_ratios
from priorshift.source import Source
from priorshift.typing import AnyArray, FloatArray

_TINY = 1e-12


class AccuracyReport(NamedTuple):
    """Accuracy, estimated without labels.

    Attributes
    ----------
    accuracy, low, high : float
        The share of right predictions, and its confidence interval.
    recall, recall_low, recall_high : (K,) arrays
        Of the rows of each class, how many are predicted as such.
    precision : (K,) array
        Of the rows predicted as each class, how many are of it; NaN where none is predicted.
    held_out_size : float
        Rows that the held-out set is worth under the class prior.

    Examples
    --------
    >>> AccuracyReport._fields[:3]
    ('accuracy', 'low', 'high')
    """

    accuracy: float
    low: float
    high: float
    recall: FloatArray
    recall_low: FloatArray
    recall_high: FloatArray
    precision: FloatArray
    held_out_size: float


def reweighted(source: Source, prior: FloatArray, proba: FloatArray) -> FloatArray:
    r"""Return f0's probabilities under another class prior, :math:`\mu_k r_k(x) / \mu^\top r(x)`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> reweighted(source, np.array([0.8, 0.2]), np.array([[0.5, 0.5]]))
    array([[0.8, 0.2]])
    """
    weighted = density_ratios(proba, source.prior) * prior
    total = weighted.sum(axis=1, keepdims=True)
    # A row that only absent classes explain: the class prior says nothing of it.
    result: FloatArray = np.where(total > 0, weighted / np.maximum(total, _TINY), prior)
    return result


def estimate_accuracy(
    source: Source,
    prior: FloatArray,
    size: float,
    *,
    rows: FloatArray | None = None,
    held_out: FloatArray | None = None,
    level: float = 0.9,
) -> AccuracyReport:
    """Estimate the accuracy of adapted predictions under a class prior.

    Parameters
    ----------
    source : Source
    prior : (K,) array
        The present class prior.
    size : float
        Rows that it was estimated from; see `priorshift.monitoring.prior_interval`.
    rows : (N, K) array, optional
        The adapted probabilities of the rows that the accuracy is asked for.
    held_out : (n, K) array, optional
        The adapted probabilities of the held-out set, in the order of ``source.proba``: what the
        learner would predict there now. None is f0 reweighted to the class prior.
    level : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] + [[0.2, 0.8]] * 5)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 5 + [1] * 5)
    >>> report = estimate_accuracy(source, np.array([0.5, 0.5]), size=100)
    >>> round(report.accuracy, 3), report.recall.tolist()
    (0.9, [0.8, 1.0])
    """
    prior = check_prior(prior, source.n_classes)
    level = check_chance("level", level, such_as=0.9)
    check_positive("size, the number of rows behind the prior,", size)
    adapted = reweighted(source, prior, source.proba) if held_out is None else held_out
    adapted = check_proba(adapted, source.n_classes)
    if adapted.shape != source.proba.shape:
        raise InputError(f"held_out has {len(adapted)} rows, the source has {len(source.proba)}")
    start, noise = 0.0, 0.0
    if rows is not None:
        top = check_proba(rows, source.n_classes).max(axis=1)
        start, noise = float(top.mean()), float(top.var()) / len(top)
    means, spread = _surprise(source, adapted, rows is not None)
    covariance = prior_covariance(source, prior, size)
    accuracy = start + float(prior @ means)
    if held_out is None:
        accuracy -= _optimism(source, prior, covariance, rows is not None)
    variance = noise + float((prior**2 * spread / source.counts).sum() + means @ covariance @ means)
    width = float(ndtri((1.0 + level) / 2.0)) * np.sqrt(variance)
    confusion = np.eye(source.n_classes)[adapted.argmax(axis=1)].T @ class_averages(source)
    recall = np.diag(confusion).copy()
    low, high = _wilson(recall, source.counts, level)
    predicted = confusion @ prior
    precision = np.full(source.n_classes, np.nan)
    np.divide(prior * recall, predicted, out=precision, where=predicted > 0)
    return AccuracyReport(
        accuracy=float(np.clip(accuracy, 0.0, 1.0)),
        low=float(np.clip(accuracy - width, 0.0, 1.0)),
        high=float(np.clip(accuracy + width, 0.0, 1.0)),
        recall=recall,
        recall_low=low,
        recall_high=high,
        precision=precision,
        held_out_size=held_out_size(source, prior),
    )


def _surprise(source: Source, adapted: FloatArray, less_top: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and variance over each class of being right, less the largest probability if asked."""
    value = (adapted.argmax(axis=1) == source.labels).astype(np.float64)
    if less_top:
        value = value - adapted.max(axis=1)
    weights = class_averages(source)
    means = value @ weights
    return means, np.maximum(value**2 @ weights - means**2, 0.0) + 0.5 / source.counts


def prior_covariance(source: Source, prior: FloatArray, size: float) -> FloatArray:
    """Covariance (K, K) of a class prior estimated from ``size`` rows, held-out set included.

    No direction has more variance than a prior that is drawn anywhere from the simplex: an estimate
    that f0 says little about still is a class prior.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sure = np.repeat(np.eye(2), 10**4, axis=0)
    >>> source = SimpleNamespace(
    ...     proba=sure, labels=sure.argmax(axis=1), prior=np.full(2, 0.5), n_classes=2,
    ...     counts=np.array([10**4, 10**4]),
    ... )
    >>> prior_covariance(source, np.array([0.5, 0.5]), 100).round(4)
    array([[ 0.0025, -0.0025],
           [-0.0025,  0.0025]])
    """
    h = influence_at(source, prior, size).of(source, source.proba)
    weights = class_averages(source)
    means = h.T @ weights
    total = (h.T * (weights @ prior)) @ h - np.outer(means @ prior, means @ prior)
    covariance = total / size
    inner = (h.T * (weights @ (prior**2 / source.counts))) @ h
    covariance += inner - (means * (prior**2 / source.counts)) @ means.T
    values, vectors = np.linalg.eigh(covariance)
    most = 1.0 / (source.n_classes * (source.n_classes + 1.0))
    capped: FloatArray = (vectors * np.clip(values, 0.0, most)) @ vectors.T
    return capped


def _optimism(source: Source, prior: FloatArray, covariance: FloatArray, less_top: bool) -> float:
    """How much the estimate gains because the rule and the weights share the error of the prior.

    To first order the covariance of the prior with the class-wise means that the rule for it has:
    central differences along the directions of the prior's error.
    """
    values, vectors = np.linalg.eigh(covariance)
    total = 0.0
    for value, direction in zip(values, vectors.T, strict=True):
        if value <= _TINY:
            continue
        step = np.sqrt(value) * direction
        ends = []
        for point in (prior + step, prior - step):
            moved = np.maximum(point, 0.0) / np.maximum(point, 0.0).sum()
            means, _ = _surprise(source, reweighted(source, moved, source.proba), less_top)
            ends.append((moved, means))
        (up, up_means), (down, down_means) = ends
        total += float((up - down) @ (up_means - down_means)) / 4.0
    return total


def _wilson(share: FloatArray, counts: AnyArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for shares of counts."""
    z = float(ndtri((1.0 + level) / 2.0))
    scale = 1.0 + z**2 / counts
    middle = (share + z**2 / (2 * counts)) / scale
    width = z * np.sqrt(share * (1 - share) / counts + z**2 / (4 * counts**2)) / scale
    return np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)
