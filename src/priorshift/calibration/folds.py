"""Folds: rows calibrated by maps that did not see them, and the choice of a map by such rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from priorshift._numerics import stratified_folds
from priorshift.calibration.base import (
    Calibration,
    CalibrationMap,
    NoCalibration,
    Rows,
    row_losses,
)
from priorshift.errors import InputError, SourceError
from priorshift.typing import AnyArray, FloatArray, IntArray

RULES = ("minimum", "one-error")


class Calibrated(NamedTuple):
    """A map fitted on all of the held-out set, and the held-out set calibrated by folds.

    ``recipe`` is what the map was fitted with, nothing left to choose.

    Examples
    --------
    >>> Calibrated._fields
    ('map', 'proba', 'recipe')
    """

    map: CalibrationMap
    proba: FloatArray
    recipe: Calibration


def calibrate(
    recipe: Calibration,
    proba: FloatArray,
    labels: IntArray,
    *,
    prior: FloatArray | None = None,
    classes: AnyArray | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Calibrated:
    """Fit a map on all rows; return it with each row calibrated by a map that did not see it.

    A confusion matrix of the map on the rows that it was fitted on would look too good. What a
    recipe has to choose (the map's kind, a strength) is chosen once, on all rows.

    Examples
    --------
    >>> from priorshift.calibration import Temperature
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), 60)
    >>> found = calibrate(Temperature(), proba, proba.argmax(axis=1) * (np.arange(60) % 4 > 0))
    >>> found.map.name, found.proba.shape, bool((found.proba != found.map(proba)).all())
    ('temperature', (60, 3), True)
    """
    rows = Rows.of(proba, labels, prior)
    if len(rows.labels) < 2 and not isinstance(recipe, NoCalibration):
        raise SourceError(
            f"calibration {recipe.name!r} needs a row to fit on and one to measure, and the "
            "held-out set has 1: add labelled rows, or use calibration 'none'"
        )
    chosen: Any = recipe.settle(rows) if hasattr(recipe, "settle") else recipe
    fitted = chosen.fit(rows.proba, rows.labels, prior=prior, classes=classes)
    if isinstance(chosen, NoCalibration):
        return Calibrated(fitted, rows.proba, chosen)
    honest = out_of_fold(chosen, rows, folds=min(folds, len(rows.labels)), seed=seed)
    if honest.shape != rows.proba.shape or not np.isfinite(honest).all():
        raise InputError(f"calibration {chosen.name!r} returned values that are no probabilities")
    return Calibrated(fitted, honest, chosen)


def out_of_fold(recipe: Calibration, rows: Rows, *, folds: int, seed: int) -> FloatArray:
    """Calibrate each row by a map that was fitted on the other folds.

    Examples
    --------
    >>> rows = Rows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    >>> out_of_fold(NoCalibration(), rows, folds=2, seed=0).tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    number = stratified_folds(rows.labels, folds, seed)
    found = np.empty_like(rows.proba)
    for fold in np.unique(number):
        test = number == fold
        found[test] = _fitted(recipe, rows, ~test)(rows.proba[test])
    return found


def _fitted(recipe: Calibration, rows: Rows, train: AnyArray) -> CalibrationMap:
    return recipe.fit(rows.proba[train], rows.labels[train], prior=rows.prior)


def without_each_fold(
    recipe: Calibration, rows: Rows, number: IntArray, some: IntArray
) -> FloatArray:
    """Calibrate rows once for each fold (folds, m, K), by maps that did not see that fold.

    What is fitted on calibrated rows of other folds, to be judged on rows of one, has to read what
    labels of that one have no part in. So rows of the fold itself are calibrated by a map of all
    others, and rows of another one by a map of all but these two: each row by a map that did not
    see it either. Which recipe was chosen, and the class prior, are those of all rows. ``number``
    (n,) are the folds of the rows, at least three; the rows ``some`` (m,) are calibrated.

    Examples
    --------
    >>> rows = Rows(np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), np.array([0, 0, 1]))
    >>> found = without_each_fold(NoCalibration(), rows, np.array([0, 1, 2]), np.array([1]))
    >>> found[:, 0].tolist()
    [[0.4, 0.6], [0.4, 0.6], [0.4, 0.6]]
    """
    folds, own, proba = int(number.max()) + 1, number[some], rows.proba[some]
    found = np.empty((folds, *proba.shape))
    for one in range(folds):
        for other in range(one + 1):
            fitted = _fitted(recipe, rows, (number != one) & (number != other))
            first, second = own == one, own == other
            found[one, second] = fitted(proba[second])
            found[other, first] = fitted(proba[first])
    return found


