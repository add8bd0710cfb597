r"""Streams that move together: what all rows of a call show is passed on to each stream.

One more tracker, the *common* stream, learns from the rows of all streams. A stream's record keeps
the common class prior :math:`c` of when it last learned. When it comes again and the common one is
:math:`c'`, all that it has counted is multiplied by :math:`(c' / c)^g`, class by class, and scaled
to the number of rows that it was. Rows come to the common stream after the streams have learned
from them, so that none is evidence for its own prediction.

The gain :math:`g` is one for the whole fleet: the mean of ``GAINS`` under weights by Bayes' rule.
The evidence of each is how likely the rows of a call are under what their streams expected, so
multiplied. It is forgotten slowly, and nothing is passed on until it speaks for that: where streams
do not move together, g is 0, and they are what they would be alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from priorshift.fleet.forms import TrackerForm
from priorshift.source import Batch
from priorshift.typing import FloatArray, IntArray

GAINS = np.array([0.0, 0.5, 1.0])
# Nats that the other gains are behind 0 at first, and what is kept of them with every call.
_BEHIND, _KEEP, _MOST_NATS = 3.0, 0.98, 20.0
# Of the common class prior the share that is spread evenly: small ones are known badly.
_EVEN = 0.02
# Rows of a call that the common stream learns from.
_MOST_ROWS = 2000
# Records that are changed together.
_AT_ONCE = 4096


class Common(NamedTuple):
    """The common stream: its record (R,), and log weights (G - 1,) of gains against that of 0."""

    record: FloatArray
    weights: FloatArray

    @classmethod
    def first(cls, form: TrackerForm) -> Common:
        """Before all calls."""
        return cls(form.start, np.full(len(GAINS) - 1, -_BEHIND))

    def prior(self, form: TrackerForm) -> FloatArray:
        """The common class prior (K,), none of it near 0."""
        prior = form.priors(self.record[None])[0]
        return (1.0 - _EVEN) * prior + _EVEN / len(prior)

    @property
    def gain(self) -> float:
        """The power of what is passed on; 0 where that would be next to nothing."""
        weights = np.exp(np.append(0.0, self.weights) - max(0.0, self.weights.max()))
        gain = float(weights @ GAINS / weights.sum())
        return gain if gain > _LEAST else 0.0

    def learned(self, form: TrackerForm, batch: Batch, nats: FloatArray) -> Common:
        """The common stream after a call with these rows, and the nats (n, G) of gains in each.

        Neither depends on the order of the rows, to the last bit.
        """
        known = [] if batch.known is None else [batch.known]
        order = np.lexsort([*known, *batch.proba.T])
        if len(order) > _MOST_ROWS:
            order = order[np.linspace(0, len(order) - 1, _MOST_ROWS).astype(int)]
        record, ends = self.record[None].copy(), np.array([0, len(order)])
        form.learn(record, np.zeros(1, np.int64), ends, batch.rows(order), None, None)
        sums = np.array([math.fsum(column) for column in nats.T])
        weights = _KEEP * self.weights + (1.0 - _KEEP) * -_BEHIND + sums[1:] - sums[0]
        return Common(record[0], np.clip(weights, -_MOST_NATS, _MOST_NATS))


_LEAST = 0.02


def bring(form: TrackerForm, records: FloatArray, which: IntArray, now: FloatArray, gain: float) -> None:
    """Bring records to the common class prior ``now`` (K,), in place.

    Records end with the common class prior (K,) that they were left with, and one number more.
    """
    for a in range(0, len(which), _AT_ONCE):
        some = which[a : a + _AT_ONCE]
        if gain > 0.0:
            there = records[some]
            form.tilt(there, (now / there[:, -1 - len(now) : -1]) ** gain)
            records[some] = there
        records[some, -1 - len(now) : -1] = now


def nats_of(
    form: TrackerForm, records: FloatArray, starts: IntArray, batch: Batch, now: FloatArray
) -> FloatArray:
    """Log evidence (n, G) of the gains in rows of streams with these records (M, W)."""
    expected, logs = form.forecasts(records), np.log(now / records[:, -1 - len(now) : -1])
    of, found = np.repeat(np.arange(len(records)), np.diff(starts)), np.empty((len(batch.proba), len(GAINS)))
    ratios = form.ratios(batch)
    for place, gain in enumerate(GAINS):
        prior = expected * np.exp(gain * logs)
        prior /= prior.sum(axis=1, keepdims=True)
        found[:, place] = np.log((ratios * prior[of]).sum(axis=1))
    return found
