r"""What new streams start from: the class priors that other streams of the fleet have shown.

Streams are taken to be of a few kinds. A stream of kind r has a class prior drawn from a Dirichlet
distribution around the mean :math:`m_r` of its kind, with the strength of ``_STRENGTH`` rows, and
the rows that its slowest expert has counted are drawn from that prior. Means and shares of the
kinds are fitted to the streams by EM (empirical Bayes). A new stream then starts with the kinds as
its regimes, believed in by their shares: the first rows tell which kind it is. Its experts start
from the mean of all; trust, and the belief that nothing has changed, are the means of the fleet's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from priorshift.learners.trackers.careful import reluctant
from priorshift.learners.trackers.compiled import fields
from priorshift.learners.trackers.records import Plan
from priorshift.typing import FloatArray

# Streams that are looked at, how many there must be, and the batches that each must have seen.
SAMPLE, FEWEST, _ROUNDS = 500, 20, 5
_KINDS, _STRENGTH, _LEAST_SHARE = 5, 12.0, 0.02
_ITERATIONS, _SMOOTHING = 12, 0.5
# Rows that the mean of all streams is worth to the experts of a new one.
_EXPERT_ROWS = 1.0
_EXTREME = 0.02


def kinds(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means (R, K) and shares (R,) of the kinds of streams with these counts (M, K).

    Examples
    --------
    >>> means, shares = kinds(np.array([[30.0, 0.0]] * 30 + [[0.0, 30.0]] * 10))
    >>> first = means[:, 0] > 0.5
    >>> np.round(means[first][0], 1).tolist(), round(float(shares[first].sum()), 2)
    ([1.0, 0.0], 0.75)
    """
    K = counts.shape[1]
    every = counts.sum(axis=0) + _SMOOTHING
    every /= every.sum()
    own = counts + _STRENGTH * every
    own /= own.sum(axis=1, keepdims=True)
    means = _apart(own, every)
    shares = np.full(len(means), 1.0 / len(means))
    for _ in range(_ITERATIONS):
        alpha = _STRENGTH * means[:, None] + 1e-3
        logs = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=-1)
        logs += np.log(shares)[:, None]
        weights = np.exp(logs - logsumexp(logs, axis=0))
        shares = (weights.sum(axis=1) + 1e-9) / (len(counts) + 1e-9 * len(shares))
        means = weights @ counts + _SMOOTHING * K * every
        means /= means.sum(axis=1, keepdims=True)
    keep = shares >= _LEAST_SHARE
    return means[keep], shares[keep] / shares[keep].sum()


def _apart(own: FloatArray, every: FloatArray) -> FloatArray:
    """Streams that are far from each other, to start with: the next is the furthest from all."""
    roots = np.sqrt(own)
    chosen = [int(((roots - np.sqrt(every)) ** 2).sum(axis=1).argmin())]
    nearest = ((roots - roots[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(_KINDS, len(own)):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, ((roots - roots[chosen[-1]]) ** 2).sum(axis=1))
    return np.asarray(own[chosen])


def shared_start(plan: Plan, start: FloatArray, rows: FloatArray) -> FloatArray:
    """The row (W,) that a new stream starts from, after streams with these rows (M, W).

    ``start`` is the row without a fleet; it is what comes back while too few streams are known.
    """
    at, J, K = plan.at, len(plan.keep), len(plan.prior)
    rows = rows[rows[:, at[fields.T]] >= _ROUNDS]
    if len(rows) < FEWEST:
        return start

    def part(field: int, size: int) -> slice:
        return slice(int(at[field]), int(at[field]) + size)

    found = start.copy()
    last = int(at[fields.EXPERT_COUNTS]) + (J - 1) * K
    means, shares = kinds(rows[:, last : last + K])
    means, shares = means[: at[fields.SLOTS]], shares[: at[fields.SLOTS]]
    every = shares @ means / shares.sum()
    found[part(fields.EXPERT_COUNTS, J * K)] = np.tile(_EXPERT_ROWS * every, J)
    found[part(fields.MASS, K)] = every
    _average(found, rows, part(fields.EXPERT_WEIGHTS, J))
    for field in (fields.TRUST, fields.FORESIGHT):
        if at[field] >= 0:
            _average(found, rows, part(field, 2))
    if at[fields.TOLD] >= 0:
        _average(found, rows, part(fields.TOLD, 2 + int(at[fields.TRENDS])))
    R, S = len(shares), int(at[fields.SLOTS])
    if S:
        book: dict[int, Any] = {
            fields.COUNTS: _STRENGTH * means.ravel(),
            fields.BELIEF: shares / shares.sum(),
            fields.ROWS: np.full(R, _STRENGTH),
            fields.FIRST: np.zeros(R),
            fields.LAST: np.zeros(R),
        }
        for field, values in book.items():
            found[part(field, len(values))] = values
    if at[fields.UNCHANGED] >= 0 and found[at[fields.UNCHANGED]] < 1.0:
        for field in (fields.BY_EVIDENCE, fields.BY_CALLS):
            belief = float(rows[:, at[field]].mean())
            found[at[field]] = min(max(belief, _EXTREME), 1.0 - _EXTREME)
        likely = found[at[[fields.BY_EVIDENCE, fields.BY_CALLS]]].max()
        found[at[fields.UNCHANGED]] = reluctant(likely)
    return found


def _average(found: FloatArray, rows: FloatArray, where: slice) -> None:
    """Weights that add up to 1: the mean of the streams' and of what a stream has without them."""
    found[where] = 0.5 * found[where] + 0.5 * rows[:, where].mean(axis=0)
