r"""When the present departure from the source prior began: the records that rows leave possible.

Learners believe in a change when it pays to, which may be long after it came; so the question goes
to the rows. With S the covariance of what is read of held-out rows, :math:`\bar x_t` the mean of
what was read of the :math:`n_t` rows of record t, and the held-out set the record before the first,

.. math:: \bar x_t \approx N(\mu_t, S / n_t).

Where neighbouring records differ by more than that, by the median, their S is as many times as
large.

1. *Pieces.* The history is cut into pieces of constant :math:`\mu`, each of which pays, in
   likelihood, for the places that its cut was chosen from. The departure begins behind the last
   piece that the first, which has the held-out set in it, does not contradict.
2. *Beginnings.* Inside of that piece and of the next, every beginning a and end b of a straight
   change :math:`\mu_t = \alpha + w_t \delta` is tried, w going from 0 at a to 1 at b; at once is
   b = a. Of beginnings, those stay whose likelihood, at their best, is within :math:`\xi` of the
   largest. The largest is ahead of the truth by what random walks that drift down reach at most,
   two around a and two around b: by less than :math:`\xi` with a chance of
   :math:`(1 - e^{-\xi})^4`. Where records scatter more around the best than S says,
   :math:`\xi` is as many times as large.
3. *The test.* A stream without a shift passes p = 0.01 with a chance of 0.01: the first departure
   has begun when it is passed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from priorshift.monitoring.history import History
from priorshift.monitoring.metrics import Weighed
from priorshift.source import Source
from priorshift.typing import FloatArray

LEVEL = 0.95
# The chance that a piece is cut off, or found to differ from the held-out set, by accident.
_CHANCE = 0.01
# Directions in which held-out rows hardly differ, as a share of the largest variance, say nothing.
_FLAT = 1e-9
# Held-out rows for each direction that is looked at: of fewer the covariance cannot be inverted.
_ROWS = 20.0


class Onset(NamedTuple):
    """When the present departure began, or the last one that is over.

    Attributes
    ----------
    first, last : int
        The first and the last record in which it may have begun.
    over : bool
        Whether rows say that there was a departure, and that the class prior is back.
    """

    first: int
    last: int
    over: bool


def onset(source: Source, history: History) -> Onset:
    """Return in which records of a history the departure may have begun.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = np.repeat([[0.9, 0.1], [0.2, 0.8]], 100, axis=0), np.repeat([0, 1], 100)
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> for first in [50] * 20 + [100] * 20:  # from the 21st batch on all are of class 1
    ...     clf = clf.adapt(P[first : first + 100])
    >>> onset(clf.source_, clf.stream_.history)
    Onset(first=20, last=20, over=False)
    """
    read, rows = _records(source, history)
    pieces, like = _pieces(read, rows)
    over = len(pieces) > 1 and like[-1]
    away = [i for i in range(1, len(pieces)) if like[i - 1] and not like[i]]
    if away:
        start, stop = max(pieces[away[-1] - 1][0], 1), pieces[away[-1]][1]
    else:  # nothing is cut off that is away
        start, stop = 1, len(rows)
    likely, scatter = _beginnings(read[start:stop], rows[start:stop], rows[0])
    behind = -math.log1p(-(LEVEL**0.25)) * max(scatter, 1.0)
    places = start - 1 + np.flatnonzero(likely >= likely.max() - behind)
    low, high = int(places[0]), int(places[-1])
    passed = np.flatnonzero(history.field("shift_log_p") <= math.log(_CHANCE))
    if len(away) < 2 and len(passed):
        high = min(high, int(passed[0]))
    return Onset(min(low, high), high, over)


def _records(source: Source, history: History) -> tuple[FloatArray, FloatArray]:
    """What was read (R + 1, d), the held-out set first and taken off, and numbers of rows.

    In the units of it a row has unit covariance.
    """
    weights = Weighed.of(source.proba, source.labels, source.prior, source.row_weights).weights
    mean = weights @ source.proba
    gap = source.proba - mean
    values, axes = np.linalg.eigh((gap.T * weights) @ gap)
    rows = np.concatenate([[1.0 / (weights @ weights)], history.field("rows")])
    # The largest variances, as many as the held-out rows tell; none where all rows are alike.
    kept = np.flatnonzero(values > _FLAT * max(float(values[-1]), _FLAT))
    kept = kept[-max(int(rows[0] / _ROWS), 1) :]
    read = (history.read - mean) @ (axes[:, kept] / np.sqrt(values[kept]))
    # A class prior that goes up and down with every batch is no change of it.
    gaps = (np.diff(read, axis=0) ** 2).sum(axis=1) / (1.0 / rows[1:-1] + 1.0 / rows[2:])
    restless = 1.0
    if len(gaps) and len(kept):
        restless = max(float(np.median(gaps) / chdtri(len(kept), 0.5)), 1.0)
    read, rows[0] = read / math.sqrt(restless), restless * rows[0]
    return np.concatenate([np.zeros((1, read.shape[1])), read]), rows


def _pieces(read: FloatArray, rows: FloatArray) -> tuple[list[tuple[int, int]], list[bool]]:
    """Where pieces of one class prior begin and end, and whether each is like the first."""
    number, d = read.shape
    size = np.concatenate([[0.0], np.cumsum(rows)])
    sums = np.concatenate([np.zeros((1, d)), np.cumsum(rows[:, None] * read, axis=0)])
    price = 0.5 * float(chdtri(d, _CHANCE / number))
    best, cut = np.zeros(number + 1), np.zeros(number + 1, dtype=int)
    for end in range(1, number + 1):
        gains = 0.5 * ((sums[end] - sums[:end]) ** 2).sum(axis=1) / (size[end] - size[:end])
        totals = best[:end] + gains - price
        cut[end] = int(totals.argmax())
        best[end] = totals[cut[end]]
    edges = [number]
    while edges[0] > 0:
        edges.insert(0, int(cut[edges[0]]))
    size, sums = np.diff(size[edges]), np.diff(sums[edges], axis=0)
    gap = sums / size[:, None] - sums[0] / size[0]
    odd = (gap**2).sum(axis=1) / (1.0 / size + 1.0 / size[0])
    return list(pairwise(edges)), [bool(one <= chdtri(d, _CHANCE)) for one in odd]


def _beginnings(read: FloatArray, rows: FloatArray, held_out: float) -> tuple[FloatArray, float]:
    """Log-likelihoods (m,) of a straight change that begins with each record, each at its best.

    And the mean square around the best of all, which is 1 where S is right.
    """
    number = len(read)
    total = held_out + rows.sum()
    edge = np.concatenate([[0.0], np.cumsum(rows)])
    middle = 0.5 * (edge[1:] + edge[:-1])
    mean = rows @ read / total

    def summed(values: FloatArray) -> FloatArray:
        return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])

    weighed = rows[:, None] * read
    x, mx = summed(weighed), summed(middle[:, None] * weighed)
    m, mm = summed(middle * rows), summed(middle**2 * rows)
    found = np.empty(number)
    for a in range(number):
        b = np.arange(a, number + 1)
        long = np.where(b > a, edge[b] - edge[a], 1.0)  # without length all is 0
        wx = (mx[b] - mx[a] - edge[a] * (x[b] - x[a])) / long[:, None] + x[-1] - x[b]
        w = (m[b] - m[a] - edge[a] * (edge[b] - edge[a])) / long + edge[-1] - edge[b]
        square = mm[b] - mm[a] - 2.0 * edge[a] * (m[b] - m[a])
        ww = (square + edge[a] ** 2 * (edge[b] - edge[a])) / long**2 + edge[-1] - edge[b]
        gains = ((wx - w[:, None] * mean) ** 2).sum(axis=1) / (ww - w**2 / total)
        found[a] = 0.5 * float(gains.max())
    square = float(rows @ (read**2).sum(axis=1)) - total * float(mean @ mean)
    left = square - 2.0 * float(found.max())
    return found, left / (max(number - 1, 1) * max(read.shape[1], 1))
