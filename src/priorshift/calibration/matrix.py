r"""Matrix scaling of log-probabilities: how each class's score should depend on all of f0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from priorshift._numerics import log_floored, row_products, row_softmax
from priorshift._validation import check_integer, check_number
from priorshift.calibration.base import Recipe, Rows, freeze
from priorshift.calibration.folds import best_of
from priorshift.calibration.scaling import (
    NEWTON_UNKNOWNS,
    RIDGE_ROWS,
    Pull,
    fit_scaled,
    minimise,
    softmax_rows,
    wide_bias,
)
from priorshift.risk import compiled
from priorshift.typing import AnyArray, FloatArray

# From almost bias-corrected temperature scaling to almost free.
STRENGTHS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
_EXACT, _ROUGH = 1e-8, 1e-4
# Rows whose part of the Hessian is computed at once: K (K + 1) numbers each.
_BLOCK = 4096
# Of so many classes at most compiled products are quicker than those of BLAS.
_FEW = 32


@dataclass(frozen=True, eq=False)
class MatrixMap:
    r"""Softmax of :math:`W \log f_0(x) + b`.

    Examples
    --------
    >>> swap = MatrixMap("matrix", np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2), 1e-12)
    >>> swap(np.array([[0.75, 0.25]])).round(6).tolist()
    [[0.25, 0.75]]
    """

    name: str
    weights: FloatArray
    bias: FloatArray
    floor: float

    def __post_init__(self) -> None:
        freeze(self, bias=(None,), weights=np.shape(self.bias) * 2)
        check_number("floor", self.floor, 0, 1)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.bias)

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        if self.n_classes <= _FEW and compiled.available():
            found = np.empty(proba.shape)
            compiled.calibration.multiply(compiled.plain(proba), self.floor, *self._plain, found)
            return found
        # By pieces of one size: a row's bits must not depend on the rows that come with it.
        scores = row_products(log_floored(proba, self.floor), self.weights)
        return row_softmax(scores + self.bias)

    @cached_property
    def _plain(self) -> tuple[FloatArray, FloatArray]:
        """Its arrays as compiled code takes them: read-only ones would be copied in every call."""
        return compiled.plain(self.weights), compiled.plain(self.bias)

    def narrowed(self, seen: AnyArray) -> MatrixMap:
        """The map of some of the classes alone."""
        inner = self.weights[np.ix_(seen, seen)]
        return MatrixMap(self.name, inner, self.bias[seen], self.floor)

    def widened(self, rows: Rows) -> MatrixMap:
        """With the mean scale and the mean bias for classes that ``rows`` lack."""
        wide = np.diag(np.full(rows.n_classes, np.trace(self.weights) / self.n_classes))
        wide[np.ix_(rows.seen, rows.seen)] = self.weights
        apart = self.weights - np.trace(self.weights) / self.n_classes * np.eye(self.n_classes)
        bias = wide_bias(self.bias, apart @ rows.centre[rows.seen], rows)
        return MatrixMap(self.name, wide, bias, self.floor)


class MatrixObjective:
    r"""Weighted log-loss of a matrix map with its penalty, as a function of (W, b).

    The penalty is :math:`\frac\lambda2 v \, \|W - \frac{\mathrm{tr} W}{K} I\|^2`, with v the mean
    variance of the logarithms: in the units of a squared change of scores, so that one strength
    means the same to a timid f0 and to a bold one. It leaves the temperature and the bias free.

    Examples
    --------
    >>> rows = Rows(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> objective = MatrixObjective(rows, 0.1)
    >>> round(objective.value_and_gradient(objective.pack(np.eye(2), np.zeros(2)))[0], 3)
    0.49
    """

    def __init__(self, rows: Rows, strength: float, shrink: float = 0.0) -> None:
        self.rows = rows
        self.centre = rows.centre
        centred = rows.logs - self.centre
        # Rows along the last axis: sums over classes then run through memory in order.
        self.inputs = np.vstack([centred.T, np.ones(len(centred))])
        self.strength = strength * float((rows.weights @ centred**2).mean())
        self.ridge = RIDGE_ROWS / len(rows.labels)
        self.pull = Pull(shrink / len(rows.labels), self.centre)

    def pack(self, weights: FloatArray, bias: FloatArray) -> FloatArray:
        """The unknowns of a map: W, with the bias on centred logarithms as its last column."""
        return np.column_stack([weights, bias + weights @ self.centre]).ravel()

    def unpack(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """W and b of the unknowns; the mean of b is 0, as softmax does not see it."""
        both = theta.reshape(self.rows.n_classes, -1)
        bias = both[:, -1] - both[:, :-1] @ self.centre
        return both[:, :-1], bias - bias.mean()

    def _proba(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities (K, n), and the log-loss of each row."""
        return softmax_rows(theta.reshape(self.rows.n_classes, -1) @ self.inputs, self.rows.labels)

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Log-loss with penalty and ridge, and its gradient."""
        K = self.rows.n_classes
        residual, losses = self._proba(theta)
        W = theta.reshape(K, -1)[:, :-1]
        mean = float(np.trace(W)) / K - 1.0
        away = W - (1.0 + mean) * np.eye(K)
        ridge = W - np.eye(K)
        pulled, by_mean, by_bias = self.pull(mean, theta.reshape(K, -1)[:, -1])
        penalty = 0.5 * (self.strength * (away**2).sum() + self.ridge * (ridge**2).sum()) + pulled
        residual[self.rows.labels, np.arange(len(losses))] -= 1.0
        residual *= self.rows.weights
        gradient = residual @ self.inputs.T
        gradient[:, :-1] += self.strength * away + self.ridge * ridge + by_mean / K * np.eye(K)
        gradient[:, -1] += by_bias
        return float(self.rows.weights @ losses + penalty), gradient.ravel()

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivatives, the products in float32: Newton only takes its direction from it."""
        K, d = self.rows.n_classes, self.rows.n_classes + 1
        proba, _ = self._proba(theta)
        inputs = (self.inputs * np.sqrt(self.rows.weights)).astype(np.float32)
        H = np.zeros((K, d, K, d))
        for first in range(0, len(self.rows.labels), _BLOCK):
            part = slice(first, first + _BLOCK)
            some = inputs[:, part]
            spread = proba[:, None, part].astype(np.float32) * some
            flat = spread.reshape(K * d, -1)
            H -= (flat @ flat.T).reshape(K, d, K, d)
            for k in range(K):
                H[k, :, k, :] += spread[k] @ some.T
        row, column = np.divmod(np.arange(K * K), K)
        H[row, column, row, column] += self.strength + self.ridge
        trace = np.arange(K)
        H[trace[:, None], trace[:, None], trace, trace] += (
            self.pull.curvature / K - self.strength
        ) / K
        H[trace, trace, :, -1] -= self.pull.across / K
        H[:, -1, trace, trace] -= self.pull.across[:, None] / K
        H[:, -1, :, -1] += self.pull.weight * (np.eye(K) - 1.0 / K)
        return H.reshape(K * d, K * d)

    def blocks(self, theta: FloatArray) -> FloatArray:
        """Second derivatives (K, K + 1, K + 1) in the unknowns of each class alone, about."""
        d = self.rows.n_classes + 1
        proba, _ = self._proba(theta)
        spread = (self.rows.weights * proba * (1.0 - proba)).astype(np.float32)
        inputs = self.inputs.astype(np.float32)
        H = np.array([(inputs * row) @ inputs.T for row in spread], dtype=np.float64)
        own = np.append(np.full(d - 1, self.strength + self.ridge), self.pull.weight)
        H[:, np.arange(d), np.arange(d)] += own + 1e-6 * H.trace(axis1=1, axis2=2)[:, None]
        return H


class Whitened:
    """An objective in unknowns whose second derivatives, class by class, are about 1 at a point.

    Log-probabilities of many classes go together, and rare classes weigh little: without this
    L-BFGS needs several times as many steps.

    Examples
    --------
    >>> rows = Rows(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    >>> objective = MatrixObjective(rows, 0.1)
    >>> theta = objective.pack(np.eye(2), np.zeros(2))
    >>> whitened = Whitened(objective, theta)
    >>> bool(np.allclose(whitened.plain(whitened.start), theta))
    True
    """

    def __init__(self, objective: MatrixObjective, theta: FloatArray) -> None:
        self.objective = objective
        roots = np.linalg.cholesky(objective.blocks(theta))
        self._inverse = np.linalg.inv(roots)
        self.start = np.einsum("kji,kj->ki", roots, theta.reshape(roots.shape[:2])).ravel()

    def plain(self, unknowns: FloatArray) -> FloatArray:
        """The unknowns of the objective itself."""
        by_class = unknowns.reshape(len(self._inverse), 1, -1)
        return np.asarray((by_class @ self._inverse).ravel())

    def value_and_gradient(self, unknowns: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        value, gradient = self.objective.value_and_gradient(self.plain(unknowns))
        by_class = gradient.reshape(len(self._inverse), -1, 1)
        return value, (self._inverse @ by_class).ravel()

    def hessian(self, unknowns: FloatArray) -> FloatArray:
        """Second derivatives."""
        raise NotImplementedError("for L-BFGS, which asks for none")


@dataclass(frozen=True)
class MatrixScaling(Recipe[MatrixMap]):
    r"""Softmax of :math:`W \log f_0(x) + b`: matrix, or Dirichlet, scaling (Kull et al., 2019).

    Minimises the log-loss with an L2 penalty that pulls W to the nearest multiple of the identity:
    with a strong one this is bias-corrected temperature scaling, which has no penalty itself. The
    bias is free, so the mean calibrated probability of each class is its share of the held-out set.

    There are K (K + 1) unknowns: Newton steps up to K = 21, L-BFGS above, which takes a while
    when K is in the hundreds.

    Parameters
    ----------
    strength : float, optional
        Of the penalty. By default the best of ``STRENGTHS`` by cross-validated log-loss.
    folds, seed : int
        Of that cross-validation.
    shrink : float
        As in ``BiasTemperature``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 600)
    >>> proba = rng.dirichlet(np.ones(3), 600) + np.eye(3)[(labels + 1) % 3]   # f0 is one off
    >>> fitted = MatrixScaling().fit(proba / 2, labels)
    >>> bool((fitted(proba / 2).argmax(axis=1) == labels).mean() > 0.95)
    True
    """

    strength: float | None = None
    folds: int = 5
    seed: int = 0
    shrink: float = 0.0
    name: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        if self.strength is not None:
            check_number("strength", self.strength, 0, float("inf"), "[")
        check_number("shrink", self.shrink, 0, float("inf"), "[")
        check_integer(self.folds, "folds", least=2)
        check_integer(self.seed, "seed", least=0)

    def candidates(self) -> list[MatrixScaling]:
        """The recipe with each strength that it may take."""
        strengths = STRENGTHS if self.strength is None else (self.strength,)
        return [replace(self, strength=strength) for strength in strengths]

    def settle(self, rows: Rows) -> MatrixScaling:
        """Choose the strength."""
        if self.strength is not None:
            return self
        chosen: MatrixScaling = best_of(self.candidates(), rows, folds=self.folds, seed=self.seed)
        return chosen

    def _fit(self, rows: Rows) -> MatrixMap:
        return self.settle(rows)._fit_from(None, rows, _EXACT)

    def fit_near(self, near: MatrixMap | None, rows: Rows) -> MatrixMap:
        """Fit to a few digits, from the map of a neighbouring strength: enough to compare them."""
        if rows.seen.all():
            return self._fit_from(near, rows, _ROUGH)
        inner = None if near is None else near.narrowed(rows.seen)
        return self._fit_from(inner, rows.of_seen_classes(), _ROUGH).widened(rows)

    def _fit_from(self, near: MatrixMap | None, rows: Rows, tolerance: float) -> MatrixMap:
        assert self.strength is not None
        objective = MatrixObjective(rows, self.strength, self.shrink)
        if near is None:
            # What the strongest penalty would give is a better start than the identity.
            simple = fit_scaled(
                rows, self.name, tied=True, biased=True, shrink=self.shrink, tolerance=_ROUGH
            )
            start = objective.pack(np.diag(simple.scale), simple.bias)
        else:
            start = objective.pack(near.weights, near.bias)
        if len(start) <= NEWTON_UNKNOWNS:
            theta = minimise(objective, start, tolerance=tolerance)
        else:
            whitened = Whitened(objective, start)
            theta = whitened.plain(minimise(whitened, whitened.start, tolerance=tolerance))
        return MatrixMap(self.name, *objective.unpack(theta), rows.floor)
