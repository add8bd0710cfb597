"""Memory over 100,000 rounds: what a learner holds after many rounds, it held after few."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from checks import held_memory
from priorshift.learners import LEARNERS
from priorshift.source import Batch, build_source

# A state that kept one float64 a round would pass this bound after some thousand rounds.
_BOUND = 64 * 1024
_WARM = 500


@pytest.fixture(scope="module")
def small(fitted, blobs):
    """A source of few rows, so that many rounds are quick."""
    return build_source(fitted, blobs.X[:90], blobs.y[:90])


def play(name, source, batches, rounds):
    learner = LEARNERS[name]()
    state = learner.start(source)
    rng = np.random.default_rng(0)
    # Batches of every kind: a tracker must not keep what it has never seen before.
    order = rng.integers(len(batches), size=rounds)
    for t in range(_WARM):
        state = learner.adapt(source, state, batches[order[t]])
    learner.predict_proba(source, state, batches[0])  # kernels are loaded at their first call
    gc.collect()
    held = held_memory(state)
    tracemalloc.start()
    try:
        for t in range(_WARM, rounds):
            state = learner.adapt(source, state, batches[order[t]])
            if t % 50 == 0:
                learner.predict_proba(source, state, batches[order[t]])
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return held, held_memory(state), grown


def varied(source, blobs):
    rng = np.random.default_rng(1)
    rows = [rng.integers(len(blobs.X), size=8) for _ in range(50)]
    return [Batch(*source.read(blobs.X[some])) for some in rows]


@pytest.mark.parametrize("name", LEARNERS)
def test_memory_is_flat(name, small, blobs):
    before, after, grown = play(name, small, varied(small, blobs), 2_000)
    assert after <= 1.5 * before + 1024
    assert grown < _BOUND


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_memory_is_flat_over_100_000_rounds(name, small, blobs):
    before, after, grown = play(name, small, varied(small, blobs), 100_000)
    assert after <= 2 * before + 4096  # logarithmic pools may have grown a little
    assert grown < _BOUND
