"""Black box shift estimation: the mean of f0's predictions over a batch, its confusion undone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from priorshift.errors import SourceError
from priorshift.priors.base import PriorEstimate, number_of_rows
from priorshift.risk import compiled
from priorshift.source.confusion import warn_if_weak
from priorshift.source.derived import per_source
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


@per_source
def soft_is_sharper(source: Source) -> bool:
    """Whether f0's probabilities give a sharper estimate than its labels, on the held-out set."""
    return row_noise(source, soft=True) < row_noise(source, soft=False)


def row_noise(source: Source, soft: bool) -> float:
    """How much the estimate from one row varies within a class, the mean over the classes.

    Both estimates are unbiased, so the one that varies less is better, at equal shares of the
    classes; a confusion matrix without an inverse is infinitely noisy.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> C = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> P, y = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 1])
    >>> source = SimpleNamespace(
    ...     confusion=C, confusion_inverse=np.linalg.inv(C), soft_confusion=C,
    ...     soft_confusion_inverse=np.linalg.inv(C), proba=P, labels=y, counts=np.array([1, 1]),
    ... )
    >>> round(row_noise(source, soft=True), 9), round(row_noise(source, soft=False), 9)
    (0.0, 1.5)
    """
    try:
        inverse = source.soft_confusion_inverse if soft else source.confusion_inverse
    except SourceError:
        return np.inf
    if not soft:  # a row of class k is called j with chance C_jk
        return float(((inverse**2).sum(axis=0) @ source.confusion).mean()) - 1.0
    squares = ((source.proba @ inverse.T) ** 2).sum(axis=1)
    sums = np.bincount(source.labels, squares, minlength=len(inverse))
    return float((sums / np.maximum(source.counts, 1))[source.counts > 0].mean()) - 1.0


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
    soft : bool or None
        Average f0's probabilities and use the soft confusion matrix, instead of its labels.
        Usually less noisy; the paper uses hard labels. None takes what is less noisy on the
        held-out set (``row_noise``).

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

    soft: bool | None = False

    @property
    def name(self) -> str:
        """``"bbse"``, ``"bbse-soft"`` or ``"bbse-auto"``."""
        return "bbse-auto" if self.soft is None else "bbse-soft" if self.soft else "bbse"

    def is_soft(self, source: Source) -> bool:
        """Whether probabilities are averaged, and not labels."""
        return soft_is_sharper(source) if self.soft is None else self.soft

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate; entries may be negative, and they sum to one."""
        inverse, soft = self._inverse(source), self.is_soft(source)
        if not soft and len(batch.proba) and compiled.available():
            plain = compiled.plain
            found: FloatArray = compiled.steps.hard_estimate(plain(batch.proba), plain(inverse))
            return found
        return inverse @ prediction_mean(batch, soft)

    def check(self, source: Source) -> None:
        """Refuse a source whose confusion matrix has no inverse; warn if it hardly has one."""
        self._inverse(source)
        C = source.soft_confusion if self.is_soft(source) else source.confusion
        counts = source.counts
        warn_if_weak(C, source.classes, int(counts[counts > 0].min()))

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the estimate with its covariance."""
        inverse, soft = self._inverse(source), self.is_soft(source)
        mean = prediction_mean(batch, soft)
        covariance = partial(_covariance, inverse, batch, mean, soft)
        return PriorEstimate(self.raw(source, batch), covariance)

    def _inverse(self, source: Source) -> FloatArray:
        return source.soft_confusion_inverse if self.is_soft(source) else source.confusion_inverse


def _covariance(inverse: FloatArray, batch: Batch, mean: FloatArray, soft: bool) -> FloatArray:
    mapped: FloatArray = inverse @ mean_covariance(batch, mean, soft) @ inverse.T
    return mapped
