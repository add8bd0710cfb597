r"""What a coreset has to get right: losses and gradients of the models that a learner may pass.

The *bank* of a row x of class k holds, for every reference model w, its loss and the gradient
:math:`(\nabla\phi_k(w x) - e_k) x^\top` of that loss. Reference models are risk minimisers for
class priors all over the simplex, each also shrunk towards zero, since learners live in a ball
whose radius may be small, and pass between such models. Wide data have too many gradient entries;
then random products :math:`(u^\top g)(v^\top x)` stand in for them: they keep inner products on
average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift.risk.data import RiskData
from priorshift.risk.implicit import ImplicitSolver
from priorshift.risk.losses import Loss, Softmax
from priorshift.risk.sketches.base import Chosen, assemble, class_rows, shares
from priorshift.risk.step import norms
from priorshift.typing import Float32Array, FloatArray

# Rows on which reference models are fitted; they only have to be near the learners' path.
_FIT_ROWS = 6000
# Gradients of more entries in all than the first are projected to about the second.
_MOST_COLUMNS, _PROJECTED = 1536, 768
_SCALES = (1.0, 0.5, 0.25)
_SMALLEST_BALL = 1e-3


def reference_mixes(n_classes: int, number: int, rng: np.random.Generator) -> FloatArray:
    """The uniform prior, priors with nearly all on one class, and random ones, (number, K)."""
    uniform = np.full((1, n_classes), 1.0 / n_classes)
    order = rng.permutation(n_classes)[: number // 2]
    corners = np.eye(n_classes)[order]
    drawn = rng.dirichlet(np.full(n_classes, 0.5), size=max(0, number - 1 - len(corners)))
    return np.concatenate([uniform, corners, drawn])[:number]


def reference_models(data: RiskData, number: int, rng: np.random.Generator) -> Float32Array:
    """Zero, mildly regularised softmax risk minimisers for reference priors, and shrunk copies.

    The ball is as large as the uniform prior's minimiser needs: that of a single class has no end.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> data = RiskData.of(X, (X[:, 0] > 0).astype(int), n_classes=2)
    >>> reference_models(data, 4, np.random.default_rng(0)).shape
    (13, 2, 2)
    """
    part = _some_rows(data, rng)
    solver = ImplicitSolver(tolerance=1e-3, max_steps=50)
    zero = np.zeros((1, data.n_classes, data.XT.shape[0]), np.float32)
    step = np.array([float(part.XT.shape[1])])
    models: list[Float32Array] = []
    radius = 1e6
    for prior in reference_mixes(data.n_classes, number, rng):
        start = models[0] if models else zero
        found = solver.solve(part, Softmax(), zero, start, step, prior, radius)
        if not models:
            radius = max(float(norms(found.W)[0]), _SMALLEST_BALL)
        models.append(found.W)
    found_models = np.concatenate(models)
    shrunk = [np.float32(scale) * found_models for scale in _SCALES]
    return np.concatenate([zero, *shrunk])


def _some_rows(data: RiskData, rng: np.random.Generator) -> RiskData:
    rows = shares(data.counts, _FIT_ROWS)
    pieces = [class_rows(data, k, int(m), rng) for k, m in enumerate(rows)]
    return assemble(data, [Chosen(p, np.full(len(p), 1.0 / len(p))) for p in pieces])


@dataclass(frozen=True, eq=False)
class Bank:
    """Losses and gradients at reference models, as features of a row."""

    models: Float32Array
    loss: Loss
    left: Float32Array | None
    right: Float32Array | None

    @classmethod
    def of(cls, models: Float32Array, loss: Loss, rng: np.random.Generator) -> Bank:
        """Decide whether the gradients are small enough to be kept whole."""
        number, n_classes, width = models.shape
        if number * (1 + n_classes * width) <= _MOST_COLUMNS:
            return cls(models, loss, None, None)
        each = max(4, _PROJECTED // number - 1)
        left = rng.normal(size=(number, n_classes, each)) / np.sqrt(each)
        right = rng.normal(size=(number, width, each))
        return cls(models, loss, left.astype(np.float32), right.astype(np.float32))

    def __call__(self, X: Float32Array, label: int) -> Float32Array:
        """Features (m, columns) of the rows ``X`` (m, d) of one class."""
        columns = []
        for i, W in enumerate(self.models):
            logits = np.ascontiguousarray((X @ W.T).T)[None]
            own = logits[0, label].copy()
            columns.append((self.loss.potential(logits, label)[0] - own)[:, None])
            slope = logits[0].T
            slope[:, label] -= 1.0
            if self.left is None or self.right is None:
                columns.append((slope[:, :, None] * X[:, None, :]).reshape(len(X), -1))
            else:
                columns.append((slope @ self.left[i]) * (X @ self.right[i]))
        return np.concatenate(columns, axis=1)
