"""The hypothesis that nothing has changed, weighed by what f0 calls rows; twin of ``calls.py``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift.learners.trackers.compiled.fields import (
    BY_CALLS,
    CALLS,
    RECENT,
    RECENT_WEIGHTS,
)
from priorshift.learners.trackers.compiled.sums import expit, total
from priorshift.risk.compiled._njit import strict

# As in calls.py and careful.py.
_LEAVE, _BACK, _TINY = 1e-3, 1e-3, 1e-12
_KEEP = (1.0 - 2.0**-3, 1.0 - 2.0**-6, 1.0 - 2.0**-9)
_STRENGTH, _SHARE = 16.0, 1e-3


@strict
def weigh_calls(x: Any, called: Any, at: Any, first: Any, classes: Any) -> None:
    """Weigh both hypotheses by the calls (n,) of a batch, in place.

    ``first`` (K,) are the counts that the hypothesis starts from, ``classes`` (4, K) space.
    """
    K, J, rows = len(first), len(_KEEP), len(called)
    if K == 0:
        return
    own, recent, weights = at[CALLS], at[RECENT], at[RECENT_WEIGHTS]
    stayed = x[at[BY_CALLS]] * (1.0 - _LEAVE)
    belief = stayed + (1.0 - x[at[BY_CALLS]]) * _BACK
    stayed /= belief
    here, nats, sums = classes[0], classes[1], classes[2]  # K is at least 5
    for c in range(K):
        here[c] = nats[c] = 0.0
    whole = total(first)
    for c in range(K):
        x[own + c] *= stayed
    mine = whole + total(x[own : own + K])
    for j in range(J):
        sums[j] = _STRENGTH + total(x[recent + j * K : recent + j * K + K])
    unchanged = 0.0
    for i in range(rows):
        c = called[i]
        unchanged += math.log((first[c] + x[own + c] + here[c]) / (mine + i))
        base = _STRENGTH * first[c] / whole + here[c]
        for j in range(J):
            nats[j] += math.log((base + x[recent + j * K + c]) / (sums[j] + i))
        here[c] += 1.0
    most, changed = -math.inf, 0.0
    for j in range(J):
        nats[j] += math.log(x[weights + j])
        most = max(most, nats[j])
    for j in range(J):
        changed += math.exp(nats[j] - most)
    changed = most + math.log(changed)
    for j in range(J):
        x[weights + j] = (1.0 - _SHARE) * math.exp(nats[j] - changed) + _SHARE / J
        kept = _KEEP[j] ** rows
        for c in range(K):
            x[recent + j * K + c] = np.float32(x[recent + j * K + c] * kept + here[c])
    for c in range(K):
        x[own + c] += here[c]
    lead = math.log(max(belief, _TINY) / max(1.0 - belief, _TINY)) + unchanged - changed
    x[at[BY_CALLS]] = expit(lead)
