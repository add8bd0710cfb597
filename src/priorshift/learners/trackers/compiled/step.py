"""A round of experts, regimes or both, of one stream or of many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift.learners.trackers.compiled.book import expected, give_birth, learn, transitions
from priorshift.learners.trackers.compiled.careful import keep_answers, weigh, weigh_within
from priorshift.learners.trackers.compiled.fields import (
    BELIEF,
    CHANCE,
    COUNTS,
    EXPERT_COUNTS,
    EXPERT_WEIGHTS,
    FIRST,
    FORESIGHT,
    LEARN,
    MASS,
    PATIENCE,
    PULL,
    SHARE,
    SIZE,
    SLOTS,
    SMOOTHING,
    SURPRISE,
    TRUST,
    TRUST_SHARE,
    T,
)
from priorshift.learners.trackers.compiled.look import (
    left_out,
    look_at_row,
    look_at_rows,
    scale,
    turn,
)
from priorshift.learners.trackers.compiled.sums import bayes, dot, log_sum, total
from priorshift.risk.compiled._njit import inlined, strict

__all__ = ["advance", "advance_one", "forecasts", "keep_answers", "scale", "weigh"]

_SOURCE_SHARE = 0.1
_TINY = 1e-300


@strict
def _believe(
    x: Any, at: Any, keep: Any, prior: Any, numbers: Any, alpha: Any, sums: Any, base: Any
) -> None:
    """Dirichlet counts (H, K) of all components before the next batch, and their sums.

    A slot without a regime gets a sum of 0 and no counts: nothing is believed of it.
    """
    J, K, S = len(keep), len(prior), at[SLOTS]
    slowest, smoothing = at[EXPERT_COUNTS] + (J - 1) * K, numbers[SMOOTHING]
    seen = total(x, slowest, K)
    scale = (1.0 - _SOURCE_SHARE) / seen if seen > 0.0 else 0.0
    own = _SOURCE_SHARE if seen > 0.0 else 1.0
    for k in range(K):
        base[k] = smoothing * (own * prior[k] + x[slowest + k] * scale)
    for j in range(J):
        a = at[EXPERT_COUNTS] + j * K
        for k in range(K):
            alpha[j * K + k] = keep[j] * x[a + k] + base[k]
        sums[j] = total(alpha, j * K, K)
    for s in range(S):
        a, b = at[COUNTS] + s * K, (J + s) * K
        sums[J + s] = 0.0
        if x[at[FIRST] + s] >= 0.0:
            for k in range(K):
                alpha[b + k] = x[a + k] + base[k]
            sums[J + s] = total(alpha, b, K)


@inlined
def _lend(x: Any, a: int, n: int, share: float, into: Any) -> None:
    """Fixed share: n weights from a on lend a share of theirs to all."""
    least = max(share / n, _TINY)
    for j in range(n):
        into[j] = x[a + j] * (1.0 - share) + least


@strict
def _forecast(
    alpha: Any, sums: Any, weights: Any, first: int, last: int, K: int, found: Any
) -> None:
    """The class prior that components from ``first`` to ``last`` expect together."""
    for k in range(K):
        found[k] = 0.0
    for h in range(first, last):
        if weights[h] > 0.0:
            part = weights[h] / sums[h]
            for k in range(K):
                found[k] += part * alpha[h * K + k]


@strict
def _mean_nats(ratios: Any, forecast: Any, K: int) -> float:
    """Mean log-likelihood of the rows under a forecast."""
    nats = 0.0
    for i in range(len(ratios)):
        nats += math.log(dot(forecast, 0, ratios[i], 0, K))
    return nats / len(ratios)


@inlined
def _trust(x: Any, a: int, share: float, lead: float) -> Any:
    """Bayes' rule for two that lend; return how far both were trusted before."""
    least = max(share / 2.0, _TINY)
    one, two = x[a] * (1.0 - share) + least, x[a + 1] * (1.0 - share) + least
    lead += math.log(two / one)
    small = math.exp(-abs(lead))
    large = 1.0 / (1.0 + small)
    small *= large
    x[a], x[a + 1] = (small, large) if lead > 0.0 else (large, small)
    return one, two


@strict
def _keep_latest(
    x: Any, at: Any, J: int, K: int, rows: int, sums: Any, weights: Any, posterior: Any
) -> None:
    """The class prior after the batch, as the components see it together."""
    H, mass, spread = len(weights), at[MASS], 0.0
    for k in range(K):
        x[mass + k] = 0.0
    for h in range(H):
        if weights[h] <= 0.0:
            x[at[PULL] + h] = 0.0
            continue
        a, whole = h * K, sums[h] + rows
        pull = weights[h] / whole
        x[at[PULL] + h] = pull
        for k in range(K):
            x[mass + k] += pull * posterior[a + k]
        squares = dot(posterior, a, posterior, a, K) / (whole * whole)
        spread += weights[h] * ((1.0 - squares) / (whole + 1.0) + squares)
    mean = dot(x, mass, x, mass, K)
    x[at[SIZE]] = max((1.0 - mean) / max(spread - mean, _TINY) - 1.0, 0.0)


