"""The compiled step against NumPy's, and against itself: alone or among others."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

import checks
from checks import state_bytes
from priorshift.learners import EM, Careful, Regimes, Tracker
from priorshift.learners.trackers.careful import Unchanged, still_proba
from priorshift.learners.trackers.compiled import fields, sums
from priorshift.learners.trackers.components import likelihoods
from priorshift.learners.trackers.records import (
    advanced,
    packed,
    plan_of,
    rounded,
    to_row,
    unpacked,
    with_caution,
)
from priorshift.risk import compiled
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel
from simulated import plain_source

_NONE = np.zeros(0, dtype=np.int64)  # calls, which only a careful learner asks for
pytestmark = pytest.mark.skipif(
    not compiled.available(), reason="PRIORSHIFT_COMPILED=0 turns the compiled kernels off"
)


def leaves(state):
    found = []
    for part in state:
        found += leaves(part) if isinstance(part, tuple) else [np.asarray(part, dtype=float)]
    return found


def batches(classes, rounds, most, seed=0):
    """Jumps between class priors, batches of one row and of several, labels now and then."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        spread = np.full(classes, 0.3)
        spread[t // 20 % classes] += 2.0
        n = int(rng.integers(1, most + 1))
        known = rng.integers(-1, classes, n) if t % 7 == 3 else None
        yield Batch(rng.dirichlet(spread, n), np.zeros((n, 1)), known=known)


def in_numpy(call, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "available", lambda: False)
        return call(*arguments)


def test_numpy_gives_the_same_of_large_batches():
    source, learner = plain_source(np.full(5, 0.2)), Tracker()
    one = two = learner.start(source)
    for batch in batches(5, 12, 4000):
        fast = learner.judged(source, one, batch, True)
        slow = in_numpy(learner.judged, source, two, batch, True)
        one, two = fast.state, slow.state
        for found, expected in zip(leaves(one), leaves(two), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(fast.proba, slow.proba, atol=1e-9)


@pytest.mark.parametrize("most", [1, 12])
@pytest.mark.parametrize("classes", [2, 5, 30])
@pytest.mark.parametrize(
    "learner",
    [Tracker(), EM(), Regimes(slots=3), Tracker(slots=3), Tracker(learn=False)],
    ids=["tracker", "em", "regimes", "few slots", "learn off"],
)
def test_numpy_gives_the_same(learner, classes, most):
    """State, nats, predictions and forecast; with few slots regimes merge and are forgotten."""
    source = plain_source(np.random.default_rng(1).dirichlet(np.full(classes, 5.0)))
    one = two = learner.start(source)
    births = 0
    for batch in batches(classes, 120, most):
        fast = learner.judged(source, one, batch, True)
        slow = in_numpy(learner.judged, source, two, batch, True)
        if hasattr(one, "book"):
            births += int((fast.state.book.first == fast.state.t).any())
        one, two = fast.state, slow.state
        for found, expected in zip(leaves(one), leaves(two), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(fast.proba, slow.proba, atol=1e-10)
        assert fast.nats == pytest.approx(slow.nats, abs=1e-9)
        forecast = in_numpy(learner.forecast, source, two)
        np.testing.assert_allclose(learner.forecast(source, one), forecast, atol=1e-10)
    assert [part.dtype for part in checks.leaves(one) if isinstance(part, np.ndarray)] == [
        part.dtype for part in checks.leaves(two) if isinstance(part, np.ndarray)
    ]
    if not isinstance(learner, EM) and learner.learn:
        assert births >= (1 if most == 1 or classes == 2 else 3)


@pytest.fixture(scope="module")
def held_out():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 300)
    P = rng.dirichlet(np.full(6, 0.5), 300) + np.eye(6)[y]
    return build_source(ProbabilityModel(classes=range(6)), P / 2, y, calibration="auto")


@pytest.mark.parametrize("caution", [1.0, 16.0, np.inf])
@pytest.mark.parametrize("calls", [False, True])
def test_careful_in_numpy_gives_the_same(held_out, caution, calls):
    learner = Careful(Tracker(), caution, calls)
    one = two = learner.start(held_out)
    for batch in batches(6, 60, 5):
        one, fast = learner.adapt_predict(held_out, one, batch)
        two, slow = in_numpy(learner.adapt_predict, held_out, two, batch)
        np.testing.assert_allclose(fast, slow, atol=1e-9)
        assert one.unchanged.belief == pytest.approx(two.unchanged.belief, abs=1e-9)
        np.testing.assert_allclose(one.unchanged.moved, two.unchanged.moved, atol=1e-9)
        np.testing.assert_allclose(one.unchanged.rows, two.unchanged.rows, rtol=1e-9)
    assert isinstance(one.unchanged, Unchanged)


@pytest.mark.parametrize("classes", [2, 10, 33])
def test_alone_or_among_others_to_the_last_bit(classes):
    """Rows of a table in any order, next to others, learn what they learn alone."""
    learner, source = Tracker(), plain_source(np.full(classes, 1 / classes))
    plan, rng = plan_of(learner, source), np.random.default_rng(3)
    alone = np.tile(to_row(learner.start(source)), (9, 1))
    records = packed(plan, alone)
    for batch in batches(classes, 40, 18, seed=4):
        ratios = np.maximum(batch.proba, 1e-9)
        which = rng.permutation(9)[: rng.integers(1, min(9, len(ratios)) + 1)]
        cuts = np.sort(rng.choice(np.arange(1, len(ratios)), len(which) - 1, replace=False))
        starts = np.concatenate([[0], cuts, [len(ratios)]]).astype(np.int64)
        proba, tables = np.empty_like(ratios), (records, records.view(np.float32))
        compiled.trackers.advance(
            *tables, which, starts, ratios, ratios, _NONE, proba, *plan.arguments
        )
        for m, place in enumerate(which):
            own = ratios[starts[m] : starts[m + 1]].copy()
            found, _ = advanced(plan, alone[place], own, own, predict=True)
            assert (found == proba[starts[m] : starts[m + 1]]).all()
    assert (unpacked(plan, records) == alone).all()
    assert (alone[:, plan.at[fields.FIRST] + 1] >= 0.0).any()  # some have a second regime


@pytest.mark.parametrize("classes", [2, 40])
def test_numpy_gives_the_same_likelihood_ratios(classes):
    """To the last bit: they are quotients of quotients."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(classes, 0.02), 50)
    P[:classes] = np.eye(classes)[: len(P)]
    source, batch = plain_source(rng.dirichlet(np.full(classes, 5.0))), Batch(P, np.zeros((50, 1)))
    found = likelihoods(source, batch)
    assert (found == in_numpy(likelihoods, source, batch)).all()
    assert found.min() == 1e-9
    assert (found.max(axis=1) == 1.0).all()


@pytest.mark.parametrize("caution", [False, True])
def test_records_hold_rows_to_the_last_bit_in_less_room(caution):
    """Where values are of float32: in a field of many numbers, and in no other."""
    source = plain_source(np.full(10, 0.1))
    plan = plan_of(Tracker(), source)
    if caution:
        plan = with_caution(plan, 1e-3, np.ones(10), np.ones(10))
    row = np.random.default_rng(0).normal(size=(3, plan.width))
    exact = row.copy()
    many = (fields.EXPERT_COUNTS, 120), (fields.MOVES, 64), (fields.USED, 8), (fields.PULL, 20)
    for field, size in (*many, (fields.RECENT, 30))[: 4 + caution]:
        part = slice(plan.at[field], plan.at[field] + size)
        exact[:, part] = row[:, part].astype(np.float32)
    found = packed(plan, row)
    assert (unpacked(plan, found) == exact).all()
    assert (rounded(plan, row[0].copy()) == exact[0]).all()
    assert found.shape == (3, 358 - 106 + (66 - 15) * caution)
    for field in (fields.T, fields.MASS, fields.SIZE):
        assert (found[:, plan.place(field)] == row[:, plan.at[field]]).all()


@pytest.mark.parametrize("classes", [3, 10, 24, 33])
def test_sums_of_rows_side_by_side_are_those_of_each_row(classes):
    """To the last bit: batches of one row and of several are summed in different ways."""
    rng = np.random.default_rng(0)
    x, rows = rng.normal(size=classes), rng.normal(size=(7, classes))
    # Space for larger batches: what is beyond these rows is neither read nor written.
    space, columns = np.full((4, 9), np.nan), np.full((classes, 9), np.nan)
    columns[:, :7] = rows.T
    sums.dots(x, columns, len(rows), space)
    assert space[0, :7].tolist() == [sums.dot(x, row) for row in rows]
    assert np.isnan(space[:, 7:]).all()


@pytest.mark.parametrize("corrected", [0.0, 0.3, 1.0])
def test_answers_are_kept_as_in_numpy(held_out, corrected):
    held = Careful(Tracker()).held(held_out)._replace(corrected=corrected, decides=False)
    rng = np.random.default_rng(0)
    read, f0 = rng.dirichlet(np.ones(6), 50), rng.dirichlet(np.ones(6), 50)
    f0[:2, :2] = f0[:2, :2].mean(axis=1, keepdims=True)  # two classes are as likely
    found = still_proba(held, read, f0)
    assert (found == in_numpy(still_proba, held, read, f0)).all()
    assert (found.argmax(axis=1) == f0.argmax(axis=1)).all()
    assert (found == f0).all() == (corrected == 0.0)


def test_a_state_is_not_changed_by_the_step():
    learner, source = Tracker(), plain_source(np.full(3, 1 / 3))
    state = learner.start(source)
    for batch in batches(3, 5, 4):
        before = state_bytes(state)
        after = learner.adapt(source, state, batch)
        assert state_bytes(state) == before
        state = after
