"""Black box shift estimation: the mean of f0's predictions over a batch, its confusion undone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from priorshift.priors.base import PriorEstimate, number_of_rows
from priorshift.risk import compiled
from priorshift.source.confusion import warn_if_weak
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source


def prediction_mean(batch: Batch, soft: bool) -> FloatArray:
    r"""Mean of f0's one-hot labels, :math:`\hat\mu_{\hat y_t}` (eq. definition-hat-u-hat-y).

    With `soft`, the mean of its probability rows. A class that f0 never calls has share 0.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> proba = np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    >>> batch = SimpleNamespace(proba=proba, labels=proba.argmax(axis=1))
    >>> prediction_mean(batch, soft=False)
    array([0.5, 0.5, 0. ])
    """
    rows, classes = number_of_rows(batch), batch.proba.shape[1]
    mean: FloatArray
    if soft:
        mean = np.add.reduce(batch.proba, axis=0) / rows
    else:
        mean = np.bincount(batch.labels, minlength=classes) / rows
    return mean


def mean_covariance(batch: Batch, mean: FloatArray, soft: bool) -> FloatArray:
    r"""Covariance of `prediction_mean` over batches of this size.

    Hard labels: the multinomial :math:`(\mathrm{diag}(q) - q q^\top)/n` at the observed shares q;
    it is zero when f0 gives every row the same label, so always for a single row. Soft: the
    sample covariance of the rows over n. One row has no sample covariance; the multinomial form at
    that row stands in, which no distribution on the simplex with that mean can exceed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> proba = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> batch = SimpleNamespace(proba=proba, labels=proba.argmax(axis=1))
    >>> mean_covariance(batch, np.array([0.5, 0.5]), soft=False)
    array([[ 0.125, -0.125],
           [-0.125,  0.125]])
    """
    rows = len(batch.proba)
    if not soft or rows == 1:
        multinomial: FloatArray = (np.diag(mean) - np.outer(mean, mean)) / rows
        return multinomial
    centred = batch.proba - mean
    sample: FloatArray = centred.T @ centred / (rows * (rows - 1.0))
    return sample


@dataclass(frozen=True)
class BBSE:
    r"""Black box shift estimation (Lipton, Wang and Smola, 2018), unbiased given C.

    .. math:: \hat\mu_{y_t} = \hat C_{f_0}^{-1} \hat\mu_{\hat y_t}
        \qquad \text{(eq. bbse-matrix-solve)}

    The mean of f0's predictions over the batch is a mix of the columns of its confusion matrix;
    solving for the mix gives the class prior. The source computes the inverse once, and refuses a
    matrix that has none.

    Parameters
    ----------
    soft : bool
        Average f0's probabilities and use the soft confusion matrix, instead of its labels.
        Usually less noisy; the paper uses hard labels.

    Notes
    -----
    The covariance is that of the batch mean, mapped by :math:`C^{-1}` on both sides. With hard
    labels it is zero when every row gets the same label, so at batch size 1; with soft ones a
    batch of one row gets an upper bound in place of the sample covariance.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> confusion = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> source = SimpleNamespace(confusion_inverse=np.linalg.inv(confusion))
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3]])
    >>> batch = SimpleNamespace(proba=proba, labels=proba.argmax(axis=1))
    >>> BBSE().raw(source, batch)
    array([ 1.5, -0.5])
    >>> BBSE().estimate(source, batch).clipped
    array([1.5, 0. ])
    """

    soft: bool = False

    @property
    def name(self) -> str:
        """``"bbse"`` or ``"bbse-soft"``."""
        return "bbse-soft" if self.soft else "bbse"

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate; entries may be negative, and they sum to one."""
        inverse = self._inverse(source)
        if not self.soft and len(batch.proba) and compiled.available():
            plain = compiled.plain
            found: FloatArray = compiled.steps.hard_estimate(plain(batch.proba), plain(inverse))
            return found
        return inverse @ prediction_mean(batch, self.soft)

    def check(self, source: Source) -> None:
        """Refuse a source whose confusion matrix has no inverse; warn if it hardly has one."""
        self._inverse(source)
        C = source.soft_confusion if self.soft else source.confusion
        counts = source.counts
        warn_if_weak(C, source.classes, int(counts[counts > 0].min()))

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the estimate with its covariance."""
        inverse = self._inverse(source)
        mean = prediction_mean(batch, self.soft)
        covariance = partial(_covariance, inverse, batch, mean, self.soft)
        return PriorEstimate(self.raw(source, batch), covariance)

    def _inverse(self, source: Source) -> FloatArray:
        return source.soft_confusion_inverse if self.soft else source.confusion_inverse


def _covariance(inverse: FloatArray, batch: Batch, mean: FloatArray, soft: bool) -> FloatArray:
    mapped: FloatArray = inverse @ mean_covariance(batch, mean, soft) @ inverse.T
    return mapped
