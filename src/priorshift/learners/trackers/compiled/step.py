"""A round of experts, regimes or both, of one stream or of many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorshift._numerics import TINY
from priorshift.learners.trackers.compiled.book import expected, give_birth, learn, transitions
from priorshift.learners.trackers.compiled.careful import keep_answers, weigh, weigh_within
from priorshift.learners.trackers.compiled.fields import (
    CHANCE,
    FORESIGHT,
    LEADER,
    LEARN,
    PATIENCE,
    SHARE,
    SIZE,
    SLOTS,
    SMOOTHING,
    STEPS,
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
from priorshift.learners.trackers.compiled.row import Row, Space, parts_of, space_of
from priorshift.learners.trackers.compiled.sums import bayes, dot, log_sum, total
from priorshift.risk.compiled._njit import borrowing, inlined, strict

__all__ = ["advance", "advance_one", "forecasts", "keep_answers", "scale", "weigh"]

_SOURCE_SHARE = 0.1


@borrowing
def _believe(
    p: Row, keep: Any, leader: int, prior: Any, smoothing: float, alpha: Any, sums: Any, base: Any
) -> None:
    """Dirichlet counts (H + G, K) of components and trends before the next batch, and their sums.

    ``leader`` is the first expert that a trend goes on from.

    A slot without a regime gets a sum of 0 and no counts: nothing is believed of it.
    """
    J, K = p.experts.shape
    slowest = p.experts[J - 1]
    seen = total(slowest)
    scale = (1.0 - _SOURCE_SHARE) / seen if seen > 0.0 else 0.0
    own = _SOURCE_SHARE if seen > 0.0 else 1.0
    for k in range(K):
        base[k] = smoothing * (own * prior[k] + slowest[k] * scale)
    for j in range(J):
        for k in range(K):
            alpha[j, k] = keep[j] * p.experts[j, k] + base[k]
        sums[j] = total(alpha[j])
    for s in range(len(p.first)):
        sums[J + s] = 0.0
        if p.first[s] >= 0.0:
            for k in range(K):
                alpha[J + s, k] = p.counts[s, k] + base[k]
            sums[J + s] = total(alpha[J + s])
    H = J + len(p.first)
    for g in range(len(alpha) - H):
        one = leader + 2 * g
        ahead = (1.0 - keep[one + 1]) / (keep[one + 1] - keep[one])
        other = ahead * sums[one] / sums[one + 1]
        for k in range(K):
            line = (1.0 + ahead) * alpha[one, k] - other * alpha[one + 1, k]
            alpha[H + g, k] = max(line, base[k])
        sums[H + g] = total(alpha[H + g])


@inlined
def _lend(weights: Any, share: float, into: Any) -> None:
    """Fixed share: weights (n,) lend a share of theirs to all."""
    least = max(share / len(weights), TINY)
    for j in range(len(weights)):
        into[j] = weights[j] * (1.0 - share) + least


@strict
def _forecast(alpha: Any, sums: Any, weights: Any, found: Any) -> None:
    """The class prior that components expect together."""
    for k in range(len(found)):
        found[k] = 0.0
    for h in range(len(weights)):
        if weights[h] > 0.0:
            part = weights[h] / sums[h]
            for k in range(len(found)):
                found[k] += part * alpha[h, k]


@strict
def _mean_nats(ratios: Any, forecast: Any) -> float:
    """Mean log-likelihood of the rows under a forecast."""
    nats = 0.0
    for i in range(len(ratios)):
        nats += math.log(dot(forecast, ratios[i]))
    return nats / len(ratios)


@inlined
def _trust(weights: Any, share: float, lead: float) -> Any:
    """Bayes' rule for two that lend; return how far both were trusted before."""
    least = max(share / 2.0, TINY)
    one, two = weights[0] * (1.0 - share) + least, weights[1] * (1.0 - share) + least
    lead += math.log(two / one)
    small = math.exp(-abs(lead))
    large = 1.0 / (1.0 + small)
    small *= large
    weights[0], weights[1] = (small, large) if lead > 0.0 else (large, small)
    return one, two


@inlined
def _tell(p: Row, weights: Any, share: float, evidence: Any, told: Any, one: bool) -> None:
    """Weights (H + G,) of components and trends in the class prior that is told, into ``told``.

    ``weights`` (H,) are those within experts and within regimes; of ``evidence`` (H + G,) that of
    trends is read, after that of both groups in ``told[:2]``.
    """
    H, J, members = len(weights), len(p.experts), len(p.told)
    least, most, whole = max(share / members, TINY), -math.inf, 0.0
    for m in range(members):
        lead = told[m]
        if m > 1:
            lead = math.log(evidence[H + m - 2]) if one else evidence[H + m - 2]
        p.told[m] = math.log(p.told[m] * (1.0 - share) + least) + lead
        most = max(most, p.told[m])
    for m in range(members):
        p.told[m] = math.exp(p.told[m] - most)
        whole += p.told[m]
    for m in range(members):
        p.told[m] /= whole
    for h in range(H):
        told[h] = weights[h] * (p.told[0] if h < J else p.told[1])
    for m in range(2, members):
        told[H + m - 2] = p.told[m]


