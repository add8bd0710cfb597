"""What every map obeys: simplex, classes without order, monotone, no loss, bits kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration_worlds import draw, make_world
from priorshift._numerics import log_floored
from priorshift.calibration import (
    CALIBRATIONS,
    MAPS,
    Auto,
    BiasTemperature,
    BoundedMap,
    IdentityMap,
    IsotonicMap,
    IsotonicScaling,
    MatrixMap,
    MatrixScaling,
    ScaledMap,
    Temperature,
    VectorScaling,
    as_calibration,
)
from priorshift.calibration.base import floor_of, row_losses
from priorshift.errors import InputError, InputTypeError, PriorshiftError
from priorshift.saving.names import OWN
from priorshift.saving.values import Parts

NAMES = list(CALIBRATIONS)
FREE = [Temperature(), BiasTemperature(), VectorScaling(), MatrixScaling(strength=0.0)]


def random_world(seed, n=60, K=3, zeros=False):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(K, rng.uniform(0.2, 3.0)), n)
    labels = draw(rng.dirichlet(np.full(K, 0.5), n) * 0.5 + proba * 0.5, rng)
    labels[: 2 * K] = np.repeat(np.arange(K), 2)
    if zeros:
        proba[proba < 0.1] = 0.0
        proba /= proba.sum(axis=1, keepdims=True)
    return proba, labels


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 10**6), zeros=st.booleans())
@settings(max_examples=12)
def test_rows_stay_on_the_simplex_and_no_class_becomes_impossible(name, seed, zeros):
    proba, labels = random_world(seed, zeros=zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = as_calibration(name).fit(proba, labels)
    fresh = np.vstack([proba, np.eye(3)])
    found = fitted(fresh)
    assert found.shape == fresh.shape
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert (found >= 0).all()
    if fitted.name != "none":
        assert (found > 0).all()


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(3)))
@settings(max_examples=10)
def test_classes_have_no_order(name, seed, order):
    """But for folds, which deal out rows class after class: so with a strength that is given."""
    recipe = MatrixScaling(strength=0.01) if name in ("matrix", "auto") else as_calibration(name)
    proba, labels = random_world(seed)
    order = np.array(order)
    there = np.argsort(order)
    plain = recipe.fit(proba, labels)(proba)
    turned = recipe.fit(proba[:, order], there[labels])(proba[:, order])
    np.testing.assert_allclose(turned, plain[:, order], atol=1e-5)


@pytest.mark.parametrize("recipe", FREE, ids=lambda recipe: recipe.name)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_the_fit_is_never_worse_than_f0_on_its_own_rows(recipe, seed):
    proba, labels = random_world(seed)
    floored = np.exp(log_floored(proba, floor_of(proba)))
    before = row_losses(floored / floored.sum(axis=1, keepdims=True), labels).mean()
    assert row_losses(recipe.fit(proba, labels)(proba), labels).mean() <= before + 1e-9


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_temperature_keeps_the_order_of_the_classes_in_a_row(seed):
    proba, labels = random_world(seed)
    fitted = Temperature().fit(proba, labels)
    assert fitted.scale[0] > 0
    np.testing.assert_array_equal(fitted(proba).argmax(axis=1), proba.argmax(axis=1))


@pytest.mark.parametrize("recipe", [VectorScaling(), IsotonicScaling()], ids=lambda r: r.name)
def test_odds_rise_with_f0s_probability_of_two_classes(recipe):
    proba, labels = random_world(4, n=300, K=2)
    p = np.linspace(0, 1, 101)
    found = recipe.fit(proba, labels)(np.column_stack([1 - p, p]))[:, 1]
    assert (np.diff(found) > -1e-15).all()
    assert found[-1] > found[0]


def test_an_f0_that_is_upside_down_is_flattened_but_not_turned():
    world = make_world(500, 3, lambda z: -z)
    for recipe in (Temperature(), BiasTemperature(), VectorScaling()):
        fitted = recipe.fit(world.proba, world.labels)
        assert (fitted.scale > 0).all()
        assert (fitted.scale < 0.01).all()
    turned = MatrixScaling().fit(world.proba, world.labels)
    assert row_losses(turned(world.proba), world.labels).mean() < 0.8


def test_a_hold_out_without_errors_does_not_ask_for_infinite_scales():
    proba = np.repeat(0.8 * np.eye(3) + 0.2 / 3, 20, axis=0)
    proba /= proba.sum(axis=1, keepdims=True)
    labels = np.repeat(np.arange(3), 20)
    for recipe in (*FREE, MatrixScaling(), IsotonicScaling(), Auto()):
        found = recipe.fit(proba, labels)(proba)
        assert (found.argmax(axis=1) == labels).all()
        assert np.isfinite(np.log(found)).all()


def test_one_hot_predictions_get_the_shares_of_the_confusion_matrix():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    called = np.where(rng.random(3000) < 0.7, labels, rng.integers(0, 3, 3000))
    fitted = MatrixScaling(strength=0.0).fit(np.eye(3)[called], labels)
    shares = [np.bincount(labels[called == k], minlength=3) / (called == k).sum() for k in range(3)]
    np.testing.assert_allclose(fitted(np.eye(3)), shares, atol=1e-3)


def test_zeros_of_a_forest_are_half_of_its_smallest_vote():
    votes = np.array([[0.0, 0.04, 0.96], [0.5, 0.5, 0.0]])
    assert floor_of(votes) == 0.02 / 2
    assert floor_of(np.array([[0.0, 0.004, 0.996]])) == 0.002
    assert floor_of(np.array([[0.5, 0.5]])) == 1e-12


@pytest.mark.parametrize("K", [2, 200])
@pytest.mark.parametrize(
    "recipe",
    [Temperature(), BiasTemperature(), VectorScaling(), IsotonicScaling(), Auto(folds=2)],
    ids=lambda recipe: recipe.name,
)
def test_two_classes_and_two_hundred(recipe, K):
    world = make_world(max(400, 6 * K), K, lambda z: 2 * z, spread=2.0)
    labels = world.labels.copy()
    labels[: 2 * K] = np.arange(2 * K) % K
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = recipe.fit(world.proba, labels)
    found = fitted(world.proba)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    assert row_losses(found, labels).mean() < row_losses(world.proba, labels).mean()


def test_a_matrix_for_forty_classes_by_steps_without_a_hessian():
    rng = np.random.default_rng(2)
    turn = 0.1 * rng.normal(size=(40, 40))
    world = make_world(2000, 40, lambda z: z @ (np.eye(40) + turn), spread=2.0)
    fitted = MatrixScaling(strength=0.01).fit(world.proba, world.labels)
    share = np.bincount(world.labels, minlength=40) / 2000
    np.testing.assert_allclose(fitted(world.proba).mean(axis=0), share, atol=1e-5)
    fresh = make_world(2000, 40, lambda z: z @ (np.eye(40) + turn), spread=2.0, seed=9)
    before = row_losses(fresh.proba, fresh.labels).mean()
    assert row_losses(fitted(fresh.proba), fresh.labels).mean() < before


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("K", [2, 4, 9, 24])
@pytest.mark.parametrize("name", NAMES)
def test_a_rows_bits_do_not_depend_on_the_rows_that_come_with_it(name, K, order):
    proba, labels = random_world(K, n=20 * K, K=K, zeros=K < 10)
    recipe = MatrixScaling(strength=0.01) if name == "matrix" else as_calibration(name)
    fitted = recipe.fit(proba, labels)
    proba = np.asarray(np.vstack([proba, np.eye(K)]), order=order)
    whole = fitted(proba)
    for some in (1, 7, 16, 50, len(proba) - 1):
        np.testing.assert_array_equal(fitted(proba[:some]), whole[:some])
        np.testing.assert_array_equal(fitted(proba[-some:]), whole[-some:])
    np.testing.assert_array_equal(fitted(proba[::3]), whole[::3])


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_map_has_every_bit(name, rotated):
    fitted = as_calibration(name).fit(rotated.proba, rotated.labels)
    parts = Parts()
    encoded = parts.encode(fitted, "map")
    again = Parts(parts.arrays).decode(encoded, ("calibration-map/",))
    assert type(again) is type(fitted)
    assert again.name == fitted.name
    assert again(rotated.proba).tobytes() == fitted(rotated.proba).tobytes()


def test_every_recipe_and_map_has_a_name_in_files():
    assert {f"calibration/{name}" for name in CALIBRATIONS} <= set(OWN)
    assert {f"calibration-map/{name}" for name in MAPS} <= set(OWN)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_class_keeps_its_place(name):
    """Rows that f0 is sure of stay with it, and no other class depends on where it stands."""
    proba, labels = random_world(1, n=90)
    fitted = as_calibration(name).fit(proba, np.minimum(labels, 1))
    sure = np.array([[0.005, 0.005, 0.99]])
    assert fitted(sure).argmax(axis=1).tolist() == [2]
    assert fitted(sure)[0, 2] > 0.7
    turned = as_calibration(name).fit(proba[:, [2, 0, 1]], np.minimum(labels, 1) + 1)
    np.testing.assert_allclose(turned(proba[:, [2, 0, 1]]), fitted(proba)[:, [2, 0, 1]], atol=1e-4)


def test_without_a_class_the_others_are_fitted_as_if_it_were_not_there():
    proba, labels = random_world(5, n=200)
    labels = np.minimum(labels, 1)
    inner = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    for recipe in (BiasTemperature(), BiasTemperature(shrink=5.0)):
        found = recipe.fit(proba, labels)(proba)[:, :2]
        alone = recipe.fit(inner, labels)(inner)
        np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), alone, atol=1e-6)


def test_a_temperature_does_not_need_every_class():
    proba, labels = random_world(1)
    assert Temperature().fit(proba, np.minimum(labels, 1)).n_classes == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("proba", "labels"),
    [
        (np.ones((3, 2)) / 2, [0, 1]),
        (np.ones((0, 2)), np.zeros(0, int)),
        (np.ones(3), [0, 0, 1]),
        (np.ones((2, 2)) / 2, [0, 2]),
        (np.ones((2, 2)) / 2, [0, -1]),
        (np.ones((2, 2)) / 2, [0.0, 1.0]),
        (np.ones((2, 2)), [0, 1]),
        (np.array([[2.0, -1.0], [0.5, 0.5]]), [0, 1]),
        (np.array([[np.nan, 1.0], [0.5, 0.5]]), [0, 1]),
    ],
)
def test_what_is_no_hold_out_is_refused(name, proba, labels):
    with pytest.raises(PriorshiftError):
        as_calibration(name).fit(proba, labels)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScaledMap("vector", np.ones(3), np.zeros(2), 1e-12),
        lambda: ScaledMap("vector", np.array([1.0, np.nan]), np.zeros(2), 1e-12),
        lambda: ScaledMap("vector", np.ones(2), np.zeros(2), 0.0),
        lambda: MatrixMap("matrix", np.eye(3), np.zeros(2), 1e-12),
        lambda: MatrixMap("matrix", np.eye(2), np.zeros(2), 1.0),
        lambda: IsotonicMap(np.zeros(2), np.zeros(2), np.array([2, 2]), np.ones(2) / 2, 0.1),
        lambda: IsotonicMap(np.zeros(2), np.zeros(2), np.array([1, 2]), np.ones(2) / 2, 0.0),
        lambda: MatrixScaling(strength=-1.0),
        lambda: MatrixScaling(folds=1),
        lambda: Auto(rule="guess"),
        lambda: BiasTemperature(shrink=-1.0),
        lambda: VectorScaling(shrink=-1.0),
        lambda: MatrixScaling(shrink=-1.0),
        lambda: BoundedMap(IdentityMap(), np.array([0.0, 1.0]), np.array([0.1, 0.1])),
        lambda: BoundedMap(IdentityMap(), np.array([0.5, 0.5]), np.array([0.1, 1.1])),
        lambda: BoundedMap(IdentityMap(), np.array([0.5, 0.5]), np.array([0.1])),
        lambda: BoundedMap(
            ScaledMap("vector", np.ones(3), np.zeros(3), 1e-12), np.full(2, 0.5), np.full(2, 0.1)
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_maps_cannot_be_changed(rotated):
    fitted = MatrixScaling(strength=0.1).fit(rotated.proba, rotated.labels)
    with pytest.raises(ValueError, match="read-only"):
        fitted.weights[0, 0] = 5
    with pytest.raises(AttributeError):
        fitted.bias = np.zeros(4)


def test_names_and_objects():
    assert isinstance(as_calibration("none").fit([[0.5, 0.5]], [0]), IdentityMap)
    assert as_calibration(MatrixScaling(0.1)) == MatrixScaling(0.1)
    assert as_calibration(None) == as_calibration("none")
    with pytest.raises(InputError, match="no calibration is called 'beta'"):
        as_calibration("beta")
    with pytest.raises(InputTypeError, match="pass a name"):
        as_calibration(MatrixScaling)
    with pytest.raises(InputTypeError, match="pass a name"):
        as_calibration(3)
