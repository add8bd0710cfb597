r"""How far an estimate of a share lies from a share that may be the true one.

The mean of N influence values is skewed where the share is small: few rows make the estimate, as
few hits make a count. So its deviation from m, in standard deviations of the estimate *at m*, is
turned into a normal score by way of a gamma distribution with the same mean, variance and skewness
(Wilson and Hilferty, 1931). For counts that comes close to the mid-p value.

A share cannot be below 0, and what was estimated may have been cut off there. So a share that is
so close to 0 that an estimate of 0 does not contradict it is tested from above alone, at the
whole level, and all others from both sides at half of it each: for a normal estimate, cut off at 0
or not, every share then has exactly the chance asked for. The same holds at 1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from priorshift.monitoring.influence import Influence
from priorshift.typing import AnyArray, FloatArray

_TINY = 1e-12
# A gamma with more skewness than this says less of a sum of rows than one with this much.
_SKEWED = 1.0


class Moments:
    """Moments of the estimates as functions of the true shares, by class.

    Parameters
    ----------
    influence : Influence
    counts : (K,) array
        Rows of each class in the hold-out.
    size : float
        Rows that the estimate rests on.
    """

    def __init__(self, influence: Influence, counts: AnyArray, size: float) -> None:
        others = influence.mix * (1.0 - np.eye(len(counts)))
        others /= np.maximum(others.sum(axis=1, keepdims=True), _TINY)
        self.size = size
        self.squares = np.diag(influence.squares), (others * influence.squares).sum(axis=1)
        self.cubes = np.diag(influence.cubes), (others * influence.cubes).sum(axis=1)
        self.own_hold = np.diag(influence.variances) / counts
        self.rest_hold = (others**2 * influence.variances / counts).sum(axis=1)

    def at(self, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deviation and skewness of each class's estimate where its share is m."""
        square = m * self.squares[0] + (1.0 - m) * self.squares[1]
        cube = m * self.cubes[0] + (1.0 - m) * self.cubes[1]
        variance = np.maximum(square - m**2, 0.0) / self.size
        variance += m**2 * self.own_hold + (1.0 - m) ** 2 * self.rest_hold
        sigma = np.sqrt(np.maximum(variance, _TINY**2))
        third = (cube - 3.0 * m * square + 2.0 * m**3) / self.size**2
        return sigma, np.clip(third / sigma**3, -_SKEWED, _SKEWED)


def normal_score(x: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return the normal score of a standardised gamma variable of some skewness.

    Examples
    --------
    >>> from scipy.stats import pearson3
    >>> x = np.array([-1.0, 0.0, 2.0])
    >>> normal_score(x, np.full(3, 0.8)).round(2), ndtri(pearson3.cdf(x, 0.8)).round(2)
    (array([-1.04,  0.13,  1.76]), array([-1.04,  0.13,  1.76]))
    """
    skewness = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    root = np.cbrt(np.maximum(1.0 + skewness * x / 2.0, 0.0))
    score: FloatArray = 6.0 / skewness * (root - 1.0) + skewness / 6.0
    return score


def accepts(estimate: FloatArray, m: FloatArray, moments: Moments, level: float) -> AnyArray:
    """Say for each class whether the estimate is compatible with a true share of m."""
    sigma, skewness = moments.at(m)
    side = np.where(m > 0.5, -1.0, 1.0)  # what is said of 0 holds of 1, seen from the other end
    skewness = side * skewness
    score = normal_score(side * (estimate - m) / sigma, skewness)
    room = -normal_score(-np.minimum(m, 1.0 - m) / sigma, skewness)
    return compatible(score, room, level)


def compatible(score: FloatArray, room: FloatArray, level: float) -> AnyArray:
    """Say whether a score is within its limits, for a mean ``room`` deviations above its bound.

    Examples
    --------
    >>> compatible(np.array([-9.0, 1.0, -9.0, 1.0]), np.array([0.5, 0.5, 3.0, 3.0]), 0.8)
    array([ True, False, False,  True])
    """
    one_side, each_side = ndtri(level), ndtri((1.0 + level) / 2.0)
    within: AnyArray = np.where(room < each_side, score <= one_side, np.abs(score) <= each_side)
    return within