@borrowing
def _keep_latest(p: Row, leader: int, sums: Any, rows: int, weights: Any, posterior: Any) -> Any:
    """The class prior after the batch, as components and trends see it together; return its rows.

    What late labels move in the faster expert of a trend moves the trend.
    """
    K, own = len(p.mass), len(p.pull)
    spread = 0.0
    for k in range(K):
        p.mass[k] = 0.0
    for h in range(own):
        p.pull[h] = 0.0
    for h in range(len(weights)):
        if weights[h] > 0.0:
            whole = sums[h] + rows
            pull = weights[h] / whole
            p.pull[h if h < own else leader + 2 * (h - own)] += pull
            for k in range(K):
                p.mass[k] += pull * posterior[h, k]
            squares = dot(posterior[h], posterior[h]) / (whole * whole)
            spread += weights[h] * ((1.0 - squares) / (whole + 1.0) + squares)
    mean = dot(p.mass, p.mass)
    return max((1.0 - mean) / max(spread - mean, TINY) - 1.0, 0.0)


@borrowing
def _lead_on(
    p: Row, sums: Any, weights: Any, found: Any, ratios: Any, steps: int, classes: Any
) -> None:
    """EM steps of the class prior that is told, which all components go together.

    ``found`` (H + G, K) is the batch as each explains it: these rows are shared out anew.
    """
    K, rows, pulled = len(p.mass), len(ratios), 0.0
    fixed, weighed = classes[2], classes[3]
    for k in range(K):
        fixed[k] = p.mass[k]
    for h in range(len(weights)):
        if weights[h] > 0.0:
            pull = weights[h] / (sums[h] + rows)
            pulled += pull
            for k in range(K):
                fixed[k] -= pull * found[h, k]
    for _ in range(steps):
        for k in range(K):
            weighed[k] = 0.0
        for i in range(rows):
            row = ratios[i]
            scale = 1.0 / dot(p.mass, row)
            for k in range(K):
                weighed[k] += scale * row[k]
        for k in range(K):
            p.mass[k] = max(fixed[k], 0.0) + pulled * p.mass[k] * weighed[k]


@borrowing
def _follow(
    x: Any,
    p: Row,
    ratios: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    w: Space,
    predict: bool,
) -> Any:
    """Learn from a batch with these likelihood ratios (n, K), in place; return its nats.

    Of the space, ``alpha`` ends as the counts of all components after the batch, ``weights`` as the
    components' weights, with ``predict`` also ``centre``.
    """
    J, K = p.experts.shape
    S, rows = len(p.first), len(ratios)
    H, one, both = J + S, rows == 1, at[TRUST] >= 0
    sums, before, evidence, weights, told = w.sums, w.before, w.evidence, w.weights, w.told
    if not one:
        turn(ratios, w.columns)
    x[at[T]] += 1.0
    _believe(p, keep, at[LEADER], prior, numbers[SMOOTHING], w.alpha, sums, w.classes[0])
    _lend(p.weights, numbers[SHARE], before)
    if S > 0:
        transitions(p, w.step)
        expected(p, w.step, before[J:])
    for h in range(H):
        weights[h] = before[h]
    for h in range(len(sums)):
        if sums[h] <= 0.0:
            evidence[h] = 0.0
        elif one:
            evidence[h] = look_at_row(w.alpha[h], sums[h], ratios[0], w.found[h])
            if predict:
                for k in range(K):
                    w.centre[h, k] = w.alpha[h, k] / sums[h]
        else:
            evidence[h] = look_at_rows(
                w.alpha[h],
                sums[h],
                ratios,
                w.columns[0],
                w.found[h],
                w.centre[h],
                w.classes[1],
                w.lanes,
            )
    nats = bayes(weights[:J], evidence[:J], one)
    for j in range(J):
        p.weights[j] = weights[j]
        for k in range(K):
            p.experts[j, k] = keep[j] * p.experts[j, k] + w.found[j, k]
    if S > 0:
        expert_nats, nats = nats, bayes(weights[J:], evidence[J:H], one)
        ahead, hindsight = expert_nats - nats, nats - expert_nats
        if both:
            foresight = hindsight
            told[0], told[1] = expert_nats, nats
            _tell(p, weights, numbers[TRUST_SHARE], evidence, told, one)
            if not one:
                forecast = w.classes[1]
                _forecast(w.alpha[:J], sums[:J], before[:J], forecast)
                foresight = -_mean_nats(ratios, forecast)
                _forecast(w.alpha[J:H], sums[J:H], before[J:], forecast)
                foresight += _mean_nats(ratios, forecast)
            _trust(p.foresight, numbers[TRUST_SHARE], foresight)
            one_lent, two_lent = _trust(p.trust, numbers[TRUST_SHARE], hindsight)
            nats = log_sum(expert_nats, nats, one_lent, two_lent)
        if numbers[LEARN] > 0.0:
            learn(p, x[at[T]], rows, w.step, before[J:], weights[J:], w.found[J:H])
            x[at[SURPRISE]] = max(0.0, x[at[SURPRISE]] + ahead)
            if x[at[SURPRISE]] > numbers[PATIENCE]:
                best = 0
                for j in range(1, J):
                    if weights[j] > weights[best]:
                        best = j
                give_birth(p, x[at[T]], p.experts[best])
                x[at[SURPRISE]] = 0.0
        else:
            for s in range(S):
                p.belief[s] = weights[J + s]
        one_trust = p.trust[0] if both else 0.0
        two_trust = p.trust[1] if both else 1.0
        for h in range(H):
            weights[h] *= one_trust if h < J else two_trust
    if not both:
        for h in range(H):
            told[h] = weights[h]
    for h in range(len(sums)):
        if sums[h] > 0.0:
            for k in range(K):
                w.alpha[h, k] += w.found[h, k]
    x[at[SIZE]] = _keep_latest(p, at[LEADER], sums, rows, told, w.alpha)
    if both and not one:
        _lead_on(p, sums, told, w.found, ratios, int(numbers[STEPS]), w.classes)
    return nats


