"""What can be known without labels: intervals for the class mix, and the accuracy."""

from priorshift.insight.accuracy import AccuracyReport, estimate_accuracy
from priorshift.insight.intervals import (
    effective_size,
    estimate_mix,
    hold_out_size,
    mix_interval,
    prior_interval,
)

__all__ = [
    "AccuracyReport",
    "effective_size",
    "estimate_accuracy",
    "estimate_mix",
    "hold_out_size",
    "mix_interval",
    "prior_interval",
]
