"""Regret where the truth is known: the learner's risk against the clairvoyant's, round by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift.errors import InputError
from priorshift.risk import ImplicitSolver, RiskData, class_risks
from priorshift.simulation.evaluate import Result
from priorshift.source import Source
from priorshift.typing import Float32Array, FloatArray

# So long a step leaves the implicit update with the risk alone, but for radius^2 / 2e6.
_NO_PULL = 1e6


@dataclass(frozen=True, eq=False)
class Regret:
    """Measured regret of one run.

    Attributes
    ----------
    dynamic : float
        Equation 1: the learner's cumulative risk less that of each round's best model.
    static : float
        The same less that of the best single model in hindsight.
    risks, best_risks : (T,) arrays
        R_t(w_t) and min R_t(w).
    """

    dynamic: float
    static: float
    risks: FloatArray
    best_risks: FloatArray


def measure_regret(source: Source, data: RiskData, result: Result, priors: FloatArray) -> Regret:
    """Compare a run that tracked its risks (``evaluate(..., risk=data)``) with the best models.

    ``data`` stand for the true class-conditional distributions, ``priors`` (T, K) are the true
    class priors.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.simulation.evaluate import evaluate
    >>> from priorshift.learners import UOGD
    >>> from priorshift.datasets.offline import offline_stage
    >>> from priorshift.simulation.streams import SimulatedStream
    >>> problem = load_dataset("synthetic")
    >>> source = offline_stage(problem)
    >>> priors = np.tile(problem.mu1, (5, 1))
    >>> stream = SimulatedStream(problem.population, priors, batch_size=10, seed=0)
    >>> result = evaluate(UOGD(horizon=5), source, stream, risk=source.risk)
    >>> regret = measure_regret(source, source.risk, result, priors)
    >>> regret.dynamic >= regret.static >= 0
    True
    """
    if result.risks is None:
        raise InputError("this run did not track its risks: call evaluate(..., risk=data)")
    best = best_risks(source, data, priors)
    fixed = float(best_risks(source, data, priors.mean(axis=0)[None])[0]) * len(priors)
    total = float(result.risks.sum())
    return Regret(total - float(best.sum()), total - fixed, result.risks, best)


def best_risks(source: Source, data: RiskData, priors: FloatArray) -> FloatArray:
    """Smallest risk in the ball under each class prior of ``priors`` (T, K); equal ones share it.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> from priorshift.datasets.offline import offline_stage
    >>> problem = load_dataset("synthetic")
    >>> source = offline_stage(problem)
    >>> best_risks(source, source.risk, np.vstack([problem.mu1, problem.mu2])).round(3).tolist()
    [0.211, 0.0]
    """
    distinct, where = np.unique(priors.round(9), axis=0, return_inverse=True)
    found = np.empty(len(distinct))
    W: Float32Array = source.head[None]
    solver = ImplicitSolver(tolerance=1e-5, max_steps=500)
    for i, prior in enumerate(distinct):
        centre = np.zeros_like(W)
        step = np.array([_NO_PULL])
        solved = solver.solve(data, source.loss, centre, W, step, prior, source.radius)
        W = solved.W
        found[i] = class_risks(data, source.loss, W)[0] @ prior
    return found[where.ravel()]
