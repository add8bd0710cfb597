from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError
from priorshift.learners import Regimes
from priorshift.learners.trackers.components import likelihoods
from priorshift.learners.trackers.regimes import (
    closest,
    empty_book,
    learned,
    transitions,
    with_newborn,
    with_room,
)
from priorshift.source import Batch
from simulated import plain_source, rounds


def given_regimes(learner, source, mixes, moves):
    """A state whose regimes are known."""
    state = learner.start(source)
    book = state.book
    for mix in mixes[1:]:
        book = with_newborn(book, np.asarray(mix), t=1)
    counts = np.zeros_like(book.counts)
    counts[: len(mixes)] = 1000 * np.asarray(mixes)
    full = np.zeros_like(book.moves)
    full[: len(mixes), : len(mixes)] = moves
    belief = np.zeros(learner.slots)
    belief[: len(mixes)] = 1 / len(mixes)
    return state._replace(book=book._replace(counts=counts, moves=full, belief=belief))


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_the_filter_against_all_paths(seed):
    """Chances of the last regime, summed over every path of five rounds of one row."""
    rng = np.random.default_rng(seed)
    source = plain_source(rng.dirichlet(np.ones(4)))
    learner = Regimes(slots=3, learn=False, smoothing=1e-12)
    mixes = rng.dirichlet(np.ones(4), 3)
    state = given_regimes(learner, source, mixes, rng.gamma(1.0, 300.0, (3, 3)))
    step, start = transitions(state.book), state.book.belief
    batches = [Batch(rng.dirichlet(np.full(4, 0.5), 1), np.zeros((1, 1))) for _ in range(5)]
    fits = [mixes @ likelihoods(source, batch)[0] for batch in batches]
    for batch in batches:
        state = learner.adapt(source, state, batch)
    chances = np.zeros(3)
    for path in product(range(3), repeat=6):
        chance = start[path[0]]
        for a, b, fit in zip(path, path[1:], fits, strict=False):
            chance *= step[a, b] * fit[b]
        chances[path[-1]] += chance
    np.testing.assert_allclose(state.book.belief, chances / chances.sum(), atol=1e-9)
    assert not np.allclose(chances / chances.sum(), 1 / 3, atol=0.01)
    np.testing.assert_allclose(
        learner.forecast(source, state), state.book.belief @ step @ mixes, atol=1e-9
    )


def test_nothing_is_learned_when_learning_is_off():
    source = plain_source(np.full(3, 1 / 3))
    learner = Regimes(slots=3, learn=False)
    state = given_regimes(learner, source, np.eye(3)[:2] * 0.7 + 0.1, np.full((2, 2), 50.0))
    before = state.book
    for batch, _ in rounds(np.tile([0.1, 0.1, 0.8], (20, 1)), 10, 2.5):
        state = learner.adapt(source, state, batch)
    for name in ("counts", "moves", "rows", "first"):
        np.testing.assert_array_equal(getattr(state.book, name), getattr(before, name))


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), alive=st.integers(1, 4))
def test_transitions_are_chances_and_lead_to_living_regimes(seed, alive):
    rng = np.random.default_rng(seed)
    book = empty_book(4, 3)
    for _ in range(alive - 1):
        book = with_newborn(book, rng.gamma(1.0, 5.0, 3), t=1)
    moves = np.zeros((4, 4))
    moves[:alive, :alive] = rng.gamma(0.5, 100.0, (alive, alive))
    step = transitions(book._replace(moves=moves))
    np.testing.assert_allclose(step.sum(axis=1), 1.0)
    assert (step >= 0).all()
    assert (step[:, alive:] == 0).all()
    fresh = transitions(book._replace(moves=np.zeros((4, 4))))
    if alive > 1:
        np.testing.assert_allclose(np.diag(fresh)[:alive], 0.95)


def test_expected_transitions_add_up_to_the_rounds():
    book = with_newborn(empty_book(3, 2), np.array([0.0, 5.0]), t=1)
    step = transitions(book)
    prior = book.belief @ step
    belief = prior * [0.2, 0.7, 0.0]
    belief /= belief.sum()
    after = learned(book, belief, prior, step, np.ones((3, 2)), 2)
    assert after.moves.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(after.moves.sum(axis=0), belief)
    assert after.last.tolist() == [0, 2, -1]


