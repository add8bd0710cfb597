r"""The implicit update of equation 6 for small softmax models, compiled.

The softmax does not see what all classes have in common, so each model W (K, d) is split into
:math:`W = Q\theta + \mathbf 1 m^\top` with orthonormal Q (K, K - 1): Newton steps move theta only,
and the common part m follows in closed form from the multiplier of the ball.

All base learners share one Hessian, taken at the learner of the longest step: for short steps the
proximal term decides, for long ones the solutions are neighbours. It is made tridiagonal once, and
then every system, whatever the step and the multiplier, is solved in linear time. Gradients stay
each learner's own, so the shared Hessian decides how many steps are taken, never where they end.

Risks are summed class by class. So the last evaluation also holds the risk under *any* other class
prior, and the gradient step that follows the implicit one costs no further pass over the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.risk.compiled._njit import exact, summing
from priorshift.risk.compiled.maths import dot
from priorshift.risk.compiled.softmax import logits, softmax_pass_by_class, weigh
from priorshift.risk.compiled.tridiagonal import (
    accumulate,
    shifted_factors,
    substitute,
    tridiagonal,
)

_f = np.float32
_PATIENCE = 10
_STALE = 6


@exact
def implicit_step(samples: Any, rows: Any, problem: Any) -> Any:
    """Solve for all base learners; also give risk and gradient under ``problem.prior`` there.

    ``samples`` are ``Samples``, ``problem`` is ``Implicit``; second derivatives are measured on
    ``rows``: features, shares and offsets of a part of the samples.

    Returns W (N, K, d), H (N,), the risk (N,) and its gradient (N, K, d) under ``prior``, the
    residuals (N,) and the number of gradient evaluations.
    """
    X, shares, offsets, means, largest_norm = samples
    part, part_shares, part_offsets = rows
    hint, prior, centre, start, steps, radius, tolerance, max_steps = problem
    n_learners, n_classes, width = centre.shape
    others = n_classes - 1
    Q = helmert(n_classes)
    B = np.empty((others, others))  # from theta to differences with class 0
    for k in range(others):
        for c in range(others):
            B[k, c] = Q[k + 1, c] - Q[0, c]
    target, target_mean = np.empty((n_learners, others, width)), np.empty((n_learners, width))
    theta, mean = np.empty((n_learners, others, width)), np.empty((n_learners, width))
    _split(centre, Q, target, target_mean)
    _split(start, Q, theta, mean)
    for i in range(n_learners):
        _into_ball(theta[i], mean[i], n_classes, radius)
    wanted = np.zeros(n_classes, np.bool_)
    for k in range(n_classes):
        wanted[k] = hint[k] != 0.0 or prior[k] != 0.0

    value, gradient = np.zeros(n_learners), np.zeros((n_learners, others, width))
    residual, idle = np.full(n_learners, np.inf), np.zeros(n_learners, np.int64)
    best = np.full(n_learners, np.inf)
    best_theta, best_mean = theta.copy(), mean.copy()
    best_risk, best_sums = np.zeros(n_learners), np.zeros((n_learners, n_classes))
    best_moments = np.zeros((n_learners, n_classes, others, width), np.float32)
    size = others * width
    basis, diagonal, beside = np.empty((size, size)), np.empty(size), np.empty(size)
    new_theta, new_mean, old_value = theta.copy(), mean.copy(), value.copy()
    active, trying = np.arange(n_learners), np.arange(n_learners)
    n_active, n_trying = n_learners, n_learners
    evaluations = 0
    for step in range(max_steps + 1):
        # Evaluate the new points; where the objective has risen, go part of the way only.
        for _ in range(20):
            evaluations += n_trying
            _evaluate(
                X, shares, offsets, means, largest_norm, B, hint, wanted, new_theta, new_mean,
                target, target_mean, steps, radius, trying, n_trying, value, gradient, residual,
                idle, best, best_theta, best_mean, best_risk, best_sums, best_moments,
            )  # fmt: skip
            if step == 0:
                break
            n_rising = 0
            for place in range(n_trying):
                i = trying[place]
                if value[i] > old_value[i] + 1e-6 * (1.0 + abs(old_value[i])):
                    trying[n_rising] = i
                    n_rising += 1
                    for c in range(others):
                        for j in range(width):
                            new_theta[i, c, j] += 0.75 * (theta[i, c, j] - new_theta[i, c, j])
                    for j in range(width):
                        new_mean[i, j] += 0.75 * (mean[i, j] - new_mean[i, j])
            n_trying = n_rising
            if n_trying == 0:
                break
        kept = 0
        for place in range(n_active):
            i = active[place]
            for j in range(width):
                mean[i, j] = new_mean[i, j]
            for c in range(others):
                for j in range(width):
                    theta[i, c, j] = new_theta[i, c, j]
            old_value[i] = value[i]
            if residual[i] > tolerance and idle[i] < _PATIENCE:
                active[kept] = i
                kept += 1
        n_active = kept
        if n_active == 0 or step == max_steps:
            break
        if step % _STALE == 0:
            longest = active[0]
            for place in range(1, n_active):
                if steps[active[place]] > steps[longest]:
                    longest = active[place]
            curve = _curvature(part, part_shares, part_offsets, hint, B, theta[longest])
            tridiagonal(curve, diagonal, beside)
            accumulate(curve, basis)
        _minimise_in_ball(
            basis, diagonal, beside, active, n_active, theta, mean, gradient, target_mean, steps,
            radius, new_theta, new_mean,
        )  # fmt: skip
        for place in range(n_active):
            trying[place] = active[place]
        n_trying = n_active

    W = _join(best_theta, best_mean, Q)
    risk, risk_gradient = _under(prior, means, B, best_theta, best_sums, best_moments, n_classes)
    return W, best_risk, risk, risk_gradient, best, evaluations


@exact
def helmert(n: int) -> Any:
    """Orthonormal columns (n, n - 1), all orthogonal to the vector of ones.

    Examples
    --------
    >>> Q = helmert(3)
    >>> bool(np.allclose(Q.T @ Q, np.eye(2)) and np.allclose(Q.sum(axis=0), 0.0))
    True
    """
    Q = np.zeros((n, n - 1))
    for c in range(n - 1):
        norm = np.sqrt((c + 1.0) * (c + 2.0))
        for k in range(c + 1):
            Q[k, c] = 1.0 / norm
        Q[c + 1, c] = -(c + 1.0) / norm
    return Q


@exact
def _mix(weights: Any, rows: Any, out: Any) -> None:
    """``out = weights @ rows``."""
    for j in range(len(out)):
        out[j] = weights[0] * rows[0, j]
    for k in range(1, len(rows)):
        weight, row = weights[k], rows[k]
        for j in range(len(out)):
            out[j] += weight * row[j]


@exact
def _split(W: Any, Q: Any, theta: Any, mean: Any) -> None:
    """``theta = Q' W`` and the mean over classes, for every model."""
    n_learners, n_classes, _ = W.shape
    even = np.full(n_classes, 1.0 / n_classes)
    for i in range(n_learners):
        _mix(even, W[i], mean[i])
        for c in range(n_classes - 1):
            _mix(Q[:, c], W[i], theta[i, c])


