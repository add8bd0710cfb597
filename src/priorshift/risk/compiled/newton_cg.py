r"""The implicit update of equation 6 by Newton's method with conjugate gradients, compiled.

For softmax models, on sets that fit the cache. It is the
method of ``priorshift.risk.newton_cg``, one base learner after the other: its probabilities
(K - 1, n) are all that is kept of a pass, and they serve the products with the Hessian. Models are
float64 between the passes: rounded to float32, the pull :math:`(w - \hat w) / \eta` of a short step
may leave a residual above the tolerance.

Step sizes form a ladder, and from one round to the next neighbours on it move alike. So each base
learner starts from its last solution plus the move that those before it let expect, which saves a
third of the passes and more of the products.

At the solution the probabilities also give the risk under another class prior, so the gradient step
that follows needs no pass of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact, summing
from priorshift.risk.compiled.maths import dot, exp32, log32
from priorshift.risk.compiled.softmax import add_moments, logits

_f = np.float32
_BLOCK = 512
_PATIENCE = 10
# As in ``priorshift.risk.newton_cg``.
_FORCING = 0.1
_LAST_STEP = 100.0
_MARGIN = 0.7
_MOST_PRODUCTS = 60
# Relative distances: models are float64 here, but come as float32.
_ON_SPHERE, _NEAR_SPHERE = 1e-9, 1e-6


@exact
def implicit_step_cg(samples: Any, problem: Any) -> Any:
    """Solve for all base learners; also give risk and gradient under ``problem.prior`` there.

    ``samples`` are ``Samples``, ``problem`` is ``Implicit``.

    Returns W (N, K, d), H (N,), the risk (N,) and its gradient (N, K, d) under ``prior``, the
    residuals (N,), and how many gradient evaluations and products with the Hessian it took.
    """
    X, shares, offsets, means, largest_norm = samples
    hint, prior, centre, start, steps, radius, tolerance, max_steps = problem
    n_learners, n_classes, width = centre.shape
    size, n = n_classes * width, X.shape[1]
    W = np.empty((n_learners, n_classes, width), np.float32)
    gradients = np.empty((n_learners, n_classes, width), np.float32)
    hint_loss, risks = np.empty(n_learners), np.empty(n_learners)
    residual = np.empty(n_learners)
    P, L = np.empty((n_classes - 1, n), np.float32), np.empty(n, np.float32)
    runs, weights = row_weights(offsets, shares, hint, n)
    pull = _pull(hint, means)
    other_runs, other_weights = row_weights(offsets, shares, prior, n)
    other_pull = _pull(prior, means)
    missing = _missing(offsets, hint, prior)
    w, aim, slope = np.empty(size), np.empty(size), np.empty(size)
    # How far the last three base learners went from their starts, and the last was expected to.
    moves, expected = np.zeros((3, size)), np.zeros(size)
    evaluations, products = 0, 0
    for i in range(n_learners):
        _copy(centre[i], aim)
        _copy(start[i], w)
        if i > 0 and _expect(moves, expected, i, steps[i] / steps[i - 1]):
            for r in range(size):
                w[r] += expected[r]
        hint_loss[i], residual[i], passes, bends = _solve(
            X, runs, weights, largest_norm, pull, aim, steps[i], radius, tolerance, max_steps,
            w, P, L,
        )  # fmt: skip
        evaluations += passes
        products += bends
        _remember(w, start[i], moves)
        risks[i] = _other_risk(
            X, missing, other_runs, other_weights, largest_norm, other_pull, w, P, L, slope
        )
        _copy(w, W[i])
        _copy(slope, gradients[i])
    return W, hint_loss, risks, gradients, residual, evaluations, products


@exact
def _solve(
    X: Any, runs: Any, weights: Any, largest_norm: float, pull: Any, aim: Any, eta: float,
    radius: float, tolerance: float, max_steps: int, w: Any, P: Any, L: Any,
) -> Any:  # fmt: skip
    """Solve for one base learner, from ``w`` on, which becomes the solution.

    Returns H there, the residual, and the passes and products taken. P and L are the solution's.
    """
    size, inverse = len(w), 1.0 / eta
    g, best, step = np.empty(size), np.empty(size), np.empty(size)
    new, moved = np.empty(size), np.empty(size)
    _into_ball(w, radius * (1.0 - _NEAR_SPHERE), radius)
    risk = _risk(X, runs, weights, largest_norm, pull, w, P, L, g)
    value = risk + _add_pull(w, aim, inverse, g)
    least = _residual(w, g, eta, radius, moved)
    _copy(w, best)
    left, loss, idle, passes, products = least, risk, 0, 1, 0
    for _ in range(max_steps):
        if left <= tolerance or idle >= _PATIENCE:
            break
        products += _newton_step(X, runs, weights, P, w, g, inverse, radius, tolerance, step)
        share, new_value = 1.0, value
        for _ in range(20):
            for r in range(size):
                new[r] = w[r] + share * step[r]
            _into_ball(new, radius, radius)
            risk = _risk(X, runs, weights, largest_norm, pull, new, P, L, g)
            new_value = risk + _add_pull(new, aim, inverse, g)
            passes += 1
            left = _residual(new, g, eta, radius, moved)
            # Near the solution values differ by less than their rounding; residuals do not.
            if new_value <= value + 1e-6 * (1.0 + abs(value)) or left <= 0.5 * least:
                break
            share *= 0.25
        value = new_value
        _copy(new, w)
        idle += 1
        if left < least:
            least, loss, idle = left, risk, 0
            _copy(w, best)
    if idle > 0:  # the last point is not the best
        _copy(best, w)
        _risk(X, runs, weights, largest_norm, pull, w, P, L, g)
        passes += 1
    return loss, least, passes, products


@exact
def _remember(best: Any, start: Any, moves: Any) -> None:
    """Put the move from start to solution before those of the base learners before it."""
    for back in range(len(moves) - 1, 0, -1):
        _copy(moves[back - 1], moves[back])
    begin, move = start.ravel(), moves[0]
    for r in range(len(begin)):
        move[r] = best[r] - begin[r]


@exact
def _expect(moves: Any, expected: Any, known: int, ratio: float) -> bool:
    """How far the next base learner will go, from the moves of those before it.

    Step sizes are a ladder, and solutions are smooth along it. The last move is fitted by the two
    before, and the same combination of the last two is the next. Returns whether to rely on it:
    not where the last one went elsewhere than expected.
    """
    size = len(expected)
    last, before, first = moves[0], moves[1], moves[2]
    reliable = known == 1 or _apart(last, expected) <= 0.25 * dot(last, last, size)
    bb, ff, bf = dot(before, before, size), dot(first, first, size), dot(before, first, size)
    lb, lf = dot(last, before, size), dot(last, first, size)
    inside = bb * ff - bf * bf
    a, b = 0.0, 0.0
    if known == 1:
        a = min(ratio, 2.0)
    elif inside > 1e-6 * bb * ff:
        a, b = (lb * ff - lf * bf) / inside, (lf * bb - lb * bf) / inside
    elif bb > 0.0:
        a = lb / bb
    for r in range(size):
        expected[r] = a * last[r] + b * before[r]
    return reliable


@exact
def _copy(old: Any, new: Any) -> None:
    values, places = old.ravel(), new.ravel()
    for r in range(len(values)):
        places[r] = values[r]


@exact
def row_weights(offsets: Any, shares: Any, prior: Any, n: int) -> Any:
    """Column ranges (r, 2) of neighbouring classes with a weight, and the weights (n,) of all rows.

    Examples
    --------
    >>> shares = np.array([0.5, 0.5, 1.0, 1.0], np.float32)
    >>> runs, weights = row_weights(np.array([0, 2, 3, 4]), shares, np.array([0.0, 0.5, 0.5]), 4)
    >>> runs.tolist(), weights.tolist()
    ([[2, 4]], [0.0, 0.0, 0.5, 0.5])
    """
    n_classes = len(prior)
    weights = np.zeros(n, np.float32)
    runs = np.empty((n_classes, 2), np.int64)
    number = 0
    for k in range(n_classes):
        if prior[k] != 0.0:
            weight = _f(prior[k])
            for s in range(offsets[k], offsets[k + 1]):
                weights[s] = weight * shares[s]
            if number > 0 and runs[number - 1, 1] == offsets[k]:
                runs[number - 1, 1] = offsets[k + 1]
            else:
                runs[number, 0], runs[number, 1] = offsets[k], offsets[k + 1]
                number += 1
    return runs[:number].copy(), weights


@exact
def _missing(offsets: Any, hint: Any, prior: Any) -> Any:
    """Column ranges (r, 2) of the classes that ``prior`` needs and ``hint`` does not read."""
    runs = np.empty((len(prior), 2), np.int64)
    number = 0
    for k in range(len(prior)):
        if prior[k] != 0.0 and hint[k] == 0.0:
            runs[number, 0], runs[number, 1] = offsets[k], offsets[k + 1]
            number += 1
    return runs[:number].copy()


@exact
def _pull(prior: Any, means: Any) -> Any:
    """The linear part of the risk: weighted class means (K, d)."""
    pull = np.empty(means.shape)
    for k in range(means.shape[0]):
        for j in range(means.shape[1]):
            pull[k, j] = prior[k] * means[k, j]
    return pull


@exact
def _into_ball(w: Any, limit: float, radius: float) -> None:
    """Put a model whose norm is above ``limit`` on the sphere."""
    norm = np.sqrt(dot(w, w, len(w)))
    if norm > limit:
        scale = radius / norm
        for r in range(len(w)):
            w[r] *= scale


@exact
def _differences(w: Any, D: Any) -> float:
    """Fill ``D`` (K - 1, d) with the rows of the model minus that of class 0; the longest norm."""
    others, width = D.shape
    longest = _f(0.0)
    for k in range(others):
        row, first = D[k], (k + 1) * width
        for j in range(width):
            row[j] = w[first + j] - w[j]
        longest = max(longest, dot(row, row, width))
    return np.sqrt(longest)


@exact
def _risk(
    X: Any, runs: Any, weights: Any, largest_norm: float, pull: Any, w: Any, P: Any, L: Any, g: Any
) -> float:
    """Risk of the model and its gradient ``g``; probabilities and log-sums stay in P and L."""
    D = np.empty((P.shape[0], X.shape[0]), np.float32)
    safe = _differences(w, D) * largest_norm < 60.0
    _probabilities(X, runs, D, safe, P, L)
    return _sum(X, runs, weights, pull, D, P, L, g)


@exact
def _other_risk(
    X: Any, missing: Any, runs: Any, weights: Any, largest_norm: float, pull: Any, w: Any, P: Any,
    L: Any, g: Any,
) -> float:  # fmt: skip
    """Risk and gradient under another prior, where ``_risk`` has read all but the ``missing``."""
    D = np.empty((P.shape[0], X.shape[0]), np.float32)
    safe = _differences(w, D) * largest_norm < 60.0
    _probabilities(X, missing, D, safe, P, L)
    return _sum(X, runs, weights, pull, D, P, L, g)


@exact
def _probabilities(X: Any, runs: Any, D: Any, safe: bool, P: Any, L: Any) -> None:
    """Probabilities (K - 1, n) of all classes but the first, and ``log(1 + sum exp)`` (n,)."""
    others = P.shape[0]
    tops, totals = np.zeros(_BLOCK, np.float32), np.empty(_BLOCK, np.float32)
    for run in range(len(runs)):
        a, last = runs[run, 0], runs[run, 1]
        while a < last:
            m = min(_BLOCK, last - a)
            top, total = tops[:m], totals[:m]
            logits(D, X, a, m, P, a)
            if safe:
                for s in range(m):
                    total[s] = _f(1.0)
            else:
                _largest(P, a, m, top)
                for s in range(m):
                    total[s] = exp32(-top[s])
            for k in range(others):
                p = P[k, a : a + m]
                for s in range(m):
                    e = exp32(p[s] - top[s])
                    p[s] = e
                    total[s] += e
            logs = L[a : a + m]
            for s in range(m):
                logs[s] = log32(total[s]) + top[s]
                total[s] = _f(1.0) / total[s]
            for k in range(others):
                p = P[k, a : a + m]
                for s in range(m):
                    p[s] *= total[s]
            a += m


@exact
def _largest(P: Any, a: int, m: int, top: Any) -> None:
    """The largest logit of each sample, that of class 0 being zero."""
    for s in range(m):
        top[s] = _f(0.0)
    for k in range(P.shape[0]):
        p = P[k, a : a + m]
        for s in range(m):
            top[s] = max(top[s], p[s])


@exact
def _sum(X: Any, runs: Any, weights: Any, pull: Any, D: Any, P: Any, L: Any, g: Any) -> float:
    """Risk and gradient from probabilities and log-sums, under the samples' ``weights``."""
    others, width = D.shape
    moments = np.zeros((others, width), np.float32)
    Z = np.empty((others, _BLOCK), np.float32)
    value = 0.0
    for run in range(len(runs)):
        a, last = runs[run, 0], runs[run, 1]
        while a < last:
            m = min(_BLOCK, last - a)
            weight = weights[a : a + m]
            for k in range(others):
                p, z = P[k, a : a + m], Z[k]
                for s in range(m):
                    z[s] = weight[s] * p[s]
            add_moments(Z, 0, X, a, m, moments)
            value += _wide_dot(weight, L[a : a + m], m)
            a += m
    for j in range(width):
        g[j] = 0.0
    for k in range(others):
        first, moment, mean, difference = (k + 1) * width, moments[k], pull[k + 1], D[k]
        value -= dot(mean, difference, width)
        for j in range(width):
            g[first + j] = moment[j] - mean[j]
        for j in range(width):
            g[j] -= moment[j] - mean[j]
    return value


