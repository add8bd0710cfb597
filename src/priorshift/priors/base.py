"""What a prior estimator is, what it returns, and what is done with that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source

# floor * n_classes may pass 1 by rounding alone, as in floor = 1 / n_classes.
_ROUNDING = 1e-12
# Of one point with this few entries, a dozen calls of NumPy take longer than all of the work.
_FEW = 16


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    r"""An estimate of a batch's class prior :math:`\mu_{y_t}`, and how sure it is.

    Everything but `raw` is computed when first asked for, and kept.

    Parameters
    ----------
    raw : ndarray of shape (K,)
        What the estimator says, untouched. Entries may be negative, and need not sum to one.
    compute_covariance : callable
        Gives the (K, K) covariance of `raw`, given the source; called at most once.

    Attributes
    ----------
    clipped : ndarray of shape (K,)
        `raw` with negative entries set to 0, not renormalised.
    simplex : ndarray of shape (K,)
        The class prior nearest to `raw`.
    covariance : ndarray of shape (K, K)
        How much `raw` would vary if another batch came from the same class prior. The source is
        taken as given: the noise of its confusion matrix is not in here.

    Examples
    --------
    >>> import numpy as np
    >>> estimate = PriorEstimate(np.array([1.25, -0.25]), lambda: 0.5 * np.eye(2))
    >>> estimate.clipped
    array([1.25, 0.  ])
    >>> estimate.simplex
    array([1., 0.])
    >>> estimate.covariance
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    raw: FloatArray
    compute_covariance: Callable[[], FloatArray] = field(repr=False)

    @cached_property
    def clipped(self) -> FloatArray:
        """`raw` with negative entries set to 0, not renormalised."""
        return np.maximum(self.raw, 0.0)

    @cached_property
    def simplex(self) -> FloatArray:
        """The class prior nearest to `raw` in Euclidean distance."""
        return project_simplex(self.raw)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of `raw` under a new batch from the same class prior."""
        return self.compute_covariance()


@runtime_checkable
class PriorEstimator(Protocol):
    """How much of each class is in a batch: a frozen dataclass of settings, no data.

    Examples
    --------
    >>> from priorshift.priors import BBSE
    >>> isinstance(BBSE(), PriorEstimator)
    True
    >>> BBSE(soft=True).name
    'bbse-soft'
    """

    @property
    def name(self) -> str:
        """The name that `ESTIMATORS` knows it by."""
        ...

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate and nothing else, as fast as can be."""
        ...

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the same estimate with its covariance and its forms."""
        ...


def number_of_rows(batch: Batch) -> int:
    """Return the number of rows of a batch, or refuse one that has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> number_of_rows(SimpleNamespace(proba=np.zeros((3, 2))))
    3
    """
    rows = len(batch.proba)
    if rows == 0:
        raise InputError("the batch has no rows; a class prior needs at least one")
    return rows


def estimate_with_labels(estimator: PriorEstimator, source: Source, batch: Batch) -> FloatArray:
    r"""Estimate a batch's class prior (K,) from its labels and, where there is none, from f0.

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


def project_simplex(v: ArrayLike, floor: float = 0.0) -> FloatArray:
    r"""Project on :math:`\{p : p_k \ge \text{floor},\ \sum_k p_k = 1\}`.

    The answer is :math:`\max(v - \tau, \text{floor})` for the one :math:`\tau` that makes it sum
    to one; sorting finds it in :math:`O(K \log K)` (Held, Wolfe and Crowder, 1974).

    Parameters
    ----------
    v : array-like of shape (..., K)
        The points, one along the last axis.
    floor : float
        Smallest entry allowed, between 0 and 1 / K.

    Returns
    -------
    ndarray of shape (..., K)

    Examples
    --------
    >>> project_simplex([0.5, 0.75, -0.25])
    array([0.375, 0.625, 0.   ])
    >>> project_simplex([[2.0, 0.0], [0.25, 0.25]], floor=0.125)
    array([[0.875, 0.125],
           [0.5  , 0.5  ]])
    """
    points = np.asarray(v, dtype=np.float64)
    if points.ndim == 1 and points.size <= _FEW:
        values = points.tolist()
        if values and all(map(isfinite, values)) and 0.0 <= floor * len(values) <= 1.0:
            return np.array(_few_entries(values, floor))
    if points.ndim == 0 or points.shape[-1] == 0:
        raise InputError("project_simplex needs at least one entry along the last axis of v")
    if not np.isfinite(points).all():
        raise InputError(
            "v has entries that are not finite; the simplex has no nearest point to it"
        )
    size = points.shape[-1]
    if not 0.0 <= floor * size <= 1.0 + _ROUNDING:
        raise InputError(
            f"floor is {floor}, but {size} entries that sum to 1 need one from 0 to {1 / size:.6g}"
        )
    mass = max(1.0 - floor * size, 0.0)
    # Only differences to the largest entry matter, and an entry further than `mass` below it ends
    # on the floor: both keep the sums exact however large the entries of v are.
    gaps = np.maximum(points - points.max(axis=-1, keepdims=True), -mass)
    sums = np.cumsum(np.sort(gaps, axis=-1)[..., ::-1], axis=-1)
    # The k largest entries alone would need the threshold (sum - mass) / k. It rises with k while
    # the next entry is above it and falls after, so the right one is the largest.
    tau = ((sums - mass) / np.arange(1, size + 1)).max(axis=-1, keepdims=True)
    projected: FloatArray = np.maximum(gaps - tau, 0.0) + floor
    return projected


def _few_entries(values: list[float], floor: float) -> list[float]:
    """The same operations in the same order, and so the same bits, without arrays."""
    mass, top = max(1.0 - floor * len(values), 0.0), max(values)
    gaps = [max(value - top, -mass) for value in values]
    total, tau = 0.0, -inf
    for k, gap in enumerate(sorted(gaps, reverse=True), start=1):
        total += gap
        tau = max(tau, (total - mass) / k)
    return [max(gap - tau, 0.0) + floor for gap in gaps]