@inlined
def _take(
    x: Any,
    p: Row,
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
    w: Space,
) -> Any:
    """A round of one stream, whose row is x; return the log evidence of the batch."""
    predict = len(proba) > 0
    nats = _follow(x, p, batch, at, keep, prior, numbers, w, predict)
    if predict:
        turn(plain, w.columns)
        left_out(plain, w.columns, w.weights, w.alpha, w.centre, proba, w.lanes)
    chance = numbers[CHANCE]
    if chance > 0.0:
        weigh_within(x, batch, called, nats, at, prior, chance, squares, calls, w.classes)
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
    J, K, most = len(keep), len(prior), 1
    for m in range(len(which)):
        most = max(most, starts[m + 1] - starts[m])
    x, w = np.empty(spans[-1, 1]), space_of(at, J, K, most)
    tables, rows = (records, singles), (ratios, plain, called, proba)
    _advance(*tables, which, starts, *rows, spans, at, keep, prior, numbers, squares, calls, x, w)


@borrowing
def _advance(
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
    x: Any,
    w: Space,
) -> None:
    """The same within a space, ``x`` (W,) being that of a row."""
    p, double, predict = parts_of(x, at, len(keep), len(prior)), 0, len(proba) > 0
    for s in range(len(spans)):
        if spans[s, 2] == 0:
            double += spans[s, 1] - spans[s, 0]
    for m in range(len(which)):
        whole, halves, a, b = records[which[m]], singles[which[m]], starts[m], starts[m + 1]
        _unpack(x, whole, halves, spans, double)
        said = proba[a:b] if predict else proba
        _take(
            x,
            p,
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
            w,
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
    nobody, w = np.empty(0, np.int64), space_of(at, len(keep), len(prior), len(ratios))
    plan = (at, keep, prior, numbers, squares, calls)
    nats = _advance_one(x, ratios, plain, nobody, proba, *plan, w)
    for s in range(len(spans)):
        if spans[s, 2] == 1:
            for k in range(spans[s, 0], spans[s, 1]):
                x[k] = np.float32(x[k])
    return nats


@borrowing
def _advance_one(
    x: Any,
    ratios: Any,
    plain: Any,
    called: Any,
    proba: Any,
    at: Any,
    keep: Any,
    prior: Any,
    numbers: Any,
    squares: Any,
    calls: Any,
    w: Space,
) -> Any:
    """The same within a space."""
    p = parts_of(x, at, len(keep), len(prior))
    return _take(x, p, ratios, plain, called, proba, at, keep, prior, numbers, squares, calls, w)


@strict
def forecasts(rows: Any, found: Any, at: Any, keep: Any, prior: Any, numbers: Any) -> None:
    """The class prior (M, K) that each stream expects of its next batch."""
    J, K, S = len(keep), len(prior), at[SLOTS]
    w, pair = space_of(at, J, K, 0), np.empty(2)
    weights = w.weights
    for m in range(len(rows)):
        p = parts_of(rows[m], at, J, K)
        _believe(p, keep, at[LEADER], prior, numbers[SMOOTHING], w.alpha, w.sums, w.classes[0])
        _lend(p.weights, numbers[SHARE], weights)
        if S > 0:
            transitions(p, w.step)
            expected(p, w.step, weights[J:])
            pair[0], pair[1] = 0.0, 1.0
            if at[FORESIGHT] >= 0:
                _lend(p.foresight, numbers[TRUST_SHARE], pair)
            for h in range(J + S):
                weights[h] *= pair[0] if h < J else pair[1]
        _forecast(w.alpha, w.sums, weights, found[m])
        whole = total(found[m])
        for k in range(K):
            found[m, k] /= whole