@summing
def _wide_dot(x: Any, y: Any, m: int) -> float:
    """Sum of products of float32 numbers, in float64."""
    total = 0.0
    for s in range(m):
        total += np.float64(x[s]) * np.float64(y[s])
    return total


@exact
def _add_pull(w: Any, aim: Any, inverse: float, g: Any) -> float:
    """Add the gradient of ``||w - aim||^2 / (2 eta)`` to ``g``; return its value."""
    for r in range(len(w)):
        g[r] += inverse * (w[r] - aim[r])
    return 0.5 * inverse * _apart(w, aim)


@summing
def _apart(x: Any, y: Any) -> float:
    """Squared distance."""
    total = 0.0
    for r in range(len(x)):
        gap = x[r] - y[r]
        total += gap * gap
    return total


@exact
def _residual(w: Any, g: Any, step: float, radius: float, moved: Any) -> float:
    """Norm of the gradient mapping ``(w - Pi(w - s g)) / s`` with ``s = eta / (1 + eta)``."""
    scale = step / (1.0 + step)
    for r in range(len(w)):
        moved[r] = w[r] - scale * g[r]
    _into_ball(moved, radius, radius)
    for r in range(len(w)):
        moved[r] = w[r] - moved[r]
    return np.sqrt(dot(moved, moved, len(w))) / scale


