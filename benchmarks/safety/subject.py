"""The classifier that is measured, with or without its safety where the library has the choice."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from priorshift import LabelShiftClassifier
from priorshift.errors import PriorshiftWarning


def has_safety() -> bool:
    """Say whether this version of the library can be told to be safe."""
    return "safety" in inspect.signature(LabelShiftClassifier.__init__).parameters


def subject(model: Any, safety: str, **settings: Any) -> LabelShiftClassifier:
    """``LabelShiftClassifier(model, "auto")`` as it comes, or with ``safety="off"``."""
    if has_safety():
        settings["safety"] = safety
    return LabelShiftClassifier(model, "auto", **settings)


@contextmanager
def quiet() -> Iterator[None]:
    """One thread of BLAS and OpenMP, and no warnings of what is measured on purpose."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorshiftWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Fifty rows of two hundred classes look like a regression to scikit-learn.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def guarded(model: Any, safety: str) -> LabelShiftClassifier:
    """The classifier with its guard, which is asked for where it does not come by itself."""
    return subject(model, safety) if has_safety() else subject(model, safety, guard=True)


def alarmed(classifier: LabelShiftClassifier) -> bool | None:
    """Whether the guard raised an alarm; None where there is no guard."""
    try:
        return bool(classifier.guard_report_.alarm)
    except AttributeError:
        return None
