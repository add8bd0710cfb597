r"""Learners without a horizon: t in the place of T, and pools of step sizes that grow.

A pool tuned for T rounds reaches down to a step of order :math:`1 / \sqrt T`. Without T it is
tuned for 1,024 rounds at first, and from every power of 4 on for four times as many: a base learner
with half of the smallest step joins (and one with twice the largest, if the formula of the pool
asks for it). Pools only grow, so that at every t the pool holds that of a T between t and 4 t, and
memory is of order log t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift._numerics import TINY
from priorshift.learners.linear.ensemble import mean_model
from priorshift.typing import Float32Array, FloatArray

FIRST_HORIZON = 1024
"""Rounds that a learner without a horizon is tuned for at first."""


def tuned_for(t: int) -> int:
    """The rounds that a pool is tuned for after t rounds: the power of 4 that is above t.

    Examples
    --------
    >>> [tuned_for(t) for t in (0, 1023, 1024, 4096)]
    [1024, 1024, 4096, 16384]
    """
    rounds = FIRST_HORIZON
    while rounds <= t:
        rounds *= 4
    return rounds


def grows_at(t: int) -> bool:
    """Whether a pool grows after t rounds.

    Examples
    --------
    >>> [t for t in range(5000) if grows_at(t)]
    [1024, 4096]
    """
    return t > 0 and tuned_for(t) != tuned_for(t - 1)


class Growth(NamedTuple):
    """How a pool grows: the new pool, and where the old members are in it."""

    steps: FloatArray
    below: int
    above: int


def grown_pool(steps: FloatArray, largest: float) -> Growth:
    """Half of the smallest step joins; twice the largest too, while ``largest`` is beyond it.

    Examples
    --------
    >>> grown_pool(np.array([0.5, 1.0]), largest=1.0)
    Growth(steps=array([0.25, 0.5 , 1.  ]), below=1, above=0)
    >>> grown_pool(np.array([0.5, 1.0]), largest=2.0).steps.tolist()
    [0.25, 0.5, 1.0, 2.0]
    """
    above = max(0, int(np.ceil(np.log2(largest / steps[-1]) - 0.5)))
    extra = steps[-1] * 2.0 ** np.arange(1, above + 1)
    return Growth(np.concatenate([[steps[0] / 2.0], steps, extra]), 1, above)


def joined_losses(losses: FloatArray, rate: float, growth: Growth) -> FloatArray:
    """Cumulative losses with the newcomers', whose weight is the mean weight of the others.

    The share of the old members falls from 1 to N / N', so that all joins together cost a member
    no more than the logarithm of the number of members.

    Examples
    --------
    >>> from priorshift.learners.linear.ensemble import hedge_weights
    >>> growth = Growth(np.ones(3), below=1, above=0)
    >>> hedge_weights(joined_losses(np.array([1.0, 3.0]), 0.5, growth), 0.5).round(3).tolist()
    [0.333, 0.487, 0.179]
    """
    low = losses.min()
    mean = low - np.log(np.mean(np.exp(-rate * (losses - low)))) / max(rate, TINY)
    return padded(losses, mean, growth)


def joined_models(W: Float32Array, weights: FloatArray, growth: Growth) -> Float32Array:
    """Stacked models with the newcomers', which begin at the weighted mean of the others.

    Examples
    --------
    >>> W = np.array([[[1.0]], [[3.0]]], np.float32)
    >>> joined_models(W, np.array([0.5, 0.5]), Growth(np.ones(3), 1, 0)).ravel().tolist()
    [2.0, 1.0, 3.0]
    """
    new = mean_model(weights, W)[None]
    return np.concatenate([*[new] * growth.below, W, *[new] * growth.above])


def padded(values: FloatArray, value: float, growth: Growth) -> FloatArray:
    """One value for every newcomer.

    Examples
    --------
    >>> padded(np.zeros(2), 1.0, Growth(np.ones(3), 1, 0)).tolist()
    [1.0, 0.0, 0.0]
    """
    return np.pad(values, (growth.below, growth.above), constant_values=value)
