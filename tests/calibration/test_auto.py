"""The choice of a map, and calibration on the same rows that measure it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from calibration_worlds import make_world
from priorshift._numerics import stratified_folds
from priorshift.calibration import (
    Auto,
    BiasTemperature,
    MatrixScaling,
    NoCalibration,
    Temperature,
    VectorScaling,
    auto,
    calibrate,
)
from priorshift.calibration.auto import Mean, _weights
from priorshift.calibration.base import SMALLEST, Rows, row_losses
from priorshift.calibration.folds import (
    Scores,
    out_of_fold,
    pick,
    scores_of,
    shifted_losses,
    without_each_fold,
)
from priorshift.calibration.matrix import STRENGTHS
from priorshift.errors import InputError, PriorshiftWarning, SourceError


def test_auto_takes_a_matrix_where_f0_is_turned(rotated):
    assert Auto().fit(rotated.proba, rotated.labels).name == "matrix"
    assert Auto(rule="one-error").fit(rotated.proba, rotated.labels).name == "matrix"


def test_auto_takes_a_temperature_where_logits_are_three_times_too_large(bold):
    fitted = Auto(rule="one-error").fit(bold.proba, bold.labels)
    assert fitted.name == "bias-temperature"
    for found in (fitted, Auto().fit(bold.proba, bold.labels)):
        assert np.abs(found(bold.proba) - bold.truth).mean() < 0.025
    assert np.abs(bold.proba - bold.truth).mean() > 0.1


def test_auto_leaves_a_calibrated_f0_alone(right):
    assert Auto(rule="one-error").fit(right.proba, right.labels).name == "none"
    found = Auto().fit(right.proba, right.labels)(right.proba)
    assert np.abs(found - right.truth).mean() < 0.02


@pytest.mark.parametrize("kind", ["bold", "rotated", "right", "skewed"])
def test_auto_is_close_to_the_best_map_on_new_rows(kind, request):
    world = request.getfixturevalue(kind)
    half = len(world.labels) // 2
    P, y = world.proba[:half], world.labels[:half]
    new, truth = world.proba[half:], world.labels[half:]
    recipes = [NoCalibration(), Temperature(), BiasTemperature(), VectorScaling(), MatrixScaling()]
    losses = [row_losses(recipe.fit(P, y)(new), truth).mean() for recipe in recipes]
    own = row_losses(Auto().fit(P, y)(new), truth).mean()
    assert own <= min(losses) + 0.02


def test_the_strength_is_the_one_of_least_cross_validated_loss(rotated):
    rows = Rows(rotated.proba, rotated.labels)
    chosen = MatrixScaling().settle(rows)
    losses = [
        shifted_losses(
            out_of_fold(MatrixScaling(strength), rows, folds=5, seed=0), rotated.labels, rows.shares
        ).mean()
        for strength in STRENGTHS
    ]
    assert chosen.strength == STRENGTHS[int(np.argmin(losses))]
    # The quick fits of the search agree with the exact ones.
    scores = scores_of(MatrixScaling().candidates(), rows, folds=5, seed=0)
    np.testing.assert_allclose(scores.means, losses, atol=1e-4)


def test_shifted_losses_are_log_losses_of_reweighted_rows(skewed):
    """By the long way: reweight probabilities and rows to every prior, and take the mean."""
    prior = np.bincount(skewed.labels) / len(skewed.labels)
    priors = [prior, *(0.5 * prior + 0.5 * np.eye(3))]
    means = []
    for q in priors:
        weights = q[skewed.labels] / prior[skewed.labels] / len(skewed.labels)
        moved = skewed.proba * q / prior
        moved /= moved.sum(axis=1, keepdims=True)
        assert weights.sum() == pytest.approx(1.0)
        means.append(weights @ row_losses(moved, skewed.labels))
    found = shifted_losses(skewed.proba, skewed.labels, prior).mean()
    assert found == pytest.approx(np.mean(means))


def test_the_truth_has_the_least_shifted_loss():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.5, 1.0, 4.0], 20_000)
    labels = (proba.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    prior = np.bincount(labels) / len(labels)
    own = shifted_losses(proba, labels, prior).mean()
    for power in (0.8, 1.25):
        bent = proba**power / (proba**power).sum(axis=1, keepdims=True)
        assert shifted_losses(bent, labels, prior).mean() > own
    tilted = proba * [1.0, 1.3, 1.0]
    tilted /= tilted.sum(axis=1, keepdims=True)
    assert shifted_losses(tilted, labels, prior).mean() > own


def test_folds_have_their_part_of_every_class():
    labels = np.repeat([0, 1, 2], [50, 7, 2])
    number = stratified_folds(labels, 5, seed=3)
    for k, count in enumerate([50, 7, 2]):
        sizes = np.bincount(number[labels == k], minlength=5)
        assert sizes.max() <= -(-count // 5)
        assert sizes.max() - sizes.min() <= 1
    assert (number == stratified_folds(labels, 5, seed=3)).all()
    assert (number != stratified_folds(labels, 5, seed=4)).any()


def test_one_error_takes_the_first_within_the_noise():
    rng = np.random.default_rng(0)
    base = rng.random(400)
    rows = np.array([base + 0.5, base + 0.05 * rng.normal(size=400), base - 0.001])
    scores = Scores(rows, np.full(400, 1 / 400), rows.mean(axis=1))
    assert pick(scores, "one-error") == 1
    assert pick(scores, "minimum") == int(rows.mean(axis=1).argmin())


def test_weights_follow_a_prior_that_is_told(skewed):
    prior = np.array([0.1, 0.1, 0.8])
    rows = Rows(skewed.proba, skewed.labels, prior)
    scores = scores_of([NoCalibration()], rows, folds=3, seed=0)
    share = np.bincount(skewed.labels, scores.weights)
    np.testing.assert_allclose(share, prior)


def test_weights_are_bayes_rule_on_gains_less_their_noise():
    """Two candidates that gain the same in every row: no noise, e to the nats that they gain."""
    rows = np.array([[1.0] * 4, [0.5] * 4, [0.75] * 4])
    scores = Scores(rows, np.full(4, 0.25), rows.mean(axis=1))
    belief = np.array([0.5, 0.25, 0.25]) * np.exp([0.0, 2.0, 1.0])
    np.testing.assert_allclose(_weights(scores), belief / belief.sum())
    rows[1] += [-1, 1, -1, 1]
    noisy = Scores(rows, scores.weights, scores.means)
    noise = 4 * 1.0 / np.sqrt(4)
    belief[1] *= np.exp(-noise)
    np.testing.assert_allclose(_weights(noisy), belief / belief.sum())


def test_the_mean_of_maps_is_their_geometric_mean(rotated):
    P, y = rotated.proba, rotated.labels
    recipes = (NoCalibration(), BiasTemperature(), VectorScaling(), MatrixScaling(strength=0.01))
    for number in (3, 4):
        weights = np.arange(1.0, number + 1) / np.arange(1.0, number + 1).sum()
        found = Mean(recipes[:number], tuple(weights)).fit(P, y).inner(P)
        parts = [np.log(recipe.fit(P, y)(P)) for recipe in recipes[:number]]
        expected = softmax(np.tensordot(weights, parts, axes=1), axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_few_rows_average_and_many_choose(rotated):
    P, y = rotated.proba, rotated.labels
    few = Auto().settle(Rows(P[:40], y[:40]))
    many = Auto().settle(Rows(P, y))
    assert len(few.recipes) > 2
    assert NoCalibration() in few.recipes
    assert {recipe.name for recipe in many.recipes} == {"matrix"}


def rare_world(n, rare, seed):
    """Two classes, few rows of the second; f0 has far too much of it, and is too bold."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], [n - rare, rare])
    z = rng.normal(size=n) + 2.5 * labels - 1.25
    score = 2.0 * (2.5 * z + np.log(0.03 / 0.97) + np.log(100.0))
    return softmax(np.column_stack([0 * score, score]), axis=1), labels


