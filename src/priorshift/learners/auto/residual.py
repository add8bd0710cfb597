"""A linear model on top of a reweighted f: learned and judged on a sketch of the hold-out.

Each class's rows of the hold-out are dealt into two halves. Each half trains its own model and
judges the other's: what is measured is never what was trained on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from priorshift.learners.auto.correction import Correction
from priorshift.typing import FloatArray, IntArray

_STEP = 0.3
_PENALTY = 0.03
_TINY = 1e-300


class Half(NamedTuple):
    """Rows of one half: logarithms of f (n, K), components (n, m + 1), labels and shares (n,).

    ``shares`` add up to 1 in every class.
    """

    logs: FloatArray
    components: FloatArray
    labels: IntArray
    shares: FloatArray


def sketch_of(found: Correction, rows: int, t: int) -> tuple[Half, Half]:
    """The rows of both halves that are read in round t; about ``rows`` in all.

    Examples
    --------
    >>> logs, F = np.log(np.full((8, 2), 0.5)), np.arange(8.0)[:, None]
    >>> labels, none = np.repeat([0, 1], 4), np.zeros((2, 1))
    >>> found = Correction(none[0], none, none, none[0], 0.0, 0.0, logs, F, labels)
    >>> one, two = sketch_of(found, 4, t=1)
    >>> one.components.ravel().tolist(), two.components.ravel().tolist()
    ([2.0, 6.0], [3.0, 7.0])
    """
    pieces = found.sketches.get(rows)
    if pieces is None:
        pieces = found.sketches[rows] = _cut(found, rows)
    piece: tuple[Half, Half] = pieces[t % len(pieces)]
    return piece


def _cut(found: Correction, rows: int) -> list[tuple[Half, Half]]:
    # No more pieces than the rarest class has rows for: each piece has rows of every class.
    number = max(1, min(len(found.labels) // rows, int(found.counts.min()) // 2))
    starts = np.concatenate([[0], np.cumsum(found.counts)])
    pieces: list[list[list[IntArray]]] = [[[], []] for _ in range(number)]
    for a, b in pairwise(starts):
        for half in (0, 1):
            own = np.arange(a + half, b, 2)
            for p in range(number):
                part = own[p::number]
                pieces[p][half].append(part if len(own) >= number else own)
    return [(_half(found, first), _half(found, second)) for first, second in pieces]


def _half(found: Correction, parts: list[IntArray]) -> Half:
    rows = np.concatenate(parts)
    shares = np.concatenate([np.full(len(part), 1.0 / len(part)) for part in parts])
    return Half(found.logs[rows], found.components[rows], found.labels[rows], shares)


def judged_step(
    sketch: tuple[Half, Half], models: FloatArray, mix: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rewritten log-losses (2,) of the reweighted f and of the models, and the models a step on.

    Model 0 learns from half 0 and is judged by half 1, model 1 the other way round.

    Examples
    --------
    >>> F, labels = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> half = Half(np.log(np.full((2, 2), 0.5)), F, labels, np.ones(2))
    >>> even = np.array([0.5, 0.5])
    >>> losses, models = judged_step((half, half), np.zeros((2, 2, 1)), even, even)
    >>> losses.round(4).tolist(), models[0].ravel().tolist()
    ([0.6931, 0.6931], [0.15, -0.15])
    """
    move = np.log(np.maximum(mix, _TINY)) - np.log(prior)
    flat = models.reshape(-1, models.shape[2])
    losses, after = np.zeros(2), np.empty_like(models)
    for own, half in enumerate(sketch):
        n = len(half.labels)
        weights = mix[half.labels] * half.shares
        scores = np.empty((3, n, len(mix)))
        np.add(half.logs, move, out=scores[0])
        tilts = (half.components @ flat.T).reshape(n, 2, -1)
        scores[1:] = scores[0] + tilts.transpose(1, 0, 2)
        # Of f and the other half's model the loss is wanted, of the own model the gradient.
        proba, top = _softmax(scores)
        fit = scores[:, np.arange(n), half.labels] - top
        losses -= 0.5 * (fit[[0, 2 - own]] @ weights)
        gap = proba[1 + own]
        gap[np.arange(n), half.labels] -= 1.0
        gap *= weights[:, None]
        gradient = gap.T @ half.components + _PENALTY * models[own]
        after[own] = models[own] - _STEP * gradient
    return losses, after


def _softmax(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Softmax over the last axis, and the logarithm of what it was divided by."""
    columns = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # short axes are slow to reduce
    top = np.maximum.reduce(columns, axis=0)
    columns -= top
    np.exp(columns, out=columns)
    total = np.add.reduce(columns, axis=0)
    columns /= total
    return np.ascontiguousarray(np.moveaxis(columns, 0, -1)), top + np.log(total)