@strict
def follow(
    x: Any,
    ratios: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    alpha: Any,
    counts: Any,
    centre: Any,
    components: Any,
    step: Any,
    classes: Any,
    columns: Any,
    space: Any,
    predict: bool,
) -> Any:
    """Learn from a batch with these likelihood ratios (n, K), in place; return its nats.

    ``alpha`` (H * K) ends as the counts of all components after the batch, ``components[3]`` as
    the components' weights, with ``predict`` also ``centre`` (H * K) as the class priors that its
    rows were seen under.
    """
    J, K, S, rows = len(keep), len(prior), at[SLOTS], len(ratios)
    H, one, both = J + S, rows == 1, at[TRUST] >= 0
    sums, before, evidence, weights = components
    base, forecast = classes[0], classes[1]
    if not one:
        turn(ratios, columns)
    x[at[T]] += 1.0
    _believe(x, at, keep, prior, numbers, alpha, sums, base)
    _lend(x, at[EXPERT_WEIGHTS], J, numbers[SHARE], before)
    if S > 0:
        transitions(x, at, step)
        expected(x, at, J, step, before)
    for h in range(H):
        weights[h] = before[h]
        if sums[h] <= 0.0:
            evidence[h] = 0.0
        elif one:
            evidence[h] = look_at_row(alpha, sums, ratios[0], h, K, counts)
            if predict:
                for k in range(h * K, h * K + K):
                    centre[k] = alpha[k] / sums[h]
        else:
            evidence[h] = look_at_rows(
                alpha, sums, ratios, columns[0], h, K, counts, centre, forecast, space
            )
    nats = bayes(weights, evidence, 0, J, one)
    for j in range(J):
        x[at[EXPERT_WEIGHTS] + j] = weights[j]
        a = at[EXPERT_COUNTS] + j * K
        for k in range(K):
            x[a + k] = keep[j] * x[a + k] + counts[j * K + k]
    if S > 0:
        expert_nats, nats = nats, bayes(weights, evidence, J, H, one)
        ahead, hindsight = expert_nats - nats, nats - expert_nats
        if both:
            foresight = hindsight
            if not one:
                _forecast(alpha, sums, before, 0, J, K, forecast)
                foresight = -_mean_nats(ratios, forecast, K)
                _forecast(alpha, sums, before, J, H, K, forecast)
                foresight += _mean_nats(ratios, forecast, K)
            _trust(x, at[FORESIGHT], numbers[TRUST_SHARE], foresight)
            one_lent, two_lent = _trust(x, at[TRUST], numbers[TRUST_SHARE], hindsight)
            nats = log_sum(expert_nats, nats, one_lent, two_lent)
        if numbers[LEARN] > 0.0:
            learn(x, at, J, K, rows, step, before, weights, counts)
            x[at[SURPRISE]] = max(0.0, x[at[SURPRISE]] + ahead)
            if x[at[SURPRISE]] > numbers[PATIENCE]:
                best = 0
                for j in range(1, J):
                    if weights[j] > weights[best]:
                        best = j
                give_birth(x, at, K, at[EXPERT_COUNTS] + best * K)
        else:
            for s in range(S):
                x[at[BELIEF] + s] = weights[J + s]
        one_trust = x[at[TRUST]] if both else 0.0
        two_trust = x[at[TRUST] + 1] if both else 1.0
        for h in range(H):
            weights[h] *= one_trust if h < J else two_trust
    for h in range(H):
        if sums[h] > 0.0:
            for k in range(h * K, h * K + K):
                alpha[k] += counts[k]
    _keep_latest(x, at, J, K, rows, sums, weights, alpha)
    return nats


@inlined
def _space(at: Any, J: int, K: int, rows: int) -> Any:
    """What a round of up to so many rows works in."""
    S = at[SLOTS]
    H = J + S
    alpha, counts, centre = np.empty(H * K), np.empty(H * K), np.empty(H * K)
    columns, space = np.empty((2, K, rows)), np.empty((12, rows))
    components, step, classes = np.empty((4, H)), np.empty(S * S), np.empty((4, K))
    return alpha, counts, centre, components, step, classes, columns, space


@inlined
def _take(
    x: Any,
    batch: Any,
    plain: Any,
    called: Any,
    proba: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    squares: Any,
    calls: Any,
    spaces: Any,
) -> Any:
    """A round of one stream, whose row is x; return the log evidence of the batch."""
    alpha, counts, centre, components, step, classes, columns, space = spaces
    parts = (components[0], components[1], components[2], components[3])
    predict = len(proba) > 0
    nats = follow(
        x,
        batch,
        at,
        keep,
        prior,
        numbers,
        alpha,
        counts,
        centre,
        parts,
        step,
        classes,
        columns,
        space,
        predict,
    )
    if predict:
        turn(plain, columns)
        left_out(plain, columns, components[3], alpha, centre, len(prior), proba, space)
    chance = numbers[CHANCE]
    if chance > 0.0:
        weigh_within(x, batch, called, nats, at, prior, chance, squares, calls, classes)
    return nats


