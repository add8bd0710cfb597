"""priorshift: keep a deployed classifier right while the mix of classes around it changes."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorshift.classifier import LabelShiftClassifier
    from priorshift.errors import (
        FileFormatError,
        InputError,
        InputTypeError,
        PriorshiftError,
        PriorshiftWarning,
        SourceError,
    )
    from priorshift.experiments.report.stream import StreamReport, report
    from priorshift.fleet import Fleet, load
    from priorshift.learners import (
        ASAP,
        ATLAS,
        EM,
        FIX,
        FLHFTL,
        FTFWH,
        FTH,
        LEIP,
        ROGD,
        UOGD,
        AtlasAda,
        Auto,
        Learner,
        OnlineFMAPLS,
        Regimes,
        Tracker,
        WaveletRestart,
        WindowHedge,
    )
    from priorshift.learners.linear.hints import (
        Forward,
        Hint,
        NoHint,
        OnlineKMeans,
        Periodic,
        Window,
    )
    from priorshift.monitoring import (
        AccuracyReport,
        batch_prior_interval,
        estimate_accuracy,
        estimate_prior,
        held_out_size,
        prior_interval,
    )
    from priorshift.monitoring.guard import Guard, GuardReport
    from priorshift.monitoring.performance import Performance
    from priorshift.monitoring.plots import PriorDisplay, plot
    from priorshift.monitoring.shift import Shift
    from priorshift.priors import BBSE, MLLS, RLLS, ForeignEstimator
    from priorshift.risk import Blocks, Coreset, Herding, sketch_error
    from priorshift.simulation.evaluate import Result, evaluate
    from priorshift.source import Batch, Source, build_source
    from priorshift.stream import Deployment, Stream

__version__ = "0.2.0"

__all__ = [
    "ASAP",
    "ATLAS",
    "BBSE",
    "EM",
    "FIX",
    "FLHFTL",
    "FTFWH",
    "FTH",
    "LEIP",
    "MLLS",
    "RLLS",
    "ROGD",
    "UOGD",
    "AccuracyReport",
    "AtlasAda",
    "Auto",
    "Batch",
    "Blocks",
    "Coreset",
    "Deployment",
    "FileFormatError",
    "Fleet",
    "ForeignEstimator",
    "Forward",
    "Guard",
    "GuardReport",
    "Herding",
    "Hint",
    "InputError",
    "InputTypeError",
    "LabelShiftClassifier",
    "Learner",
    "NoHint",
    "OnlineFMAPLS",
    "OnlineKMeans",
    "Performance",
    "Periodic",
    "PriorDisplay",
    "PriorshiftError",
    "PriorshiftWarning",
    "Regimes",
    "Result",
    "Shift",
    "Source",
    "SourceError",
    "Stream",
    "StreamReport",
    "Tracker",
    "WaveletRestart",
    "Window",
    "WindowHedge",
    "batch_prior_interval",
    "build_source",
    "estimate_accuracy",
    "estimate_prior",
    "evaluate",
    "held_out_size",
    "load",
    "plot",
    "prior_interval",
    "report",
    "sketch_error",
]

# Where each public name lives. They are imported when they are first asked for, so that a program
# pays for what it uses.
_HOMES = {
    "classifier": "LabelShiftClassifier",
    "errors": "FileFormatError InputError InputTypeError PriorshiftError PriorshiftWarning "
    "SourceError",
    "experiments.report.stream": "StreamReport report",
    "fleet": "Fleet load",
    "learners": "ASAP ATLAS EM FIX FLHFTL FTFWH FTH LEIP ROGD UOGD AtlasAda Auto Learner "
    "OnlineFMAPLS Regimes Tracker WaveletRestart WindowHedge",
    "learners.linear.hints": "Forward Hint NoHint OnlineKMeans Periodic Window",
    "monitoring": "AccuracyReport batch_prior_interval estimate_accuracy estimate_prior "
    "held_out_size prior_interval",
    "monitoring.guard": "Guard GuardReport",
    "monitoring.performance": "Performance",
    "monitoring.plots": "PriorDisplay plot",
    "monitoring.shift": "Shift",
    "priors": "BBSE MLLS RLLS ForeignEstimator",
    "risk": "Blocks Coreset Herding sketch_error",
    "simulation.evaluate": "Result evaluate",
    "source": "Batch Source build_source",
    "stream": "Deployment Stream",
}
_HOME = {name: f"priorshift.{home}" for home, names in _HOMES.items() for name in names.split()}
# Names of earlier versions, and what each is called now.
_RENAMED = {
    "estimate_mix": "estimate_prior",
    "hold_out_size": "held_out_size",
    "mix_interval": "batch_prior_interval",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        message = f"priorshift.{name} is called priorshift.{_RENAMED[name]} now"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name not in _HOME:
        raise AttributeError(f"module 'priorshift' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
