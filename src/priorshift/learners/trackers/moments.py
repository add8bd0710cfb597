"""What learners share that average BBSE estimates: rows, predictions, leaving a row out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import reweight
from priorshift._validation import check_choice
from priorshift.learners.base import Learner
from priorshift.priors import BBSE, estimate_with_labels, project_simplex
from priorshift.source import Batch, Source
from priorshift.typing import FloatArray

ESTIMATORS = ("bbse-soft", "bbse")
# Rows of the source's prior, for each class, that are added to a prior before it predicts.
_SMOOTHING = 0.5


class Mean(NamedTuple):
    """The weighted mean (K,) of the estimates so far, and about how many rows it rests on."""

    prior: FloatArray
    size: float


class Moved(NamedTuple):
    """What a batch did: the state after it, and how far its estimate pulls the mean.

    ``mean`` (K,) is the mean after the batch, ``pull`` how far it moves when the batch's estimate
    moves by 1.
    """

    state: Any
    mean: FloatArray
    pull: float


@dataclass(frozen=True)
class Moments(Learner):
    r"""Base of learners whose class prior is a weighted mean of BBSE estimates.

    A batch's estimate is itself a mean over rows, :math:`s_t = \frac1n \sum_i e_i` with
    :math:`e_i = C^{-1} f(x_i)`. So a row's own part can be taken out of the prior by which it is
    predicted: :math:`\mu_{-i} = \mu + g (s_t - e_i) / (n - 1)`, where g is the weight of the last
    estimate in the prior. Negative entries are set to 0 and, the prior resting on about n / g rows,
    K / 2 rows of the source's prior are added.

    Parameters
    ----------
    estimator : {"bbse-soft", "bbse"}
        Rows as probabilities of f with the soft confusion matrix, or as hard predictions.

    Examples
    --------
    >>> from priorshift.learners import FLHFTL
    >>> FLHFTL(estimator="bbse").estimator
    'bbse'
    """

    estimator: str = "bbse-soft"
    protocol: ClassVar[str] = "predict-first"
    calibration: ClassVar[str] = "auto"
    reweights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, ESTIMATORS)

    def check(self, source: Source) -> None:
        """Refuse a source whose confusion matrix has no inverse, before a stream begins."""
        BBSE(soft=self.estimator == "bbse-soft").check(source)

    def row_estimates(self, source: Source, batch: Batch) -> FloatArray:
        """Unbiased estimate e_i of every row's class, (n, K)."""
        if self.estimator == "bbse-soft":
            return np.asarray(batch.proba @ source.soft_confusion_inverse.T)
        return np.asarray(source.confusion_inverse.T[batch.labels])

    def batch_estimate(self, source: Source, batch: Batch) -> FloatArray:
        """BBSE's estimate s_t (K,) of the batch's class prior; of labelled rows, their labels."""
        if batch.known is not None:
            estimator = BBSE(soft=self.estimator == "bbse-soft")
            return estimate_with_labels(estimator, source, batch)
        if self.estimator == "bbse-soft":
            return np.asarray(source.soft_confusion_inverse @ batch.proba.mean(axis=0))
        counts = np.bincount(batch.labels, minlength=source.n_classes)
        return np.asarray(source.confusion_inverse @ (counts / len(batch.proba)))

    @abstractmethod
    def moved(self, source: Source, state: Any, estimate: FloatArray, rows: int) -> Moved:
        """Put the estimate of the next batch, of so many rows, into the mean."""

    def adapt(self, source: Source, state: Any, batch: Batch) -> Any:
        """Estimate the class prior of the batch, and put it into the mean."""
        return self._followed(source, state, batch)[0]

    def adapt_predict(self, source: Source, state: Any, batch: Batch) -> tuple[Any, FloatArray]:
        """Learn from a batch and predict its rows, each by the mean without its own part."""
        after, estimate, pull = self._followed(source, state, batch)
        others = len(batch.proba) - 1
        if not others:
            return after, self._reweighted(source, state.mean, batch)
        own = estimate - self.row_estimates(source, batch)
        without = after.mean._replace(prior=after.mean.prior + own * (pull / others))
        return after, self._reweighted(source, without, batch)

    def _followed(self, source: Source, state: Any, batch: Batch) -> tuple[Any, FloatArray, float]:
        estimate, rows = self.batch_estimate(source, batch), len(batch.proba)
        after, mean, pull = self.moved(source, state, estimate, rows)
        size = float(rows / max(pull, 1e-12))
        return after._replace(t=state.t + 1, mean=Mean(mean, size)), estimate, float(pull)

    def predict_proba(self, source: Source, state: Any, batch: Batch) -> FloatArray:
        """Reweight f0 by the mean."""
        return self._reweighted(source, state.mean, batch)

    def _reweighted(self, source: Source, mean: Mean, batch: Batch) -> FloatArray:
        """Reweight f0 by one prior (K,), or by one for each row (n, K)."""
        # A class that few rows did not show is rare, not impossible.
        added = _SMOOTHING * source.n_classes * source.prior
        counts = mean.size * np.maximum(mean.prior, 0.0) + added
        return reweight(batch.proba, counts / source.prior)

    def prior(self, source: Source, state: Any) -> FloatArray:
        """The prior, on the simplex."""
        return project_simplex(state.mean.prior)

    def effective_size(self, source: Source, state: Any) -> float:
        """How many rows the present prior rests on, about."""
        return float(state.mean.size)


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
    """Variance (K,) of one row's estimate, on the held-out set with the source's class prior.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> source = SimpleNamespace(
    ...     prior=np.array([0.5, 0.5]), labels=np.array([0, 1]), counts=np.array([1, 1]),
    ...     proba=np.eye(2), soft_confusion_inverse=np.eye(2))
    >>> from priorshift.learners import FLHFTL
    >>> source_noise(FLHFTL(), source).tolist()
    [0.25, 0.25]
    """
    hold_out = Batch(source.proba, np.empty((len(source.proba), 0)))
    weights = source.prior[source.labels] / source.counts[source.labels]
    return row_noise(learner.row_estimates(source, hold_out), weights)
