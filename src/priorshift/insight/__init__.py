"""What a person in charge asks of a stream: the class prior, the performance, the shift, the past.

Functions of a deployment and a stream of it, which change neither. The classifier's methods of the
same names call them; so may whoever holds many streams.
"""

from priorshift.insight.card import card
from priorshift.insight.past import Gains, history, history_columns, past_gains
from priorshift.insight.present import (
    NotKeptError,
    effective_size,
    judged_by,
    performance,
    prior_interval,
    prior_region,
    shift,
)

__all__ = [
    "Gains",
    "NotKeptError",
    "card",
    "effective_size",
    "history",
    "history_columns",
    "judged_by",
    "past_gains",
    "performance",
    "prior_interval",
    "prior_region",
    "shift",
]
