"""Second derivatives of the rewritten risk, on a fixed stratified part of the held-out set.

They only steer the Newton steps of the implicit update; values and gradients stay exact, so the
part decides how many steps are taken and never where they end.
"""

from __future__ import annotations

import numpy as np

from priorshift.risk.data import CurvatureData
from priorshift.risk.losses import Loss
from priorshift.typing import Float32Array, FloatArray


def hessian(part: CurvatureData, loss: Loss, W: Float32Array, prior: FloatArray) -> FloatArray:
    """Hessians (N, K d, K d) of the risk under ``prior`` at ``W`` (N, K, d), one a base learner."""
    n_learners, n_classes, width = W.shape
    weights = part.sample_weights(prior) * np.float32(2 * loss.curvature)
    P = (W.reshape(-1, width) @ part.XT).reshape(n_learners, n_classes, -1)
    if loss.needs_label:
        for label, (a, b) in enumerate(zip(part.offsets[:-1], part.offsets[1:], strict=True)):
            loss.potential(P[:, :, a:b], label)
    else:
        loss.potential(P, 0)
    rows, columns = np.triu_indices(n_classes)
    pairs = P[:, rows] * P[:, columns]
    np.negative(pairs, out=pairs)
    pairs[:, rows == columns] += P
    pairs *= weights
    blocks = pairs.reshape(n_learners * len(rows), -1) @ part.products.T
    return _unfold(blocks.reshape(n_learners, len(rows), -1), n_classes, width)


def _unfold(blocks: Float32Array, n_classes: int, width: int) -> FloatArray:
    """Lay upper-triangular class pairs of upper-triangular feature pairs out as full matrices."""
    place = np.empty((width, width), np.intp)
    upper, lower = np.triu_indices(width)
    place[upper, lower] = place[lower, upper] = np.arange(len(upper))
    pair = np.empty((n_classes, n_classes), np.intp)
    rows, columns = np.triu_indices(n_classes)
    pair[rows, columns] = pair[columns, rows] = np.arange(len(rows))
    full = blocks[:, pair[:, None, :, None], place[None, :, None, :]]
    size = n_classes * width
    return full.reshape(len(blocks), size, size).astype(np.float64)