@exact
def _join(theta: Any, mean: Any, Q: Any) -> Any:
    """``W = Q theta + 1 m'``."""
    n_learners, others, width = theta.shape
    W = np.empty((n_learners, others + 1, width), np.float32)
    row = np.empty(width)
    for i in range(n_learners):
        for k in range(others + 1):
            _mix(Q[k], theta[i], row)
            for j in range(width):
                W[i, k, j] = row[j] + mean[i, j]
    return W


@exact
def _square(theta: Any, mean: Any, n_classes: int) -> float:
    """Squared norm of ``Q theta + 1 m'``."""
    total = 0.0
    for c in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            total += theta[c, j] * theta[c, j]
    for j in range(len(mean)):
        total += n_classes * mean[j] * mean[j]
    return total


@exact
def _into_ball(theta: Any, mean: Any, n_classes: int, radius: float) -> None:
    norm = np.sqrt(_square(theta, mean, n_classes))
    if norm > radius:
        for c in range(theta.shape[0]):
            for j in range(theta.shape[1]):
                theta[c, j] *= radius / norm
        for j in range(len(mean)):
            mean[j] *= radius / norm


@exact
def _evaluate(
    X: Any, shares: Any, offsets: Any, means: Any, largest_norm: float, B: Any, hint: Any,
    wanted: Any, theta: Any, mean: Any, target: Any, target_mean: Any, steps: Any, radius: float,
    which: Any, number: int, value: Any, gradient: Any, residual: Any, idle: Any, best: Any,
    best_theta: Any, best_mean: Any, best_risk: Any, best_sums: Any, best_moments: Any,
) -> None:  # fmt: skip
    """Objective, gradient in theta and residual of the learners ``which``; keep the best points."""
    others, width = theta.shape[1], theta.shape[2]
    n_classes = others + 1
    D = np.empty((others * number, width), np.float32)
    safe = _fill(D, B, theta, which, number) * largest_norm < 60.0
    sums, moments = softmax_pass_by_class(X, shares, offsets, wanted, D, number, safe)
    outer = np.zeros((others * number, width), np.float32)
    flat = outer.ravel()
    for k in range(n_classes):
        if hint[k] != 0.0:
            weight, moment = _f(hint[k]), moments[k].ravel()
            for r in range(len(flat)):
                flat[r] += weight * moment[r]
    for place in range(number):
        i = which[place]
        risk = 0.0
        for k in range(n_classes):
            risk += hint[k] * sums[k, place]
        for c in range(others):
            r, linear = c * number + place, 0.0
            for j in range(width):
                linear += means[c + 1, j] * D[r, j]
                outer[r, j] -= hint[c + 1] * means[c + 1, j]
            risk -= hint[c + 1] * linear
        away, inverse = 0.0, 1.0 / steps[i]
        for j in range(width):
            gap = mean[i, j] - target_mean[i, j]
            away += n_classes * gap * gap
        for c in range(others):
            for j in range(width):
                gap = theta[i, c, j] - target[i, c, j]
                away += gap * gap
                slope = gap * inverse
                for k in range(others):
                    slope += B[k, c] * outer[k * number + place, j]
                gradient[i, c, j] = slope
        value[i] = risk + 0.5 * away * inverse
        residual[i] = _residual(
            theta[i], mean[i], gradient[i], target_mean[i], steps[i], n_classes, radius
        )
        idle[i] += 1
        if residual[i] < best[i]:
            best[i], best_risk[i], idle[i] = residual[i], risk, 0
            for j in range(width):
                best_mean[i, j] = mean[i, j]
            for c in range(others):
                for j in range(width):
                    best_theta[i, c, j] = theta[i, c, j]
            for k in range(n_classes):
                best_sums[i, k] = sums[k, place]
                for c in range(others):
                    r = c * number + place
                    for j in range(width):
                        best_moments[i, k, c, j] = moments[k, r, j]


