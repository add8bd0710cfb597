"""Choose the map by cross-validated log-loss."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from priorshift._validation import check_choice, check_integer
from priorshift.calibration.base import CalibrationMap, NoCalibration, Recipe, Rows, class_name
from priorshift.calibration.folds import RULES, best_of
from priorshift.calibration.isotonic import IsotonicScaling
from priorshift.calibration.matrix import MatrixScaling
from priorshift.calibration.scaling import BiasTemperature, Temperature, VectorScaling
from priorshift.errors import PriorshiftWarning
from priorshift.typing import AnyArray, IntArray

# Rows that each class of the held-out set must have for a map to be considered.
ROWS_NEEDED = {"bias-temperature": 5, "vector": 5, "matrix": 5, "isotonic": 50}
# Rows in all, for anything but f0 as it is.
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class Auto(Recipe[CalibrationMap]):
    """The map with the least log-loss on rows that it was not fitted on.

    Considered are none, temperature, bias-temperature, vector, matrix with each of its strengths,
    and isotonic. A class with few rows takes the maps that need more of them (``ROWS_NEEDED``) off
    the list, with a warning if only a temperature is left; more classes than ``largest_matrix``
    take off matrix.

    Parameters
    ----------
    rule : {"minimum", "one-error"}
        Take the least loss; or the simplest map within one standard error of it.
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
    'temperature'
    """

    rule: str = "minimum"
    largest_matrix: int = 50
    folds: int = 5
    seed: int = 0
    name: ClassVar[str] = "auto"
    needs_every_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_integer(self.largest_matrix, "largest_matrix", least=0)
        check_integer(self.folds, "folds", least=2)
        check_integer(self.seed, "seed", least=0)

    def candidates(self, counts: IntArray, classes: AnyArray | None = None) -> list[Any]:
        """Recipes for a held-out set with these numbers of rows, from simple to rich; may warn."""
        if counts.sum() < _FEWEST_ROWS:
            _warn_of_few(
                f"the held-out set has {counts.sum()} rows, and {_FEWEST_ROWS} are needed to "
                "calibrate f0: it stays as it is"
            )
            return [NoCalibration()]
        fewest = int(counts.min())
        found: list[Any] = [NoCalibration(), Temperature()]
        rich: list[Any] = [BiasTemperature(), VectorScaling()]
        if len(counts) <= self.largest_matrix:
            rich.append(MatrixScaling())
        rich.append(IsotonicScaling())
        lost = [recipe.name for recipe in rich if fewest < ROWS_NEEDED[recipe.name]]
        if len(lost) == len(rich):
            _warn_of_few(
                f"the held-out set has {fewest} rows of class "
                f"{class_name(int(counts.argmin()), classes)}, too few to calibrate f0 by more "
                f"than a temperature: {min(ROWS_NEEDED.values())} are needed of each class. Add "
                "labelled rows, or name a calibration"
            )
        for recipe in rich:
            if recipe.name not in lost:
                many = isinstance(recipe, MatrixScaling)
                found.extend(recipe.candidates() if many else [recipe])
        return found

    def settle(self, rows: Rows) -> Any:
        """Choose a recipe."""
        recipes = self.candidates(rows.counts, rows.classes)
        if len(recipes) == 1:
            return recipes[0]
        return best_of(recipes, rows, folds=self.folds, seed=self.seed, rule=self.rule)

    def _fit(self, rows: Rows) -> CalibrationMap:
        fitted: CalibrationMap = self.settle(rows).fit_rows(rows)
        return fitted


def _warn_of_few(message: str) -> None:
    warnings.warn(message, PriorshiftWarning, stacklevel=7)
