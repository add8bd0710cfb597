"""What the linear learners see of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorshift._validation import as_matrix
from priorshift.typing import FloatArray


@dataclass(frozen=True)
class FeatureMap:
    """What the linear learners see of a row: X itself, or a transformer's or callable's output.

    Examples
    --------
    >>> import numpy as np
    >>> FeatureMap(np.square, intercept=True)(np.array([[3.0]])).tolist()
    [[9.0, 1.0]]
    """

    map: Any = None
    intercept: bool = True

    def __call__(self, X: Any, width: int | None = None) -> FloatArray:
        """Return the features (n, d), with a last column of ones if there is an intercept.

        ``width`` is the number of columns that X itself must have, where X is the features.
        """
        if self.map is None:
            features = as_matrix(X, width)
        else:
            transform = getattr(self.map, "transform", self.map)
            features = as_matrix(transform(X), where="features(X)")
        if not self.intercept:
            return features
        return np.column_stack([features, np.ones(len(features))])
