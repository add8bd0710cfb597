r"""How far a sketch is from the whole set, and the size that a wanted error needs.

With :math:`R_k` the class-wise risks, over models w and class weights :math:`\mu`, the root mean
squares of

.. math:: |\tilde R(w) - R(w)| \text{ relative to } \sum_k |\mu_k| R_k(w), \qquad
    \|\nabla\tilde R(w) - \nabla R(w)\| \text{ relative to } \sum_k |\mu_k| \|\nabla R_k(w)\|.

The gradient's yardstick is the size of its class-wise parts: the gradient itself vanishes at a
minimiser, where the parts cancel. Errors and yardsticks are averaged before they are divided, so
that a model with nearly no risk does not outweigh all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from priorshift.errors import InputError
from priorshift.risk.data import RiskData
from priorshift.risk.kernel import rewritten_risk
from priorshift.risk.losses import Loss
from priorshift.risk.sketches.bank import reference_mixes, reference_models
from priorshift.risk.sketches.base import Sketch, class_rows
from priorshift.typing import Float32Array, FloatArray

S = TypeVar("S", bound=Sketch)
_JUDGES = 8
_MOST_ROUNDS = 32
_VARIANCE_ROWS = 4096
# Far from the seeds of sketches, so that the judges are models that no sketch was fitted to.
_OTHER_SEED = 7_919


class SketchError(NamedTuple):
    """Root mean squares of the relative errors, their largest, and what the sketch costs.

    ``rows`` are read each round; ``bytes`` have to be kept: of a fixed sketch its own rows and
    weights, of blocks the whole set.

    Examples
    --------
    >>> print(SketchError(0.0123, 0.0456, 0.1, 1000, 52_000))
    risk 1.23 %, gradient 4.56 % (at most 10.00 %); 1000 rows a round, 0.05 MB
    """

    risk: float
    gradient: float
    worst: float
    rows: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"risk {100 * self.risk:.2f} %, gradient {100 * self.gradient:.2f} % "
            f"(at most {100 * self.worst:.2f} %); {self.rows} rows a round, "
            f"{self.bytes / 1e6:.2f} MB"
        )


class _Parts(NamedTuple):
    """Class-wise risks (N, K) and gradients (N, K, K d): every prior follows from them."""

    risks: FloatArray
    gradients: FloatArray


def _parts(data: RiskData, loss: Loss, W: Float32Array) -> _Parts:
    found = [rewritten_risk(data, loss, W, corner) for corner in np.eye(data.n_classes)]
    risks = np.stack([one.value for one in found], axis=1)
    gradients = np.stack([one.gradient.reshape(len(W), -1) for one in found], axis=1)
    return _Parts(risks, gradients.astype(np.float64))


def sketch_error(
    data: RiskData,
    sketch: Sketch,
    loss: Loss,
    W: Float32Array | None = None,
    priors: FloatArray | None = None,
) -> SketchError:
    """Errors of a sketch's risk and gradient at models ``W`` (N, K, d) and class priors (M, K).

    Without ``W`` or ``priors``: risk minimisers for class priors all over the simplex, and shrunk
    copies of them; the uniform prior, single classes and random priors. Sketches that change from
    round to round are measured over their first 32 rounds.

    Examples
    --------
    >>> from priorshift.risk import Coreset, Softmax
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> data = RiskData.of(rng.normal(size=(4000, 2)) + y[:, None], y, n_classes=2)
    >>> found = sketch_error(data, Coreset(size=200), Softmax())
    >>> found.rows, found.bytes, found.risk < 0.01
    (200, 2400, True)
    """
    W, priors = _judges(data, W, priors, 0)
    full = _parts(data, loss, W)
    risk_scale = np.abs(priors) @ full.risks.T
    gradient_scale = np.abs(priors) @ np.linalg.norm(full.gradients, axis=2).T
    rounds = 1 if sketch.fixed else min(_MOST_ROUNDS, max(1, data.XT.shape[1] // sketch.size))
    risks, gradients = [], []
    for t in range(rounds):
        small = _parts(sketch.at(data, t), loss, W)
        off = np.einsum("mk,nkg->mng", priors, small.gradients - full.gradients)
        risks.append(np.abs(priors @ (small.risks - full.risks).T) / _typical(risk_scale))
        gradients.append(np.linalg.norm(off, axis=2) / _typical(gradient_scale))
    shown = sketch.at(data, 0)
    kept = shown if sketch.fixed else data
    return SketchError(
        risk=_typical(np.array(risks)),
        gradient=_typical(np.array(gradients)),
        worst=float(max(np.max(risks), np.max(gradients))),
        rows=int(shown.XT.shape[1]),
        bytes=int(kept.XT.nbytes + (0 if kept.weights is None else kept.weights.nbytes)),
    )


def _typical(values: FloatArray) -> float:
    """Root mean square, kept off zero since it may divide."""
    return max(float(np.sqrt(np.mean(np.square(values)))), 1e-12)


def _judges(
    data: RiskData, W: Float32Array | None, priors: FloatArray | None, seed: int
) -> tuple[Float32Array, FloatArray]:
    rng = np.random.default_rng([seed, _OTHER_SEED])
    if W is None:
        W = reference_models(data, _JUDGES, rng)[1:]
    if priors is None:
        priors = reference_mixes(data.n_classes, 2 * data.n_classes + 4, rng)
    shape = (data.n_classes, data.XT.shape[0])
    if np.ndim(W) != 3 or np.shape(W)[1:] != shape:
        raise InputError(
            f"W has shape {np.shape(W)}: models stacked as (N, {shape[0]}, {shape[1]})"
        )
    if np.ndim(priors) != 2 or np.shape(priors)[1] != shape[0]:
        raise InputError(
            f"priors has shape {np.shape(priors)}: class priors as rows, (M, {shape[0]})"
        )
    return np.asarray(W, np.float32), np.asarray(priors, np.float64)


def _check_error(error: float) -> None:
    if not 0.0 < error < 1.0:
        raise InputError(f"error is {error}: give the relative error wanted, between 0 and 1")


def smallest_size(
    build: Callable[[int], S],
    data: RiskData,
    error: float,
    loss: Loss,
    W: Float32Array | None,
    priors: FloatArray | None,
    seed: int,
) -> S:
    """Double the size of ``build(size)`` until both errors are at most ``error``."""
    _check_error(error)
    W, priors = _judges(data, W, priors, seed)
    rows = int(data.XT.shape[1])
    size = max(64, 8 * data.n_classes)
    while size < rows:
        sketch = build(size)
        found = sketch_error(data, sketch, loss, W, priors)
        data.sketches.pop(sketch, None)  # it may not be wanted
        if max(found.risk, found.gradient) <= error:
            return sketch
        size *= 2
    return build(rows)


def block_size(
    data: RiskData,
    error: float,
    loss: Loss,
    W: Float32Array | None,
    priors: FloatArray | None,
    seed: int,
) -> int:
    r"""Rows that a random stratified block needs for a relative error.

    A block with the share s of every class has the mean squared error :math:`(1/s - 1) \sum_k
    \mu_k^2 v_k / |S_0^k|` with :math:`v_k` the variance within class k; s follows.
    """
    _check_error(error)
    W, priors = _judges(data, W, priors, seed)
    full = _parts(data, loss, W)
    losses, gradients = _variances(data, loss, W, np.random.default_rng(seed))
    weights = priors**2 / data.counts
    lengths = np.linalg.norm(full.gradients, axis=2)
    noise = max(
        float(np.mean(weights @ variance.T)) / _typical(np.abs(priors) @ scale.T) ** 2
        for variance, scale in ((losses, full.risks), (gradients, lengths))
    )
    rows = int(data.XT.shape[1])
    return int(np.clip(np.ceil(rows * noise / (noise + error**2)), data.n_classes, rows))


def _variances(
    data: RiskData, loss: Loss, W: Float32Array, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Variances (N, K) of losses, and of gradients summed over their entries, in each class."""
    losses = np.empty((len(W), data.n_classes))
    gradients = np.empty_like(losses)
    for k in range(data.n_classes):
        X = np.ascontiguousarray(data.XT[:, class_rows(data, k, _VARIANCE_ROWS, rng)])
        squares = np.einsum("ij,ij->j", X, X)
        for i, model in enumerate(W):
            logits = (model @ X)[None]
            own = logits[0, k].copy()
            losses[i, k] = np.var(loss.potential(logits, k)[0] - own, dtype=np.float64)
            slope = logits[0]
            slope[k] -= 1.0
            mean = slope @ X.T / X.shape[1]
            second = float(np.mean(np.einsum("ij,ij->j", slope, slope) * squares))
            gradients[i, k] = max(0.0, second - float(np.sum(mean * mean)))
    return losses, gradients
