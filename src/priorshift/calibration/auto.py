r"""Average maps by how well they do on rows that they were not fitted on.

All candidates but one are softmax of :math:`W \log f_0 + b`. The geometric mean of such maps is
again one, with the mean of W and b: however many candidates there are, one map comes out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from priorshift._validation import check_choice, check_integer
from priorshift.calibration.base import (
    SMALLEST,
    CalibrationMap,
    IdentityMap,
    NoCalibration,
    Recipe,
    Rows,
)
from priorshift.calibration.bounded import BoundedMap, affordable_bounds
from priorshift.calibration.folds import RULES, Scores, best_of, fit_all, scores_of
from priorshift.calibration.isotonic import IsotonicScaling
from priorshift.calibration.matrix import MatrixMap, MatrixScaling
from priorshift.calibration.scaling import BiasTemperature, ScaledMap, VectorScaling
from priorshift.errors import PriorshiftWarning
from priorshift.typing import FloatArray, IntArray

# Rows that each class of the held-out set must have for isotonic calibration to be considered.
_ISOTONIC_ROWS = 50
# Rows in all, for anything but f0 as it is.
_FEWEST_ROWS = 20
# Rows whose weight pulls maps to doing nothing: a strong pull, and the one of the richer maps.
_STRONG, _PULL = 30.0, 5.0
# Of the belief before any row is seen, what doing nothing has.
_HEAD_START = 0.5
# What the noise of a gain may cost a candidate, in nats: with many rows its mean has to decide.
_MOST_DOUBT = 5.0
# Floors that the logarithms of f0 may have: how small a probability still says something.
_FLOORS = (1e-6, 1e-4, 1e-3)
# Candidates with less weight are left out of the mean.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True)
class Auto(Recipe[CalibrationMap]):
    """The mean of maps, weighted by how likely they make rows that they were not fitted on.

    Considered are f0 as it is, which has half of the weight before any row is seen;
    bias-temperature with a strong and with a weak pull to it; vector; and matrix with each of its
    strengths, up to ``largest_matrix`` classes. A weight falls by a factor e with every nat of
    log-loss, summed over all rows, that another candidate is better by: many rows choose, few rows
    average. What comes out claims no more than its rows can support, see ``BoundedMap``. All this
    is done for several floors of f0's logarithms, below which all probabilities are one: where the
    tails of f0 are noise, a linear map of their logarithms is led by them. The mean of least loss
    is taken, bounded and on rows that it was not fitted on; or isotonic, where every class has 50
    rows, if its loss is less by more than the noise.

    Parameters
    ----------
    rule : {"average", "minimum", "one-error"}
        Average; or take the candidate of least loss; or the simplest one within one standard error
        of it.
    largest_matrix : int
        Most classes for which matrix scaling is considered: its time grows with their square, and
        with the square of the rows that it needs. Above, vector scaling is the richest map.
    folds, seed : int
        Of the cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), 900)
    >>> labels = (proba.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)
    >>> bold = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    >>> Auto(rule="one-error").fit(bold, labels).name
    'bias-temperature'
    """

    rule: str = "average"
    largest_matrix: int = 50
    folds: int = 5
    seed: int = 0
    name: ClassVar[str] = "auto"
    needs_every_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, ("average", *RULES))
        check_integer(self.largest_matrix, "largest_matrix", least=0)
        check_integer(self.folds, "folds", least=2)
        check_integer(self.seed, "seed", least=0)

    def candidates(self, counts: IntArray) -> list[Any]:
        """Recipes for a held-out set with these numbers of rows, from simple to rich; may warn."""
        if counts.sum() < _FEWEST_ROWS:
            message = (
                f"the held-out set has {counts.sum()} rows, and {_FEWEST_ROWS} are needed to "
                "calibrate f0: it stays as it is"
            )
            warnings.warn(message, PriorshiftWarning, stacklevel=6)
            return [NoCalibration()]
        found: list[Any] = [NoCalibration(), BiasTemperature(_STRONG), BiasTemperature(_PULL)]
        found.append(VectorScaling(_PULL))
        if len(counts) <= self.largest_matrix:
            found.extend(MatrixScaling(shrink=_PULL).candidates())
        if counts.min() >= _ISOTONIC_ROWS:
            found.append(IsotonicScaling())
        return found

    def settle(self, rows: Rows) -> Any:
        """Choose recipes and their weights."""
        recipes = self.candidates(rows.counts)
        if len(recipes) == 1:
            return recipes[0]
        if self.rule != "average":
            return Mean((self._best(recipes, rows, self.rule),), (1.0,))
        linear = [recipe for recipe in recipes if not isinstance(recipe, IsotonicScaling)]
        means = [self._mean(linear, replace(rows, least=least)) for least in floors(rows)]
        found = [self._best(means, rows, "minimum") if len(means) > 1 else means[0]]
        found += [Mean((recipe,), (1.0,)) for recipe in recipes if recipe not in linear]
        return self._best(found, rows, "one-error") if len(found) > 1 else found[0]

    def _best(self, recipes: list[Any], rows: Rows, rule: str) -> Any:
        return best_of(recipes, rows, folds=self.folds, seed=self.seed, rule=rule)

    def _mean(self, recipes: list[Any], rows: Rows) -> Mean:
        """The mean of recipes by their weights, with the floor of these rows."""
        weights = _weights(scores_of(recipes, rows, folds=self.folds, seed=self.seed))
        heavy = weights >= _NEGLIGIBLE * weights.sum()
        kept = tuple(recipe for recipe, is_heavy in zip(recipes, heavy, strict=True) if is_heavy)
        return Mean(kept, tuple((weights[heavy] / weights[heavy].sum()).tolist()), rows.least)

    def _fit(self, rows: Rows) -> CalibrationMap:
        fitted: CalibrationMap = self.settle(rows).fit_rows(rows)
        return fitted


def floors(rows: Rows) -> list[float]:
    """Floors to choose from: the data's own, and each that catches more of these probabilities.

    Examples
    --------
    >>> floors(Rows(np.array([[1e-5, 1.0 - 1e-5]]), np.array([1])))
    [1e-12, 0.0001]
    """
    found = [SMALLEST]
    for floor in _FLOORS:
        if ((rows.proba > found[-1]) & (rows.proba < floor)).any():
            found.append(floor)
    return found


def _weights(scores: Scores) -> FloatArray:
    """Weights of candidates, doing nothing first: each by its gain over that, less its noise."""
    gains = scores.rows[0] - scores.rows
    means = gains @ scores.weights
    n = gains.shape[1]
    noise = n * np.sqrt(((gains - means[:, None]) ** 2) @ scores.weights**2)
    belief = np.full(len(gains), (1.0 - _HEAD_START) / (len(gains) - 1))
    belief[0] = _HEAD_START
    return np.asarray(softmax(np.log(belief) + n * means - np.minimum(noise, _MOST_DOUBT)))


@dataclass(frozen=True)
class Mean(Recipe[CalibrationMap]):
    """The geometric mean of maps, bounded by what the rows can support.

    Examples
    --------
    >>> both = Mean((NoCalibration(), BiasTemperature()), (0.5, 0.5))
    >>> proba = np.repeat([[0.8, 0.2], [0.2, 0.8]], 50, axis=0)
    >>> both.fit(proba, np.repeat([0, 0, 1, 1], [30, 20, 30, 20])).name
    'none'
    """

    recipes: tuple[Any, ...]
    weights: tuple[float, ...]
    least: float = SMALLEST
    name: ClassVar[str] = "auto"
    needs_every_class: ClassVar[bool] = False

    def _fit(self, rows: Rows) -> CalibrationMap:
        rows = replace(rows, least=self.least)
        maps = fit_all(self.recipes, rows)
        inner = maps[0] if len(maps) == 1 else _mean_map(maps, self.weights, rows)
        bounds = affordable_bounds(inner(rows.proba), rows)
        return BoundedMap(inner, rows.shares, bounds)


def _mean_map(maps: list[Any], weights: tuple[float, ...], rows: Rows) -> MatrixMap | ScaledMap:
    """One map for several: that of the mean unknowns."""
    K = rows.n_classes
    name = str(maps[int(np.argmax(weights))].name)
    one = ScaledMap("none", np.ones(K), np.zeros(K), rows.floor)
    linear: list[Any] = [one if isinstance(fitted, IdentityMap) else fitted for fitted in maps]
    bias = np.average([fitted.bias for fitted in linear], axis=0, weights=weights)
    if not any(isinstance(fitted, MatrixMap) for fitted in linear):
        scale = np.average([fitted.scale for fitted in linear], axis=0, weights=weights)
        return ScaledMap(name, scale, bias, rows.floor)
    parts = [f.weights if isinstance(f, MatrixMap) else np.diag(f.scale) for f in linear]
    return MatrixMap(name, np.average(parts, axis=0, weights=weights), bias, rows.floor)
