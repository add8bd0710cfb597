"""How much of each class is in a batch."""

from __future__ import annotations

from priorshift._registry import Registry
from priorshift.errors import InputTypeError
from priorshift.priors.base import (
    PriorEstimate,
    PriorEstimator,
    estimate_with_labels,
    project_simplex,
)
from priorshift.priors.bbse import BBSE
from priorshift.priors.foreign import ForeignEstimator, steps_of
from priorshift.priors.mlls import MLLS
from priorshift.priors.rlls import RLLS

__all__ = [
    "BBSE",
    "ESTIMATORS",
    "MLLS",
    "RLLS",
    "ForeignEstimator",
    "PriorEstimate",
    "PriorEstimator",
    "as_estimator",
    "estimate_with_labels",
    "project_simplex",
]

ESTIMATORS: Registry[PriorEstimator] = Registry(
    "prior estimator",
    BBSE(),
    BBSE(soft=True),
    BBSE(soft=None),
    MLLS(),
    RLLS(),
    RLLS(soft=True),
    otherwise="an object such as BBSE()",
)
"""Prior estimators by name; settings are frozen, so one object of each can serve everybody."""


def as_estimator(estimator: object) -> PriorEstimator:
    """Return a prior estimator: one by name, one of ours, or a quantifier of another library.

    Examples
    --------
    >>> as_estimator("rlls").name, as_estimator(BBSE()).name
    ('rlls', 'bbse')
    >>> as_estimator("em")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no prior estimator is called 'em'; choose one of 'bbse', \
'bbse-soft', 'bbse-auto', 'mlls', 'rlls', 'rlls-soft', or pass an object such as BBSE()
    >>> as_estimator(3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: estimator is 3: pass a name, an object such as BBSE(), or a \
quantifier with fit(X, y) and predict(X)
    """
    if isinstance(estimator, str):
        return ESTIMATORS[estimator]
    if not isinstance(estimator, type):
        if hasattr(estimator, "raw"):
            return estimator  # type: ignore[return-value]
        if steps_of(estimator) is not None:
            return ForeignEstimator(estimator)
    raise InputTypeError(
        f"estimator is {estimator!r}: pass a name, an object such as BBSE(), or a quantifier with "
        "fit(X, y) and predict(X)"
    )