def test_few_rows_of_a_class_do_not_keep_the_mean_from_the_prior():
    """What a tracker sees of a stream where nothing has changed: today's rare class stays rare."""
    before, after = [], []
    for seed in range(8):
        proba, labels = rare_world(134, 4, seed)
        fitted = Auto().fit(proba, labels)
        fresh, truth = rare_world(4000, 120, 100 + seed)
        before.append(fresh[:, 1].mean() - truth.mean())
        after.append(fitted(fresh)[:, 1].mean() - truth.mean())
    assert np.mean(before) > 0.1
    assert abs(np.mean(after)) < 0.025
    assert np.max(np.abs(after)) < 0.08


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_no_number_of_rows_of_a_class_is_refused(count):
    world = make_world(200, 3, lambda z: 3 * z)
    labels = np.where(world.labels == 2, 1, world.labels)
    labels[:count] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calibrate(Auto(), world.proba, labels)
    assert found.map.n_classes == 3
    assert (found.map(world.proba) > 0).all()
    np.testing.assert_allclose(found.proba.sum(axis=1), 1.0)


@given(seed=st.integers(0, 10**6), n=st.integers(20, 60))
@settings(max_examples=25)
def test_where_f0_is_right_few_rows_do_little_harm(seed, n):
    world = make_world(2000, 3, lambda z: z, seed=seed)
    fitted = Auto().fit(world.proba[:n], world.labels[:n])
    harm = row_losses(fitted(world.proba), world.labels) - row_losses(world.proba, world.labels)
    assert harm.mean() < 0.12


def test_very_few_rows_leave_f0_alone():
    proba, labels = np.full((19, 2), 0.5), np.arange(19) % 2
    with pytest.warns(PriorshiftWarning, match="19 rows, and 20 are needed"):
        assert Auto().fit(proba, labels).name == "none"


