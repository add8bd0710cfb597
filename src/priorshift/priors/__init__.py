"""How much of each class is in a batch."""

from __future__ import annotations

from priorshift.errors import InputError
from priorshift.priors.base import PriorEstimate, PriorEstimator
from priorshift.priors.bbse import BBSE
from priorshift.priors.known import estimate_with_labels
from priorshift.priors.mlls import MLLS
from priorshift.priors.rlls import RLLS
from priorshift.priors.simplex import project_simplex

__all__ = [
    "BBSE",
    "MLLS",
    "RLLS",
    "PriorEstimate",
    "PriorEstimator",
    "estimate_with_labels",
    "estimator_by_name",
    "project_simplex",
]

# The settings are frozen, so one object of each can serve everybody.
_BY_NAME: dict[str, PriorEstimator] = {
    estimator.name: estimator
    for estimator in (BBSE(), BBSE(soft=True), RLLS(), RLLS(soft=True), MLLS())
}


def estimator_by_name(name: str) -> PriorEstimator:
    """Return the prior estimator of that name, with its default settings.

    Parameters
    ----------
    name : {"bbse", "bbse-soft", "rlls", "rlls-soft", "mlls"}

    Examples
    --------
    >>> estimator_by_name("bbse-soft")
    BBSE(soft=True)
    >>> estimator_by_name("em")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no prior estimator is called 'em'; choose one of 'bbse', \
'bbse-soft', 'mlls', 'rlls', 'rlls-soft'
    """
    try:
        return _BY_NAME[name]
    except (KeyError, TypeError):
        known = ", ".join(repr(key) for key in sorted(_BY_NAME))
        raise InputError(f"no prior estimator is called {name!r}; choose one of {known}") from None
