r"""What f0 calls rows: whether its calls are still those of the held-out set.

How likely a batch is under a class prior depends on likelihood ratios, which few held-out rows of a
class, or a poor model, make wrong; and the more classes there are, the more ways wrong ratios have
to find a class prior that explains the rows better than the true one does. What f0 calls a row
cannot be wrong in that way. If nothing has changed, calls of held-out set and stream are
exchangeable, whatever f0 is. So the next call is c with the chance

.. math:: \frac{a_c + n_c}{\sum_{c'} (a_{c'} + n_{c'})},

with the counts a of the held-out set, over the caution and half a row more, and n of the stream (a
Polya urn). The hypothesis that something has changed forgets: urns with 16 rows of the held-out
set's shares, and the stream's own counts of about the last 8, 64 and 512 rows, weighed by Bayes'
rule. Under exchangeability the ratio of the two is a martingale, but for the half rows: the chance
that it ever passes e is at most 1 / e.

With up to 4 classes calls are not asked: they say too little of so few classes, and a class prior
of so few numbers has hardly a way to be wrong.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from priorshift.typing import FloatArray, IntArray

# Chances, a round, that an unchanged stream changes, and that a changed one is what it was again.
LEAVE, BACK = 1e-3, 1e-3
TINY = 1e-12
# Rows that a call has before any is seen; classes from which on calls are asked.
_HALF, _FEWEST_CLASSES = 0.5, 5
# What the three forgetful urns keep after a row; rows that their base is worth; what they lend.
KEEP = 1.0 - 2.0 ** -np.array([3.0, 6.0, 9.0])
_STRENGTH, _SHARE = 16.0, 1e-3


def held_out_calls(proba: FloatArray, weights: FloatArray) -> FloatArray:
    """Held-out rows (K,) that f0 calls each class, weighted; (0,) where calls are not asked.

    Examples
    --------
    >>> held_out_calls(np.eye(5), np.full(5, 0.2)).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> held_out_calls(np.eye(2), np.full(2, 0.5)).tolist()
    []
    """
    K = proba.shape[1]
    if K < _FEWEST_CLASSES:
        return np.empty(0)
    rows = weights.sum() / (weights @ weights)
    return np.asarray(rows * np.bincount(proba.argmax(axis=1), weights, K))


def first_calls(held: FloatArray, caution: float) -> FloatArray:
    """The counts that the hypothesis starts from."""
    return held / caution + _HALF


def calls_of(proba: FloatArray) -> IntArray:
    """What f0 calls each row (n,), also one whose label is known: labels are others than calls.

    Examples
    --------
    >>> calls_of(np.array([[0.9, 0.1], [0.4, 0.6]])).tolist()
    [0, 1]
    """
    called: IntArray = proba.argmax(axis=1)
    return called


class Called(NamedTuple):
    """The belief by calls, counts (K,) of the stream, those of forgetful urns, their weights."""

    belief: float
    counts: FloatArray
    recent: FloatArray
    weights: FloatArray


def start_calls(size: int, belief: float) -> Called:
    """Return what is known of calls before the first batch; of nothing, where there are none.

    Examples
    --------
    >>> start_calls(7, 0.5).recent.shape, start_calls(0, 0.5).belief
    ((3, 7), 0.0)
    """
    J = len(KEEP)
    weights = np.full(J, 1.0 / J)
    return Called(belief if size else 0.0, np.zeros(size), np.zeros((J, size)), weights)


def weigh_calls(before: Called, called: IntArray, first: FloatArray) -> Called:
    """Weigh both hypotheses by the calls (n,) of a batch; NumPy's twin of the compiled function.

    Examples
    --------
    >>> first = first_calls(np.array([50.0, 50.0]), caution=1.0)
    >>> state = start_calls(2, 0.5)
    >>> for _ in range(20):  # nothing has changed
    ...     state = weigh_calls(state, np.array([0, 1, 1, 0]), first)
    >>> bool(state.belief > 0.5)
    True
    >>> for _ in range(20):
    ...     state = weigh_calls(state, np.array([0, 0, 0, 0]), first)
    >>> bool(state.belief < 0.01)
    True
    """
    if not len(first):
        return before
    number, K = np.arange(len(called)), len(first)
    stayed = before.belief * (1.0 - LEAVE)
    belief = stayed + (1.0 - before.belief) * BACK
    own = before.counts * (stayed / belief)
    here = np.bincount(called, minlength=K).astype(float)
    ahead = _rows_before(called)  # rows of the batch that were called the same before
    whole = first.sum()
    unchanged = np.log((first[called] + own[called] + ahead) / (whole + own.sum() + number)).sum()
    base = _STRENGTH * first[called] / whole + ahead
    sums = _STRENGTH + before.recent.sum(axis=1)
    nats = np.log((base + before.recent[:, called]) / (sums[:, None] + number)).sum(axis=1)
    nats += np.log(before.weights)
    changed = float(np.logaddexp.reduce(nats))
    lead = math.log(max(belief, TINY) / max(1.0 - belief, TINY)) + float(unchanged) - changed
    return Called(
        float(expit(lead)),
        own + here,
        # In float32, as records.py keeps it.
        (before.recent * (KEEP ** len(called))[:, None] + here).astype(np.float32).astype(float),
        (1.0 - _SHARE) * np.exp(nats - changed) + _SHARE / len(nats),
    )


def _rows_before(called: IntArray) -> IntArray:
    """For each entry, how many before it are equal to it.

    Examples
    --------
    >>> _rows_before(np.array([3, 1, 3, 3, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(called, kind="stable")
    ordered = called[order]
    first = np.searchsorted(ordered, ordered)
    found = np.empty(len(called), dtype=np.int64)
    found[order] = np.arange(len(called)) - first
    return found
