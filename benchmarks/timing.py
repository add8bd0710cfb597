"""Timing by interleaved medians: subject and yardstick take turns, so that noise hits both.

Processor time, not that of the clock: where other work waits for the same cores, longer calls would
be interrupted and shorter ones not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from priorshift.source import Batch


class Ratio(NamedTuple):
    """Median times of subject and yardstick in seconds, and their ratio."""

    subject: float
    yardstick: float
    ratio: float


def _once(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def compare(
    subject: Callable[[], object],
    yardstick: Callable[[], object],
    seconds: float = 2.0,
    least: int = 5,
) -> Ratio:
    """Time both in turns for about ``seconds``, at least ``least`` turns each; medians."""
    _once(subject), _once(yardstick)
    ours: list[float] = []
    theirs: list[float] = []
    began = time.perf_counter()
    while len(ours) < least or time.perf_counter() - began < seconds:
        ours.append(_once(subject))
        theirs.append(_once(yardstick))
    return Ratio(median(ours), median(theirs), median(ours) / median(theirs))


def median_time(call: Callable[[], object], seconds: float, least: int = 3) -> float:
    """Time a call for about ``seconds``, at least ``least`` times; the median."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < least or time.perf_counter() - began < seconds:
        times.append(_once(call))
    return median(times)


def player(learner: Any, source: Any, batches: list[Batch], warm: int = 5) -> Callable[[], object]:
    """Adapt to the next batch and predict it, on and on; ``warm`` rounds are played at once."""
    t, state = 0, learner.start(source)

    def play() -> None:
        nonlocal t, state
        batch = batches[t % len(batches)]
        state = learner.adapt(source, state, batch)
        learner.predict_proba(source, state, batch)
        t += 1

    for _ in range(warm):
        play()
    return play
