"""priorshift: keep a deployed classifier right while the mix of classes around it changes."""

from priorshift.classifier import LabelShiftClassifier, load
from priorshift.errors import (
    FileFormatError,
    InputError,
    InputTypeError,
    PriorshiftError,
    PriorshiftWarning,
    SourceError,
)
from priorshift.evaluate import Result, evaluate
from priorshift.guard import Guard, GuardReport
from priorshift.hints import Forward, Hint, NoHint, OnlineKMeans, Periodic, Window
from priorshift.insight import (
    AccuracyReport,
    estimate_accuracy,
    estimate_mix,
    hold_out_size,
    mix_interval,
    prior_interval,
)
from priorshift.learners import (
    ATLAS,
    EM,
    FIX,
    FLHFTL,
    FTFWH,
    FTH,
    ROGD,
    UOGD,
    AtlasAda,
    Auto,
    Learner,
    Regimes,
    Tracker,
    WaveletRestart,
    WindowHedge,
)
from priorshift.priors import BBSE, MLLS, RLLS, ForeignEstimator
from priorshift.risk import Blocks, Coreset, Herding, sketch_error
from priorshift.source import Batch, Source, build_source

__version__ = "0.1.0"

__all__ = [
    "ATLAS",
    "BBSE",
    "EM",
    "FIX",
    "FLHFTL",
    "FTFWH",
    "FTH",
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
    "FileFormatError",
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
    "OnlineKMeans",
    "Periodic",
    "PriorshiftError",
    "PriorshiftWarning",
    "Regimes",
    "Result",
    "Source",
    "SourceError",
    "Tracker",
    "WaveletRestart",
    "Window",
    "WindowHedge",
    "build_source",
    "estimate_accuracy",
    "estimate_mix",
    "evaluate",
    "hold_out_size",
    "load",
    "mix_interval",
    "prior_interval",
    "sketch_error",
]