@strict
def advance(
    records: Any,
    singles: Any,
    which: Any,
    starts: Any,
    ratios: Any,
    plain: Any,
    called: Any,
    proba: Any,
    spans: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    squares: Any,
    calls: Any,
) -> None:
    """Let streams learn from a batch each, in place.

    Parameters
    ----------
    records : (N, R) array
        Streams; ``which`` (M,) are those that learn, no one twice. ``singles`` (N, 2 R) is the same
        memory as float32.
    starts : (M + 1,) array
        Where the rows of each begin in ``ratios`` (n, K), likelihood ratios to learn from.
    plain, proba : (n, K) arrays
        Likelihood ratios without what labels say, and where to put the class probabilities of the
        rows; ``proba`` has no rows where they are not asked for.
    called : (n,) array
        What f0 calls each row, see ``calls.py``; of no account where nothing can change.
    spans, at, keep, prior, numbers, squares, calls
        The ``Plan`` of the learner.
    """
    J, K, most, double, predict = len(keep), len(prior), 1, 0, len(proba) > 0
    for m in range(len(which)):
        most = max(most, starts[m + 1] - starts[m])
    for b in range(len(spans)):
        if spans[b, 2] == 0:
            double += spans[b, 1] - spans[b, 0]
    x, spaces = np.empty(spans[-1, 1]), _space(at, J, K, most)
    for m in range(len(which)):
        whole, halves, a, b = records[which[m]], singles[which[m]], starts[m], starts[m + 1]
        _unpack(x, whole, halves, spans, double)
        said = proba[a:b] if predict else proba
        _take(
            x,
            ratios[a:b],
            plain[a:b],
            called[a:b],
            said,
            at,
            keep,
            prior,
            numbers,
            squares,
            calls,
            spaces,
        )
        _pack(x, whole, halves, spans, double)


@strict
def _copy(source: Any, a: int, target: Any, b: int, size: int) -> None:
    """Numbers from a on to where b is, in the target's type."""
    # Parts of arrays: whole ones would be asked for negative places, number by number.
    found, kept = source[a : a + size], target[b : b + size]
    for k in range(size):
        kept[k] = found[k]


@inlined
def _unpack(x: Any, whole: Any, halves: Any, spans: Any, double: int) -> None:
    """The row x of a record; its numbers of float32 begin after ``double`` others."""
    one, two = 0, 2 * double
    for s in range(len(spans)):
        a, size = spans[s, 0], spans[s, 1] - spans[s, 0]
        if spans[s, 2] == 0:
            _copy(whole, one, x, a, size)
            one += size
        else:
            _copy(halves, two, x, a, size)
            two += size


@inlined
def _pack(x: Any, whole: Any, halves: Any, spans: Any, double: int) -> None:
    """The record of a row x."""
    one, two = 0, 2 * double
    for s in range(len(spans)):
        a, size = spans[s, 0], spans[s, 1] - spans[s, 0]
        if spans[s, 2] == 0:
            _copy(x, a, whole, one, size)
            one += size
        else:
            _copy(x, a, halves, two, size)
            two += size


@strict
def advance_one(
    x: Any,
    ratios: Any,
    plain: Any,
    proba: Any,
    spans: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    squares: Any,
    calls: Any,
) -> Any:
    """Let one stream, a row of a tracker alone, learn in place; return the batch's log evidence."""
    spaces, nobody = _space(at, len(keep), len(prior), len(ratios)), np.empty(0, np.int64)
    nats = _take(x, ratios, plain, nobody, proba, at, keep, prior, numbers, squares, calls, spaces)
    for s in range(len(spans)):
        if spans[s, 2] == 1:
            for k in range(spans[s, 0], spans[s, 1]):
                x[k] = np.float32(x[k])
    return nats


@strict
def forecasts(rows: Any, found: Any, at: Any, keep: Any, prior: Any, numbers: Any) -> None:
    """The class prior (M, K) that each stream expects of its next batch."""
    J, K, S = len(keep), len(prior), at[SLOTS]
    H = J + S
    alpha, sums, weights = np.empty(H * K), np.empty(H), np.empty(H)
    base, step, pair = np.empty(K), np.empty(S * S), np.empty(2)
    for m in range(len(rows)):
        x = rows[m]
        _believe(x, at, keep, prior, numbers, alpha, sums, base)
        _lend(x, at[EXPERT_WEIGHTS], J, numbers[SHARE], weights)
        if S > 0:
            transitions(x, at, step)
            expected(x, at, J, step, weights)
            pair[0], pair[1] = 0.0, 1.0
            if at[FORESIGHT] >= 0:
                _lend(x, at[FORESIGHT], 2, numbers[TRUST_SHARE], pair)
            for h in range(H):
                weights[h] *= pair[0] if h < J else pair[1]
        _forecast(alpha, sums, weights, 0, H, K, found[m])
        whole = total(found[m], 0, K)
        for k in range(K):
            found[m, k] /= whole
