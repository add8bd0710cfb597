r"""Streams that move together: what all rows of a call show is passed on to each stream.

One more tracker, the *common* stream, learns from the rows of all streams. A stream's record keeps
the common class prior :math:`c` of when it last learned. When it comes again and the common one is
:math:`c'`, all that it has counted is multiplied by :math:`c' / c`, class by class, and scaled to
the number of rows that it was. Rows come to the common stream after the streams have learned from
them, so that none is evidence for its own prediction.

That is done while the fleet as a whole is more likely to move together than not. Each row is
evidence: how likely it is under what its stream expected, multiplied and as it was. Evidence is
forgotten slowly, and streams that do not move together are, to the last bit, what they are alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from priorshift.fleet.forms import TrackerForm
from priorshift.source import Batch
from priorshift.typing import FloatArray, IntArray

# Log odds of moving together before all evidence, and what is kept of evidence with every call.
_FIRST, _KEEP = -30.0, 0.99
# The share of the common class prior that is spread evenly: of rare classes little is known.
_EVEN = 0.02
# Rows of a call that the common stream learns from, and records that are changed at a time.
_MOST_ROWS, _AT_ONCE = 2000, 4096


class Common(NamedTuple):
    """The common stream: its form, its record (R,), and the log odds of moving together."""

    form: TrackerForm
    record: FloatArray
    odds: float = _FIRST

    def prior(self) -> FloatArray:
        """The common class prior (K,), none of it near 0."""
        prior = self.form.priors(self.record[None])[0]
        return np.asarray((1.0 - _EVEN) * prior + _EVEN / len(prior))

    def learned(self, batch: Batch, nats: FloatArray) -> Common:
        """What it is after a call with these rows, and the evidence ``nats`` (n,) of each.

        The order of the rows changes no bit of it.
        """
        known = [] if batch.known is None else [batch.known]
        order = np.lexsort([*known, *batch.proba.T])
        if len(order) > _MOST_ROWS:
            order = order[np.linspace(0, len(order) - 1, _MOST_ROWS).astype(int)]
        record, ends = self.record[None].copy(), np.array([0, len(order)])
        self.form.learn(record, np.zeros(1, np.int64), ends, batch.rows(order), None, None)
        odds = _KEEP * self.odds + (1.0 - _KEEP) * _FIRST + math.fsum(nats)
        return self._replace(record=record[0], odds=odds)


def follow(common: Common, records: FloatArray, which: IntArray) -> None:
    """Bring the rows ``which`` (M,) of ``records`` to the common class prior of now, in place.

    Records end with the common class prior (K,) that they were left with, and one number more.
    """
    now = common.prior()
    then = slice(-1 - len(now), -1)
    for a in range(0, len(which), _AT_ONCE):
        some = which[a : a + _AT_ONCE]
        if common.odds > 0.0:
            there = records[some]
            common.form.tilt(there, now / there[:, then])
            records[some] = there
        records[some, then] = now


def evidence(common: Common, records: FloatArray, starts: IntArray, batch: Batch) -> FloatArray:
    """Nats (n,) by which rows of streams with these records (M, W) speak for moving together."""
    now, apart = common.prior(), common.form.forecasts(records)
    joint = apart * (now / records[:, -1 - len(now) : -1])
    joint /= joint.sum(axis=1, keepdims=True)
    of, ratios = np.repeat(np.arange(len(records)), np.diff(starts)), common.form.ratios(batch)
    fits = ((ratios * prior[of]).sum(axis=1) for prior in (joint, apart))
    return np.asarray(np.subtract(*map(np.log, fits)))
