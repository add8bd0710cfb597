"""Names: every class that a file can call into being, and what all other objects are called."""

from __future__ import annotations

from typing import Any

from priorshift.calibration import CALIBRATIONS, MAPS
from priorshift.errors import FileFormatError
from priorshift.learners import LEARNERS, Careful
from priorshift.learners.linear.hints import HINTS, Hint
from priorshift.learners.trackers.correction import Correction
from priorshift.monitoring.guard import Guard
from priorshift.monitoring.regions import Regions, Shape, Views
from priorshift.monitoring.scores import Scores
from priorshift.priors import ESTIMATORS, ForeignEstimator
from priorshift.risk import SKETCHES, SOLVERS
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities

# A class goes into a file and comes out of it by this list only.
OWN: dict[str, Any] = {
    **{f"learner/{name}": kind for name, kind in LEARNERS.items()},
    "learner/careful": Careful,
    **{f"hint/{name}": kind for name, kind in HINTS.items()},
    "hint/custom": Hint,
    **{f"calibration/{name}": kind for name, kind in CALIBRATIONS.items()},
    **{f"calibration-map/{name}": kind for name, kind in MAPS.items()},
    # Several names of one type differ by a setting: the first one names the type.
    **{f"prior/{name}": type(found) for name, found in reversed(list(ESTIMATORS.items()))},
    "prior/foreign": ForeignEstimator,
    **{f"solver/{name}": kind for name, kind in SOLVERS.items()},
    **{f"sketch/{name}": kind for name, kind in SKETCHES.items()},
    "guard/guard": Guard,
    "model/linear": LinearModel,
    "model/probability": ProbabilityModel,
}
# What is derived from a source and saved with it.
DERIVED: dict[str, Any] = {"correction": Correction, "regions": Regions}
OWN |= {f"derived/{name}": kind for name, kind in DERIVED.items()}
OWN |= {"derived/views": Views, "derived/shape": Shape, "derived/scores": Scores}
# What learners are set with: everything else has its own place in a file.
SETTINGS = ("calibration/", "hint/", "prior/", "sketch/", "solver/")
OWN_NAMES = {kind: name for name, kind in OWN.items()}
FUNCTIONS = {"log_probabilities": log_probabilities}


def known(table: dict[str, Any], name: Any) -> Any:
    """Return what a file may call ``name``."""
    if not isinstance(name, str) or name not in table:
        raise FileFormatError(
            f"names {name!r}, which this version of priorshift does not have: update priorshift"
        )
    return table[name]


def full_name(value: Any) -> str:
    """``module:qualname`` of a function or class, or of the class of an object.

    Examples
    --------
    >>> full_name(log_probabilities), full_name(Guard())
    ('priorshift.source.model:log_probabilities', 'priorshift.monitoring.guard:Guard')
    """
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', None) or 'builtins'}:{named.__qualname__}"


def short_name(name: str) -> str:
    """Leave out the module, as code moves from file to file."""
    return name.rpartition(":")[2]


def reference(encoded: Any) -> str | None:
    """Return the name of an object that the file only refers to, None for all others."""
    if isinstance(encoded, dict) and "reference" in encoded:
        return str(encoded["reference"])
    return None


def check_type(encoded: Any, role: str, given: Any) -> None:
    """Refuse an object of another type than the saved one's.

    Examples
    --------
    >>> from priorshift.priors import MLLS
    >>> check_type({"object": "prior/bbse"}, "learner", MLLS())
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: learner= is priorshift.priors.mlls:MLLS, but the file was \
saved with priorshift.priors.bbse:BBSE: pass that one
    """
    saved, own = _saved_name(encoded), full_name(given)
    if short_name(saved) != short_name(own):
        raise FileFormatError(
            f"{role}= is {own}, but the file was saved with {saved}: pass that one"
        )


def _saved_name(encoded: Any) -> str:
    """``module:qualname`` of an encoded object."""
    if not isinstance(encoded, dict):
        return str(encoded)
    if "object" in encoded:
        return full_name(known(OWN, encoded["object"]))
    if "function" in encoded:
        return full_name(known(FUNCTIONS, encoded["function"]))
    return str(encoded.get("reference", encoded.get("type")))
