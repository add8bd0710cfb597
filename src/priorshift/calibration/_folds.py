"""Folds: predictions of rows by maps that did not see them, and the choice of a map by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from priorshift.calibration.base import row_losses, row_weights
from priorshift.typing import FloatArray, IntArray

RULES = ("minimum", "one-error")


def fold_numbers(labels: IntArray, folds: int, seed: int) -> IntArray:
    """Give each row a fold, such that every fold has its part of every class.

    The c rows of a class are dealt out in turn: with c at least 2, no fold holds them all.

    Examples
    --------
    >>> sorted(fold_numbers(np.array([0, 0, 1, 1, 1, 1]), 2, seed=0)[2:].tolist())
    [0, 0, 1, 1]
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    numbers = np.empty(len(labels), dtype=np.intp)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def out_of_fold(
    recipe: Any,
    proba: FloatArray,
    labels: IntArray,
    prior: FloatArray | None,
    *,
    folds: int,
    seed: int,
) -> FloatArray:
    """Calibrate each row by a map that was fitted on the other folds.

    Examples
    --------
    >>> from priorshift.calibration.none import NoCalibration
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> out_of_fold(NoCalibration(), proba, np.array([0, 1]), None, folds=2, seed=0).tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    number = fold_numbers(labels, folds, seed)
    found = np.empty_like(proba)
    for fold in np.unique(number):
        test = number == fold
        fitted = recipe.fit(proba[~test], labels[~test], prior=prior)
        found[test] = fitted(proba[test])
    return found


class Scores(NamedTuple):
    """Cross-validated log-loss of some recipes: of each row, their weights, and the means."""

    rows: FloatArray
    weights: FloatArray
    means: FloatArray


def scores_of(
    recipes: Sequence[Any],
    proba: FloatArray,
    labels: IntArray,
    prior: FloatArray | None,
    *,
    folds: int,
    seed: int,
) -> Scores:
    """Measure recipes on the same folds.

    Examples
    --------
    >>> from priorshift.calibration.none import NoCalibration
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> found = scores_of([NoCalibration()], proba, np.array([0, 1]), None, folds=2, seed=0)
    >>> found.means.round(3).tolist()
    [0.164]
    """
    number = fold_numbers(labels, folds, seed)
    rows = np.empty((len(recipes), len(labels)))
    for fold in np.unique(number):
        test = number == fold
        maps = _fit_all(recipes, proba[~test], labels[~test], prior)
        for row, fitted in zip(rows, maps, strict=True):
            row[test] = row_losses(fitted(proba[test]), labels[test])
    weights = row_weights(labels, np.bincount(labels, minlength=proba.shape[1]), prior)
    return Scores(rows, weights, rows @ weights)


def _fit_all(
    recipes: Sequence[Any], proba: FloatArray, labels: IntArray, prior: FloatArray | None
) -> list[Any]:
    """Fit recipes in turn; those that can begin where the one before ended do so."""
    maps: list[Any] = []
    for i, recipe in enumerate(recipes):
        if hasattr(recipe, "fit_near"):
            near = maps[-1] if i and type(recipes[i - 1]) is type(recipe) else None
            maps.append(recipe.fit_near(near, proba, labels, prior=prior))
        else:
            maps.append(recipe.fit(proba, labels, prior=prior))
    return maps


def pick(scores: Scores, rule: str = "minimum") -> int:
    """Return the index of the recipe to take, recipes standing in order from simple to rich.

    "minimum" takes that of least loss; "one-error" the first whose loss is not larger than the
    least by more than one standard error of the difference, row by row.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0, 1.0], [0.0, 1.5, 1.2]])
    >>> scores = Scores(rows, np.full(3, 1 / 3), rows.mean(axis=1))
    >>> pick(scores, "minimum"), pick(scores, "one-error")
    (1, 0)
    """
    best = int(scores.means.argmin())
    if rule == "minimum":
        return best
    gaps = scores.rows - scores.rows[best]
    means = gaps @ scores.weights
    errors = np.sqrt(((gaps - means[:, None]) ** 2) @ scores.weights**2)
    return int(np.argmax(means <= errors))


def best_of(
    recipes: Sequence[Any],
    proba: FloatArray,
    labels: IntArray,
    prior: FloatArray | None,
    *,
    folds: int,
    seed: int,
    rule: str = "minimum",
) -> Any:
    """Return the recipe that ``pick`` takes.

    Examples
    --------
    >>> from priorshift.calibration.none import NoCalibration
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> best_of([NoCalibration()], proba, np.array([0, 1]), None, folds=2, seed=0)
    NoCalibration()
    """
    scores = scores_of(recipes, proba, labels, prior, folds=folds, seed=seed)
    return recipes[pick(scores, rule)]
