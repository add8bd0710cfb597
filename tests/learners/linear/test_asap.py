from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import ASAP, UOGD
from priorshift.learners.linear.ensemble import linear_proba


@pytest.mark.parametrize("preset", ["paper", "theory", "anytime"])
def test_a_round_is_uogds_with_a_step_that_follows_the_turn(source, batches, preset):
    learner = ASAP(preset=preset, horizon=100)
    longest = source.diameter / learner.steepness(source)
    state, before, turns = learner.start(source), None, []
    for t, batch in enumerate(batches[:10], start=1):
        now = linear_proba(state.W[0], batch.features).mean(axis=0)
        least = UOGD(preset=preset, horizon=100).step_size(source, t)
        cosine = 1.0
        if before is not None:
            cosine = now @ before / np.linalg.norm(now) / np.linalg.norm(before)
        turns.append(1 - cosine)
        step = least + (longest - least) * (1 - cosine)
        plain = UOGD(preset=preset, horizon=100, step=step)
        begun = plain.start(source)._replace(W=state.W)
        expected = plain.adapt(source, begun, batch).W
        state, before = learner.adapt(source, state, batch), now
        np.testing.assert_allclose(state.W, expected, atol=1e-6)
    assert max(turns[1:]) > 3 * min(turns[1:]) > 0


def test_the_same_output_again_and_again_is_uogd(source, batches):
    learner, plain = ASAP(step=1e-9, longest=0.3), UOGD(step=1e-9)
    one, two = learner.start(source), plain.start(source)
    for _ in range(4):
        one = learner.adapt(source, one, batches[0])
        two = plain.adapt(source, two, batches[0])
    np.testing.assert_allclose(one.W, two.W, atol=1e-7)


def test_in_the_practice_preset_no_step_passes_the_edge_of_stability(source, batches):
    learner, plain = ASAP(preset="practice"), UOGD(preset="practice")
    one, two = learner.start(source), plain.start(source)
    for batch in batches[:5]:
        one, two = learner.adapt(source, one, batch), plain.adapt(source, two, batch)
    np.testing.assert_array_equal(one.W, two.W)


def test_the_range_is_checked():
    for bad in (0.0, -1.0, float("inf")):
        with pytest.raises(InputError, match="longest"):
            ASAP(longest=bad)
