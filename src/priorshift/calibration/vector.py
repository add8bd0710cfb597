"""Vector scaling: a scale and a bias for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from priorshift.calibration._scaled import ScaledMap, fit_scaled
from priorshift.calibration.base import Rows
from priorshift.typing import AnyArray, FloatArray, IntArray


@dataclass(frozen=True)
class VectorScaling:
    r"""Softmax of ``s_k log(f0)_k + b_k`` (Guo et al., 2017), all scales positive.

    The mean calibrated probability of each class is its share of the hold-out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), 300)
    >>> labels = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> VectorScaling().fit(proba, labels).n_classes
    3
    """

    name: ClassVar[str] = "vector"

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
        return fit_scaled(rows, self.name, tied=False, biased=True)
