"""The book of regimes: transitions, learning, births, merges; the twin of ``regimes.py``."""

from __future__ import annotations

import math
from typing import Any

from priorshift._numerics import TINY
from priorshift.learners.trackers.compiled.row import Row
from priorshift.learners.trackers.compiled.sums import total
from priorshift.risk.compiled._njit import borrowing, inlined, strict

_STRENGTH, _GROWTH = 3.0, 0.7
_ROUNDS, _MOVING = 100.0, 0.05
_FORGET_MOVES, _FORGET_USE = 1e-4, 1e-3
_MERGE_NATS = 2.0


@borrowing
def transitions(p: Row, step: Any) -> None:
    """Chances (S, S) of going from one living regime to another; 0 for those without a regime."""
    S, alive = len(p.first), 0
    for s in range(S):
        if p.first[s] >= 0.0:
            alive += 1
    others = max(alive - 1, 1)
    stay = _ROUNDS * (1.0 - _MOVING - _MOVING / others)
    move = _MOVING * _ROUNDS / others
    for s in range(S):
        for r in range(S):
            step[s, r] = 0.0
        if p.first[s] < 0.0:
            continue
        whole = stay
        for r in range(S):
            if p.first[r] >= 0.0:
                step[s, r] = p.moves[s, r] + move
                whole += step[s, r]
        step[s, s] += stay
        scale = 1.0 / whole
        for r in range(S):
            step[s, r] *= scale


@inlined
def expected(p: Row, step: Any, weights: Any) -> None:
    """Weights (S,) of the regimes before the next batch."""
    S = len(weights)
    for r in range(S):
        weights[r] = 0.0
    for s in range(S):
        if p.belief[s] > 0.0:
            for r in range(S):
                weights[r] += p.belief[s] * step[s, r]


@inlined
def _limited(counts: Any, rows: float) -> None:
    """Scale counts (K,) down to the strength that so many rows may have."""
    most = _STRENGTH * rows**_GROWTH
    whole = max(total(counts), TINY)
    if most < whole:
        scale = most / whole
        for k in range(len(counts)):
            counts[k] *= scale


@borrowing
def learn(p: Row, t: float, rows: int, step: Any, before: Any, weights: Any, found: Any) -> None:
    """Count a batch in: one step of online EM for priors and transitions.

    ``before`` and ``weights`` (S,) are those of the regimes before and after the batch, ``found``
    (S, K) the batch as each of them explains it. ``before`` is used up.
    """
    S, K = found.shape
    best = 0
    for s in range(S):
        before[s] = weights[s] / max(before[s], TINY)  # from here on the quotient
    for s in range(S):
        if p.first[s] < 0.0:
            continue
        belief, was = weights[s], p.belief[s]
        for r in range(S):
            pair = was * step[s, r] * before[r]
            p.moves[s, r] = p.moves[s, r] * (1.0 - _FORGET_MOVES) + pair
        p.rows[s] += belief * rows
        p.used[s] = p.used[s] * (1.0 - _FORGET_USE) + belief
        for k in range(K):
            p.counts[s, k] += belief * found[s, k]
        _limited(p.counts[s], p.rows[s])
        if belief > weights[best]:
            best = s
    for s in range(S):
        p.belief[s] = weights[s]
    p.last[best] = t


@strict
def give_birth(p: Row, t: float, expert: Any) -> None:
    """Open a regime in round t for the prior of an expert with these counts (K,)."""
    S, slot = len(p.first), -1
    for s in range(S - 1, -1, -1):
        if p.first[s] < 0.0:
            slot = s
    if slot < 0:
        slot = _make_room(p)
    rows = total(expert)
    for k in range(len(expert)):
        p.counts[slot, k] = expert[k]
    _limited(p.counts[slot], rows)
    p.rows[slot] = rows
    for s in range(S):
        p.belief[s] *= 0.5
    p.belief[slot] += 0.5
    p.first[slot] = p.last[slot] = t


@strict
def _fit(one: Any, other: Any, share: float) -> float:
    """Log-likelihood of counts (K,) and a share of others, 0 or 1, under their own prior."""
    whole, found = 0.0, 0.0
    for k in range(len(one)):
        whole += one[k] + share * other[k]
    for k in range(len(one)):
        part = one[k] + share * other[k]
        found += part * math.log((part + TINY) / (whole + TINY))
    return found


@strict
def _make_room(p: Row) -> int:
    """Merge the two regimes that are most alike; if none are, forget the one least used."""
    S, keep, go, least = len(p.first), 0, 1, math.inf
    for s in range(S):
        for r in range(s + 1, S):
            one, two = p.counts[s], p.counts[r]
            lost = _fit(one, one, 0.0) + _fit(two, two, 0.0) - _fit(one, two, 1.0)
            if lost < least:
                keep, go, least = s, r, lost
    if least < _MERGE_NATS:
        _merge(p, keep, go)
    else:
        go = _least_used(p)
    for k in range(p.counts.shape[1]):
        p.counts[go, k] = 0.0
    for s in range(S):
        p.moves[go, s] = p.moves[s, go] = 0.0
    p.belief[go] = p.rows[go] = p.used[go] = 0.0
    p.first[go] = p.last[go] = -1.0
    whole = total(p.belief)
    for s in range(S):
        p.belief[s] /= whole
    return go


@strict
def _merge(p: Row, keep: int, go: int) -> None:
    S, K = p.counts.shape
    for k in range(K):
        p.counts[keep, k] += p.counts[go, k]
    for part in (p.belief, p.rows, p.used):
        part[keep] += part[go]
    for s in range(S):
        p.moves[keep, s] += p.moves[go, s]
    for s in range(S):
        p.moves[s, keep] += p.moves[s, go]
    p.first[keep] = min(p.first[keep], p.first[go])
    p.last[keep] = max(p.last[keep], p.last[go])


@strict
def _least_used(p: Row) -> int:
    """The regime least used lately, but never the present one."""
    present, found, least = 0.0, 0, math.inf
    for s in range(len(p.used)):
        present = max(present, p.belief[s])
    for s in range(len(p.used)):
        if p.belief[s] != present and p.used[s] < least:
            found, least = s, p.used[s]
    return found
