r"""The implicit update by Newton's method with conjugate gradients, for models of any width.

Each step minimises the quadratic model of the objective by conjugate gradients. Its Hessian is
never formed: products with it reuse the probabilities of the gradient pass (below).
All base learners share every pass and every product, and leave when they are done.

On the sphere, where the gradient pulls outward, the step is taken in the tangent space: with the
multiplier :math:`\lambda = -\langle g, w\rangle / r^2` the Hessian there is that of the Lagrangian,
:math:`A + \lambda I` (Absil, Mahony and Sepulchre, "Optimization algorithms on matrix manifolds",
2008), and the new point is put back on the sphere. Elsewhere it is the plain Newton step,
projected.

Softmax and smoothed hinge are one family: with logits ``z``, a margin ``m`` (0 or 1) and a
temperature ``tau``,

.. math:: \phi_y(z) = \tau \log \sum_j \exp((z_j + m [j \ne y]) / \tau), \qquad
    \nabla^2 \phi_y = (\mathrm{diag}(p) - p p^T) / \tau

where ``p`` is the gradient. So the gradient pass has all that the Hessian is made of: its weighted
probabilities are kept, and a product ``H V`` then costs two matrix products and no exponential.

Curvature only steers, so it is measured on a part of the rows (see ``Part``), while values and
gradients read them all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from priorshift.risk.data import RiskData
from priorshift.risk.kernel import (
    _SAFE_EXPONENT,
    RiskValue,
    _all_classes,
    _blocks,
    _differences,
    _runs,
    weigh_softmax,
)
from priorshift.risk.losses import Loss, SmoothedHinge
from priorshift.risk.step import norms
from priorshift.typing import Float32Array, FloatArray, IntArray

# The part of the rows that measures curvature: a share of them, but not fewer than some and not
# more than a multiple of the number of weights.
_SHARE = 0.5
_FEWEST = 2000
_PER_WEIGHT = 6
# A row with this many times the mean curvature is certain to be in the part.
_CERTAIN = 0.02
# Above this many bytes of probabilities, only every second, third, ... row can be drawn.
_MOST_BYTES = 1 << 28
# Classes below this share of the largest weight are less than the rounding of float32.
_NO_WEIGHT = 1e-12

# How much of the gradient a step may leave, and how far from the tolerance one aims to finish.
_FORCING = 0.1
_LAST_STEP = 100.0
_MARGIN = 0.7
_MOST_PRODUCTS = 60
# Relative distances: models are float64 here, but come as float32.
_ON_SPHERE, _NEAR_SPHERE = 1e-9, 1e-6
# Finished base learners leave the stack once it shrinks to this share of itself.
_WORTH_LEAVING = 0.7


class Part(NamedTuple):
    """Rows of the held-out set that stand for all: columns, features (d, m) and weights (m,)."""

    columns: IntArray
    X: Float32Array
    weights: Float32Array


class Curvature:
    """The Hessian of the risk at the point of one pass, for each base learner."""

    def __init__(self, part: Part, planes: Float32Array, scale: float) -> None:
        """``planes`` (K - 1, N, m) are the weighted probabilities of all classes but the first."""
        self.part = part
        self.planes = planes
        self.scale = scale

    def times(self, V: Float32Array) -> Float32Array:
        """Return ``H V``, each base learner's own Hessian, for class-major directions (K, N, d)."""
        differences = (V[1:] - V[0]).reshape(-1, V.shape[2])
        moments = np.zeros_like(differences)
        for a, b in _pieces(len(self.part.weights), len(differences)):
            X, planes = self.part.X[:, a:b], self.planes[:, :, a:b]
            change = (differences @ X).reshape(planes.shape)
            change *= planes
            mean = np.add.reduce(change, axis=0)
            mean /= self.part.weights[a:b]
            change -= planes * mean
            moments += change.reshape(len(differences), b - a) @ X.T
        out = np.empty_like(V)
        np.multiply(moments.reshape(out[1:].shape), np.float32(self.scale), out=out[1:])
        np.negative(np.add.reduce(out[1:], axis=0), out=out[0])
        return out

    def of(self, which: IntArray) -> Curvature:
        """Return the Hessians of some of the base learners."""
        return Curvature(self.part, self.planes[:, which], self.scale)

    def drawn(self, squares: Float32Array) -> Curvature:
        """Return the same Hessians, measured on fewer rows.

        A row's chance is in proportion to what it adds to the trace, ``a (1 - |p|^2) |x|^2`` with
        ``a`` its weight and ``squares`` the ``|x|^2``: rows that the models are sure of hardly bend
        the risk, and rows that bend it most are all in. The draw is systematic, without random
        numbers.
        """
        n_rows, n_weights = len(self.part.columns), (len(self.planes) + 1) * len(self.part.X)
        wanted = max(_FEWEST, min(_SHARE * n_rows, _PER_WEIGHT * n_weights))
        if wanted >= n_rows:
            return self
        bends = self._bends() * squares[self.part.columns]
        bends /= np.maximum(bends.mean(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        chances = _chances(bends.max(axis=0), wanted)
        which = np.flatnonzero(np.diff(np.floor(np.cumsum(chances) + 0.5), prepend=0.0))
        times = (1.0 / chances[which]).astype(np.float32)
        old = self.part
        part = Part(
            old.columns[which],
            np.ascontiguousarray(old.X[:, which]),
            old.weights[which] * times,
        )
        return Curvature(part, self.planes[:, :, which] * times, self.scale)

    def _bends(self) -> FloatArray:
        """``a (1 - |p|^2)`` of each base learner and row."""
        planes, weights = self.planes, self.part.weights
        first = weights - np.add.reduce(planes, axis=0)
        squares = np.einsum("knm,knm->nm", planes, planes)
        squares += first * first
        squares /= weights
        return np.asarray(np.maximum(weights - squares, 0.0), dtype=np.float64)


def curved_pass(
    data: RiskData, loss: Loss, W: Float32Array, prior: FloatArray
) -> tuple[RiskValue, Curvature]:
    """Value, gradient and Hessian of the rewritten risk under ``prior`` >= 0 at ``W`` (N, K, d).

    ``loss`` is the softmax or the smoothed hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.risk.losses import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W = np.zeros((1, 2, 1), np.float32)
    >>> risk, _ = curved_pass(data, Softmax(), W, np.array([0.5, 0.5]))
    >>> risk.value.round(4).tolist(), risk.gradient.tolist()
    ([0.6931], [[[-0.5], [0.5]]])
    """
    tau, margin = (loss.tau, 1.0) if isinstance(loss, SmoothedHinge) else (1.0, 0.0)
    prior = np.where(prior > _NO_WEIGHT * prior.max(), prior, 0.0)
    weights = data.sample_weights(prior)
    differences = _differences(W) / np.float32(tau)
    steepest = float(np.einsum("ij,ij->i", differences, differences).max()) ** 0.5
    safe = steepest * data.largest_norm + margin / tau < _SAFE_EXPONENT
    part, stride = _all_rows(data, weights, len(differences))
    value = np.zeros(len(W))
    moments = np.zeros_like(differences)
    kept = np.empty((data.n_classes - 1, len(W), len(part.columns)), np.float32)
    for first, last in _runs(data, prior):
        for a, b in _blocks(first, last, len(differences)):
            X = data.XT[:, a:b]
            logits = np.asarray(differences @ X, dtype=np.float32)
            planes = logits.reshape(-1, len(W), b - a)
            if margin:
                _lift_rivals(planes, data.offsets - a, margin / tau)
            weigh_softmax(logits, weights[a:b], safe, value)
            moments += logits @ X.T
            here = slice(*np.searchsorted(part.columns, (a, b)))
            if here.stop - here.start == b - a:
                kept[:, :, here] = planes
            else:
                kept[:, :, here] = np.take(planes, part.columns[here] - a, axis=2)
    if stride > 1:
        kept *= np.float32(stride)
    total = prior @ data.means
    pull = prior[:, None] * data.means
    value = tau * value + margin * prior[1:].sum()
    value += W[:, 0] @ total - np.einsum("nkd,kd->n", W, pull)
    gradient = _all_classes(moments, total.astype(np.float32), W.shape)
    gradient -= pull.astype(np.float32)
    return RiskValue(value, gradient), Curvature(part, kept, 1.0 / tau)


def _all_rows(data: RiskData, weights: Float32Array, rows: int) -> tuple[Part, int]:
    """All rows with a weight, or one in so many of them where memory ends."""
    columns = np.flatnonzero(weights)
    stride = 1 + 4 * rows * len(columns) // _MOST_BYTES
    columns = columns[::stride]
    X = data.XT if len(columns) == len(weights) else data.XT[:, columns]
    return Part(columns, X, np.float32(stride) * weights[columns]), stride


def _lift_rivals(planes: Float32Array, starts: IntArray, by: float) -> None:
    """Lift the logits of all classes but the row's own, as seen from the first class."""
    for label, (a, b) in enumerate(pairwise(starts)):
        rows = slice(max(int(a), 0), max(int(b), 0))
        if label == 0:
            planes[:, :, rows] += np.float32(by)
        else:
            planes[label - 1, :, rows] -= np.float32(by)


def _pieces(number: int, rows: int) -> list[tuple[int, int]]:
    return list(_blocks(0, number, rows)) if number else []


def _chances(bends: FloatArray, wanted: float) -> FloatArray:
    """Chance of each row to be drawn: in proportion to ``bends``, at most 1, ``wanted`` in all.

    Fewer are drawn where few rows hold almost all of it: what has ``_CERTAIN`` times the mean is
    certain to be in, and nothing needs more.
    """
    if not bends.any():
        return np.zeros_like(bends)
    shares = bends / bends.mean()
    factor = wanted / len(shares)
    for _ in range(5):
        drawn = np.minimum(1.0, factor * shares).sum()
        factor = min(1.0 / _CERTAIN, factor * wanted / drawn)
    return np.asarray(np.minimum(1.0, factor * shares))


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
