"""Minimise a smooth convex function: Newton where the Hessian is small, L-BFGS where it is not."""

from __future__ import annotations

import logging
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from priorshift.typing import FloatArray

_log = logging.getLogger(__name__)

# With more unknowns than this the Hessian costs more than the steps that it saves.
_NEWTON_UNKNOWNS = 500
_NEWTON_STEPS = 60
_LBFGS_STEPS = 2000
_TOLERANCE = 1e-8


class Objective(Protocol):
    """A convex function of a vector, with its first two derivatives."""

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        ...

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the matrix of second derivatives; an approximation slows Newton, no more."""
        ...


def minimise(
    objective: Objective,
    start: FloatArray,
    lower: FloatArray | None = None,
    tolerance: float = _TOLERANCE,
) -> FloatArray:
    """Return the argument of the minimum, to a largest gradient entry of about ``tolerance``.

    ``lower`` bounds the entries from below. It is seldom reached, so it is looked at only after a
    minimum without it was found, and then kept by L-BFGS-B.

    Examples
    --------
    >>> class Bowl:
    ...     def value_and_gradient(self, theta):
    ...         return float(((theta - 3.0) ** 2).sum()), 2.0 * (theta - 3.0)
    ...     def hessian(self, theta):
    ...         return 2.0 * np.eye(len(theta))
    >>> minimise(Bowl(), np.zeros(2)).round(6).tolist()
    [3.0, 3.0]
    >>> minimise(Bowl(), np.zeros(1), np.array([4.0])).tolist()
    [4.0]
    """
    if len(start) <= _NEWTON_UNKNOWNS:
        found = _newton(objective, start, tolerance)
        if found is not None and (lower is None or (found >= lower).all()):
            return found
        if found is not None and lower is not None:
            start = np.maximum(found, lower)
    bounds = None if lower is None else [(low, None) for low in lower]
    options = {"maxiter": _LBFGS_STEPS, "maxfun": 2 * _LBFGS_STEPS, "maxcor": 20}
    answer: Any = minimize(
        objective.value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={**options, "ftol": 1e-14, "gtol": tolerance},
    )
    if answer.status == 1:
        _log.info("a calibration map's fit ended after %d steps of L-BFGS", answer.nit)
    return np.asarray(answer.x, dtype=np.float64)


def _newton(objective: Objective, start: FloatArray, tolerance: float) -> FloatArray | None:
    """Damped Newton steps; None where they get stuck."""
    theta = np.array(start, dtype=np.float64)
    value, gradient = objective.value_and_gradient(theta)
    for _ in range(_NEWTON_STEPS):
        if np.abs(gradient).max() <= tolerance:
            return theta
        step = _solve(objective.hessian(theta), gradient)
        slope = float(step @ gradient)
        length = 1.0
        while True:
            tried = theta - length * step
            new_value, new_gradient = objective.value_and_gradient(tried)
            if new_value <= value - 1e-4 * length * slope:
                break
            if slope <= 1e-14 * max(1.0, abs(value)):  # nothing left but rounding
                return theta
            length *= 0.5
            if length < 1e-10:
                return None
        theta, value, gradient = tried, new_value, new_gradient
    return None


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for the step; directions without curvature (softmax has some) get a little."""
    size = len(gradient)
    extra = 1e-10 * float(np.trace(hessian)) / size + 1e-300
    for _ in range(8):
        try:
            factor = cho_factor(hessian + extra * np.eye(size), check_finite=False)
        except np.linalg.LinAlgError:
            extra *= 100.0
        else:
            return np.asarray(cho_solve(factor, gradient, check_finite=False))
    return gradient  # no curvature to speak of: a step down the slope will do
