r"""A joint region for the class prior: where all of its shares lie together.

Intervals hold each share on its own. All of them at once lie in

.. math:: \{\mu : (\mu - \hat\mu)^\top (\Sigma + \epsilon^2 I)^{-1} (\mu - \hat\mu)
    \le \chi^2_{K-1}(level)\},

an ellipse on the simplex, with the class prior to judge by and its covariance :math:`\Sigma`
(``believed.py``), and :math:`\epsilon` half a row: of a class that none of N rows is of, none of
:math:`2N` need be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from priorshift._validation import as_numbers, check_chance
from priorshift.errors import InputError
from priorshift.monitoring.believed import Believed
from priorshift.typing import AnyArray, FloatArray

_ROUNDING = 1e-6


class PriorRegion(NamedTuple):
    """Class priors that are not contradicted, all shares together.

    Attributes
    ----------
    centre : (K,) array
        The class prior to judge by.
    covariance : (K, K) array
        Of its estimate.
    level : float
        The chance with which the region shall hold the class prior.

    Examples
    --------
    >>> covariance = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 0.0025
    >>> region = PriorRegion(np.array([0.4, 0.6]), covariance, 0.9)
    >>> region.contains([[0.35, 0.65], [0.3, 0.7]]).tolist()
    [True, False]
    """

    centre: FloatArray
    covariance: FloatArray
    level: float

    def contains(self, priors: object) -> AnyArray:
        """Whether each of some class priors (M, K) lies in it, (M,) of bool.

        Examples
        --------
        >>> region = PriorRegion(np.array([0.4, 0.6]), np.zeros((2, 2)), 0.9)
        >>> region.contains([0.4, 0.6]).tolist()
        [True]
        """
        given = as_numbers(np.atleast_2d(np.asarray(priors)), where="priors")
        if given.shape[1] != len(self.centre):
            raise InputError(
                f"priors has {given.shape[1]} columns: give {len(self.centre)}, one for each class"
            )
        values, vectors = np.linalg.eigh(self.covariance)
        gap = given - self.centre
        good = (given >= -_ROUNDING).all(axis=1) & (np.abs(gap.sum(axis=1)) <= _ROUNDING)
        # Along the simplex; a direction without variance has to be met but for rounding.
        gap = gap - gap.mean(axis=1, keepdims=True)
        far = (gap @ vectors) ** 2 / np.maximum(values, _ROUNDING**2)
        near = far.sum(axis=1) <= chdtri(len(self.centre) - 1, 1.0 - self.level)
        return np.asarray(good & near)


def region_of(found: Believed, level: float = 0.9) -> PriorRegion:
    """Return the region of a class prior to judge by.

    Examples
    --------
    >>> found = Believed(np.array([0.5, 0.5]), np.zeros((2, 2)), 50.0)
    >>> region_of(found).covariance.tolist()
    [[5e-05, -5e-05], [-5e-05, 5e-05]]
    """
    level, K = check_chance("level", level, such_as=0.9), len(found.prior)
    half_a_row = (np.eye(K) - 1.0 / K) * (0.5 / found.size) ** 2
    return PriorRegion(found.prior, found.covariance + half_a_row, level)
