r"""Implicit updates that are not solved to the end: the paper's own, and the linearised one.

Both stand beside ``ImplicitSolver``, which solves the second step of equation 6 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from priorshift._registry import Registry
from priorshift._validation import check_integer
from priorshift.errors import InputTypeError
from priorshift.risk.data import RiskData
from priorshift.risk.implicit import ImplicitResult, ImplicitSolver, Solver
from priorshift.risk.kernel import RiskValue, rewritten_risk
from priorshift.risk.losses import Loss
from priorshift.risk.step import descend, project_ball
from priorshift.typing import Float32Array, FloatArray

# A step along which the gradient bends less than this says nothing about the curvature.
_FLAT = 1e-10

Pair = tuple[FloatArray, FloatArray, float]
"""A step, the change of the gradient along it, and their product."""


@dataclass(frozen=True)
class PaperSolver(Solver):
    r"""The authors' implicit step: a few iterations of L-BFGS without a line search.

    The models of all base learners are one vector, and their objectives
    :math:`\eta_i H(w_i) + \frac12 \|w_i - \hat w_i\|_2^2` are added up. From the last models the
    iterations take steps of length 1 along the L-BFGS direction (the first one along the
    gradient g, of length :math:`\min(1, 1 / \|g\|_1)`); the ball comes in at the end, as a
    projection. What comes out is no minimum for base learners with long steps, and Hedge drops
    them. After an exact solution of a noisy hint it would trust them, since the hint that they fit
    is what they are judged by.

    Parameters
    ----------
    iterations : int
        7 in the paper's experiments.

    Examples
    --------
    >>> from priorshift.risk.losses import Softmax
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
        """Take the steps; arguments as of ``ImplicitSolver``."""
        middle = centre.astype(np.float64)
        scale = steps[:, None, None]

        def slope(W: FloatArray) -> FloatArray:
            risk = rewritten_risk(data, loss, W.astype(np.float32), prior)
            return scale * risk.gradient + (W - middle)

        W = start.astype(np.float64)
        gradient = slope(W)
        step = -min(1.0, 1.0 / max(float(np.abs(gradient).sum()), 1e-300)) * gradient
        pairs: list[Pair] = []
        for left in range(self.iterations - 1, -1, -1):
            W = W + step
            if left:
                before, gradient = gradient, slope(W)
                change = gradient - before
                bend = float(np.vdot(step, change))
                if bend > _FLAT:
                    pairs.append((step, change, bend))
                step = _direction(gradient, pairs)
        models = project_ball(W, radius).astype(np.float32)
        return _evaluated(data, loss, models, prior, also, self.iterations * len(W))


def _direction(gradient: FloatArray, pairs: list[Pair]) -> FloatArray:
    """Minus the gradient times the inverse Hessian that the pairs show (two loops of L-BFGS)."""
    found, shares = -gradient, []
    for step, change, bend in reversed(pairs):
        shares.append(float(np.vdot(step, found)) / bend)
        found = found - shares[-1] * change
    if pairs:
        _, change, bend = pairs[-1]
        found = found * (bend / float(np.vdot(change, change)))
    for (step, change, bend), share in zip(pairs, reversed(shares), strict=True):
        found = found + (share - float(np.vdot(change, found)) / bend) * step
    return found


@dataclass(frozen=True)
class LinearisedSolver(Solver):
    r"""The explicit step that the implicit one replaces (remark "Implicit update").

    .. math:: w_{t,i} = \Pi_W[\hat w_{t,i} - \eta_i \nabla H_t(w_{t-1,i})]

    Examples
    --------
    >>> from priorshift.risk.losses import Softmax
    >>> data = RiskData.of(np.array([[1.0], [-1.0]]), np.array([0, 1]), n_classes=2)
    >>> W, step, prior = np.zeros((1, 2, 1), np.float32), np.ones(1), np.array([0.5, 0.5])
    >>> LinearisedSolver().solve(data, Softmax(), W, W, step, prior, 5.0).W.ravel().tolist()
    [0.5, -0.5]
    """

    name: ClassVar[str] = "linearised"

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
        """One gradient step of all base learners; arguments as of ``ImplicitSolver``."""
        slope = rewritten_risk(data, loss, start, prior).gradient
        W = descend(centre, slope, steps, radius)
        return _evaluated(data, loss, W, prior, also, len(W))


def _evaluated(
    data: RiskData,
    loss: Loss,
    W: Float32Array,
    prior: FloatArray,
    also: FloatArray | None,
    evaluations: int,
) -> ImplicitResult:
    """The hint's loss at the models that were found, and the risk there where that is wanted."""
    hint = rewritten_risk(data, loss, W, prior)
    risk: RiskValue | None = None
    if also is not None and np.array_equal(also, prior):
        risk = hint
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