@exact
def _fill(D: Any, B: Any, theta: Any, which: Any, number: int) -> float:
    """Differences with class 0 of the models ``which``; return the longest norm."""
    others, width = theta.shape[1], theta.shape[2]
    longest = 0.0
    for k in range(others):
        for place in range(number):
            i, square = which[place], 0.0
            for j in range(width):
                total = 0.0
                for c in range(others):
                    total += B[k, c] * theta[i, c, j]
                D[k * number + place, j] = total
                square += total * total
            longest = max(longest, square)
    return np.sqrt(longest)


@summing
def _residual(
    theta: Any, mean: Any, gradient: Any, target_mean: Any, step: float, n_classes: int,
    radius: float,
) -> float:  # fmt: skip
    """Norm of the gradient mapping ``(w - Pi(w - s g)) / s`` with ``s = eta / (1 + eta)``."""
    point, slope = theta.ravel(), gradient.ravel()
    scale, pull = step / (1.0 + step), 1.0 / (1.0 + step)
    square = common = 0.0
    for r in range(len(point)):
        moved = point[r] - scale * slope[r]
        square += moved * moved
    for j in range(len(mean)):
        moved = mean[j] - pull * (mean[j] - target_mean[j])
        common += moved * moved
    norm = np.sqrt(square + n_classes * common)
    shrink = radius / norm if norm > radius else 1.0
    square = common = 0.0
    for r in range(len(point)):
        gap = point[r] - shrink * (point[r] - scale * slope[r])
        square += gap * gap
    for j in range(len(mean)):
        gap = mean[j] - shrink * (mean[j] - pull * (mean[j] - target_mean[j]))
        common += gap * gap
    return np.sqrt(square + n_classes * common) / scale


