"""What one learner did under one shift: the entry of ``priorshift run --json``."""

from __future__ import annotations

from typing import TypedDict


class Record(TypedDict):
    """One learner under one shift, over all seeds; errors are in percent.

    ``errors`` has a number for each seed, ``error_std`` is their sample standard deviation (0 for
    a single seed), ``oracle_error``, ``fix_error``, ``prior_error`` (L1 distance of the learner's
    class mix from the true one) and ``variation`` (V_T) are means over the seeds. ``seconds`` is
    the time of the learner's own steps, all seeds together. ``calibration`` is that of f0 for this
    learner, ``calibration_map`` the map that it came to, ``calibrated_oracle_error`` the error of
    f0 so calibrated with the true class mix; ``oracle_error`` and ``fix_error`` are of f0 as it is.
    ``sketch`` is what the learner read in the place of the offline set, as ``blocks:1000``.

    Examples
    --------
    >>> "error_mean" in Record.__annotations__
    True
    """

    learner: str
    hint: str | None
    preset: str
    protocol: str
    calibration: str
    calibration_map: str
    data: str
    shift: str
    rounds: int
    batch_size: int
    sketch: str | None
    errors: list[float]
    error_mean: float
    error_std: float
    oracle_error: float
    calibrated_oracle_error: float
    fix_error: float
    prior_error: float
    variation: float
    seconds: float
    rounds_per_second: float
