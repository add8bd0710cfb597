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
    TOLD,
    TRENDS,
    TRUST,
    USED,
)
from priorshift.risk.compiled._njit import inlined


class Row(NamedTuple):
    """Parts of a row: experts, the book of regimes, the trust in both, the latest class prior.

    Of J experts, S regimes and K classes: ``experts`` (J, K), ``weights`` (J,), ``counts`` (S, K),
    ``moves`` (S, S), ``belief``, ``rows``, ``used``, ``first``, ``last`` (S,), ``trust`` and
    ``foresight`` (2,), ``told`` (2 + G,) with G trends, or (0,) all three, ``mass`` (K,), ``pull``
    (J + S,).
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
    told: Any
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
        x[at[TOLD] : at[TOLD] + both + at[TRENDS]],
        x[at[MASS] : at[MASS] + K],
        x[at[PULL] : at[PULL] + J + S],
    )


class Space(NamedTuple):
    """What a round of up to n rows works in.

    Of all H components, and after them G trends: ``alpha`` (H + G, K) their counts before the
    batch, in the end those after it, ``found`` the batch as each explains it, ``centre`` the class
    priors that its rows were seen under; ``sums``, ``evidence``, ``told`` (H + G,) the sums of
    their counts, what the batch says of each, their weights in the class prior that is told;
    ``before``, ``weights`` (H,) the components' weights before and after the batch.
    """

    alpha: Any
    found: Any
    centre: Any
    sums: Any
    before: Any
    evidence: Any
    weights: Any
    told: Any
    step: Any
    classes: Any
    columns: Any
    lanes: Any


@inlined
def space_of(at: Any, J: int, K: int, rows: int) -> Space:
    """New space."""
    S = at[SLOTS]
    H, every = J + S, J + S + at[TRENDS]
    return Space(
        np.empty((every, K)),
        np.empty((every, K)),
        np.empty((every, K)),
        np.empty(every),
        np.empty(H),
        np.empty(every),
        np.empty(H),
        np.empty(every),
        np.empty((S, S)),
        np.empty((4, K)),
        np.empty((2, K, rows)),
        np.empty((12, rows)),
    )