@exact
def _bend(X: Any, runs: Any, weights: Any, P: Any, v: Any, Z: Any, out: Any) -> None:
    """Product ``out`` of the risk's Hessian, at the probabilities P, with the direction ``v``."""
    others, width = P.shape[0], X.shape[0]
    D = np.empty((others, width), np.float32)
    _differences(v, D)
    moments = np.zeros((others, width), np.float32)
    means = np.empty(_BLOCK, np.float32)
    for run in range(len(runs)):
        a, last = runs[run, 0], runs[run, 1]
        while a < last:
            m = min(_BLOCK, last - a)
            weight, mean = weights[a : a + m], means[:m]
            logits(D, X, a, m, Z, 0)
            for s in range(m):
                mean[s] = _f(0.0)
            for k in range(others):
                p, z = P[k, a : a + m], Z[k, :m]
                for s in range(m):
                    mean[s] += p[s] * z[s]
            for k in range(others):
                p, z = P[k, a : a + m], Z[k, :m]
                for s in range(m):
                    z[s] = weight[s] * p[s] * (z[s] - mean[s])
            add_moments(Z, 0, X, a, m, moments)
            a += m
    for j in range(width):
        out[j] = 0.0
    for k in range(others):
        first, moment = (k + 1) * width, moments[k]
        for j in range(width):
            out[first + j] = moment[j]
        for j in range(width):
            out[j] -= moment[j]


