r"""How surprising a count is, whatever the class mix: the p-value behind the guard.

A block of the stream has ``n`` rows; ``S`` of them are in a region that held ``c_k`` of the
``n_k`` rows of the hold-out's class k. Two things are not known: the region's true share of each
class, and the block's mean class mix ``mu``.

*The shares.* For one class, "S of n against c of m" is compared exactly by conditioning on S + c:
the chance of S or more is that of a negative binomial variable with c + 1 successes and odds
``n / m``. For a mix the expected count is :math:`\sum_k w_k g_k` with weights
``w_k = n mu_k / n_k`` and gamma variables ``g_k`` of shape ``c_k``, one more at the largest
weight (the gamma interval of Fay and Feuer, 1997, for weighted sums of counts). Hold-out and block
are both random here: the finite hold-out is part of the p-value.

*The mix* is estimated from what f0 calls the rows of the block; its error is taken as normal with
the covariance V of `block_mix`. So the Chernoff bound of the p-value is

.. math:: \log p \le \min_\theta\ -S \log(1+\theta) - \sum_k c_k \log(1-\theta w_k)
    - \log(1-\theta \max_k w_k) + \tfrac12 \theta^2 n^2\, q^\top V q, \qquad q_k = c_k / n_k,

and the first factor of the saddlepoint expansion (Bahadur and Rao, 1960) takes it to the tail
itself: with :math:`\lambda = \log(1+\theta)` and the second derivative K'' of the
cumulant generating function in :math:`\lambda`, :math:`1 / ((1-e^{-\lambda})\sqrt{2\pi K''})`.

A mix that changes within the block does no harm: by concavity of the logarithm, the count is most
variable when all rows share the mean mix.
"""

from __future__ import annotations

import numpy as np

from priorshift.typing import AnyArray, FloatArray, IntArray

# Where the Chernoff bound is tried, as shares of the largest theta.
_THETAS = np.concatenate([np.geomspace(1e-5, 0.5, 30), 1.0 - np.geomspace(0.4, 0.005, 10)])
_TINY = 1e-300
_EM_STEPS = 5


def block_mix(
    calls: IntArray, confusion: FloatArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""Mean class mix of B blocks from f0's calls, and its covariance, hold-out included.

    One step of Fisher scoring with the information of the calls,
    :math:`J = n\, C^\top \mathrm{diag}(1/C\mu)\, C` along the simplex, and the precision of a
    uniform draw from the simplex, K(K+1), added: a mix that the calls do not tell has a large
    covariance, not an infinite one.

    Parameters
    ----------
    calls : (B, K) array
        Rows of each block that f0 calls each class.
    confusion : (K, K) array
        Column k: how f0 calls rows of class k.
    rows : (K,) array
        Rows of the hold-out of each class, of which ``confusion`` was made.

    Returns
    -------
    mix : (B, K) array
    covariance : (B, K, K) array

    Examples
    --------
    >>> mix, covariance = block_mix(np.array([[30, 70]]), np.eye(2), np.array([10**6, 10**6]))
    >>> mix.round(2).tolist(), float((covariance[0, 0, 0] * 100).round(2))
    ([[0.3, 0.7]], 0.21)
    """
    size = len(rows)
    total = calls.sum(axis=1)
    share = calls / total[:, None]
    mix = np.full(share.shape, 1.0 / size)
    for _ in range(_EM_STEPS):
        mix = mix * ((share / (mix @ confusion.T)) @ confusion)
    mix = (mix + 1.0 / (total[:, None] + size)) / (1.0 + size / (total[:, None] + size))
    scaled = confusion.T / (mix @ confusion.T)[:, None, :]
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    information = total[:, None, None] * (scaled @ confusion)
    inner = basis.T @ information @ basis + size * (size + 1.0) * np.eye(size - 1)
    covariance = basis @ np.linalg.inv(inner) @ basis.T
    gain = total[:, None, None] * (covariance @ scaled)
    mix = mix + (gain @ (share - mix @ confusion.T)[:, :, None])[:, :, 0]
    mix = np.maximum(mix, 0.0)
    mix /= mix.sum(axis=1, keepdims=True)
    weight = mix**2 / rows
    spread = np.eye(size) * (weight @ confusion.T)[:, None, :]
    spread = spread - (confusion * weight[:, None, :]) @ confusion.T
    return mix, covariance + gain @ spread @ np.swapaxes(gain, 1, 2)


def log_p_value(
    seen: FloatArray,
    counts: AnyArray,
    weights: FloatArray,
    largest: FloatArray,
    variance: FloatArray,
) -> FloatArray:
    """Log p-value of M counts.

    Parameters
    ----------
    seen : (M,) array
        S, rows in the region.
    counts : (M, K) array
        c_k, rows of the hold-out in the region.
    weights : (M, K) array
        w_k = n mu_k / n_k.
    largest : (M,) array
        The weight of the one count more; at least all of ``weights``.
    variance : (M,) array
        Variance of the expected count by the error of the mix.

    Examples
    --------
    >>> one, none = np.ones((1, 1)), np.zeros(1)
    >>> bool(log_p_value(np.array([30.0]), 0 * one, 0.1 * one, np.array([0.1]), none)[0] < -50)
    True
    >>> log_p_value(np.array([1.0]), 10 * one, one, np.ones(1), none).tolist()
    [0.0]
    """
    theta = _THETAS / largest[:, None]
    mixed = -(counts[:, None, :] * np.log1p(-theta[:, :, None] * weights[:, None, :])).sum(axis=2)
    logs = mixed - seen[:, None] * np.log1p(theta) - np.log1p(-_THETAS)
    logs += 0.5 * theta**2 * variance[:, None]
    best = logs.argmin(axis=1)
    least = np.minimum(logs[np.arange(len(logs)), best], 0.0)
    theta, share = theta[np.arange(len(logs)), best], _THETAS[best]
    terms = weights / (1.0 - theta[:, None] * weights)
    one_more = largest / (1.0 - share)
    slope = (counts * terms).sum(axis=1) + one_more + theta * variance
    bend = (counts * terms**2).sum(axis=1) + one_more**2 + variance
    return np.asarray(np.minimum(least + _lattice(theta, slope, bend), 0.0))


def _lattice(theta: FloatArray, slope: FloatArray, bend: FloatArray) -> FloatArray:
    """Logarithm of the factor between the Chernoff bound and the tail, for whole numbers."""
    spread = bend * (1.0 + theta) ** 2 + slope * (1.0 + theta)
    factor = -np.log(theta / (1.0 + theta)) - 0.5 * np.log(2.0 * np.pi * spread)
    return np.asarray(np.minimum(factor, 0.0))


def poisson_log_p(seen: AnyArray, mean: FloatArray) -> FloatArray:
    """Log p-value of a Poisson count, in the same way: what hold-out and mix only add doubt to.

    Examples
    --------
    >>> poisson_log_p(np.array([2.0, 1.0]), np.array([1.0, 3.0])).round(4)
    array([-0.9587,  0.    ])
    """
    mean, seen = np.maximum(mean, _TINY), np.asarray(seen, dtype=np.float64)
    above = seen > mean
    count = np.where(above, seen, 2.0 * mean)
    logs = count - mean - count * np.log(count / mean)
    logs -= np.maximum(np.log1p(-mean / count) + 0.5 * np.log(2.0 * np.pi * count), 0.0)
    return np.where(above, np.minimum(logs, 0.0), 0.0)
