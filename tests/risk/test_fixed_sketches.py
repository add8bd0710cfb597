"""Coresets and herded sets: few weighted rows with the risk and gradient of many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError, InputTypeError
from priorshift.risk import (
    Blocks,
    Coreset,
    Herding,
    RiskData,
    Softmax,
    as_sketch,
    loss_by_name,
    rewritten_risk,
    sketch_by_name,
    sketch_error,
)
from priorshift.risk.sketches.bank import Bank, reference_models
from priorshift.risk.sketches.base import shares
from priorshift.risk.sketches.choice import calibrated, importance, nearness, systematic

FIXED = [Coreset, Herding]
# Models far from any learner's path.
ANYWHERE = np.random.default_rng(8).normal(size=(20, 3, 5)).astype(np.float32)
COUNTS = [2000, 1500, 500]


def make(seed: int = 3, order: tuple[int, ...] = (0, 1, 2)) -> RiskData:
    """Three overlapping classes of different size; ``order`` renames them."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat([0, 1, 2], COUNTS)
    X = rng.normal(size=(4000, 5))
    X[np.arange(4000), kinds] += 1.5
    return RiskData.of(X, np.array(order)[kinds], n_classes=3)


@pytest.fixture(scope="module")
def data() -> RiskData:
    return make()


class Subset:
    """A random subset kept for all rounds: what a fixed sketch has to beat."""

    fixed, name = True, "subset"

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed

    def at(self, data: RiskData, t: int) -> RiskData:
        return Blocks(self.size, self.seed).at(data, 0)


@pytest.mark.parametrize("kind", FIXED)
@settings(max_examples=15)
@given(size=st.integers(1, 700), seed=st.integers(0, 10_000))
def test_weights_are_on_the_simplex_of_each_class(kind, size, seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1, 2], rng.choice(3, 700, p=[0.6, 0.37, 0.03])])
    small = RiskData.of(rng.standard_t(3, size=(703, 3)) + y[:, None], y, n_classes=3)
    found = kind(size=size, seed=seed).at(small, 0)
    assert (found.weights > 0).all()
    assert found.weights.dtype == np.float32
    np.testing.assert_allclose(np.add.reduceat(found.weights, found.offsets[:-1]), 1.0, rtol=1e-5)
    assert found.XT.shape[1] == found.weights.size == max(size, 3)
    assert (found.counts >= 1).all()
    assert (found.counts <= small.counts).all()


@pytest.mark.parametrize("kind", FIXED)
def test_rows_are_rows_of_their_class_and_none_twice(data, kind):
    found = kind(size=300).at(data, 0)
    for k in range(3):
        mine = {tuple(x) for x in data.XT[:, data.offsets[k] : data.offsets[k + 1]].T.tolist()}
        taken = [tuple(x) for x in found.XT[:, found.offsets[k] : found.offsets[k + 1]].T.tolist()]
        assert set(taken) <= mine
        assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("kind", FIXED)
def test_as_many_rows_as_there_are_is_the_set_itself(data, kind):
    assert kind(size=4000).at(data, 0) is data
    assert kind(size=10**7).at(data, 9) is data


@pytest.mark.parametrize("kind", FIXED)
def test_a_class_that_gives_all_its_rows_is_exact(data, kind):
    found = kind(size=2400).at(data, 0)
    assert found.counts.tolist() == [950, 950, 500]
    np.testing.assert_allclose(found.means[2], data.means[2], rtol=1e-5)


@pytest.mark.parametrize("kind", FIXED)
def test_it_is_the_same_in_every_round_and_for_every_asker(data, kind):
    assert kind(size=200).at(data, 0) is kind(size=200).at(data, 7)
    again = kind(size=200).at(make(), 0)
    assert again.XT.tobytes() == kind(size=200).at(data, 0).XT.tobytes()
    assert again.weights.tobytes() == kind(size=200).at(data, 0).weights.tobytes()
    assert kind(size=200, seed=1).at(data, 0).XT.tobytes() != again.XT.tobytes()


@pytest.mark.parametrize("models", [None, ANYWHERE], ids=["minimisers", "anywhere"])
@pytest.mark.parametrize(("kind", "gain"), [(Coreset, 2.5), (Herding, 2.0)])
def test_they_beat_a_random_subset(data, kind, gain, models):
    ours = [sketch_error(data, kind(300, s), Softmax(), models) for s in range(3)]
    theirs = [sketch_error(data, Subset(300, s), Softmax(), models) for s in range(3)]
    for part in ("risk", "gradient"):
        mean = [np.mean([getattr(e, part) for e in found]) for found in (ours, theirs)]
        assert gain * mean[0] < mean[1]


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0)])
def test_the_names_of_the_classes_do_not_matter(data, kind, order):
    """Draws differ, quality does not, and class sizes follow their classes."""
    turned = make(order=order)
    first, second = kind(600).at(data, 0), kind(600).at(turned, 0)
    assert second.counts[list(order)].tolist() == first.counts.tolist()
    ours, theirs = (sketch_error(d, kind(600), Softmax()) for d in (data, turned))
    assert 0.3 < ours.gradient / theirs.gradient < 3.0


def test_the_coreset_serves_the_hinge(data):
    hinge = loss_by_name("hinge")
    ours = sketch_error(data, Coreset(600, loss="hinge"), hinge, ANYWHERE)
    theirs = [sketch_error(data, Subset(600, s), hinge, ANYWHERE).gradient for s in range(4)]
    assert 1.5 * ours.gradient < np.mean(theirs)