@exact
def _curvature(part: Any, shares: Any, offsets: Any, hint: Any, B: Any, theta: Any) -> Any:
    """Hessian of H in theta at one model, measured on ``part`` (d, m)."""
    n = part.shape[1]
    others, width = theta.shape
    weights = np.zeros(n, np.float32)
    inverse = np.zeros(n, np.float32)
    for k in range(others + 1):
        if hint[k] > 0.0:
            for s in range(offsets[k], offsets[k + 1]):
                weights[s] = hint[k] * shares[s]
                inverse[s] = 1.0 / weights[s]
    size = min(n, 512)
    D = np.empty((others, width), np.float32)
    _fill(D, B, theta.reshape(1, others, width), np.zeros(1, np.int64), 1)
    Z = np.empty((others, size), np.float32)
    top, total = np.zeros(size, np.float32), np.empty(size, np.float32)
    bend, scaled = np.empty(size, np.float32), np.empty(size, np.float32)
    unused = np.zeros(1)
    sums = np.zeros((others * (others + 1) // 2, width, width), np.float32)
    for a in range(0, n, size):
        m = min(size, n - a)
        logits(D, part, a, m, Z, 0)
        weigh(Z, 1, weights[a : a + m], m, False, top, total, unused)
        back = inverse[a : a + m]
        pair = 0
        for k in range(others):
            p = Z[k]
            for c in range(k + 1):
                q = Z[c]
                own = _f(1.0) if k == c else _f(0.0)
                for s in range(m):
                    bend[s] = p[s] * (own - q[s] * back[s])
                _add_outer(part, a, m, bend, scaled, sums[pair])
                pair += 1
    return _to_theta(sums, B)


@summing
def _add_outer(X: Any, a: int, m: int, weights: Any, scaled: Any, sums: Any) -> None:
    """Add ``sum_s w_s x_s x_s'`` (lower triangle) to ``sums`` (d, d)."""
    width = sums.shape[0]
    for i in range(width):
        x = X[i, a : a + m]
        for s in range(m):
            scaled[s] = weights[s] * x[s]
        j = 0
        while j + 3 <= i:
            x0, x1 = X[j, a : a + m], X[j + 1, a : a + m]
            x2, x3 = X[j + 2, a : a + m], X[j + 3, a : a + m]
            p0, p1, p2, p3 = _f(0.0), _f(0.0), _f(0.0), _f(0.0)
            for s in range(m):
                p0 += scaled[s] * x0[s]
                p1 += scaled[s] * x1[s]
                p2 += scaled[s] * x2[s]
                p3 += scaled[s] * x3[s]
            sums[i, j] += p0
            sums[i, j + 1] += p1
            sums[i, j + 2] += p2
            sums[i, j + 3] += p3
            j += 4
        while j <= i:
            x0 = X[j, a : a + m]
            p0 = _f(0.0)
            for s in range(m):
                p0 += scaled[s] * x0[s]
            sums[i, j] += p0
            j += 1


@exact
def _to_theta(sums: Any, B: Any) -> Any:
    """Turn class pairs in differences into the full Hessian in theta: ``B' S B`` by feature."""
    width = sums.shape[1]
    others = B.shape[0]
    curve = np.empty((others * width, others * width))
    S, half = np.empty((others, others)), np.empty((others, others))
    for i in range(width):
        for j in range(i + 1):
            pair = 0
            for k in range(others):
                for c in range(k + 1):
                    S[k, c] = sums[pair, i, j]
                    S[c, k] = S[k, c]
                    pair += 1
            for k in range(others):
                for c in range(others):
                    total = 0.0
                    for e in range(others):
                        total += S[k, e] * B[e, c]
                    half[k, c] = total
            for k in range(others):
                for c in range(others):
                    total = 0.0
                    for e in range(others):
                        total += B[e, k] * half[e, c]
                    curve[k * width + i, c * width + j] = total
                    curve[c * width + j, k * width + i] = total
    return curve


@exact
def _minimise_in_ball(
    basis: Any, diagonal: Any, beside: Any, which: Any, number: int, theta: Any, mean: Any,
    gradient: Any, target_mean: Any, steps: Any, radius: float, new_theta: Any, new_mean: Any,
) -> None:  # fmt: skip
    """Minimise the quadratic models of the learners ``which`` over the ball, all in one loop.

    With T the tridiagonal Hessian a model's minimiser solves
    ``(T + 1 / eta + lambda) v = (T + 1 / eta) w - g``, all in T's basis; the ball's multiplier
    lambda is found by Newton's method on ``1 / ||w||``. Columns are learners; one that is done
    keeps its multiplier, and so its solution, while the others go on.
    """
    size, n_classes, width = len(diagonal), theta.shape[1] + 1, theta.shape[2]
    multiplier, shift, common = np.zeros(number), np.empty(number), np.zeros(number)
    b, v, falls = np.empty((size, number)), np.empty((size, number)), np.empty((size, number))
    ratios, inverses = np.empty((size, number)), np.empty((size, number))
    own, side = np.empty(size), np.empty(size)
    for c in range(number):
        i = which[c]
        point, slope, inverse = theta[i].ravel(), gradient[i].ravel(), 1.0 / steps[i]
        for e in range(size):
            own[e], side[e] = 0.0, 0.0
        for r in range(size):
            u, w = point[r], inverse * point[r] - slope[r]
            for e in range(size):
                own[e] += basis[r, e] * u
                side[e] += basis[r, e] * w
        for e in range(size):
            b[e, c] = side[e] + diagonal[e] * own[e]
        for e in range(1, size):
            b[e, c] += beside[e] * own[e - 1]
            b[e - 1, c] += beside[e] * own[e]
        for j in range(width):
            common[c] += n_classes * target_mean[i, j] * target_mean[i, j]
        # On the sphere a solution has g = -lambda w: that is where the multiplier starts.
        if np.sqrt(_square(theta[i], mean[i], n_classes)) > radius * (1.0 - 1e-4):
            along = dot(point, slope, size)
            for j in range(width):
                along += n_classes * mean[i, j] * (mean[i, j] - target_mean[i, j]) * inverse
            multiplier[c] = max(-along / (radius * radius), 0.0)
        shift[c] = inverse + multiplier[c]
    shrink, length, moving = np.empty(number), np.empty(number), np.empty(number, np.bool_)
    for _ in range(20):
        shifted_factors(diagonal, beside, shift, ratios, inverses)
        substitute(ratios, inverses, b, v)
        square = _column_dots(v, v)
        going = 0
        for c in range(number):
            shrink[c] = 1.0 / (1.0 + steps[which[c]] * multiplier[c])
            length[c] = np.sqrt(square[c] + shrink[c] * shrink[c] * common[c])
            free = multiplier[c] == 0.0 and length[c] <= radius
            moving[c] = not free and abs(length[c] - radius) > 1e-6 * radius
            going += moving[c]
        if going == 0:
            break
        substitute(ratios, inverses, v, falls)
        falling = _column_dots(v, falls)
        for c in range(number):
            if moving[c]:
                step = steps[which[c]]
                fall = falling[c] + shrink[c] ** 3 * step * common[c]
                change = length[c] * length[c] / fall * (length[c] - radius) / radius
                multiplier[c] = max(multiplier[c] + change, 0.0)
                shift[c] = 1.0 / step + multiplier[c]
    for c in range(number):
        scale = 1.0
        if multiplier[c] > 0.0 or length[c] > radius:  # where the ball holds it, on the sphere
            scale = radius / max(length[c], 1e-30)
        flat, i = new_theta[which[c]].ravel(), which[c]
        for e in range(size):
            own[e] = scale * v[e, c]
        for r in range(size):
            flat[r] = dot(basis[r], own, size)
        for j in range(width):
            new_mean[i, j] = scale * shrink[c] * target_mean[i, j]


@exact
def _column_dots(A: Any, B: Any) -> Any:
    """Sums of ``A * B`` over rows."""
    found = np.zeros(A.shape[1])
    for r in range(A.shape[0]):
        for c in range(len(found)):
            found[c] += A[r, c] * B[r, c]
    return found


@exact
def _under(
    prior: Any, means: Any, B: Any, theta: Any, potential: Any, moments: Any, n_classes: int
) -> Any:
    """Risk (N,) and gradient (N, K, d) under another class prior, from the class-wise sums."""
    n_learners, others, width = theta.shape
    value, row, difference = np.zeros(n_learners), np.empty(width), np.empty(width)
    gradient = np.zeros((n_learners, n_classes, width), np.float32)
    for i in range(n_learners):
        value[i] = dot(prior, potential[i], n_classes)
        rest = gradient[i, 0]
        for c in range(others):
            _mix(B[c], theta[i], difference)
            _mix(prior, moments[i, :, c], row)
            pull, weight, out = means[c + 1], prior[c + 1], gradient[i, c + 1]
            value[i] -= weight * dot(pull, difference, width)
            for j in range(width):
                slope = row[j] - weight * pull[j]
                out[j] = slope
                rest[j] -= slope
    return value, gradient
