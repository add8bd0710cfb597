"""What to do with probabilities: the cheapest action, thresholds, no answer, prediction sets."""

from priorshift.decisions.abstain import abstained, needed_confidence
from priorshift.decisions.costs import Costs, as_costs
from priorshift.decisions.held_out import held_out_now
from priorshift.decisions.sets import COVERAGES, exact_sets, prediction_sets, set_thresholds
from priorshift.decisions.thresholds import METRICS, best_threshold, doubt

__all__ = [
    "COVERAGES",
    "METRICS",
    "Costs",
    "abstained",
    "as_costs",
    "best_threshold",
    "doubt",
    "exact_sets",
    "held_out_now",
    "needed_confidence",
    "prediction_sets",
    "set_thresholds",
]
