"""The choice of a map, and calibration on the same rows that measure it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from calibration_worlds import make_world
from priorshift._numerics import stratified_folds
from priorshift.calibration import (
    Auto,
    BiasTemperature,
    MatrixScaling,
    NoCalibration,
    Temperature,
    VectorScaling,
    calibrate,
)
from priorshift.calibration.auto import ROWS_NEEDED
from priorshift.calibration.base import Rows, row_losses
from priorshift.calibration.folds import Scores, out_of_fold, pick, scores_of
from priorshift.calibration.matrix import STRENGTHS
from priorshift.errors import InputError, PriorshiftWarning, SourceError


def test_auto_takes_a_matrix_where_f0_is_turned(rotated):
    assert Auto().fit(rotated.proba, rotated.labels).name == "matrix"
    assert Auto(rule="one-error").fit(rotated.proba, rotated.labels).name == "matrix"


def test_auto_takes_a_temperature_where_logits_are_three_times_too_large(bold):
    fitted = Auto(rule="one-error").fit(bold.proba, bold.labels)
    assert fitted.name == "temperature"
    # Richer maps hold the temperature too: whichever has the least loss, it comes to the truth.
    least = Auto().fit(bold.proba, bold.labels)
    for found in (fitted, least):
        assert np.abs(found(bold.proba) - bold.truth).mean() < 0.02
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
        row_losses(
            out_of_fold(MatrixScaling(strength), rows, folds=5, seed=0), rotated.labels
        ).mean()
        for strength in STRENGTHS
    ]
    assert chosen.strength == STRENGTHS[int(np.argmin(losses))]
    # The quick fits of the search agree with the exact ones.
    scores = scores_of(MatrixScaling().candidates(), rows, folds=5, seed=0)
    np.testing.assert_allclose(scores.means, losses, atol=1e-4)


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


def test_a_class_with_few_rows_leaves_a_temperature_and_is_named():
    world = make_world(300, 3, lambda z: 3 * z)
    labels = np.where(world.labels == 2, 1, world.labels)
    labels[:4] = 2
    classes = np.array(["ant", "bee", "cow"])
    with pytest.warns(PriorshiftWarning, match=r"4 rows of class cow.* 5 are needed"):
        fitted = Auto().fit(world.proba, labels, classes=classes)
    assert fitted.name in ("none", "temperature")


def test_very_few_rows_leave_f0_alone():
    proba, labels = np.full((19, 2), 0.5), np.arange(19) % 2
    with pytest.warns(PriorshiftWarning, match="19 rows, and 20 are needed"):
        assert Auto().fit(proba, labels).name == "none"


def test_candidates_follow_the_rows_and_the_classes():
    names = lambda counts, **s: [r.name for r in Auto(**s).candidates(np.array(counts))]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(names([50] * 3)) == {"none", "temperature", *ROWS_NEEDED}
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


def test_one_row_of_a_class_cannot_be_fitted_on_and_measured():
    proba = np.array([[0.6, 0.4]] * 9 + [[0.3, 0.7]])
    labels = np.array([0] * 9 + [1])
    with pytest.raises(SourceError, match="class bee has 1: add labelled rows"):
        calibrate(VectorScaling(), proba, labels, classes=np.array(["ant", "bee"]))
    assert calibrate(Temperature(), proba, labels).map.name == "temperature"


def test_a_map_of_ones_own_that_fails_is_refused():
    class Broken:
        name = "broken"

        def fit(self, proba, labels, *, prior=None, classes=None):
            return lambda P: P * np.nan

    with pytest.raises(InputError, match="'broken' returned values"):
        calibrate(Broken(), np.full((6, 2), 0.5), np.arange(6) % 2)
