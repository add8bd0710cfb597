"""The nearest class mix: Euclidean projection on the probability simplex."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np
from numpy.typing import ArrayLike

from priorshift.errors import InputError
from priorshift.typing import FloatArray

# floor * n_classes may pass 1 by rounding alone, as in floor = 1 / n_classes.
_ROUNDING = 1e-12
# Of one point with this few entries, a dozen calls of NumPy take longer than all of the work.
_FEW = 16


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
