r"""One pass over the offline set that also keeps what products with the Hessian need.

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
from priorshift.risk.kernel import _SAFE_EXPONENT, RiskValue, _blocks, _runs, weigh_softmax
from priorshift.risk.losses import Loss, SmoothedHinge
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


class Part(NamedTuple):
    """Rows of the offline set that stand for all: columns, features (d, m) and weights (m,)."""

    columns: IntArray
    X: Float32Array
    weights: Float32Array


class Curvature:
    """The Hessian of the risk at the point of one pass, for each base learner.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.risk.losses import Softmax
    >>> data = RiskData.of(np.array([[1.0], [3.0], [2.0]]), np.array([0, 0, 1]), n_classes=2)
    >>> W = np.zeros((1, 2, 1), np.float32)
    >>> _, curvature = curved_pass(data, Softmax(), W, np.array([0.5, 0.5]))
    >>> curvature.times(np.array([[[1.0]], [[0.0]]], np.float32)).tolist()
    [[[1.125]], [[-1.125]]]
    """

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
    data: RiskData, loss: Loss, W: Float32Array, mix: FloatArray
) -> tuple[RiskValue, Curvature]:
    """Value, gradient and Hessian of the rewritten risk under ``mix`` >= 0 at ``W`` (N, K, d).

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
    mix = np.where(mix > _NO_WEIGHT * mix.max(), mix, 0.0)
    weights = data.sample_weights(mix)
    differences = _differences(W) / np.float32(tau)
    steepest = float(np.einsum("ij,ij->i", differences, differences).max()) ** 0.5
    safe = steepest * data.largest_norm + margin / tau < _SAFE_EXPONENT
    part, stride = _all_rows(data, weights, len(differences))
    value = np.zeros(len(W))
    moments = np.zeros_like(differences)
    kept = np.empty((data.n_classes - 1, len(W), len(part.columns)), np.float32)
    for first, last in _runs(data, mix):
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
    total = mix @ data.means
    pull = mix[:, None] * data.means
    value = tau * value + margin * mix[1:].sum()
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


def _differences(V: Float32Array) -> Float32Array:
    """Rows of the other classes less that of the first, class-major: ((K - 1) N, d)."""
    differences = (V[:, 1:] - V[:, :1]).transpose(1, 0, 2)
    return differences.reshape(-1, V.shape[2])


def _all_classes(
    moments: Float32Array, total: Float32Array, shape: tuple[int, ...]
) -> Float32Array:
    """Back to (N, K, d): the first class has what the others leave of ``total``."""
    n_learners, n_classes, width = shape
    out = np.empty(shape, np.float32)
    out[:, 1:] = moments.reshape(n_classes - 1, n_learners, width).transpose(1, 0, 2)
    out[:, 0] = total - out[:, 1:].sum(axis=1)
    return out


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
