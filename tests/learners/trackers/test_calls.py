"""What f0 calls rows: urns against closed forms, and the promise that they make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from priorshift.learners.trackers.calls import (
    BACK,
    LEAVE,
    Called,
    first_calls,
    held_out_calls,
    start_calls,
    weigh_calls,
)
from priorshift.learners.trackers.records import careful_places
from priorshift.risk import compiled


def log_odds(belief: float) -> float:
    return math.log(belief / (1.0 - belief))


def polya(counts: np.ndarray, here: np.ndarray) -> float:
    """Log chance of a sequence with these counts, by gamma functions."""
    whole, rows = counts.sum(), here.sum()
    parts = gammaln(counts + here) - gammaln(counts)
    return float(gammaln(whole) - gammaln(whole + rows) + parts.sum())


def test_the_first_batch_is_that_of_two_urns() -> None:
    held = np.array([30.0, 12.0, 0.0])
    called = np.array([0, 2, 1, 2, 2, 0, 0])
    here, first = np.bincount(called, minlength=3), first_calls(held, 2.0)
    assert first.tolist() == [15.5, 6.5, 0.5]
    found = weigh_calls(start_calls(len(held), 0.5), called, first)
    before = 0.5 * (1.0 - LEAVE) + 0.5 * BACK
    gap = polya(first, here) - polya(16.0 * first / first.sum(), here)
    assert log_odds(found.belief) == pytest.approx(log_odds(before) + gap, abs=1e-9)
    np.testing.assert_allclose(found.counts, here)
    np.testing.assert_allclose(found.weights, 1.0 / 3.0)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=12), min_size=1, max_size=8))
def test_compiled_and_numpy_agree(batches: list[list[int]]) -> None:
    if not compiled.available():
        pytest.skip("numba is not installed")
    held = np.array([4.0, 0.0, 9.0, 1.0, 30.0, 2.0])
    state, first = start_calls(len(held), 0.5), first_calls(held, 1.0)
    parts, at = careful_places(2, 6)
    row = np.zeros(parts[-1].place.stop)
    places = [part.place for part in parts[4:]]
    for place, value in zip(places, state, strict=True):
        row[place] = np.ravel(value)
    from priorshift.learners.trackers.compiled.calls import weigh_calls as compiled_twin

    for batch in batches:
        state = weigh_calls(state, np.array(batch), first)
        compiled_twin(row, np.array(batch), at, first, np.empty((4, 6)))
    for place, value in zip(places, state, strict=True):
        np.testing.assert_allclose(row[place], np.ravel(value), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("rows", [20, 200])
def test_without_a_change_the_belief_seldom_falls(rows: int, size: int) -> None:
    """Calls of held-out set and stream are exchangeable: Ville's inequality, whatever they are."""
    rng = np.random.default_rng(rows + size)
    fallen, streams = 0, 60
    for _ in range(streams):
        shares = rng.dirichlet(np.full(12, 0.5))
        held = np.bincount(rng.choice(12, rows, p=shares), minlength=12) * 1.0
        state, first = start_calls(len(held), 0.5), first_calls(held, 1.0)
        lowest = 1.0
        for batch in rng.choice(12, (150, size), p=shares):
            state = weigh_calls(state, batch, first)
            lowest = min(lowest, state.belief)
        fallen += lowest < 1.0 / 21.0  # odds of 20 against it
    assert fallen <= 0.05 * streams + 3


def test_a_change_is_seen_and_so_is_its_end() -> None:
    rng = np.random.default_rng(0)
    usual, other = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.1, 0.2, 0.6])
    held = 500.0 * usual
    state, first = start_calls(len(held), 0.5), first_calls(held, 1.0)
    beliefs: list[list[float]] = []
    for shares in (usual, other, usual):
        beliefs.append([])
        for batch in rng.choice(4, (60, 10), p=shares):
            state = weigh_calls(state, batch, first)
            beliefs[-1].append(state.belief)
    assert min(beliefs[0]) > 0.3
    assert max(beliefs[1][10:]) < 0.05
    assert min(beliefs[2][30:]) > 0.5


def test_names_of_the_classes_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    counts, order = rng.integers(0, 40, 8) * 1.0, rng.permutation(8)
    one, other = counts, counts[order]
    place = np.argsort(order)
    a: Called = start_calls(8, 0.5)
    b: Called = start_calls(8, 0.5)
    for batch in rng.integers(0, 8, (30, 5)):
        a = weigh_calls(a, batch, first_calls(one, 1.0))
        b = weigh_calls(b, place[batch], first_calls(other, 1.0))
    assert a.belief == pytest.approx(b.belief, abs=1e-12)
    np.testing.assert_allclose(a.counts[order], b.counts)


def test_held_out_rows_count_as_they_are_weighed() -> None:
    P = np.tile(np.eye(20)[:2], (10, 1)) * 0.9 + 0.1 / 20
    np.testing.assert_allclose(held_out_calls(P, np.full(20, 0.05))[:2], 10.0)
    uneven = held_out_calls(P, np.tile([0.09, 0.01], 10))
    assert uneven[0] / uneven[1] == pytest.approx(9.0)
    assert uneven.sum() == pytest.approx(1.0 / (10 * 0.09**2 + 10 * 0.01**2))
