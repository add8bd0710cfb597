"""The authors' inexact implicit step for softmax models, compiled: L-BFGS without a line search."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift._numerics import TINY
from priorshift.risk.compiled._njit import exact
from priorshift.risk.compiled.maths import dot
from priorshift.risk.compiled.problem import FLAT
from priorshift.risk.compiled.steps import softmax_risk


@exact
def lbfgs_steps(
    samples: Any, prior: Any, centre: Any, steps: Any, radius: float, iterations: int
) -> Any:
    """Models (N, K, d) after the iterations of ``PaperSolver``, each base learner by itself.

    ``samples`` are ``Samples``; ``prior`` is the hint's.
    """
    n_learners, n_classes, width = centre.shape
    size = n_classes * width
    middle = centre.reshape(n_learners, size).astype(np.float64)
    w, gradient = middle.copy(), np.empty((n_learners, size))
    S = np.zeros((iterations, n_learners, size))
    Y = np.zeros((iterations, n_learners, size))
    inverse, scale = np.zeros((iterations, n_learners)), np.ones(n_learners)
    shares = np.empty(iterations)
    for done in range(iterations):
        W = w.astype(np.float32).reshape(n_learners, n_classes, width)
        slopes = softmax_risk(samples, W, prior)[1].reshape(n_learners, size)
        for i in range(n_learners):
            g, length = gradient[i], 0.0
            for r in range(size):
                new = slopes[i, r] + (w[i, r] - middle[i, r]) / steps[i]
                if done > 0:
                    Y[done - 1, i, r] = new - g[r]
                g[r] = new
                length += abs(new)
            if done == 0:
                share = min(1.0, 1.0 / max(length, TINY))
                for r in range(size):
                    S[0, i, r] = -share * g[r]
            else:
                _remember(S[done - 1, i], Y[done - 1, i], done - 1, i, inverse, scale)
                _direction(g, S, Y, inverse, scale[i], shares, done, i, S[done, i])
            for r in range(size):
                w[i, r] += S[done, i, r]
    return _projected(w, n_classes, radius)


@exact
def _remember(step: Any, change: Any, place: int, i: int, inverse: Any, scale: Any) -> None:
    """Keep what a step and the change of the gradient along it say of the curvature."""
    size = len(step)
    bend = dot(step, change, size)
    if bend > FLAT:
        inverse[place, i] = 1.0 / bend
        scale[i] = bend / dot(change, change, size)


@exact
def _direction(
    gradient: Any,
    S: Any,
    Y: Any,
    inverse: Any,
    scale: float,
    shares: Any,
    pairs: int,
    i: int,
    found: Any,
) -> None:
    """Fill ``found`` with minus the gradient times the inverse Hessian that the pairs show."""
    size = len(gradient)
    for r in range(size):
        found[r] = -gradient[r]
    for place in range(pairs - 1, -1, -1):
        share = inverse[place, i] * dot(S[place, i], found, size)
        shares[place] = share
        for r in range(size):
            found[r] -= share * Y[place, i, r]
    for r in range(size):
        found[r] *= scale
    for place in range(pairs):
        share = shares[place] - inverse[place, i] * dot(Y[place, i], found, size)
        for r in range(size):
            found[r] += share * S[place, i, r]


@exact
def _projected(w: Any, n_classes: int, radius: float) -> Any:
    """The models in the ball, as float32 (N, K, d)."""
    n_learners, size = w.shape
    W = np.empty((n_learners, size), np.float32)
    for i in range(n_learners):
        norm = np.sqrt(dot(w[i], w[i], size))
        shrink = radius / max(norm, radius)
        for r in range(size):
            W[i, r] = shrink * w[i, r]
    return W.reshape(n_learners, n_classes, size // n_classes)
