r"""The synthetic problem as the theorems see it: every expectation exact, no sample in its place.

For a linear model and Gaussian classes the loss of a row depends on the K - 1 differences of its
logits alone, and these are Gaussian: an integral over the plane for three classes. Gauss-Hermite
nodes solve it to many digits, so R_0^k(w) is known, and with it the regret.

Lemma 1 and the theorems ask for an offline set so large that C and the class risks are exact.
``known_source`` is that source: its rows are quadrature nodes, its C is integrated. A gradient
step on it stays in the span of the class centres (noise across it only adds risk), where the nodes
stand for the whole Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.stats import multivariate_normal

from priorshift._numerics import TINY
from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.datasets.synthetic import SyntheticProblem, synthetic_problem
from priorshift.risk import RiskData, Softmax, gradient_step, project_ball
from priorshift.simulation.regret import best_risks
from priorshift.simulation.streams import GaussianPopulation
from priorshift.source import Source
from priorshift.source.head import fit_head
from priorshift.source.model import LinearModel, Model
from priorshift.typing import AnyArray, FloatArray

# Nodes in each direction: of the measured risk, and of the source that learners descend on.
_FINE = 12
_NODES = 7
# Values of the integrand that one block of models may take in memory.
_BLOCK = 1 << 18


def hermite(nodes: int, dimensions: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (m, D) and weights (m,) of the expectation under a standard Gaussian.

    Examples
    --------
    >>> z, weight = hermite(5, 2)
    >>> round(float(weight @ z[:, 0] ** 4), 9), round(float(weight @ (z[:, 0] * z[:, 1]) ** 2), 9)
    (3.0, 1.0)
    """
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(*[points] * dimensions, indexing="ij"), axis=-1)
    product = weights
    for _ in range(dimensions - 1):
        product = np.multiply.outer(product, weights)
    return grid.reshape(-1, dimensions), product.ravel()


