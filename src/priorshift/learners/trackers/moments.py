"""What learners share that average BBSE estimates: rows, predictions, leaving a row out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift.errors import InputError
from priorshift.learners.base import Learner
from priorshift.learners.trackers.components import fingerprint
from priorshift.priors import BBSE, estimate_with_labels, project_simplex
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

ESTIMATORS = ("bbse-soft", "bbse")
_NO_BATCH = -1
# Rows of the source's prior, for each class, that are added to a mix before it predicts.
_SMOOTHING = 0.5


class LastMean(NamedTuple):
    """The class mix after the last batch, and what is needed to take a row out of it again.

    ``mark`` tells the batch, ``estimate`` (K,) is BBSE's, ``mix`` (K,) the mix after it, ``before``
    (K,) the mix before it, ``pull`` how far the mix moves when the estimate moves by 1, ``size``
    how many rows the mix rests on, ``size_before`` how many it did.
    """

    mark: int
    estimate: FloatArray
    mix: FloatArray
    before: FloatArray
    pull: float
    size: float
    size_before: float


def no_mean(source: Source) -> LastMean:
    """Return the memory before the first batch: the source's prior.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> no_mean(SimpleNamespace(prior=np.array([0.5, 0.5]))).mix.tolist()
    [0.5, 0.5]
    """
    return LastMean(
        _NO_BATCH, np.zeros(len(source.prior)), source.prior, source.prior, 0.0, 0.0, 0.0
    )


@dataclass(frozen=True)
class Moments(Learner):
    r"""Base of learners whose class mix is a weighted mean of BBSE estimates.

    A batch's estimate is itself a mean over rows, :math:`s_t = \frac1n \sum_i e_i` with
    :math:`e_i = C^{-1} f(x_i)`. So a row's own part can be taken out of the mix by which it is
    predicted: :math:`\mu_{-i} = \mu + g (s_t - e_i) / (n - 1)`, where g is the weight of the last
    estimate in the mix. Negative entries are set to 0 and, the mix resting on about n / g rows,
    K / 2 rows of the source's prior are added.

    Parameters
    ----------
    estimator : {"bbse-soft", "bbse"}
        Rows as probabilities of f with the soft confusion matrix, or as hard predictions.

    Examples
    --------
    >>> Moments(estimator="bbse").estimator
    'bbse'
    """

    estimator: str = "bbse-soft"
    protocol: ClassVar[str] = "predict-first"
    calibration: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            known = ", ".join(map(repr, ESTIMATORS))
            raise InputError(f"estimator is {self.estimator!r}: choose one of {known}")

    def check(self, source: Source) -> None:
        """Refuse a source whose confusion matrix has no inverse, before a stream begins."""
        BBSE(soft=self.estimator == "bbse-soft").check(source)

    def row_estimates(self, source: Source, batch: Batch) -> FloatArray:
        """Unbiased estimate e_i of every row's class, (n, K)."""
        if self.estimator == "bbse-soft":
            return np.asarray(batch.proba @ source.soft_confusion_inverse.T)
        return np.asarray(source.confusion_inverse.T[batch.labels])

    def batch_estimate(self, source: Source, batch: Batch) -> FloatArray:
        """BBSE's estimate s_t (K,) of the batch's class mix; of labelled rows, their labels."""
        if batch.known is not None:
            estimator = BBSE(soft=self.estimator == "bbse-soft")
            return estimate_with_labels(estimator, source, batch)
        if self.estimator == "bbse-soft":
            return np.asarray(source.soft_confusion_inverse @ batch.proba.mean(axis=0))
        counts = np.bincount(batch.labels, minlength=source.n_classes)
        return np.asarray(source.confusion_inverse @ (counts / len(batch.proba)))

    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """Reweight f by the mix; the batch just learned from without each row's own part."""
        last: LastMean = state.last
        mix, size = last.mix, last.size
        if last.mark != _NO_BATCH and last.mark == fingerprint(batch.proba):
            others = len(batch.proba) - 1
            if others:
                own = last.estimate - self.row_estimates(source, batch)
                mix = last.mix + own * (last.pull / others)
            else:
                mix, size = last.before, last.size_before
        positive = np.maximum(mix, 0.0)
        # A class that few rows did not show is rare, not impossible.
        added = _SMOOTHING * source.n_classes * source.prior
        return reweight(batch.proba, (size * positive + added) / source.prior)

    def prior(self, source: Source, state: Any) -> FloatArray:
        """The mix, on the simplex."""
        return project_simplex(state.last.mix)

    def effective_size(self, source: Source, state: Any) -> float:
        """How many rows the present mix rests on, about."""
        return float(state.last.size)


def remember(
    batch: Batch, before: LastMean, estimate: FloatArray, mix: FloatArray, pull: float
) -> LastMean:
    """Return the memory after a batch.

    Examples
    --------
    >>> batch = Batch(np.array([[0.5, 0.5]]), np.zeros((1, 1)))
    >>> half = np.array([0.5, 0.5])
    >>> remember(batch, LastMean(-1, half, half, half, 0.0, 0.0, 0.0), half, half, 1.0).pull
    1.0
    """
    size = len(batch.proba) / max(pull, 1e-12)
    return LastMean(
        fingerprint(batch.proba), estimate, mix, before.mix, float(pull), float(size), before.size
    )


def row_noise(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Variance (K,) of row estimates under the given weights of rows.

    Examples
    --------
    >>> row_noise(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5])).tolist()
    [0.25, 0.25]
    """
    mean = weights @ rows
    return np.asarray(weights @ (rows - mean) ** 2)


def source_noise(learner: Moments, source: Source) -> FloatArray:
    """Variance (K,) of one row's estimate, on the hold-out with the source's class mix.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     prior=np.array([0.5, 0.5]), labels=np.array([0, 1]), counts=np.array([1, 1]),
    ...     proba=np.eye(2), soft_confusion_inverse=np.eye(2))
    >>> source_noise(Moments(), source).tolist()
    [0.25, 0.25]
    """
    hold_out = Batch(source.proba, np.empty((len(source.proba), 0)))
    weights = (source.prior / source.counts)[source.labels]
    return row_noise(learner.row_estimates(source, hold_out), weights)
