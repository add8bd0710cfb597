"""Where the fields of a stream's row begin: places in the array ``at``, -1 for a field it lacks."""

from __future__ import annotations

(
    T,
    EXPERT_COUNTS,
    EXPERT_WEIGHTS,
    COUNTS,
    BELIEF,
    MOVES,
    ROWS,
    USED,
    FIRST,
    LAST,
    SURPRISE,
    TRUST,
    FORESIGHT,
    TOLD,
    MASS,
    PULL,
    SIZE,
    UNCHANGED,
    MOVED,
    SQUARES,
    BY_EVIDENCE,
    BY_CALLS,
    CALLS,
    RECENT,
    RECENT_WEIGHTS,
) = range(25)
# The number of slots for regimes and of trends, the first expert of a trend; how many entries.
SLOTS, TRENDS, LEADER, FIELDS = 25, 26, 27, 28

# Places in the array of settings.
SHARE, SMOOTHING, PATIENCE, LEARN, TRUST_SHARE, CHANCE, STEPS = range(7)
