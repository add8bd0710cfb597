"""Bias-corrected temperature scaling: a temperature, and a bias for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from priorshift.calibration._scaled import ScaledMap, fit_scaled
from priorshift.calibration.base import Rows
from priorshift.typing import AnyArray, FloatArray, IntArray


@dataclass(frozen=True)
class BiasTemperature:
    r"""Softmax of ``log(f0) / T + b`` (Alexandari et al., 2020).

    At the optimum the mean calibrated probability of each class is its share of the hold-out: the
    gradient in the bias is the difference of the two.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.9, 0.1]])
    >>> BiasTemperature().fit(proba, np.array([0, 0, 1, 1]))(proba).mean(axis=0).round(6).tolist()
    [0.5, 0.5]
    """

    name: ClassVar[str] = "bias-temperature"

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> ScaledMap:
        """Return the map of least log-loss on the hold-out."""
        rows = Rows.of(proba, labels, prior, every_class=self.name, classes=classes)
        return fit_scaled(rows, self.name, tied=True, biased=True)
