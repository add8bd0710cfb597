r"""The implicit update, second step of equation 6, for all base learners together.

.. math:: w_i = \arg\min_{w \in W} H(w) + \frac{1}{2 \eta_i} \|w - \hat w_i\|_2^2

``H`` is a rewritten risk under non-negative class weights, hence convex. It is solved by Newton
steps with conjugate gradients, which never form the curvature (see ``newton_cg``): with exact
gradients, from the last round's solution on, and without a base learner as soon as it is done. For
the softmax they are compiled where numba is there, of wide models on sets that fit the cache.
The hinge loss is solved through its smoothed form, whose temperature is a setting.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift.risk import compiled
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

# In sets of more numbers than this, the passes of wide models, those with more weights than that,
# are faster for all base learners together.
_IN_CACHE, _NARROW = 1 << 21, 128
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


class Update(NamedTuple):
    """An implicit update of N base learners: from ``centre`` and ``start`` (N, K, d) by ``steps``.

    ``prior`` (K,) are the class weights of H. ``also`` is a class prior whose risk at the solution
    is wanted too, if it comes for free.
    """

    data: RiskData
    loss: Loss
    centre: Float32Array
    start: Float32Array
    steps: FloatArray
    prior: FloatArray
    radius: float
    also: FloatArray | None = None


class Solver(ABC):
    """How the implicit update is made: a frozen dataclass of settings with a name.

    Examples
    --------
    >>> isinstance(ImplicitSolver(), Solver)
    True
    """

    name: ClassVar[str]

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
        """Make the update of all base learners; arguments as of ``Update``."""
        return self.made(Update(data, loss, centre, start, steps, prior, radius, also))

    @abstractmethod
    def made(self, update: Update) -> ImplicitResult:
        """Make an update."""


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

    def made(self, update: Update) -> ImplicitResult:
        """Solve for all base learners, in the way that is fastest for the data."""
        data, scaled = update.data, self
        if data.scale > _LARGE:
            scaled = replace(self, tolerance=self.tolerance * data.scale / _LARGE)
        one_by_one = data.XT.size <= _IN_CACHE or update.start[0].size <= _NARROW
        if isinstance(update.loss, Softmax) and compiled.available() and one_by_one:
            found = scaled._solve_compiled(update)
        elif isinstance(update.loss, Hinge):
            found = scaled._solve_hinge(update)
        else:
            found = _newton_cg(update, scaled)
        _LOG.debug(
            "implicit step of %d base learners: %d gradient evaluations, %d curvature products",
            len(update.start),
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

    def _solve_compiled(self, update: Update) -> ImplicitResult:
        """Softmax models by compiled Newton steps, one base learner after the other."""
        prior, plain = update.prior, compiled.plain
        also = np.zeros_like(prior) if update.also is None else update.also
        arrays = map(plain, (prior, also, update.centre, update.start, update.steps))
        asked = (*arrays, update.radius, self.tolerance, self.max_steps)
        W, hint_loss, value, gradient, residual, evaluations, products = (
            compiled.newton_cg.implicit_step_cg(update.data.samples, asked)
        )
        risk = None if update.also is None else RiskValue(value, gradient)
        return ImplicitResult(W, hint_loss, residual, evaluations, risk, products)

    def _solve_hinge(self, update: Update) -> ImplicitResult:
        """Cool the smoothed hinge down; report the loss of the hinge itself."""
        evaluations = products = 0
        for tau in (*(t for t in _COOLING if t > self.smoothing), self.smoothing):
            last = tau == self.smoothing
            stage = self if last else replace(self, tolerance=100 * self.tolerance, max_steps=20)
            found = _newton_cg(update._replace(loss=SmoothedHinge(tau)), stage)
            update = update._replace(start=found.W)
            evaluations, products = evaluations + found.evaluations, products + found.products
        exact = rewritten_risk(update.data, Hinge(), found.W, update.prior)
        return found._replace(hint_loss=exact.value, evaluations=evaluations, products=products)


@dataclass
class _Problem:
    """The update to solve, and a count of what that took."""

    update: Update
    evaluations: int = 0
    products: int = 0

    def bend(self, W: FloatArray, which: IntArray) -> _Point:
        """Risk, objective, its gradient, and the risk's Hessian for products.

        ``W`` is float64: over a short step its rounding would be more than the tolerance.
        """
        self.evaluations += len(which)
        data, loss, centre, _, steps, prior, *_ = self.update
        risk, curvature = curved_pass(data, loss, W.astype(np.float32), prior)
        away = W - centre[which]
        inverse = 1.0 / steps[which]
        value = risk.value + 0.5 * inverse * norms(away) ** 2
        return _Point(risk, value, risk.gradient + inverse[:, None, None] * away, curvature)

    def residual(self, W: FloatArray, gradient: FloatArray, which: IntArray) -> FloatArray:
        """Norm of the gradient mapping: zero exactly at the solution."""
        steps, radius = self.update.steps, self.update.radius
        scale = (steps[which] / (1.0 + steps[which]))[:, None, None]
        return norms((W - project_ball(W - scale * gradient, radius)) / scale)


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

    def offer(self, which: IntArray, W: FloatArray, risk: RiskValue, residual: FloatArray) -> None:
        better = residual < self.residual[which]
        self.idle[which] = np.where(better, 0, self.idle[which] + 1)
        kept = which[better]
        self.W[kept], self.residual[kept] = W[better], residual[better]
        self.hint_loss[kept] = risk.value[better]


def _newton_cg(update: Update, solver: ImplicitSolver) -> ImplicitResult:
    problem, active = _Problem(update), np.arange(len(update.start))
    W = start_point(update.start, update.radius)
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
        inverse = 1.0 / update.steps[active]
        curvature = here.curvature.drawn(update.data.squares)
        model = quadratic_model(W, here.gradient, curvature, inverse, update.radius)
        step, products = conjugate_gradients(model, solver.tolerance)
        problem.products += products
        W, here = _walk(problem, active, W, here, step)
    return ImplicitResult(
        best.W, best.hint_loss, best.residual, problem.evaluations, products=problem.products
    )


def _walk(
    problem: _Problem, which: IntArray, W: FloatArray, here: _Point, step: Float32Array
) -> tuple[FloatArray, _Point]:
    """Go the step, back into the ball; a shorter one where the objective would rise."""
    share = np.ones(len(W), np.float32)
    slack = 1e-6 * (1.0 + np.abs(here.value))
    for _ in range(20):
        W_new = project_ball(W + share[:, None, None] * step, problem.update.radius)
        there = problem.bend(W_new, which)
        rising = there.value > here.value + slack
        if not rising.any():
            break
        share[rising] *= 0.25
    return W_new, there
