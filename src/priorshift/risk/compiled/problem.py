"""What the compiled kernels read, in two structures that numba takes as they are."""

from __future__ import annotations

from typing import NamedTuple

from priorshift.typing import Float32Array, FloatArray, IntArray

FLAT = 1e-10
"""A step along which the gradient bends less than this says nothing about the curvature."""


class Samples(NamedTuple):
    """The held-out set: features (d, n) sorted by class, each sample's share of its class.

    ``offsets`` (K + 1,) are the first columns of the classes, ``means`` (K, d) their means.

    Examples
    --------
    >>> Samples._fields
    ('X', 'shares', 'offsets', 'means', 'largest_norm')
    """

    X: Float32Array
    shares: Float32Array
    offsets: IntArray
    means: FloatArray
    largest_norm: float


class Implicit(NamedTuple):
    """An implicit update of N base learners, and when to stop.

    ``hint`` (K,) weighs the classes in H; risk and gradient at the solution are wanted under
    ``prior`` (K,) as well. ``centre`` and ``start`` are (N, K, d), ``steps`` (N,).

    Examples
    --------
    >>> Implicit._fields[:2]
    ('hint', 'prior')
    """

    hint: FloatArray
    prior: FloatArray
    centre: Float32Array
    start: Float32Array
    steps: FloatArray
    radius: float
    tolerance: float
    max_steps: int