def test_wide_data_use_random_products():
    """More gradient entries than the bank holds; the sketch still beats the random subset."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    X = rng.normal(size=(4000, 40)) + 1.2 * np.eye(4, 40)[y] * 2
    data = RiskData.of(X, y, n_classes=4)
    bank = Bank.of(reference_models(data, 12, rng), Softmax(), rng)
    assert bank.left is not None
    ours = sketch_error(data, Coreset(1000), Softmax())
    theirs = np.mean([sketch_error(data, Subset(1000, s), Softmax()).gradient for s in range(3)])
    assert ours.gradient < 0.9 * theirs


def test_random_products_keep_inner_products_on_average():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(6, 3)).astype(np.float32), np.zeros((1, 2, 3), np.float32)
    W[0, 0] = 1.0
    exact = Bank(W, Softmax(), None, None)(X, 1)[:, 1:]
    left = rng.normal(size=(1, 2, 40_000)).astype(np.float32) / 200
    right = rng.normal(size=(1, 3, 40_000)).astype(np.float32)
    found = Bank(W, Softmax(), left, right)(X, 1)[:, 1:]
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.1)


@pytest.mark.parametrize("name", ["softmax", "hinge"])
def test_the_bank_holds_losses_and_gradients(data, name):
    loss = loss_by_name(name)
    W = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    X = np.ascontiguousarray(data.XT[:, data.offsets[1] : data.offsets[2]].T)
    bank = Bank(W, loss, None, None)(X, 1).mean(axis=0, dtype=np.float64).reshape(2, -1)
    risk = rewritten_risk(data, loss, W, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(bank[:, 0], risk.value, rtol=1e-5)
    np.testing.assert_allclose(bank[:, 1:], risk.gradient.reshape(2, -1), atol=1e-5)


def test_rows_that_are_all_alike():
    data = RiskData.of(np.ones((100, 2)), np.repeat([0, 1], 50), n_classes=2)
    for kind in FIXED:
        found = kind(size=20).at(data, 0)
        np.testing.assert_allclose(found.weights, 0.1, rtol=1e-6)


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=8), size=st.integers(1, 200))
def test_shares_are_even_up_to_what_a_class_has(counts, size):
    given_rows = shares(np.array(counts), size)
    assert (given_rows >= 1).all()
    assert (given_rows <= counts).all()
    assert given_rows.sum() == min(max(size, len(counts)), sum(counts))
    short = given_rows < counts
    if short.any():  # who could give more gives as much as anybody, give or take one
        assert given_rows.max() - given_rows[short].min() <= 1


def test_calibrated_weights_meet_every_mean_that_they_keep():
    F = np.random.default_rng(0).normal(size=(300, 40)) + 0.1
    w = calibrated(F)
    assert np.abs(F.mean(axis=0)).max() > 0.1
    assert np.abs(w @ F).max() < 1e-4
    assert w.min() > 0
    assert nearness(w, np.full(300, 1 / 300)) > 0.4


def test_means_that_no_weights_can_meet_are_given_up():
    F = np.abs(np.random.default_rng(0).normal(size=(30, 2))) + 5.0
    np.testing.assert_array_equal(calibrated(F), np.full(30, 1 / 30))


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 40))
def test_a_systematic_draw_takes_different_rows(seed, rows):
    rng = np.random.default_rng(seed)
    p = importance(rng.standard_t(2, size=(40, 3)))
    places, weights = systematic(p, rows, rng)
    assert len(set(places.tolist())) == rows
    assert weights.sum() == pytest.approx(1.0)
    assert (p >= 0.5 / 40).all()


def test_a_systematic_draw_is_unbiased():
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    seen = np.zeros(5)
    for _ in range(4000):
        seen[systematic(p, 2, rng)[0]] += 1
    np.testing.assert_allclose(seen / 4000, 2 * p, atol=0.03)


def test_names():
    assert sketch_by_name("coreset:70") == Coreset(70)
    assert sketch_by_name("herding:70") == Herding(70)
    assert sketch_by_name("blocks:70") == Blocks(70)
    assert as_sketch("herding") == Herding()
    for word in ("corest:70", "coreset:", "coreset:-1", "coreset:1e3", "blocks:7:7", ""):
        with pytest.raises(InputError, match="no sketch is called"):
            sketch_by_name(word)
    with pytest.raises(InputError, match="at least 1 row"):
        sketch_by_name("coreset:0")
    for other in (Coreset, 1000, None):
        with pytest.raises(InputTypeError, match="Coreset\\(size=1000\\)"):
            as_sketch(other)


@pytest.mark.parametrize("kind", [*FIXED, Blocks])
def test_refusals(kind):
    with pytest.raises(InputError, match="at least 1 row"):
        kind(size=0)
    with pytest.raises(InputTypeError, match="whole number"):
        kind(size=10.5)
    with pytest.raises(InputError, match="seed"):
        kind(seed=-1)


def test_a_weighted_set_is_not_sketched_again(data):
    small = Coreset(size=100).at(data, 0)
    for sketch in (Blocks(size=10), Coreset(size=10), Herding(size=10)):
        with pytest.raises(InputError, match="replaced already"):
            sketch.at(small, 0)
    with pytest.raises(InputError, match="no loss is called 'squared'"):
        Coreset(loss="squared")
