"""What can be known without labels: intervals for the class mix, and the accuracy."""

from priorshift.monitoring.accuracy import AccuracyReport, estimate_accuracy
from priorshift.monitoring.intervals import (
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
