r"""The rewritten risk of equation 3 for all base learners in one pass over the held-out set.

.. math:: \hat R(w) = \sum_k \mu_k \frac{1}{|S_0^k|} \sum_{x \in S_0^k} \ell(f(w, x), k)

Weights are stacked as (N, K, d), samples lie along the contiguous axis, and the samples are taken
in blocks whose logits stay in the cache. Two facts make the pass cheap and exact:

* the linear part ``-w_y . x`` of every loss needs only the class means (see ``losses``);
* a softmax does not change when one class's weights are subtracted from all others, so the products
  run over K - 1 classes, and the gradient of the class left out follows from the others, because
  the probabilities add up to one.

Classes whose weight in the prior is zero are not read at all. With numba the part between the two
products is compiled, and small passes are compiled whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from priorshift.risk import compiled
from priorshift.risk.data import RiskData
from priorshift.risk.losses import Loss, Softmax
from priorshift.typing import Float32Array, FloatArray

_BLOCK_BYTES = 1 << 18
_SMALLEST_BLOCK = 512
# Passes whose weights are this few, or which take this few multiplications, are compiled whole:
# in wider ones the BLAS is faster than our loops.
_FEW_WEIGHTS = 512
_SHORT_PASS = 3_000_000
# exp() of a larger float32 argument comes near to overflow once K terms are added.
_SAFE_EXPONENT = 60.0


class RiskValue(NamedTuple):
    """Value (N,) and gradient (N, K, d) of the rewritten risk, one row a base learner."""

    value: FloatArray
    gradient: Float32Array


def rewritten_risk(data: RiskData, loss: Loss, W: Float32Array, prior: FloatArray) -> RiskValue:
    """Value and gradient of the risk under class weights ``prior`` (K,) at ``W`` (N, K, d).

    Parameters
    ----------
    data : RiskData
        The held-out set.
    loss : Loss
        One of ``priorshift.risk.losses``.
    W : (N, K, d) float32 array
        Weights of the N base learners.
    prior : (K,) array
        Class weights: a prior, a hint prior, or the raw BBSE estimate (entries may be negative).

    Examples
    --------
    >>> import numpy as np
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W = np.zeros((1, 2, 1), np.float32)
    >>> risk = rewritten_risk(data, Softmax(), W, np.array([0.5, 0.5]))
    >>> risk.value.round(4).tolist(), risk.gradient.tolist()
    ([0.6931], [[[-0.5], [0.5]]])
    """
    if compiled_whole(data, loss, W):
        plain = compiled.plain
        return RiskValue(*compiled.steps.softmax_risk(data.samples, plain(W), plain(prior)))
    if isinstance(loss, Softmax):
        value, gradient = _softmax_pass(data, W, prior)
    else:
        value, gradient = _labelled_pass(data, loss, W, prior)
    pull = prior[:, None] * data.means
    value -= np.einsum("nkd,kd->n", W, pull)
    gradient -= pull.astype(np.float32)
    return RiskValue(value, gradient)


def compiled_whole(data: RiskData, loss: Loss, W: Float32Array) -> bool:
    """Whether a whole pass over the data is best done by the compiled kernel."""
    if not (isinstance(loss, Softmax) and compiled.available()):
        return False
    n_learners, n_classes, width = W.shape
    weights: int = n_learners * (n_classes - 1) * width
    return weights <= _FEW_WEIGHTS or weights * data.XT.shape[1] <= _SHORT_PASS


def _runs(data: RiskData, prior: FloatArray) -> Iterator[tuple[int, int]]:
    """Column ranges of neighbouring classes with a weight, so that the others are skipped."""
    start = None
    for k, weight in enumerate([*prior.tolist(), 0.0]):
        if weight != 0.0 and start is None:
            start = k
        elif weight == 0.0 and start is not None:
            yield int(data.offsets[start]), int(data.offsets[k])
            start = None


def _blocks(first: int, last: int, rows: int) -> Iterator[tuple[int, int]]:
    """Cut ``first:last`` into even pieces whose logits (rows, piece) fit the cache."""
    largest = max(_SMALLEST_BLOCK, _BLOCK_BYTES // (4 * rows))
    pieces = max(1, -(-(last - first) // largest))
    size = max(1, -(-(last - first) // pieces))
    for a in range(first, last, size):
        yield a, min(last, a + size)


def _softmax_pass(
    data: RiskData, W: Float32Array, prior: FloatArray
) -> tuple[FloatArray, Float32Array]:
    # Class-major, so that the sum over classes adds whole contiguous planes.
    differences = _differences(W)
    steepest = float(np.einsum("ij,ij->i", differences, differences).max()) ** 0.5
    safe = steepest * data.largest_norm < _SAFE_EXPONENT
    weights = data.sample_weights(prior)
    value = np.zeros(len(W))
    moments = np.zeros_like(differences)
    for first, last in _runs(data, prior):
        for a, b in _blocks(first, last, len(differences)):
            X = data.XT[:, a:b]
            logits = np.asarray(differences @ X, dtype=np.float32)
            weigh_softmax(logits, weights[a:b], safe, value)
            moments += logits @ X.T
    total = prior @ data.means
    value += W[:, 0] @ total
    return value, _all_classes(moments, total.astype(np.float32), W.shape)


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


def weigh_softmax(
    logits: Float32Array, weights: Float32Array, safe: bool, value: FloatArray
) -> None:
    """Turn logits (R, m) into weighted probabilities in place.

    Add the weighted sum of ``log(1 + sum exp)`` of each learner to ``value`` (N,).

    Examples
    --------
    >>> logits, value = np.zeros((1, 1), np.float32), np.zeros(1)
    >>> weigh_softmax(logits, np.ones(1, np.float32), True, value)
    >>> logits.tolist(), value.round(4).tolist()
    ([[0.5]], [0.6931])
    """
    if compiled.available():
        compiled.softmax.weigh_all(logits, weights, safe, value)
        return
    planes = logits.reshape(-1, len(value), logits.shape[1])
    if safe:
        np.exp(planes, out=planes)
        total = np.add.reduce(planes, axis=0)
        total += np.float32(1.0)
        shift = None
    else:
        shift = np.maximum(planes.max(axis=0), np.float32(0.0))
        planes -= shift
        np.exp(planes, out=planes)
        total = np.add.reduce(planes, axis=0)
        total += np.exp(-shift)
    scale = weights / total
    np.log(total, out=total)
    if shift is not None:
        total += shift
    planes *= scale
    value += total @ weights


def _labelled_pass(
    data: RiskData, loss: Loss, W: Float32Array, prior: FloatArray
) -> tuple[FloatArray, Float32Array]:
    n_learners, n_classes, width = W.shape
    flat = W.reshape(n_learners * n_classes, width)
    value = np.zeros(n_learners)
    gradient = np.zeros((n_learners * n_classes, width), np.float32)
    weights = data.sample_weights(prior)
    for label, (start, stop) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        if prior[label] == 0.0:
            continue
        for a, b in _blocks(int(start), int(stop), len(flat)):
            X = data.XT[:, a:b]
            logits = (flat @ X).reshape(n_learners, n_classes, b - a)
            value += loss.potential(logits, label) @ weights[a:b].astype(np.float64)
            logits *= weights[a:b]
            gradient += logits.reshape(len(flat), b - a) @ X.T
    return value, gradient.reshape(W.shape)


def class_risks(data: RiskData, loss: Loss, W: Float32Array) -> FloatArray:
    """Risk of each class by itself (N, K): ``R_0^k`` of equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> class_risks(data, Softmax(), np.zeros((1, 2, 1), np.float32)).round(4).tolist()
    [[0.6931, 0.6931]]
    """
    n_learners, n_classes, width = W.shape
    flat = W.reshape(n_learners * n_classes, width)
    risks = np.asarray(-np.einsum("nkd,kd->nk", W, data.means))
    weights = data.weights
    for label, (start, stop) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        for a, b in _blocks(int(start), int(stop), len(flat)):
            logits = (flat @ data.XT[:, a:b]).reshape(n_learners, n_classes, b - a)
            potential = loss.potential(logits, label)
            if weights is None:
                risks[:, label] += potential.sum(axis=1, dtype=np.float64) / (stop - start)
            else:
                risks[:, label] += potential @ weights[a:b].astype(np.float64)
    return risks
