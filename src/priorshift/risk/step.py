"""The decision set W, a ball, and a projected gradient step on it for all base learners at once.

W is an L2 ball of diameter Gamma around the origin (Section "contenders"); the step is equation 4.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from priorshift.risk import compiled
from priorshift.risk.data import RiskData
from priorshift.risk.kernel import compiled_whole, rewritten_risk
from priorshift.risk.losses import Loss
from priorshift.typing import Float32Array, FloatArray

Real = TypeVar("Real", np.float32, np.float64)


def norms(W: NDArray[Real]) -> NDArray[np.float64]:
    """Return the Frobenius norm of each stacked matrix of ``W`` (N, K, d).

    Examples
    --------
    >>> import numpy as np
    >>> norms(np.full((2, 2, 2), 0.5))
    array([1., 1.])
    """
    flat = W.reshape(W.shape[0], -1)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64)))


def project_ball(W: NDArray[Real], radius: float) -> NDArray[Real]:
    """Project each stacked matrix of ``W`` (N, K, d) on the ball: Pi_W of equation 4.

    Examples
    --------
    >>> import numpy as np
    >>> project_ball(np.array([[[3.0, 4.0]], [[0.3, 0.4]]]), radius=1.0)
    array([[[0.6, 0.8]],
    <BLANKLINE>
           [[0.3, 0.4]]])
    """
    scale = radius / np.maximum(norms(W), radius)
    return W * scale.astype(W.dtype)[:, None, None]


def descend(
    W: Float32Array, gradient: Float32Array, steps: FloatArray, radius: float
) -> Float32Array:
    r"""Return :math:`\Pi_W[w_i - \eta_i g_i]` for every base learner (N, K, d).

    Examples
    --------
    >>> descend(np.ones((1, 1, 2), np.float32), np.ones((1, 1, 2), np.float32), np.ones(1), 1.0)
    array([[[0., 0.]]], dtype=float32)
    """
    if compiled.available():
        plain = compiled.plain
        new: Float32Array = compiled.steps.descend(plain(W), plain(gradient), plain(steps), radius)
        return new
    return project_ball(W - steps.astype(np.float32)[:, None, None] * gradient, radius)


def gradient_step(
    data: RiskData,
    loss: Loss,
    W: Float32Array,
    prior: FloatArray,
    steps: FloatArray,
    radius: float,
) -> tuple[FloatArray, Float32Array]:
    r"""Risks (N,) of the models, and :math:`\Pi_W[w_i - \eta_i \nabla \hat R(w_i)]` (N, K, d).

    Examples
    --------
    >>> from priorshift.risk.losses import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W = np.zeros((1, 2, 1), np.float32)
    >>> risks, W = gradient_step(data, Softmax(), W, np.full(2, 0.5), np.array([0.5]), 5.0)
    >>> risks.round(4).tolist(), W.ravel().tolist()
    ([0.6931], [0.25, -0.25])
    """
    if compiled_whole(data, loss, W):
        plain = compiled.plain
        found: tuple[FloatArray, Float32Array] = compiled.steps.risk_step(
            data.samples, plain(W), plain(prior), plain(steps), radius
        )
        return found
    risk = rewritten_risk(data, loss, W, prior)
    return risk.value, descend(W, risk.gradient, steps, radius)
