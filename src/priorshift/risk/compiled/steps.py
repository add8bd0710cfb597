"""A round's work of the linear learners in one compiled call each: risk, gradient step, predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact
from priorshift.risk.compiled.maths import dot, exp64
from priorshift.risk.compiled.softmax import softmax_pass

_f = np.float32


@exact
def differences(W: Any, D: Any) -> float:
    """Fill ``D`` (R, d) with the rows of ``W`` (N, K, d) minus class 0; return the longest norm."""
    n_learners, n_classes, width = W.shape
    longest = 0.0
    for k in range(1, n_classes):
        for i in range(n_learners):
            square = 0.0
            for j in range(width):
                gap = W[i, k, j] - W[i, 0, j]
                D[(k - 1) * n_learners + i, j] = gap
                square += gap * gap
            longest = max(longest, square)
    return np.sqrt(longest)


@exact
def softmax_risk(samples: Any, W: Any, prior: Any) -> Any:
    """Value (N,) and gradient (N, K, d) of the rewritten softmax risk (equation 3).

    ``samples`` are ``Samples``; classes without weight are not read.
    """
    X, shares, offsets, means, largest_norm = samples
    n_learners, n_classes, width = W.shape
    rows = (n_classes - 1) * n_learners
    D = np.empty((rows, width), np.float32)
    safe = differences(W, D) * largest_norm < 60.0
    value = np.zeros(n_learners)
    moments = np.zeros((rows, width), np.float32)
    weights = np.empty(offsets[n_classes], np.float32)
    first = 0
    while first < n_classes:
        if prior[first] == 0.0:
            first += 1
            continue
        last = first
        while last < n_classes and prior[last] != 0.0:
            weight = _f(prior[last])
            for s in range(offsets[last], offsets[last + 1]):
                weights[s] = weight * shares[s]
            last += 1
        a, b = offsets[first], offsets[last]
        softmax_pass(X, weights[a:b], a, b, D, n_learners, safe, value, moments)
        first = last
    gradient = np.empty((n_learners, n_classes, width), np.float32)
    _assemble(moments, means, prior, W, gradient, value)
    return value, gradient


@exact
def _assemble(moments: Any, means: Any, prior: Any, W: Any, gradient: Any, value: Any) -> None:
    """Add the linear part, and the class left out: its gradient is the total less the others'."""
    n_learners, n_classes, width = W.shape
    for j in range(width):
        total = 0.0
        for k in range(n_classes):
            total += prior[k] * means[k, j]
        for i in range(n_learners):
            rest = total
            value[i] += W[i, 0, j] * total
            for k in range(1, n_classes):
                moment = moments[(k - 1) * n_learners + i, j]
                pull = prior[k] * means[k, j]
                rest -= moment
                value[i] -= W[i, k, j] * pull
                gradient[i, k, j] = moment - pull
            pull = prior[0] * means[0, j]
            value[i] -= W[i, 0, j] * pull
            gradient[i, 0, j] = rest - pull


@exact
def descend(W: Any, gradient: Any, steps: Any, radius: float) -> Any:
    """Return ``Pi_W[w - eta g]`` for every base learner (equation 4)."""
    n_learners, n_classes, width = W.shape
    new = np.empty((n_learners, n_classes, width), np.float32)
    for i in range(n_learners):
        step = _f(steps[i])
        square = 0.0
        for k in range(n_classes):
            for j in range(width):
                w = W[i, k, j] - step * gradient[i, k, j]
                new[i, k, j] = w
                square += np.float64(w) * np.float64(w)
        norm = np.sqrt(square)
        if norm > radius:
            scale = _f(radius / norm)
            for k in range(n_classes):
                for j in range(width):
                    new[i, k, j] *= scale
    return new


@exact
def risk_step(samples: Any, W: Any, prior: Any, steps: Any, radius: float) -> Any:
    """Risks (N,) of the models, and the models after a projected gradient step on them."""
    value, gradient = softmax_risk(samples, W, prior)
    return value, descend(W, gradient, steps, radius)


@exact
def linear_proba(W: Any, features: Any) -> Any:
    """Class probabilities (n, K) of the linear model ``W`` (K, d), each row by itself."""
    n, width = features.shape
    n_classes = W.shape[0]
    proba = np.empty((n, n_classes))
    wide = W.astype(np.float64)
    for s in range(n):
        top = -np.inf
        for k in range(n_classes):
            proba[s, k] = dot(wide[k], features[s], width)
            top = max(top, proba[s, k])
        for k in range(n_classes):
            proba[s, k] -= top
    flat = proba.ravel()
    for r in range(len(flat)):
        flat[r] = exp64(flat[r])
    for s in range(n):
        total = 0.0
        for k in range(n_classes):
            total += proba[s, k]
        for k in range(n_classes):
            proba[s, k] /= total
    return proba


@exact
def hedged_model(scores: Any, rate: float, W: Any) -> Any:
    """The mean model (K, d) under Hedge's weights (Algorithm 2, lines 4 and 5)."""
    n_learners, n_classes, width = W.shape
    least = scores[0]
    for i in range(1, n_learners):
        least = min(least, scores[i])
    total = 0.0
    weights = np.empty(n_learners)
    for i in range(n_learners):
        weights[i] = np.exp(-rate * (scores[i] - least))
        total += weights[i]
    model = np.zeros((n_classes, width), np.float32)
    for i in range(n_learners):
        weight = _f(weights[i] / total)
        for k in range(n_classes):
            for j in range(width):
                model[k, j] += weight * W[i, k, j]
    return model


@exact
def mean_proba(scores: Any, rate: float, W: Any, features: Any) -> Any:
    """Probabilities of the mean model under Hedge's weights."""
    return linear_proba(hedged_model(scores, rate, W), features)


@exact
def hard_estimate(proba: Any, inverse: Any) -> Any:
    """BBSE's estimate (K,) from f0's probabilities (n, K) and the inverse of its confusion matrix.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    >>> hard_estimate(proba, np.eye(2)).tolist()
    [0.75, 0.25]
    """
    n, n_classes = proba.shape
    counts, prior = np.zeros(n_classes), np.zeros(n_classes)
    for s in range(n):
        best = 0
        for k in range(1, n_classes):
            if proba[s, k] > proba[s, best]:
                best = k
        counts[best] += 1.0
    for k in range(n_classes):
        counts[k] /= n
    for k in range(n_classes):
        for c in range(n_classes):
            prior[k] += inverse[k, c] * counts[c]
    return prior
