"""How much of each class is in a batch."""

from __future__ import annotations

from priorshift.errors import InputError, InputTypeError
from priorshift.priors.base import PriorEstimate, PriorEstimator
from priorshift.priors.bbse import BBSE
from priorshift.priors.foreign import ForeignEstimator, steps_of
from priorshift.priors.known import estimate_with_labels
from priorshift.priors.mlls import MLLS
from priorshift.priors.rlls import RLLS
from priorshift.priors.simplex import project_simplex

__all__ = [
    "BBSE",
    "MLLS",
    "RLLS",
    "ForeignEstimator",
    "PriorEstimate",
    "PriorEstimator",
    "as_estimator",
    "estimate_with_labels",
    "estimator_by_name",
    "project_simplex",
]

# The settings are frozen, so one object of each can serve everybody.
_BY_NAME: dict[str, PriorEstimator] = {
    estimator.name: estimator
    for estimator in (BBSE(), BBSE(soft=True), RLLS(), RLLS(soft=True), MLLS())
}


def as_estimator(estimator: object) -> PriorEstimator:
    """Return a prior estimator: one by name, one of ours, or a quantifier of another library.

    Examples
    --------
    >>> as_estimator("rlls").name, as_estimator(BBSE()).name
    ('rlls', 'bbse')
    >>> as_estimator(3)
    Traceback (most recent call last):
    ...
    priorshift.errors.InputTypeError: estimator is 3: pass a name, an object such as BBSE(), or a \
quantifier with fit(X, y) and predict(X)
    """
    if isinstance(estimator, str):
        return estimator_by_name(estimator)
    if not isinstance(estimator, type):
        if hasattr(estimator, "raw"):
            return estimator  # type: ignore[return-value]
        if steps_of(estimator) is not None:
            return ForeignEstimator(estimator)
    raise InputTypeError(
        f"estimator is {estimator!r}: pass a name, an object such as BBSE(), or a quantifier with "
        "fit(X, y) and predict(X)"
    )


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
