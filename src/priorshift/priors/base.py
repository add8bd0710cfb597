"""What a prior estimator is, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from priorshift.priors.simplex import project_simplex
from priorshift.typing import FloatArray

if TYPE_CHECKING:
    from priorshift.source import Batch, Source


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
        The class mix nearest to `raw`.
    covariance : ndarray of shape (K, K)
        How much `raw` would vary if another batch came from the same class mix. The source is
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
        """The class mix nearest to `raw` in Euclidean distance."""
        return project_simplex(self.raw)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of `raw` under a new batch from the same class mix."""
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
        """The name that `estimator_by_name` knows it by."""
        ...

    def raw(self, source: Source, batch: Batch) -> FloatArray:
        """Return the (K,) estimate and nothing else, as fast as can be."""
        ...

    def estimate(self, source: Source, batch: Batch) -> PriorEstimate:
        """Return the same estimate with its covariance and its forms."""
        ...
