"""The mean of f0's predictions over a batch, and the noise of that mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorshift.errors import InputError
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch


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
    rows, classes = batch.proba.shape
    if rows == 0:
        raise InputError("the batch has no rows; a class prior needs at least one")
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
