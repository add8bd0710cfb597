"""Temperature scaling: one number for how sure f0 should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from priorshift.calibration._scaled import ScaledMap, fit_scaled
from priorshift.calibration.base import Rows
from priorshift.typing import AnyArray, FloatArray, IntArray


@dataclass(frozen=True)
class Temperature:
    r"""Divide the logits by one temperature (Guo et al., 2017): softmax of ``log(f0) / T``.

    The most probable class stays what it is. There is no bias: the mean calibrated probability of a
    class need not be its share of the hold-out, so ratios to the class prior may stay off.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
    >>> Temperature().fit(proba, np.array([0, 0, 1, 1]))(proba[:1]).round(2).tolist()
    [[0.74, 0.26]]
    """

    name: ClassVar[str] = "temperature"

    def fit(
        self,
        proba: FloatArray,
        labels: IntArray,
        *,
        prior: FloatArray | None = None,
        classes: AnyArray | None = None,
    ) -> ScaledMap:
        """Return the map of least log-loss on the hold-out."""
        rows = Rows.of(proba, labels, prior)
        return fit_scaled(rows, self.name, tied=True, biased=False)
