r"""The implicit update, second step of equation 6, for all base learners together.

.. math:: w_i = \arg\min_{w \in W} H(w) + \frac{1}{2 \eta_i} \|w - \hat w_i\|_2^2

``H`` is a rewritten risk under non-negative class weights, hence convex. Small models are solved by
Newton steps whose curvature comes from a part of the held-out set and whose quadratic model is
minimised over the ball exactly; larger ones by Newton steps with conjugate gradients, which never
form the curvature (see ``newton_cg``). Both use exact gradients, start from the last round's
solution and drop a base learner as soon as it is done. For the softmax both are compiled where
numba is there, the larger ones on sets that fit the cache.
The hinge loss is solved through its smoothed form, whose temperature is a setting.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift.risk import compiled
from priorshift.risk.curvature import hessian
from priorshift.risk.data import RiskData
from priorshift.risk.kernel import RiskValue, rewritten_risk
from priorshift.risk.losses import Hinge, Loss, SmoothedHinge, Softmax
from priorshift.risk.newton_cg import (
    Curvature,
    conjugate_gradients,
    curved_pass,
    quadratic_model,
    start_point,
)
from priorshift.risk.step import norms, project_ball
from priorshift.typing import Float32Array, FloatArray, IntArray

_LARGEST_NEWTON = 128
# Sets of at most this many rows measure second derivatives themselves, with all their rows.
_SMALL_SET = 1100
# In sets of more numbers than this, the passes are faster for all base learners together.
_IN_CACHE = 1 << 21
_COOLING = (0.3, 0.1, 0.03)
# Steps without progress after which a base learner is at the limit of float32.
_PATIENCE = 10
# Root mean square of features from which on the tolerance grows with them.
_LARGE = 4.0
_LOG = logging.getLogger(__name__)


class ImplicitResult(NamedTuple):
    """Solution of the implicit update.

    ``hint_loss`` is H there. ``evaluations`` counts gradient evaluations of one base learner,
    ``products`` products with its curvature, both summed over base learners; a product costs less
    than an evaluation. ``risk`` is the risk under another prior where that came for free.
    """

    W: Float32Array
    hint_loss: FloatArray
    residual: FloatArray
    evaluations: int
    risk: RiskValue | None = None
    products: int = 0


class Solver(ABC):
    """How the implicit update is made: a frozen dataclass of settings with a name.

    Examples
    --------
    >>> isinstance(ImplicitSolver(), Solver)
    True
    """

    name: ClassVar[str]

    @abstractmethod
    def solve(
        self,
        data: RiskData,
        loss: Loss,
        centre: Float32Array,
        start: Float32Array,
        steps: FloatArray,
        prior: FloatArray,
        radius: float,
        also: FloatArray | None = None,
    ) -> ImplicitResult:
        """Solve for all base learners: ``centre`` and ``start`` (N, K, d), ``steps`` (N,).

        ``also`` is a class prior whose risk at the solution is wanted too, if it comes for free.
        """


@dataclass(frozen=True)
class ImplicitSolver(Solver):
    """Solve the implicit update to a tolerance.

    Parameters
    ----------
    tolerance : float
        Largest optimality residual ``||w - Pi(w - s g)|| / s`` with g the gradient of the objective
        and ``s = eta / (1 + eta)``. Gradients grow with the features, and so does their rounding:
        where the root mean square of the features is above 4, far from standardised, the tolerance
        is larger by as much.
    max_steps : int
        Steps after which the best point so far is returned, with its residual.
    smoothing : float
        Temperature of the smoothed hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.risk.losses import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> start = np.zeros((1, 2, 1), np.float32)
    >>> solver = ImplicitSolver()
    >>> result = solver.solve(data, Softmax(), start, start, np.ones(1), np.array([0.5, 0.5]), 5.0)
    >>> float(result.W[0, 0, 0]) > 0.2 and float(result.residual.max()) < 1e-4
    True
    """

    tolerance: float = 1e-4
    max_steps: int = 200
    smoothing: float = 0.01
    name: ClassVar[str] = "exact"

    def solve(
        self,
        data: RiskData,
        loss: Loss,
        centre: Float32Array,
        start: Float32Array,
        steps: FloatArray,
        prior: FloatArray,
        radius: float,
        also: FloatArray | None = None,
    ) -> ImplicitResult:
        """Solve for all base learners: ``centre`` and ``start`` (N, K, d), ``steps`` (N,).

        ``also`` is a class prior whose risk at the solution is wanted too, if it comes for free.
        """
        scaled = self
        if data.scale > _LARGE:
            scaled = replace(self, tolerance=self.tolerance * data.scale / _LARGE)
        problem = _Problem(data, loss, centre, steps, prior, radius)
        if isinstance(loss, Softmax) and compiled.available() and _has_kernel(data, start):
            found = scaled._solve_compiled(problem, start, also)
        elif isinstance(loss, Hinge):
            found = scaled._solve_hinge(problem, start)
        else:
            found = scaled._solve_smooth(problem, start)
        _LOG.debug(
            "implicit step of %d base learners: %d gradient evaluations, %d curvature products",
            len(start),
            found.evaluations,
            found.products,
        )
        if max(found.residual.tolist()) > scaled.tolerance:
            missed = found.residual > scaled.tolerance
            _LOG.info(
                "implicit step: %d of %d base learners stopped at residuals up to %.1e, not %.1e",
                missed.sum(),
                len(missed),
                found.residual.max(),
                scaled.tolerance,
            )
        return found

    def _solve_compiled(
        self, problem: _Problem, start: Float32Array, also: FloatArray | None
    ) -> ImplicitResult:
        """Softmax models by compiled Newton steps: small ones whole, wide ones by products."""
        data, plain = problem.data, compiled.plain
        small = start[0].size <= _LARGEST_NEWTON
        nothing = problem.prior if small else np.zeros_like(problem.prior)
        asked = (
            plain(problem.prior),
            plain(nothing if also is None else also),
            plain(problem.centre),
            plain(start),
            plain(problem.steps),
            problem.radius,
            self.tolerance,
            self.max_steps,
        )
        products = 0
        if small:
            part = data if data.XT.shape[1] <= _SMALL_SET else data.part
            rows = (part.XT, part.shares, part.offsets)
            W, hint_loss, value, gradient, residual, evaluations = compiled.newton.implicit_step(
                data.samples, rows, asked
            )
        else:
            W, hint_loss, value, gradient, residual, evaluations, products = (
                compiled.newton_cg.implicit_step_cg(data.samples, asked)
            )
        risk = None if also is None else RiskValue(value, gradient)
        return ImplicitResult(W, hint_loss, residual, evaluations, risk, products)

    def _solve_smooth(self, problem: _Problem, start: Float32Array) -> ImplicitResult:
        # The smoothed hinge bends in few rows only: a fixed part of the set would miss them.
        if start[0].size <= _LARGEST_NEWTON and not problem.loss.needs_label:
            return _newton(problem, start, self)
        return _newton_cg(problem, start, self)

    def _solve_hinge(self, problem: _Problem, start: Float32Array) -> ImplicitResult:
        """Cool the smoothed hinge down; report the loss of the hinge itself."""
        evaluations = products = 0
        for tau in (*(t for t in _COOLING if t > self.smoothing), self.smoothing):
            last = tau == self.smoothing
            stage = self if last else replace(self, tolerance=100 * self.tolerance, max_steps=20)
            found = stage._solve_smooth(replace(problem, loss=SmoothedHinge(tau)), start)
            start = found.W
            evaluations, products = evaluations + found.evaluations, products + found.products
        exact = rewritten_risk(problem.data, Hinge(), found.W, problem.prior)
        return found._replace(hint_loss=exact.value, evaluations=evaluations, products=products)


def _has_kernel(data: RiskData, W: Float32Array) -> bool:
    """Whether the models are small, or the set fits the cache."""
    return W[0].size <= _LARGEST_NEWTON or data.XT.size <= _IN_CACHE


@dataclass
class _Problem:
    """The update to solve, and a count of what that took."""

    data: RiskData
    loss: Loss
    centre: Float32Array
    steps: FloatArray
    prior: FloatArray
    radius: float
    evaluations: int = 0
    products: int = 0

    def evaluate(
        self, W: Float32Array, which: IntArray
    ) -> tuple[RiskValue, FloatArray, FloatArray]:
        """Risk, objective and its gradient at ``W`` for the base learners ``which``."""
        self.evaluations += len(which)
        risk = rewritten_risk(self.data, self.loss, W, self.prior)
        away = (W - self.centre[which]).astype(np.float64)
        inverse = 1.0 / self.steps[which]
        value = risk.value + 0.5 * inverse * norms(away) ** 2
        return risk, value, risk.gradient + inverse[:, None, None] * away

    def bend(self, W: FloatArray, which: IntArray) -> _Point:
        """Risk, objective, its gradient, and the risk's Hessian for products.

        ``W`` is float64: over a short step its rounding would be more than the tolerance.
        """
        self.evaluations += len(which)
        risk, curvature = curved_pass(self.data, self.loss, W.astype(np.float32), self.prior)
        away = W - self.centre[which]
        inverse = 1.0 / self.steps[which]
        value = risk.value + 0.5 * inverse * norms(away) ** 2
        return _Point(risk, value, risk.gradient + inverse[:, None, None] * away, curvature)

    def curvature(self, W: Float32Array, which: IntArray) -> FloatArray:
        """Hessian of the objective (N, K d, K d)."""
        matrices = hessian(self.data.part, self.loss, W, self.prior)
        matrices += np.eye(matrices.shape[1]) / self.steps[which, None, None]
        return matrices

    def residual(
        self, W: Float32Array | FloatArray, gradient: FloatArray, which: IntArray
    ) -> FloatArray:
        """Norm of the gradient mapping: zero exactly at the solution."""
        scale = (self.steps[which] / (1.0 + self.steps[which]))[:, None, None]
        wide = W.astype(np.float64)
        return norms((wide - project_ball(wide - scale * gradient, self.radius)) / scale)


class _Point(NamedTuple):
    """All that is known at one point of each base learner."""

    risk: RiskValue
    value: FloatArray
    gradient: FloatArray
    curvature: Curvature

    def of(self, which: IntArray) -> _Point:
        risk = RiskValue(self.risk.value[which], self.risk.gradient[which])
        return _Point(risk, self.value[which], self.gradient[which], self.curvature.of(which))


class _Best:
    """The best point of each base learner so far, filled in as they finish."""

    def __init__(self, start: Float32Array) -> None:
        self.W = start.copy()
        self.hint_loss = np.zeros(len(start))
        self.residual = np.full(len(start), np.inf)
        self.idle = np.zeros(len(start), np.intp)

    def offer(
        self,
        which: IntArray,
        W: Float32Array | FloatArray,
        risk: RiskValue,
        residual: FloatArray,
    ) -> None:
        better = residual < self.residual[which]
        self.idle[which] = np.where(better, 0, self.idle[which] + 1)
        kept = which[better]
        self.W[kept], self.residual[kept] = W[better], residual[better]
        self.hint_loss[kept] = risk.value[better]

    def result(self, evaluations: int, products: int = 0) -> ImplicitResult:
        return ImplicitResult(self.W, self.hint_loss, self.residual, evaluations, products=products)


def _newton(problem: _Problem, start: Float32Array, solver: ImplicitSolver) -> ImplicitResult:
    shape = start.shape[1:]
    active = np.arange(len(start))
    W = project_ball(start, problem.radius)
    best = _Best(W)
    curves = problem.curvature(W, active)
    risk, value, gradient = problem.evaluate(W, active)
    for step in range(solver.max_steps):
        residual = problem.residual(W, gradient, active)
        best.offer(active, W, risk, residual)
        going = (residual > solver.tolerance) & (best.idle[active] < _PATIENCE)
        if not going.any():
            break
        active, W, value, gradient = active[going], W[going], value[going], gradient[going]
        if step and step % 6 == 0:  # the curvature is stale
            curves[active] = problem.curvature(W, active)
        flat = W.reshape(len(W), -1).astype(np.float64)
        target = _minimise_in_ball(
            curves[active], flat, gradient.reshape(len(W), -1), problem.radius
        )
        W, risk, value, gradient = _step_down(problem, active, W, value, target.reshape(-1, *shape))
    return best.result(problem.evaluations)


def _newton_cg(problem: _Problem, start: Float32Array, solver: ImplicitSolver) -> ImplicitResult:
    active = np.arange(len(start))
    W = start_point(start, problem.radius)
    best = _Best(W.astype(np.float32))
    here = problem.bend(W, active)
    for _ in range(solver.max_steps):
        residual = problem.residual(W, here.gradient, active)
        best.offer(active, W, here.risk, residual)
        going = np.flatnonzero((residual > solver.tolerance) & (best.idle[active] < _PATIENCE))
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, W, here, residual = active[going], W[going], here.of(going), residual[going]
        inverse = 1.0 / problem.steps[active]
        curvature = here.curvature.drawn(problem.data.squares)
        model = quadratic_model(W, here.gradient, curvature, inverse, problem.radius)
        step, products = conjugate_gradients(model, solver.tolerance)
        problem.products += products
        W, here = _walk(problem, active, W, here, step)
    return best.result(problem.evaluations, problem.products)


def _walk(
    problem: _Problem, which: IntArray, W: FloatArray, here: _Point, step: Float32Array
) -> tuple[FloatArray, _Point]:
    """Go the step, back into the ball; a shorter one where the objective would rise."""
    share = np.ones(len(W), np.float32)
    slack = 1e-6 * (1.0 + np.abs(here.value))
    for _ in range(20):
        W_new = project_ball(W + share[:, None, None] * step, problem.radius)
        there = problem.bend(W_new, which)
        rising = there.value > here.value + slack
        if not rising.any():
            break
        share[rising] *= 0.25
    return W_new, there


def _minimise_in_ball(
    A: FloatArray, w: FloatArray, g: FloatArray, radius: float, rounds: int = 8
) -> FloatArray:
    """Minimise ``g.(u - w) + (u - w)' A (u - w) / 2`` over ``||u|| <= radius``, for a stack.

    The multiplier of the ball solves ``||u(lam)|| = radius`` by Newton's method on ``1 / ||u||``.
    On the sphere it starts from the value that ``w`` itself suggests: at a solution ``g = -lam w``.
    """
    b = np.einsum("nij,nj->ni", A, w) - g
    on_sphere = np.linalg.norm(w, axis=1) > radius * (1 - 1e-4)
    suggested = -np.einsum("ni,ni->n", g, w) / radius**2
    multiplier = np.where(on_sphere, np.maximum(suggested, 0.0), 0.0)
    u = np.empty_like(w)
    todo = np.arange(len(w))
    eye = np.eye(A.shape[1])
    for _ in range(rounds):
        shifted = A[todo] + multiplier[todo, None, None] * eye
        v = np.linalg.solve(shifted, b[todo, :, None])[..., 0]
        u[todo] = v
        length = np.linalg.norm(v, axis=1)
        free = (multiplier[todo] == 0.0) & (length <= radius)
        going = ~free & (np.abs(length - radius) > 1e-5 * radius)
        if not going.any():
            break
        todo, v, length = todo[going], v[going], length[going]
        slope = np.linalg.solve(shifted[going], v[..., None])[..., 0]
        change = length**2 / np.einsum("ni,ni->n", v, slope) * (length - radius) / radius
        multiplier[todo] = np.maximum(multiplier[todo] + change, 0.0)
    scale = radius / np.maximum(np.linalg.norm(u, axis=1), np.finfo(np.float32).tiny)
    # Where the ball holds the solution back, it lies on the sphere exactly.
    return np.asarray(u * np.where(multiplier > 0.0, scale, np.minimum(1.0, scale))[:, None])


def _step_down(
    problem: _Problem, which: IntArray, W: Float32Array, value: FloatArray, target: FloatArray
) -> tuple[Float32Array, RiskValue, FloatArray, FloatArray]:
    """Go to ``target``, or part of the way there where the objective would rise."""
    share = np.ones(len(W))
    wide = W.astype(np.float64)
    slack = 1e-6 * (1.0 + np.abs(value))
    for _ in range(20):
        moved = (wide + share[:, None, None] * (target - wide)).astype(np.float32)
        risk, new_value, gradient = problem.evaluate(moved, which)
        rising = new_value > value + slack
        if not rising.any():
            break
        share[rising] *= 0.25
    return moved, risk, new_value, gradient
