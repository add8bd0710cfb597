"""What can be known without labels: whether label shift holds, the class prior, the accuracy."""

from priorshift.monitoring.guard import Guard, GuardReport, GuardState, guard_regions
from priorshift.monitoring.intervals import (
    batch_prior_interval,
    estimate_prior,
    held_out_size,
    prior_interval,
)
from priorshift.monitoring.performance import AccuracyReport, estimate_accuracy

__all__ = [
    "AccuracyReport",
    "Guard",
    "GuardReport",
    "GuardState",
    "batch_prior_interval",
    "estimate_accuracy",
    "estimate_prior",
    "guard_regions",
    "held_out_size",
    "prior_interval",
]
