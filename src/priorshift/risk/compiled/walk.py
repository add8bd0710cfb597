"""Many rounds of UOGD or ATLAS in one compiled loop, where Python's own time would show."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact
from priorshift.risk.compiled.maths import dot
from priorshift.risk.compiled.steps import hedged_model, risk_step


@exact
def hard_mix(proba: Any, first: int, last: int, inverse: Any, clipped: bool) -> Any:
    """BBSE's estimate (K,) from the rows ``first:last`` of f0's probabilities.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    >>> hard_mix(proba, 0, 4, np.eye(2), False).tolist()
    [0.75, 0.25]
    """
    n_classes = proba.shape[1]
    counts, mix = np.zeros(n_classes), np.zeros(n_classes)
    for s in range(first, last):
        best = 0
        for k in range(1, n_classes):
            if proba[s, k] > proba[s, best]:
                best = k
        counts[best] += 1.0
    for k in range(n_classes):
        counts[k] /= last - first
    for k in range(n_classes):
        for c in range(n_classes):
            mix[k] += inverse[k, c] * counts[c]
        if clipped:
            mix[k] = max(mix[k], 0.0)
    return mix


@exact
def labels_of(model: Any, features: Any, first: int, last: int, labels: Any) -> None:
    """Write the most likely class of each row ``first:last`` under a linear model (K, d)."""
    n_classes, width = model.shape
    wide = model.astype(np.float64)
    for s in range(first, last):
        row = features[s]
        best, highest = 0, dot(wide[0], row, width)
        for k in range(1, n_classes):
            score = dot(wide[k], row, width)
            if score > highest:
                best, highest = k, score
        labels[s] = best


@exact
def walk(
    X: Any,
    shares: Any,
    offsets: Any,
    means: Any,
    largest_norm: float,
    t: int,
    W: Any,
    losses: Any,
    mix: Any,
    steps: Any,
    radius: float,
    rates: Any,
    proba: Any,
    features: Any,
    inverse: Any,
    clipped: bool,
    adapt_first: bool,
) -> Any:
    """Play ``len(rates) - 1`` rounds from round ``t`` on.

    Round t reads block ``t mod B`` of the offline set: columns ``offsets[b, k]:offsets[b, k + 1]``
    of ``X`` are its class k, ``means[b]`` (K, d) its class means. ``rates`` are Hedge's, of the
    rounds ``t + 1`` on. Returns labels, the mixes believed in when predicting (rounds, K), and the
    state: W, losses, mix.
    """
    rounds = len(rates) - 1
    size = len(proba) // rounds
    n_blocks, n_classes = means.shape[0], means.shape[1]
    labels = np.empty(len(proba), np.int64)
    believed = np.empty((rounds, n_classes))
    losses = losses.copy()
    for r in range(rounds):
        first, last = r * size, (r + 1) * size
        if not adapt_first:
            believed[r] = mix
            labels_of(hedged_model(losses, rates[r], W), features, first, last, labels)
        mix = hard_mix(proba, first, last, inverse, clipped)
        b = (t + r) % n_blocks
        risks, W = risk_step(X, shares, offsets[b], means[b], W, mix, largest_norm, steps, radius)
        losses += risks
        if adapt_first:
            believed[r] = mix
            labels_of(hedged_model(losses, rates[r + 1], W), features, first, last, labels)
    return labels, believed, W, losses, mix
