"""The learners: one file each, all with the same three steps."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from priorshift.errors import InputError, InputTypeError
from priorshift.learners.base import Learner
from priorshift.learners.baselines.fix import FIX
from priorshift.learners.baselines.history import FTFWH, FTH
from priorshift.learners.baselines.rogd import ROGD
from priorshift.learners.linear.atlas import ATLAS
from priorshift.learners.linear.atlas_ada import AtlasAda
from priorshift.learners.linear.uogd import UOGD
from priorshift.learners.trackers.auto import Auto
from priorshift.learners.trackers.em import EM
from priorshift.learners.trackers.flh_ftl import FLHFTL
from priorshift.learners.trackers.regimes import Regimes
from priorshift.learners.trackers.tracker import Tracker
from priorshift.learners.trackers.wavelet import WaveletRestart
from priorshift.learners.trackers.window_hedge import WindowHedge

__all__ = [
    "ATLAS",
    "EM",
    "FIX",
    "FLHFTL",
    "FTFWH",
    "FTH",
    "LEARNERS",
    "ROGD",
    "UOGD",
    "AtlasAda",
    "Auto",
    "Learner",
    "Regimes",
    "Tracker",
    "WaveletRestart",
    "WindowHedge",
    "as_learner",
]

LEARNERS: dict[str, Any] = {
    learner.name: learner
    for learner in (
        *(FIX, FTH, FTFWH, ROGD, UOGD, ATLAS, AtlasAda),
        *(Auto, EM, Regimes, Tracker, FLHFTL, WindowHedge, WaveletRestart),
    )
}


def as_learner(learner: str | Learner, **settings: Any) -> Learner:
    """Return a learner from its name, or the learner itself.

    ``settings`` that are None are left out, and so are those that a learner called by name does not
    have: one set of settings can serve several names.

    Examples
    --------
    >>> as_learner("ftfwh", window=50, hint=None).window
    50
    >>> as_learner("oracle")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: no learner is called 'oracle'; choose one of 'fix', ..., \
or pass a learner object
    """
    if isinstance(learner, str):
        if learner not in LEARNERS:
            known = ", ".join(map(repr, LEARNERS))
            raise InputError(
                f"no learner is called {learner!r}; choose one of {known}, or pass a learner object"
            )
        everywhere = {field.name for kind in LEARNERS.values() for field in fields(kind)}
        strange = sorted(set(settings) - everywhere)
        if strange:
            raise InputError(
                f"no learner has a setting {strange[0]!r}; there are {sorted(everywhere)}"
            )
        kind = LEARNERS[learner]
        names = {field.name for field in fields(kind)}
        return kind(**{k: v for k, v in settings.items() if k in names and v is not None})  # type: ignore[no-any-return]
    if isinstance(learner, type) or not all(
        hasattr(learner, step) for step in ("start", "predict_proba", "adapt", "prior")
    ):
        kind = learner.__name__ if isinstance(learner, type) else type(learner).__name__
        raise InputTypeError(f"learner is {kind}: pass a name, or a learner object such as ATLAS()")
    return learner
