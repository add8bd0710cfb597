r"""Accuracy without labels.

Under label shift a class looks today as it did in the hold-out, so what the hold-out says of each
class, weighed by today's mix, is true today. With the adapted predictions on the hold-out,
their largest probability :math:`g`, and whether they are right :math:`z`,

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

from priorshift.errors import InputError
from priorshift.insight.influence import check_level, check_mix, check_proba, influence_at
from priorshift.priors.mlls import density_ratios
from priorshift.source import Source
from priorshift.typing import FloatArray

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
    hold_out_size : float
        Rows that the hold-out is worth under the mix.

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
    hold_out_size: float


def reweighted(source: Source, mix: FloatArray, proba: FloatArray) -> FloatArray:
    r"""Return f0's probabilities under another mix, :math:`\mu_k r_k(x) / \mu^\top r(x)`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(prior=np.array([0.5, 0.5]))
    >>> reweighted(source, np.array([0.8, 0.2]), np.array([[0.5, 0.5]]))
    array([[0.8, 0.2]])
    """
    weighted = density_ratios(proba, source.prior) * mix
    total = weighted.sum(axis=1, keepdims=True)
    # A row that only absent classes explain: the mix says nothing of it.
    result: FloatArray = np.where(total > 0, weighted / np.maximum(total, _TINY), mix)
    return result


def estimate_accuracy(
    source: Source,
    mix: FloatArray,
    size: float,
    *,
    rows: FloatArray | None = None,
    hold_out: FloatArray | None = None,
    level: float = 0.9,
) -> AccuracyReport:
    """Estimate the accuracy of adapted predictions under a class mix.

    Parameters
    ----------
    source : Source
    mix : (K,) array
        The present mix.
    size : float
        Rows that the mix was estimated from; see `priorshift.insight.prior_interval`.
    rows : (N, K) array, optional
        The adapted probabilities of the rows that the accuracy is asked for.
    hold_out : (n, K) array, optional
        The adapted probabilities of the hold-out, in the order of ``source.proba``: what the
        learner would predict there now. None is f0 reweighted to the mix.
    level : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.8, 0.2]] * 4 + [[0.2, 0.8]] + [[0.2, 0.8]] * 5)
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0] * 5 + [1] * 5)
    >>> report = estimate_accuracy(source, np.array([0.5, 0.5]), size=100)
    >>> round(report.accuracy, 3), report.recall.tolist()
    (0.9, [0.8, 1.0])
    """
    mix = check_mix(mix, source.n_classes)
    level = check_level(level)
    if not (np.isfinite(size) and size > 0):
        raise InputError(f"size is {size}: give the number of rows behind the mix, above 0")
    adapted = reweighted(source, mix, source.proba) if hold_out is None else hold_out
    adapted = check_proba(adapted, source.n_classes)
    if adapted.shape != source.proba.shape:
        raise InputError(f"hold_out has {len(adapted)} rows, the source has {len(source.proba)}")
    called = adapted.argmax(axis=1)
    right = (called == source.labels).astype(np.float64)
    surprise = right
    start, noise = 0.0, 0.0
    if rows is not None:
        top = check_proba(rows, source.n_classes).max(axis=1)
        start, noise = float(top.mean()), float(top.var()) / len(top)
        surprise = right - adapted.max(axis=1)
    hot = np.eye(source.n_classes)[source.labels] / source.counts[source.labels][:, None]
    means = surprise @ hot
    spread = np.maximum(surprise**2 @ hot - means**2, 0.0) + 0.5 / source.counts
    accuracy = start + float(mix @ means)
    variance = noise + float((mix**2 * spread / source.counts).sum())
    variance += _mix_part(source, mix, size, means)
    width = float(ndtri((1.0 + level) / 2.0)) * np.sqrt(variance)
    confusion = np.eye(source.n_classes)[called].T @ hot
    recall = np.diag(confusion).copy()
    low, high = _wilson(recall, source.counts, level)
    predicted = confusion @ mix
    precision = np.full(source.n_classes, np.nan)
    np.divide(mix * recall, predicted, out=precision, where=predicted > 0)
    return AccuracyReport(
        accuracy=float(np.clip(accuracy, 0.0, 1.0)),
        low=float(np.clip(accuracy - width, 0.0, 1.0)),
        high=float(np.clip(accuracy + width, 0.0, 1.0)),
        recall=recall,
        recall_low=low,
        recall_high=high,
        precision=precision,
        hold_out_size=float(1.0 / (mix**2 / source.counts).sum()),
    )


def _mix_part(source: Source, mix: FloatArray, size: float, means: FloatArray) -> float:
    """Variance of ``mix @ means`` by the error of the mix: the variance of h weighted by means."""
    influence = influence_at(source, mix, size)
    values = influence.of(source, source.proba) @ means
    hot = np.eye(source.n_classes)[source.labels] / source.counts[source.labels][:, None]
    first, second = values @ hot, values**2 @ hot
    rows = max(float(mix @ second - (mix @ first) ** 2), 0.0) / size
    inside = np.maximum(second - first**2, 0.0)
    return rows + float((mix**2 * inside / source.counts).sum())


def _wilson(share: FloatArray, counts: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for shares of counts."""
    z = float(ndtri((1.0 + level) / 2.0))
    scale = 1.0 + z**2 / counts
    middle = (share + z**2 / (2 * counts)) / scale
    width = z * np.sqrt(share * (1 - share) / counts + z**2 / (4 * counts**2)) / scale
    return np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)
