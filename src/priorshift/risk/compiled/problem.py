"""What the compiled kernels read, in tuples that numba takes as they are.

Plain tuples, not named ones: numba would look at the type of a named one anew in every call.
"""

from __future__ import annotations

from priorshift.typing import Float32Array, FloatArray, IntArray

FLAT = 1e-10
"""A step along which the gradient bends less than this says nothing about the curvature."""

Samples = tuple[Float32Array, Float32Array, IntArray, FloatArray, float]
"""The held-out set: features X (d, n) sorted by class, each sample's share of its class (n,), the
first columns of the classes (K + 1,), the classes' means (K, d), and the largest norm of a sample.
"""

Implicit = tuple[FloatArray, FloatArray, Float32Array, Float32Array, FloatArray, float, float, int]
"""An implicit update of N base learners, and when to stop: the class weights of H (K,), a prior
(K,) under which risk and gradient at the solution are wanted as well, centre and start (N, K, d),
steps (N,), the ball's radius, the tolerance, the most steps.
"""
