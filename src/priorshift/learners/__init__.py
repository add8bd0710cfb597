"""The learners: recipes that connect a source with the state of a stream."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from priorshift._registry import Registry
from priorshift.errors import InputError, InputTypeError
from priorshift.learners.base import Learner
from priorshift.learners.baselines import FIX, FTFWH, FTH, ROGD
from priorshift.learners.linear.asap import ASAP
from priorshift.learners.linear.atlas import ATLAS
from priorshift.learners.linear.atlas_ada import AtlasAda
from priorshift.learners.linear.uogd import UOGD
from priorshift.learners.trackers.auto import Auto
from priorshift.learners.trackers.careful import Careful
from priorshift.learners.trackers.em import EM
from priorshift.learners.trackers.flh_ftl import FLHFTL
from priorshift.learners.trackers.leip import LEIP
from priorshift.learners.trackers.online_fmapls import OnlineFMAPLS
from priorshift.learners.trackers.regimes import Regimes
from priorshift.learners.trackers.tracker import Tracker
from priorshift.learners.trackers.wavelet import WaveletRestart
from priorshift.learners.trackers.window_hedge import WindowHedge

__all__ = [
    "ASAP",
    "ATLAS",
    "EM",
    "FIX",
    "FLHFTL",
    "FTFWH",
    "FTH",
    "LEARNERS",
    "LEIP",
    "ROGD",
    "UOGD",
    "AtlasAda",
    "Auto",
    "Careful",
    "Learner",
    "OnlineFMAPLS",
    "Regimes",
    "Tracker",
    "WaveletRestart",
    "WindowHedge",
    "as_learner",
]

# One line names a learner for Python, the command line and saved files.
LEARNERS: Registry[Any] = Registry(
    "learner",
    FIX,
    FTH,
    FTFWH,
    ROGD,
    UOGD,
    ATLAS,
    AtlasAda,
    Auto,
    EM,
    Regimes,
    Tracker,
    FLHFTL,
    WindowHedge,
    WaveletRestart,
    OnlineFMAPLS,
    LEIP,
    ASAP,
    otherwise="a learner object",
)


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
        kind = LEARNERS[learner]
        everywhere = {field.name for each in LEARNERS.values() for field in fields(each)}
        strange = sorted(set(settings) - everywhere)
        if strange:
            raise InputError(
                f"no learner has a setting {strange[0]!r}; there are {sorted(everywhere)}"
            )
        own = {field.name for field in fields(kind)}
        found: Learner = kind(**{k: v for k, v in settings.items() if k in own and v is not None})
        return found
    if not isinstance(learner, Learner):
        is_class = isinstance(learner, type)
        name = f"the class {learner.__name__}" if is_class else type(learner).__name__
        raise InputTypeError(
            f"learner is {name}: pass a name, or a learner object such as ATLAS(); a learner of "
            "your own is derived from priorshift.Learner"
        )
    if any(value is not None for value in settings.values()):
        raise InputError(f"settings go with a learner's name; {learner!r} has its own")
    return learner
