"""The book of regimes: transitions, learning, births, merges; the twin of ``regimes.py``."""

from __future__ import annotations

import math
from typing import Any

from priorshift.learners.trackers.compiled.fields import (
    BELIEF,
    COUNTS,
    FIRST,
    LAST,
    MOVES,
    ROWS,
    SLOTS,
    SURPRISE,
    USED,
    T,
)
from priorshift.learners.trackers.compiled.sums import total
from priorshift.risk.compiled._njit import inlined, strict

_STRENGTH, _GROWTH = 3.0, 0.7
_ROUNDS, _MOVING = 100.0, 0.05
_FORGET_MOVES, _FORGET_USE = 1e-4, 1e-3
_MERGE_NATS = 2.0
_TINY = 1e-300


@strict
def transitions(x: Any, at: Any, step: Any) -> None:
    """Chances (S, S) of going from one living regime to another; 0 for those without a regime."""
    S, moves, first = at[SLOTS], at[MOVES], at[FIRST]
    alive = 0
    for s in range(S):
        if x[first + s] >= 0.0:
            alive += 1
    others = max(alive - 1, 1)
    stay = _ROUNDS * (1.0 - _MOVING - _MOVING / others)
    move = _MOVING * _ROUNDS / others
    for s in range(S):
        a = s * S
        for r in range(S):
            step[a + r] = 0.0
        if x[first + s] < 0.0:
            continue
        whole = stay
        for r in range(S):
            if x[first + r] >= 0.0:
                step[a + r] = x[moves + a + r] + move
                whole += step[a + r]
        step[a + s] += stay
        scale = 1.0 / whole
        for r in range(S):
            step[a + r] *= scale


@inlined
def expected(x: Any, at: Any, J: int, step: Any, weights: Any) -> None:
    """Weights of the regimes before the next batch, into ``weights`` from J on."""
    S, belief = at[SLOTS], at[BELIEF]
    for r in range(S):
        weights[J + r] = 0.0
    for s in range(S):
        if x[belief + s] > 0.0:
            for r in range(S):
                weights[J + r] += x[belief + s] * step[s * S + r]


@inlined
def _limited(x: Any, a: int, K: int, rows: float) -> None:
    """Scale K counts from a on down to the strength that so many rows may have."""
    most = _STRENGTH * rows**_GROWTH
    whole = max(total(x, a, K), _TINY)
    if most < whole:
        scale = most / whole
        for k in range(K):
            x[a + k] *= scale


@strict
def learn(
    x: Any, at: Any, J: int, K: int, rows: int, step: Any, prior: Any, weights: Any, counts: Any
) -> None:
    """Count a batch in: one step of online EM for priors and transitions.

    ``prior`` and ``weights`` are those of all components before and after the batch, regimes from
    J on; ``counts`` the batch as each component explains it. ``prior`` is used up.
    """
    S, best = at[SLOTS], 0
    for s in range(S):
        prior[J + s] = weights[J + s] / max(prior[J + s], _TINY)  # from here on the quotient
    for s in range(S):
        if x[at[FIRST] + s] < 0.0:
            continue
        belief, before, a = weights[J + s], x[at[BELIEF] + s], at[MOVES] + s * S
        for r in range(S):
            pair = before * step[s * S + r] * prior[J + r]
            x[a + r] = x[a + r] * (1.0 - _FORGET_MOVES) + pair
        x[at[ROWS] + s] += belief * rows
        x[at[USED] + s] = x[at[USED] + s] * (1.0 - _FORGET_USE) + belief
        a, b = at[COUNTS] + s * K, (J + s) * K
        for k in range(K):
            x[a + k] += belief * counts[b + k]
        _limited(x, a, K, x[at[ROWS] + s])
        if belief > weights[J + best]:
            best = s
    for s in range(S):
        x[at[BELIEF] + s] = weights[J + s]
    x[at[LAST] + best] = x[at[T]]


@strict
def give_birth(x: Any, at: Any, K: int, expert: int) -> None:
    """Open a regime for the prior of an expert, whose counts begin at ``expert``."""
    S, slot = at[SLOTS], -1
    for s in range(S - 1, -1, -1):
        if x[at[FIRST] + s] < 0.0:
            slot = s
    if slot < 0:
        slot = _make_room(x, at, K)
    a, rows = at[COUNTS] + slot * K, total(x, expert, K)
    for k in range(K):
        x[a + k] = x[expert + k]
    _limited(x, a, K, rows)
    x[at[ROWS] + slot] = rows
    for s in range(S):
        x[at[BELIEF] + s] *= 0.5
    x[at[BELIEF] + slot] += 0.5
    x[at[FIRST] + slot] = x[at[LAST] + slot] = x[at[T]]
    x[at[SURPRISE]] = 0.0


@strict
def _fit(x: Any, a: int, b: int, K: int) -> float:
    """Log-likelihood of counts under their own prior: those from a on, with those from b on."""
    whole, found = 0.0, 0.0
    for k in range(K):
        whole += x[a + k] + (x[b + k] if b >= 0 else 0.0)
    for k in range(K):
        part = x[a + k] + (x[b + k] if b >= 0 else 0.0)
        found += part * math.log((part + _TINY) / (whole + _TINY))
    return found


@strict
def _make_room(x: Any, at: Any, K: int) -> int:
    """Merge the two regimes that are most alike; if none are, forget the one least used."""
    S, counts, keep, go, least = at[SLOTS], at[COUNTS], 0, 1, math.inf
    for s in range(S):
        for r in range(s + 1, S):
            a, b = counts + s * K, counts + r * K
            lost = _fit(x, a, -1, K) + _fit(x, b, -1, K) - _fit(x, a, b, K)
            if lost < least:
                keep, go, least = s, r, lost
    if least < _MERGE_NATS:
        _merge(x, at, K, keep, go)
    else:
        go = _least_used(x, at)
    for k in range(K):
        x[counts + go * K + k] = 0.0
    for s in range(S):
        x[at[MOVES] + go * S + s] = 0.0
        x[at[MOVES] + s * S + go] = 0.0
    x[at[BELIEF] + go] = x[at[ROWS] + go] = x[at[USED] + go] = 0.0
    x[at[FIRST] + go] = x[at[LAST] + go] = -1.0
    whole = total(x, at[BELIEF], S)
    for s in range(S):
        x[at[BELIEF] + s] /= whole
    return go


@strict
def _merge(x: Any, at: Any, K: int, keep: int, go: int) -> None:
    S, moves = at[SLOTS], at[MOVES]
    for k in range(K):
        x[at[COUNTS] + keep * K + k] += x[at[COUNTS] + go * K + k]
    for field in (BELIEF, ROWS, USED):
        x[at[field] + keep] += x[at[field] + go]
    for s in range(S):
        x[moves + keep * S + s] += x[moves + go * S + s]
    for s in range(S):
        x[moves + s * S + keep] += x[moves + s * S + go]
    x[at[FIRST] + keep] = min(x[at[FIRST] + keep], x[at[FIRST] + go])
    x[at[LAST] + keep] = max(x[at[LAST] + keep], x[at[LAST] + go])


@strict
def _least_used(x: Any, at: Any) -> int:
    """The regime least used lately, but never the present one."""
    S, present, found, least = at[SLOTS], 0.0, 0, math.inf
    for s in range(S):
        present = max(present, x[at[BELIEF] + s])
    for s in range(S):
        if x[at[BELIEF] + s] != present and x[at[USED] + s] < least:
            found, least = s, x[at[USED] + s]
    return found