@exact
def _newton_step(
    X: Any, runs: Any, weights: Any, P: Any, w: Any, g: Any, inverse: float, radius: float,
    tolerance: float, step: Any,
) -> int:  # fmt: skip
    """Minimise the quadratic model at ``w`` as far as it pays; return the products taken.

    On the sphere, where the gradient pulls outward, in the tangent space and with the Lagrangian's
    Hessian; else the plain Newton step.
    """
    size = len(w)
    Z = np.empty((P.shape[0], _BLOCK), np.float32)
    normal, rest, direction = np.zeros(size), np.empty(size), np.empty(size)
    bent = np.empty(size)
    length = np.sqrt(dot(w, w, size))
    outward = dot(g, w, size)
    shift = inverse
    if length > radius * (1.0 - _ON_SPHERE) and outward < 0.0:
        shift -= outward / (radius * radius)
        for r in range(size):
            normal[r] = w[r] / length
    along = dot(g, normal, size)
    for r in range(size):
        rest[r] = along * normal[r] - g[r]
        direction[r] = rest[r]
        step[r] = 0.0
    square = dot(rest, rest, size)
    enough = _enough(np.sqrt(square), tolerance) ** 2
    products = 0
    while square > enough and products < _MOST_PRODUCTS:
        _bend(X, runs, weights, P, direction, Z, bent)
        products += 1
        for r in range(size):
            bent[r] += shift * direction[r]
        along = dot(bent, normal, size)
        for r in range(size):
            bent[r] -= along * normal[r]
        far = square / dot(direction, bent, size)
        for r in range(size):
            step[r] += far * direction[r]
            rest[r] -= far * bent[r]
        new = dot(rest, rest, size)
        momentum = new / square
        for r in range(size):
            direction[r] = rest[r] + momentum * direction[r]
        square = new
    return products


@exact
def _enough(length: float, tolerance: float) -> float:
    """Norm of the model's gradient at which to stop: the last step finishes, others go part way."""
    least = _MARGIN * tolerance
    if length < _LAST_STEP * tolerance:
        return least
    return max(_FORCING * length, least)