def gaussian_risks(population: GaussianPopulation, W: AnyArray, nodes: int = _FINE) -> FloatArray:
    r"""Exact class risks :math:`R_0^k(w)` (N, 3) of linear models (N, 3, d) under the softmax loss.

    Examples
    --------
    >>> population = synthetic_problem().population
    >>> gaussian_risks(population, np.zeros((1, 3, 12))).round(6).tolist()  # log 3
    [[1.098612, 1.098612, 1.098612]]
    """
    models = np.asarray(W, dtype=np.float64)
    size = max(1, _BLOCK // (3 * nodes**2))
    blocks = [models[a : a + size] for a in range(0, len(models), size)]
    return np.concatenate([_block_risks(population, block, nodes) for block in blocks])


def _block_risks(population: GaussianPopulation, W: FloatArray, nodes: int) -> FloatArray:
    points, weight = hermite(nodes, 1)[0][:, 0], hermite(nodes, 2)[1]
    gaps = W[:, 1:] - W[:, :1]
    mean = np.einsum("njd,kd->nkj", gaps, population.centres)
    spread = gaps @ population.covariance @ gaps.transpose(0, 2, 1)
    # Cholesky factor of each 2 x 2 covariance by hand: equal rows of W make it singular.
    a = np.sqrt(np.maximum(spread[:, 0, 0], 0.0))
    b = spread[:, 1, 0] / np.maximum(a, TINY)
    c = np.sqrt(np.maximum(spread[:, 1, 1] - b * b, 0.0))
    # exp(mean + b z_1 + c z_2) is a product, so that few exponentials serve the whole grid.
    first = np.exp(mean[:, :, 0, None] + (a[:, None] * points)[:, None])
    second = np.exp(mean[:, :, 1, None] + (b[:, None] * points)[:, None])
    total = second[:, :, :, None] * np.exp(c[:, None] * points)[:, None, None]
    total += 1.0 + first[:, :, :, None]
    potential = np.log(total, out=total).reshape(len(W), 3, -1) @ weight
    own = np.concatenate([np.zeros((len(W), 1)), mean[:, [1, 2], [0, 1]]], axis=1)
    return np.asarray(potential - own)


def gaussian_confusion(population: GaussianPopulation, W: AnyArray) -> FloatArray:
    """Exact C of the linear model (3, d): entry (i, j) is how much of class j it calls i.

    Examples
    --------
    >>> population = GaussianPopulation(9 * np.eye(3), np.eye(3))
    >>> gaussian_confusion(population, np.eye(3)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    models = np.asarray(W, dtype=np.float64)
    C = np.empty((3, 3))
    for i in range(3):
        rivals = np.delete(models, i, axis=0) - models[i]
        spread = rivals @ population.covariance @ rivals.T
        for j, centre in enumerate(population.centres):
            C[i, j] = multivariate_normal.cdf(
                np.zeros(2), rivals @ centre, spread, abseps=1e-10, releps=1e-10
            )
    return np.asarray(C / C.sum(axis=0))


@dataclass(frozen=True, eq=False)
class KnownSource(Source):
    """A source whose confusion matrix is known, not counted."""

    truth: FloatArray | None = None

    @cached_property
    def confusion(self) -> FloatArray:
        """C[i, j]: the share of class j that f0 calls i."""
        assert self.truth is not None
        return self.truth


def span_nodes(population: GaussianPopulation, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Rows (K, m, d) in the span of the centres, and weights (m,), that stand for each class."""
    basis = np.linalg.qr(population.centres.T)[0]
    z, weight = hermite(nodes, basis.shape[1])
    factor = np.linalg.cholesky(basis.T @ population.covariance @ basis)
    return population.centres[:, None] + z @ (basis @ factor).T, weight


def span_data(population: GaussianPopulation, nodes: int, reach: float) -> RiskData:
    """The nodes of ``span_nodes`` as an offline set, ``reach`` the largest norm of a row."""
    rows, weight = span_nodes(population, nodes)
    K, m, d = rows.shape
    return RiskData(
        np.ascontiguousarray(rows.reshape(K * m, d).T, dtype=np.float32),
        m * np.arange(K + 1),
        weights=np.tile(weight, K).astype(np.float32),
        reach=reach,
    )


class KnownProblem(NamedTuple):
    """What all measurements share; it takes long to make, and is sent to workers whole.

    ``sampled`` is the paper's own source, 10,000 rows; ``known`` that of the theorems. ``best`` is
    the smallest risk in the ball by the weight of mu_2. ``change`` is the largest difference of the
    risks under mu_2 and mu_1 that a model of the ball has: priors move between the two alone, so
    that ``sup |R_t - R_{t-1}|`` is this times the part of the way that a round goes.
    """

    sampled: Source
    known: KnownSource
    best: PchipInterpolator
    change: float


# Made once in a process, or given to it.
_problem: KnownProblem | None = None


def known_problem() -> KnownProblem:
    """The synthetic problem with its sources and its clairvoyant."""
    global _problem
    if _problem is None:
        sampled = offline_stage(load_dataset("synthetic"))
        known = _make_known_source(sampled)
        _problem = KnownProblem(sampled, known, _best_curve(known), _largest_change(known))
    return _problem


def adopt(problem: KnownProblem) -> None:
    """Take what another process has made."""
    global _problem
    _problem = problem


def known_source() -> KnownSource:
    """The source of the theorems: f0, C and the class risks of an endless offline set.

    f0 is the best model of the ball under the uniform mix, as the paper's; G and B are those of
    the paper's offline set, because a Gaussian row has no largest norm.
    """
    return known_problem().known


def _make_known_source(sampled: Source) -> KnownSource:
    problem = synthetic_problem()
    data = span_data(problem.population, _NODES, sampled.risk.largest_norm)
    fitted = fit_head(data, Softmax(), np.full(3, 1 / 3), SyntheticProblem.radius)
    basis = np.linalg.qr(problem.population.centres.T)[0]
    head = fitted @ basis @ basis.T  # the solver leaves some 1e-5 across the span
    model = Model(LinearModel(head, np.arange(3)), np.arange(3))
    labels = np.repeat(np.arange(3), data.counts)
    return KnownSource(
        model=model,
        features=sampled.features,
        loss=sampled.loss,
        prior=np.full(3, 1 / 3),
        proba=model.predict_proba(data.XT.T.astype(np.float64)),
        labels=labels,
        risk=data,
        head=np.asarray(head, dtype=np.float32),
        diameter=SyntheticProblem.diameter,
        n_features=problem.X0.shape[1],
        truth=gaussian_confusion(problem.population, head),
    )


# Mixes at which the best model is found; between them its risk is interpolated. They lie close
# together near mu_2, where that risk is steepest.
_MIXES = 401
_BEST_NODES = 14


def _best_curve(source: KnownSource) -> PchipInterpolator:
    data = span_data(synthetic_problem().population, _BEST_NODES, source.risk.largest_norm)
    alphas = 1.0 - np.linspace(1.0, 0.0, _MIXES) ** 3
    return PchipInterpolator(alphas, best_risks(source, data, mixes(alphas)))


def mixes(alphas: ArrayLike) -> FloatArray:
    """The class priors (n, 3) ``(1 - alpha) mu_1 + alpha mu_2``: from all classes alike to one.

    Examples
    --------
    >>> mixes([0.0, 1.0]).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.0, 0.0, 1.0]]
    """
    alpha = np.asarray(alphas, dtype=np.float64)[:, None]
    return np.asarray((1.0 - alpha) / 3.0 + alpha * np.eye(3)[SyntheticProblem.focus])


def clairvoyant_risks(alphas: ArrayLike) -> FloatArray:
    """Smallest true risk (n,) in the ball under ``mixes(alphas)``.

    Examples
    --------
    >>> clairvoyant_risks([0.0, 1.0]).round(3).tolist()
    [0.211, 0.0]
    """
    return np.asarray(known_problem().best(np.asarray(alphas, dtype=np.float64)))


# Random models that the search for the largest change starts from, and its gradient steps.
_STARTS, _CLIMB = 32, 300


def _largest_change(source: KnownSource) -> float:
    """Climb from random models of the ball, up and down: the risks are no concave function."""
    population = synthetic_problem().population
    basis = np.linalg.qr(population.centres.T)[0]
    start = np.random.default_rng(0).normal(size=(_STARTS, 3, 3)) @ basis.T
    direction = mixes([1.0])[0] - mixes([0.0])[0]
    found = 0.0
    for sign in (-1.0, 1.0):
        W = project_ball(start.astype(np.float32), source.radius)
        for t in range(_CLIMB):
            steps = np.full(_STARTS, source.radius / (1.0 + 0.1 * t))
            W = gradient_step(source.risk, source.loss, W, sign * direction, steps, source.radius)[
                1
            ]
        found = max(found, float(np.abs(gaussian_risks(population, W) @ direction).max()))
    return found
