"""A batch of which some rows have labels: their votes are replaced by the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorshift.priors.base import PriorEstimator
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source


def estimate_with_labels(estimator: PriorEstimator, source: Source, batch: Batch) -> FloatArray:
    r"""Estimate a batch's class mix (K,) from its labels and, where there is none, from f0.

    With m of n rows labelled, :math:`\hat\mu` the label shares of those and
    :math:`\hat\mu_U` the estimate from the other rows,

    .. math:: \hat\mu_{y_t} = \frac{m}{n} \hat\mu_L + \frac{n - m}{n} \hat\mu_U .

    For BBSE, a mean over rows of :math:`e_i = C^{-1} f_0(x_i)` with :math:`E[e_i \mid y_i]` the
    one-hot vector of :math:`y_i`, this puts the truth in the place of :math:`e_i`. By the law
    of total covariance one row's :math:`A = \mathrm{Cov}(e_i)` is at least :math:`B =
    \mathrm{diag}(\mu) - \mu\mu^\top` in every direction, so the covariance falls from
    :math:`A / n` to :math:`(m B + (n - m) A) / n^2`, and no label makes the estimate worse.

    Weights by precision would give the labels more than their share m / n. They are not used: the
    estimate would then rest on the labels' being a fair sample of the batch. As it is, it stays
    unbiased when rows of some classes are labelled more often than others.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from priorshift.priors import BBSE
    >>> from priorshift.source import Batch
    >>> inverse = np.array([[1.5, -0.5], [-0.5, 1.5]])
    >>> source = SimpleNamespace(n_classes=2, confusion_inverse=inverse)
    >>> rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> batch = Batch(rows, np.zeros((4, 1)), known=np.array([-1, 0, 1, 1]))
    >>> estimate_with_labels(BBSE(), source, batch).tolist()
    [0.625, 0.375]
    """
    if batch.known is None or not (has := batch.known >= 0).any():
        return estimator.raw(source, batch)
    counts = np.bincount(batch.known[has], minlength=source.n_classes).astype(np.float64)
    if not has.all():
        others = batch.rows(~has)
        counts += len(others.proba) * estimator.raw(source, others)
    return np.asarray(counts / len(has))
