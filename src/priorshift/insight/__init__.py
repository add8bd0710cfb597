"""What a person in charge asks of a stream: the class prior, the performance, the shift, the past.

Functions of a deployment and a stream of it, which change neither. The classifier's methods of the
same names call them; so may whoever holds many streams.
"""

from priorshift.insight.card import card
from priorshift.insight.past import history, history_columns
from priorshift.insight.present import (
    effective_size,
    judged_by,
    performance,
    prior_interval,
    shift,
)

__all__ = [
    "card",
    "effective_size",
    "history",
    "history_columns",
    "judged_by",
    "performance",
    "prior_interval",
    "shift",
]