class Scores(NamedTuple):
    """Cross-validated losses of some recipes: of each row, their weights, and the means."""

    rows: FloatArray
    weights: FloatArray
    means: FloatArray


def shifted_losses(proba: FloatArray, labels: IntArray, prior: FloatArray) -> FloatArray:
    r"""Log-losses (n,) after reweighting: under ``prior``, and with each class at half of a stream.

    A map is read with importance weights, so it has to be right under class priors that are not the
    held-out set's. Under :math:`q = \tfrac12(\pi + e_k)` a row of class y counts
    :math:`q_y / \pi_y` times, and its probability is :math:`p_y\, q_y / \pi_y` over
    :math:`\tfrac12 (1 + p_k / \pi_k)`. The mean over these K priors and :math:`\pi` itself is
    returned: like each of them it is least, on the mean, for the true probabilities.

    Examples
    --------
    >>> even = np.array([0.5, 0.5])
    >>> shifted_losses(np.array([[0.8, 0.2]]), np.array([0]), even).round(4).tolist()
    [0.2077]
    """
    own = row_losses(proba, labels)
    n, K = proba.shape
    # log of the denominators; of the row's own class also the numerator's part, and its count.
    below = np.log(0.5 + 0.5 * proba / prior)
    counts = np.full((n, K), 0.5)
    counts[np.arange(n), labels] += 0.5 / prior[labels]
    losses = own[:, None] - np.log(counts) + below
    return np.asarray((own + (counts * losses).sum(axis=1)) / (K + 1.0))


def scores_of(recipes: Sequence[Any], rows: Rows, *, folds: int, seed: int) -> Scores:
    """Measure recipes on the same folds.

    Examples
    --------
    >>> rows = Rows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    >>> scores_of([NoCalibration()], rows, folds=2, seed=0).means.round(3).tolist()
    [0.154]
    """
    number = stratified_folds(rows.labels, folds, seed)
    losses = np.empty((len(recipes), len(rows.labels)))
    for fold in np.unique(number):
        test = number == fold
        maps = fit_all(recipes, rows.part(~test))
        for row, fitted in zip(losses, maps, strict=True):
            row[test] = shifted_losses(fitted(rows.proba[test]), rows.labels[test], rows.shares)
    return Scores(losses, rows.weights, losses @ rows.weights)


def fit_all(recipes: Sequence[Any], rows: Rows) -> list[Any]:
    """Fit recipes in turn; those that can begin where the one before ended do so.

    Examples
    --------
    >>> fit_all([NoCalibration()], Rows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1])))
    [IdentityMap()]
    """
    maps: list[Any] = []
    for i, recipe in enumerate(recipes):
        if hasattr(recipe, "fit_near"):
            near = maps[-1] if i and type(recipes[i - 1]) is type(recipe) else None
            maps.append(recipe.fit_near(near, rows))
        else:
            maps.append(recipe.fit_rows(rows))
    return maps


def pick(scores: Scores, rule: str = "minimum") -> int:
    """Return the index of the recipe to take, recipes being in order from simple to rich.

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
    recipes: Sequence[Any], rows: Rows, *, folds: int, seed: int, rule: str = "minimum"
) -> Any:
    """Return the recipe that ``pick`` takes.

    Examples
    --------
    >>> rows = Rows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    >>> best_of([NoCalibration()], rows, folds=2, seed=0)
    NoCalibration()
    """
    return recipes[pick(scores_of(recipes, rows, folds=folds, seed=seed), rule)]