def test_a_returning_mix_is_recognised_at_once():
    """The second time, the first batch after the jump is enough."""
    source = plain_source(np.full(5, 0.2))
    first, second = np.array([0.8, 0.05, 0.05, 0.05, 0.05]), np.array([0.0, 0.0, 0.1, 0.1, 0.8])
    mixes = np.repeat([first, second] * 4, 30, axis=0)
    learner = Regimes()
    state = learner.start(source)
    gaps = []
    for (batch, _), mix in zip(rounds(mixes, 20, 2.5), mixes, strict=True):
        state = learner.adapt(source, state, batch)
        gaps.append(np.abs(learner.prior(source, state) - mix).sum())
    assert max(gaps[120::30]) < 0.25
    seen = learner.regimes_seen(source, state)
    common = seen.priors[np.argsort(seen.rows)[-2:]]
    for mix in (first, second):
        assert np.abs(common - mix).sum(axis=1).min() < 0.1
    assert (seen.first[1:] >= seen.first[:-1]).all()
    assert (seen.last >= seen.first).all()
    assert seen.last.max() == len(mixes)
    assert seen.weights.sum() == pytest.approx(1.0)


def test_more_mixes_than_slots_are_survived():
    rng = np.random.default_rng(0)
    source = plain_source(np.full(6, 1 / 6))
    mixes = np.repeat(rng.dirichlet(np.full(6, 0.3), 12), 8, axis=0)
    learner = Regimes(slots=3)
    state = learner.start(source)
    for batch, _ in rounds(mixes, 50, 2.5):
        state = learner.adapt(source, state, batch)
        alive = state.book.first >= 0
        assert state.book.belief[alive].sum() == pytest.approx(1.0)
        assert (state.book.counts[~alive] == 0).all()
    assert alive.all()
    assert state.book.first.max() > 40  # the old ones made room


def test_alike_regimes_merge_and_all_their_belongings_with_them():
    book = empty_book(3, 2)
    book = with_newborn(book, np.array([1.0, 29.0]), t=3)
    book = with_newborn(book, np.array([2.0, 28.0]), t=9)
    book = book._replace(
        counts=np.array([[30.0, 0.0], [1.0, 29.0], [2.0, 28.0]]),
        rows=np.array([5.0, 6.0, 7.0]),
        moves=np.arange(9.0).reshape(3, 3),
    )
    after = with_room(book)
    assert after.first.tolist() == [0, 3, -1]
    assert after.last.tolist() == [0, 9, -1]
    np.testing.assert_allclose(after.counts[1], [3.0, 57.0])
    assert after.rows.tolist() == [5.0, 13.0, 0.0]
    assert after.moves.sum() == pytest.approx(36.0)
    assert after.belief.sum() == pytest.approx(1.0)


def test_unlike_regimes_do_not_merge_the_least_used_goes():
    book = empty_book(3, 2)
    book = with_newborn(book, np.array([100.0, 0.0]), t=3)
    book = with_newborn(book, np.array([0.0, 100.0]), t=9)
    book = book._replace(
        counts=np.array([[50.0, 50.0], [100.0, 0.0], [0.0, 100.0]]),
        belief=np.array([0.2, 0.1, 0.7]),
        used=np.array([90.0, 10.0, 1.0]),
    )
    after = with_room(book)
    assert after.first.tolist() == [0, -1, 9]  # the third is the present one
    np.testing.assert_allclose(after.belief, [0.2 / 0.9, 0.0, 0.7 / 0.9])


def test_what_a_merge_loses_is_the_log_likelihood_ratio():
    counts = np.array([[6.0, 4.0], [1.0, 9.0], [5.0, 5.0]])

    def fit(c):
        return float((c * np.log(c / c.sum())).sum())

    keep, go, nats = closest(counts)
    assert (keep, go) == (0, 2)
    assert nats == pytest.approx(fit(counts[0]) + fit(counts[2]) - fit(counts[0] + counts[2]))


def test_settings_are_checked():
    for bad in ({"slots": 1}, {"patience": 0.0}, {"share": -0.1}, {"smoothing": float("nan")}):
        with pytest.raises(InputError, match=next(iter(bad))):
            Regimes(**bad)