def test_candidates_follow_the_rows_and_the_classes():
    names = lambda counts, **s: [r.name for r in Auto(**s).candidates(np.array(counts))]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = {"none", "bias-temperature", "vector", "matrix", "isotonic"}
        assert set(names([50] * 3)) == every
        assert set(names([50, 0, 1])) == every - {"isotonic"}
        assert "isotonic" not in names([49] * 3)
        assert names([50] * 3).count("matrix") == len(STRENGTHS)
        assert "matrix" not in names([50] * 51)
        assert "vector" in names([50] * 51)
        assert "matrix" in names([50] * 51, largest_matrix=51)


def test_calibrated_rows_did_not_see_their_map(rotated):
    """Each row is calibrated by the map that the other folds give."""
    P, y = rotated.proba[:300], rotated.labels[:300]
    number = stratified_folds(y, 5, seed=0)
    recipe = MatrixScaling(strength=0.01)
    plain = calibrate(recipe, P, y).proba
    for fold in range(2):
        test = number == fold
        expected = recipe.fit(P[~test], y[~test])(P[test])
        np.testing.assert_array_equal(plain[test], expected)


def test_rows_calibrated_without_a_fold_know_none_of_its_labels(rotated):
    """Nor their own: other labels there change only what is calibrated for the other folds."""
    P, y = rotated.proba[:300], rotated.labels[:300]
    number = stratified_folds(y, 4, seed=0)
    recipe = MatrixScaling(strength=0.01)
    plain = without_each_fold(recipe, Rows(P, y), number, np.arange(len(y)))
    test = number == 1
    changed = np.where(test, (y + 1) % P.shape[1], y)
    other = without_each_fold(recipe, Rows(P, changed), number, np.arange(len(y)))
    np.testing.assert_array_equal(plain[1], other[1])
    np.testing.assert_array_equal(plain[:, test], other[:, test])
    assert (plain[0, number == 2] != other[0, number == 2]).any(axis=1).all()
    left = (number != 1) & (number != 3)
    np.testing.assert_array_equal(plain[3, test], recipe.fit(P[left], y[left])(P[test]))
    for fold in range(4):
        own, rest = number == fold, number != fold
        np.testing.assert_array_equal(plain[fold, own], recipe.fit(P[rest], y[rest])(P[own]))


def test_cross_fitted_rows_are_honest(right):
    """A free map looks better on its own rows than it is; folds say how good it is."""
    P, y = right.proba[:120], right.labels[:120]
    found = calibrate(MatrixScaling(strength=0.0), P, y)
    flattered = row_losses(found.map(P), y).mean()
    honest = row_losses(found.proba, y).mean()
    real = row_losses(found.map(right.proba[120:]), right.labels[120:]).mean()
    assert flattered < row_losses(P, y).mean() < honest
    assert abs(honest - real) < abs(flattered - real)


def test_calibrating_by_none_changes_no_bit(right):
    found = calibrate(NoCalibration(), right.proba, right.labels)
    assert found.proba.tobytes() == right.proba.tobytes()


def test_one_row_of_a_class_is_enough_and_one_row_in_all_is_not():
    proba = np.array([[0.6, 0.4]] * 9 + [[0.3, 0.7]])
    labels = np.array([0] * 9 + [1])
    for recipe in (Temperature(), VectorScaling(), MatrixScaling(strength=0.1)):
        assert calibrate(recipe, proba, labels).map.name == recipe.name
    with pytest.raises(SourceError, match="a row to fit on and one to measure"):
        calibrate(VectorScaling(), proba[:1], labels[:1])
    assert calibrate(NoCalibration(), proba[:1], labels[:1]).proba.tolist() == [[0.6, 0.4]]


def test_a_map_of_ones_own_that_fails_is_refused():
    class Broken:
        name = "broken"

        def fit(self, proba, labels, *, prior=None, classes=None):
            return lambda P: P * np.nan

    with pytest.raises(InputError, match="'broken' returned values"):
        calibrate(Broken(), np.full((6, 2), 0.5), np.arange(6) % 2)


def sure_rows(n, wrong, seed):
    """Rows of an f0 that is sure of most; a share of the labels is another class's."""
    rng = np.random.default_rng(seed)
    proba = softmax(20.0 * rng.normal(size=(n, 3)), axis=1)
    labels = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return proba, np.where(rng.random(n) < wrong, (labels + 1) % 3, labels)


@pytest.mark.parametrize(("wrong", "least", "most"), [(0.1, 0.03, 0.2), (0.0, -0.002, 0.01)])
def test_a_floor_helps_where_tails_say_nothing_and_harms_nobody(monkeypatch, wrong, least, most):
    """How far f0 is beyond sure says nothing of whether a label is wrong."""
    new, y = sure_rows(20_000, wrong, 1)
    gains, floors = [], []
    for seed in range(10, 15):
        held_out = sure_rows(140, wrong, seed)
        found = auto.Auto().fit(*held_out)
        with monkeypatch.context() as patch:
            patch.setattr(auto, "_FLOORS", ())
            plain = auto.Auto().fit(*held_out)
        assert plain.inner.floor == SMALLEST
        floors.append(found.inner.floor)
        gains.append(row_losses(plain(new), y).mean() - row_losses(found(new), y).mean())
    assert least <= min(gains) <= max(gains) <= most
    assert (min(floors) >= 1e-4) == (wrong > 0)
