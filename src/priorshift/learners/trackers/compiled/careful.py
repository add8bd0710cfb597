"""The hypothesis that nothing has changed, weighed by a batch; the twin of ``careful.py``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift.learners.trackers.compiled.calls import weigh_calls
from priorshift.learners.trackers.compiled.fields import (
    BY_CALLS,
    BY_EVIDENCE,
    MOVED,
    SQUARES,
    UNCHANGED,
)
from priorshift.learners.trackers.compiled.sums import dot, expit, total
from priorshift.risk.compiled._njit import strict

# As in careful.py.
_LONGEST, _REACH, _TINY, _HARM = 1.0, 2.5, 1e-12, 5.0


@strict
def weigh_within(
    x: Any,
    ratios: Any,
    called: Any,
    nats: float,
    at: Any,
    prior: Any,
    chance: float,
    first: Any,
    calls: Any,
    classes: Any,
) -> None:
    """The same with space to work in, ``classes`` (4, K)."""
    K, rows = len(prior), len(ratios)
    own, seen, squared, part = classes[0], classes[1], classes[2], classes[3]
    moved, squares = at[MOVED], at[SQUARES]
    stayed = x[at[BY_EVIDENCE]] * (1.0 - chance)
    belief = stayed + (1.0 - x[at[BY_EVIDENCE]]) * chance
    stayed = 1.0 if x[at[BY_EVIDENCE]] >= 0.5 else stayed / belief
    for k in range(K):
        x[moved + k] *= stayed
        x[squares + k] = first[k] + stayed * (x[squares + k] - first[k])
        own[k] = prior[k] * math.exp(x[moved + k])
        seen[k] = squared[k] = 0.0
    whole = total(own)
    for k in range(K):
        own[k] /= whole
    lead = math.log(max(belief, _TINY) / max(1.0 - belief, _TINY)) - nats
    for i in range(rows):
        row = ratios[i]
        fit = dot(own, row)
        lead += math.log(fit)
        for k in range(K):
            part[k] = row[k] * own[k] / fit
        for k in range(K):
            seen[k] += part[k]
            squared[k] += (part[k] - own[k]) ** 2
    for k in range(K):
        x[squares + k] += squared[k] / max(1.0 - own[k], _TINY)
        known, ahead = x[squares + k], seen[k] - rows * own[k]
        step = min(max(ahead / known, -_LONGEST), _LONGEST)
        reach = _REACH / math.sqrt(first[k])
        x[moved + k] = min(max(x[moved + k] + step, -reach), reach)
        if rows > 1:
            lead += step * (ahead - 0.5 * step * known) - 0.5 * squared[k] / known
    x[at[BY_EVIDENCE]] = expit(lead)
    weigh_calls(x, called, at, calls, classes)
    likely = max(x[at[BY_EVIDENCE]], x[at[BY_CALLS]])
    x[at[UNCHANGED]] = _HARM * likely / (_HARM * likely + 1.0 - likely)


@strict
def weigh(
    x: Any,
    ratios: Any,
    called: Any,
    nats: float,
    at: Any,
    prior: Any,
    chance: float,
    first: Any,
    calls: Any,
) -> None:
    """Weigh both hypotheses by a batch with these likelihood ratios (n, K), in place.

    ``nats`` is what the learner inside made of it, ``prior`` (K,) the mean of what it reads of the
    held-out set, ``chance`` that of a change, ``first`` (K,) the squares of the held-out set,
    ``calls`` (K,) its counts of what f0 ``called`` (n,) rows.
    """
    classes = np.empty((4, len(prior)))
    weigh_within(x, ratios, called, nats, at, prior, chance, first, calls, classes)


@strict
def keep_answers(read: Any, f0: Any, most: Any, bound: float, found: Any) -> None:
    """Probabilities (n, K) that lie between f0's and those that were read, into ``found``.

    Of the latter each row has the largest share up to ``most`` (n,), or (1,) for all rows, that
    leaves f0 its answer, and half of its lead; where ``most`` is above ``bound``, that share
    whatever the answer is.
    """
    for i in range(len(f0)):
        top, share = f0[i].argmax(), most[i if len(most) > 1 else 0]
        for k in range(f0.shape[1] if share <= bound else 0):
            lead = f0[i, top] - f0[i, k]
            lost = lead - (read[i, top] - read[i, k])
            if 2.0 * lost > lead:
                share = min(share, lead / (2.0 * lost))
        for k in range(f0.shape[1]):
            found[i, k] = share * read[i, k] + (1.0 - share) * f0[i, k]
