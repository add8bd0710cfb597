r"""Implicit updates that are not solved to the end: the paper's own, and the linearised one.

Both stand beside ``ImplicitSolver``, which solves the second step of equation 6 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from priorshift._numerics import TINY
from priorshift._registry import Registry
from priorshift._validation import check_integer
from priorshift.errors import InputTypeError
from priorshift.risk import compiled
from priorshift.risk.compiled.problem import FLAT
from priorshift.risk.implicit import ImplicitResult, ImplicitSolver, Solver, Update
from priorshift.risk.kernel import compiled_whole, rewritten_risk
from priorshift.risk.step import descend, project_ball
from priorshift.typing import Float32Array, FloatArray


@dataclass(frozen=True)
class PaperSolver(Solver):
    r"""The authors' implicit step: a few iterations of L-BFGS without a line search.

    Each base learner starts from its intermediate model :math:`\hat w_i` and takes ``iterations``
    steps of length 1 along the L-BFGS direction of
    :math:`H(w) + \frac{1}{2 \eta_i} \|w - \hat w_i\|_2^2` (the first one along the gradient g, of
    length :math:`\min(1, 1 / \|g\|_1)`); the ball comes in at the end, as a projection. What comes
    out is no minimum for base learners with long steps, and Hedge drops them. After an exact
    solution of a noisy hint it would trust them, since the hint that they fit is what they are
    judged by. Of the hinge loss it takes subgradients.

    Parameters
    ----------
    iterations : int
        7 in the paper's experiments.

    Examples
    --------
    >>> from priorshift.risk import RiskData, Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W, step, prior = np.zeros((1, 2, 1), np.float32), np.ones(1), np.array([0.5, 0.5])
    >>> found = PaperSolver().solve(data, Softmax(), W, W, step, prior, 5.0)
    >>> exact = ImplicitSolver().solve(data, Softmax(), W, W, step, prior, 5.0)
    >>> bool(abs(found.W - exact.W).max() < 1e-3), found.evaluations
    (True, 8)
    """

    iterations: int = 7
    name: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        check_integer(self.iterations, "iterations", least=1)

    def made(self, update: Update) -> ImplicitResult:
        """Take the steps of all base learners together."""
        if compiled_whole(update.data, update.loss, update.centre):
            arrays = map(compiled.plain, (update.prior, update.centre, update.steps))
            W = compiled.lbfgs.lbfgs_steps(
                update.data.samples, *arrays, update.radius, self.iterations
            )
        else:
            W = self._steps(update)
        return _evaluated(update, W, self.iterations * len(W))

    def _steps(self, update: Update) -> Float32Array:
        data, loss, centre, _, steps, prior, radius, _ = update
        shape, size = centre.shape, len(centre)
        middle = centre.reshape(size, -1).astype(np.float64)
        pull = 1.0 / steps[:, None]

        def slope(w: FloatArray) -> FloatArray:
            models = w.reshape(shape).astype(np.float32)
            risk = rewritten_risk(data, loss, models, prior)
            return risk.gradient.reshape(size, -1) + pull * (w - middle)

        w, gradient = middle, slope(middle)
        length = np.maximum(np.abs(gradient).sum(axis=1, keepdims=True), TINY)
        step = -np.minimum(1.0, 1.0 / length) * gradient
        pairs: list[Pair] = []
        for left in range(self.iterations - 1, -1, -1):
            w = w + step
            if left:
                before, gradient = gradient, slope(w)
                pairs.append(_pair(step, gradient - before, pairs))
                step = _direction(gradient, pairs)
        return project_ball(w.reshape(shape), radius).astype(np.float32)


class Pair(NamedTuple):
    """A step (N, size), the change of the gradient along it, and what they say of the curvature.

    ``inverse`` is one over their product, 0 where they show no curvature; ``scale`` the curvature's
    inverse along the last pair that shows one.
    """

    step: FloatArray
    change: FloatArray
    inverse: FloatArray
    scale: FloatArray


def _pair(step: FloatArray, change: FloatArray, before: list[Pair]) -> Pair:
    bend = np.einsum("ij,ij->i", step, change)
    bent = bend > FLAT
    inverse = np.where(bent, 1.0 / np.where(bent, bend, 1.0), 0.0)
    square = np.maximum(np.einsum("ij,ij->i", change, change), TINY)
    old = before[-1].scale if before else np.ones(len(bend))
    return Pair(step, change, inverse, np.where(bent, bend / square, old))


def _direction(gradient: FloatArray, pairs: list[Pair]) -> FloatArray:
    """Minus the gradient times the inverse Hessian that the pairs show (two loops of L-BFGS)."""
    found, shares = -gradient, []
    for pair in reversed(pairs):
        shares.append(pair.inverse * np.einsum("ij,ij->i", pair.step, found))
        found = found - shares[-1][:, None] * pair.change
    found = pairs[-1].scale[:, None] * found
    for pair, share in zip(pairs, reversed(shares), strict=True):
        back = pair.inverse * np.einsum("ij,ij->i", pair.change, found)
        found = found + (share - back)[:, None] * pair.step
    return found


@dataclass(frozen=True)
class LinearisedSolver(Solver):
    r"""The explicit step that the implicit one replaces (remark "Implicit update").

    .. math:: w_{t,i} = \Pi_W[\hat w_{t,i} - \eta_i \nabla H_t(w_{t-1,i})]

    Examples
    --------
    >>> from priorshift.risk import RiskData, Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W, step, prior = np.zeros((1, 2, 1), np.float32), np.ones(1), np.array([0.5, 0.5])
    >>> LinearisedSolver().solve(data, Softmax(), W, W, step, prior, 5.0).W.ravel().tolist()
    [0.5, -0.5]
    """

    name: ClassVar[str] = "linearised"

    def made(self, update: Update) -> ImplicitResult:
        """One gradient step of all base learners."""
        slope = rewritten_risk(update.data, update.loss, update.start, update.prior).gradient
        W = descend(update.centre, slope, update.steps, update.radius)
        return _evaluated(update, W, len(W))


def _evaluated(update: Update, W: Float32Array, evaluations: int) -> ImplicitResult:
    """The hint's loss at the models that were found, and the risk there where that is wanted."""
    hint = rewritten_risk(update.data, update.loss, W, update.prior)
    wanted = update.also is not None and np.array_equal(update.also, update.prior)
    risk = hint if wanted else None
    return ImplicitResult(W, hint.value, np.full(len(W), np.nan), evaluations + len(W), risk)


SOLVERS: Registry[type[Solver]] = Registry(
    "solver", ImplicitSolver, PaperSolver, LinearisedSolver, otherwise="a solver object"
)


def as_solver(solver: object) -> Solver:
    """Return a solver from its name, or the solver itself.

    Examples
    --------
    >>> as_solver("paper")
    PaperSolver(iterations=7)
    """
    if isinstance(solver, str):
        return SOLVERS[solver]()
    if not isinstance(solver, Solver):
        names = ", ".join(map(repr, SOLVERS))
        raise InputTypeError(f"solver is {solver!r}: pass one of {names}, or a solver object")
    return solver
