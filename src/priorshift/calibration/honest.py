"""Calibrate f0 on the hold-out, and measure it there as if the hold-out were new."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from priorshift.calibration._folds import out_of_fold
from priorshift.calibration.base import Calibration, CalibrationMap, check_pair, class_name
from priorshift.calibration.none import NoCalibration
from priorshift.calibration.temperature import Temperature
from priorshift.errors import InputError, SourceError
from priorshift.typing import AnyArray, FloatArray, IntArray


class Calibrated(NamedTuple):
    """A map fitted on all of the hold-out, and the hold-out calibrated by folds.

    Examples
    --------
    >>> Calibrated._fields
    ('map', 'proba')
    """

    map: CalibrationMap
    proba: FloatArray


def settled(
    recipe: Any,
    proba: FloatArray,
    labels: IntArray,
    *,
    prior: FloatArray | None = None,
    classes: AnyArray | None = None,
) -> Any:
    """Return a recipe with nothing left to choose: what ``recipe.settle`` says, or itself.

    Examples
    --------
    >>> settled(Temperature(), [[0.5, 0.5]], [0])
    Temperature()
    """
    if not hasattr(recipe, "settle"):
        return recipe
    return recipe.settle(proba, labels, prior=prior, classes=classes)


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
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), 60)
    >>> found = calibrate(Temperature(), proba, proba.argmax(axis=1) * (np.arange(60) % 4 > 0))
    >>> found.map.name, found.proba.shape, bool((found.proba != found.map(proba)).all())
    ('temperature', (60, 3), True)
    """
    proba, labels = check_pair(proba, labels)
    chosen = settled(recipe, proba, labels, prior=prior, classes=classes)
    fitted = chosen.fit(proba, labels, prior=prior, classes=classes)
    if isinstance(chosen, NoCalibration):
        return Calibrated(fitted, proba)
    _check_rows(chosen, labels, proba.shape[1], classes)
    honest = out_of_fold(chosen, proba, labels, prior, folds=min(folds, len(labels)), seed=seed)
    if honest.shape != proba.shape or not np.isfinite(honest).all():
        raise InputError(f"calibration {chosen.name!r} returned values that are no probabilities")
    return Calibrated(fitted, honest)


def _check_rows(recipe: Any, labels: IntArray, n_classes: int, classes: AnyArray | None) -> None:
    """Each class needs a row to fit on and one to measure, but for a temperature alone."""
    counts = np.bincount(labels, minlength=n_classes)
    needed = 1 if isinstance(recipe, Temperature) else 2
    if counts.min() < needed or len(labels) < 2:
        raise SourceError(
            f"calibration {recipe.name!r} needs at least 2 rows of every class of the hold-out, "
            f"class {class_name(int(counts.argmin()), classes)} has {counts.min()}: add labelled "
            "rows, or use calibration 'temperature' or 'none'"
        )
