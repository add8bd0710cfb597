r"""The implicit update by Newton's method with conjugate gradients, for models of any width.

Each step minimises the quadratic model of the objective by conjugate gradients. Its Hessian is
never formed: products with it reuse the probabilities of the gradient pass (see ``curved_pass``).
All base learners share every pass and every product, and leave when they are done.

On the sphere, where the gradient pulls outward, the step is taken in the tangent space: with the
multiplier :math:`\lambda = -\langle g, w\rangle / r^2` the Hessian there is that of the Lagrangian,
:math:`A + \lambda I` (Absil, Mahony and Sepulchre, "Optimization algorithms on matrix manifolds",
2008), and the new point is put back on the sphere. Elsewhere it is the plain Newton step,
projected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorshift.risk.ball import norms
from priorshift.risk.curved_pass import Curvature
from priorshift.typing import Float32Array, FloatArray

# How much of the gradient a step may leave, and how far from the tolerance one aims to finish.
_FORCING = 0.1
_LAST_STEP = 100.0
_MARGIN = 0.7
_MOST_PRODUCTS = 60
# Relative distances: models are float64 here, but come as float32.
_ON_SPHERE, _NEAR_SPHERE = 1e-9, 1e-6


# Finished base learners leave the stack once it shrinks to this share of itself.
_WORTH_LEAVING = 0.7


class Model(NamedTuple):
    """The quadratic model at a point: gradient, and the Hessian ``curvature + shift I``.

    Arrays are class-major (K, N, d). ``normal`` holds the unit normals of the base learners on the
    sphere, zeros for the others.
    """

    gradient: Float32Array
    curvature: Curvature
    shift: Float32Array
    normal: Float32Array


def start_point(start: Float32Array, radius: float) -> FloatArray:
    """``start`` (N, K, d) in float64: in the ball, and what rounding took off the sphere on it.

    Examples
    --------
    >>> start_point(np.array([[[0.99999997]], [[2.0]], [[0.5]]], np.float32), 1.0).ravel().tolist()
    [1.0, 1.0, 0.5]
    """
    wide = start.astype(np.float64)
    lengths = norms(wide)
    near = lengths > radius * (1.0 - _NEAR_SPHERE)
    return np.asarray(
        wide * np.where(near, radius / np.where(near, lengths, 1.0), 1.0)[:, None, None]
    )


def quadratic_model(
    W: FloatArray, gradient: FloatArray, curvature: Curvature, inverse: FloatArray, radius: float
) -> Model:
    """Lay out the model at ``W`` (N, K, d): on the sphere, the Lagrangian's in the tangent space.

    ``gradient`` is that of the objective, ``inverse`` the ``1 / eta`` that its pull adds.
    """
    lengths = norms(W)
    outward = np.einsum("nkd,nkd->n", gradient, W)
    bound = (lengths > radius * (1.0 - _ON_SPHERE)) & (outward < 0.0)
    multiplier = np.where(bound, -outward / radius**2, 0.0)
    normal = W * (bound / np.maximum(lengths, np.finfo(np.float64).tiny))[:, None, None]
    along = np.einsum("nkd,nkd->n", gradient, normal)
    tangent = gradient - along[:, None, None] * normal
    return Model(
        _class_major(tangent),
        curvature,
        np.asarray(multiplier + inverse, np.float32),
        _class_major(normal),
    )


def conjugate_gradients(model: Model, tolerance: float) -> tuple[Float32Array, int]:
    """Minimise the model, as far as it pays; return the steps (N, K, d) and the products taken."""
    gradient, curvature, shift, normal = model
    step = np.zeros_like(gradient)
    rest = -gradient
    square = _dots(rest, rest)
    enough = _enough(np.sqrt(square), tolerance) ** 2
    direction = rest
    which = np.arange(len(shift))
    products = 0
    for _ in range(_MOST_PRODUCTS):
        going = square > enough
        if not going.any():
            break
        if going.sum() <= _WORTH_LEAVING * len(which):
            stay = np.flatnonzero(going)
            which, curvature, going = which[stay], curvature.of(stay), going[stay]
            rest, direction, normal = rest[:, stay], direction[:, stay], normal[:, stay]
            square, enough, shift = square[stay], enough[stay], shift[stay]
        products += len(which)
        bent = curvature.times(direction)
        bent += _spread(shift) * direction
        bent -= _spread(_dots(bent, normal)) * normal
        # Those that are done but still in the stack stand still.
        length = np.divide(square, _dots(direction, bent), out=np.zeros_like(square), where=going)
        step[:, which] += _spread(length) * direction
        rest = rest - _spread(length) * bent
        new = _dots(rest, rest)
        momentum = np.divide(new, square, out=np.zeros_like(square), where=going)
        direction = _spread(momentum) * direction + rest
        square = new
    return step.transpose(1, 0, 2), products


def _enough(length: Float32Array, tolerance: float) -> Float32Array:
    """Norm of the model's gradient at which to stop: the last step finishes, others go part way."""
    least = _MARGIN * tolerance
    part_way = np.maximum(_FORCING * length, least)
    return np.where(length < _LAST_STEP * tolerance, least, part_way).astype(np.float32)


def _class_major(V: FloatArray) -> Float32Array:
    return np.ascontiguousarray(V.transpose(1, 0, 2), dtype=np.float32)


def _dots(A: Float32Array, B: Float32Array) -> Float32Array:
    """Inner products of each base learner's matrices, class-major."""
    return np.asarray(np.einsum("knd,knd->n", A, B))


def _spread(numbers: Float32Array) -> Float32Array:
    return numbers[None, :, None]
