"""The arrays of a stream's row, and what a round works in.

Loops over arrays of their own become vectors. In loops over parts of one long array the compiler
asks of every place whether it is negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from priorshift.learners.trackers.compiled.fields import (
    BELIEF,
    COUNTS,
    EXPERT_COUNTS,
    EXPERT_WEIGHTS,
    FIRST,
    FORESIGHT,
    LAST,
    MASS,
    MOVES,
    PULL,
    ROWS,
    SLOTS,
    TRUST,
    USED,
)
from priorshift.risk.compiled._njit import inlined


class Row(NamedTuple):
    """Parts of a row: experts, the book of regimes, the trust in both, the latest class prior.

    Of J experts, S regimes and K classes: ``experts`` (J, K), ``weights`` (J,), ``counts`` (S, K),
    ``moves`` (S, S), ``belief``, ``rows``, ``used``, ``first``, ``last`` (S,), ``trust`` and
    ``foresight`` (2,) or (0,), ``mass`` (K,), ``pull`` (J + S,).
    """

    experts: Any
    weights: Any
    counts: Any
    belief: Any
    moves: Any
    rows: Any
    used: Any
    first: Any
    last: Any
    trust: Any
    foresight: Any
    mass: Any
    pull: Any


@inlined
def parts_of(x: Any, at: Any, J: int, K: int) -> Row:
    """The parts of a row x, in place."""
    S = at[SLOTS]
    both = 2 if at[TRUST] >= 0 else 0
    return Row(
        x[at[EXPERT_COUNTS] : at[EXPERT_COUNTS] + J * K].reshape(J, K),
        x[at[EXPERT_WEIGHTS] : at[EXPERT_WEIGHTS] + J],
        x[at[COUNTS] : at[COUNTS] + S * K].reshape(S, K),
        x[at[BELIEF] : at[BELIEF] + S],
        x[at[MOVES] : at[MOVES] + S * S].reshape(S, S),
        x[at[ROWS] : at[ROWS] + S],
        x[at[USED] : at[USED] + S],
        x[at[FIRST] : at[FIRST] + S],
        x[at[LAST] : at[LAST] + S],
        x[at[TRUST] : at[TRUST] + both],
        x[at[FORESIGHT] : at[FORESIGHT] + both],
        x[at[MASS] : at[MASS] + K],
        x[at[PULL] : at[PULL] + J + S],
    )


class Space(NamedTuple):
    """What a round of up to n rows works in.

    Of all H components: ``alpha`` (H, K) their counts before the batch, in the end those after it,
    ``found`` (H, K) the batch as each explains it, ``centre`` (H, K) the class priors that its rows
    were seen under; ``sums``, ``before``, ``evidence``, ``weights`` (H,) the sums of their counts,
    their weights before and after the batch, and what the batch says of each.
    """

    alpha: Any
    found: Any
    centre: Any
    sums: Any
    before: Any
    evidence: Any
    weights: Any
    step: Any
    classes: Any
    columns: Any
    lanes: Any


@inlined
def space_of(at: Any, J: int, K: int, rows: int) -> Space:
    """New space."""
    S = at[SLOTS]
    H = J + S
    return Space(
        np.empty((H, K)),
        np.empty((H, K)),
        np.empty((H, K)),
        np.empty(H),
        np.empty(H),
        np.empty(H),
        np.empty(H),
        np.empty((S, S)),
        np.empty((4, K)),
        np.empty((2, K, rows)),
        np.empty((12, rows)),
    )
