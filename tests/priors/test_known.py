"""Labelled rows in a batch's estimate: formula, covariance, bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from priorshift.priors import BBSE, ESTIMATORS, estimate_with_labels
from priorshift.source import Batch


def world_batch(world, mix, size, rng):
    """Rows with their true classes."""
    y = rng.choice(len(mix), size, p=mix)
    points = np.array([rng.choice(len(world.given), p=world.given[:, k]) for k in y])
    return Batch(world.proba[points], np.ones((size, 1))), y


@pytest.mark.parametrize("soft", [False, True])
def test_a_label_takes_the_place_of_the_rows_own_estimate(make_world, soft):
    world, rng = make_world(0), np.random.default_rng(1)
    batch, y = world_batch(world, np.array([0.5, 0.2, 0.3]), 30, rng)
    known = np.where(rng.random(30) < 0.4, y, -1)
    inverse = world.source.soft_confusion_inverse if soft else world.source.confusion_inverse
    total = np.zeros(3)
    for row, label in zip(batch.proba, known, strict=True):
        seen = row if soft else np.eye(3)[row.argmax()]
        total += inverse @ seen if label < 0 else np.eye(3)[label]
    found = estimate_with_labels(BBSE(soft=soft), world.source, batch._replace(known=known))
    np.testing.assert_allclose(found, total / 30, atol=1e-12)


@pytest.mark.parametrize("name", ["bbse", "bbse-soft", "rlls", "mlls"])
def test_all_labels_are_the_shares_and_no_labels_change_no_bit(make_world, name):
    world, rng = make_world(2), np.random.default_rng(3)
    batch, y = world_batch(world, np.array([0.1, 0.2, 0.7]), 40, rng)
    estimator = ESTIMATORS[name]
    every = estimate_with_labels(estimator, world.source, batch._replace(known=y))
    np.testing.assert_allclose(every, np.bincount(y, minlength=3) / 40, atol=1e-15)
    none = estimate_with_labels(estimator, world.source, batch._replace(known=np.full(40, -1)))
    assert none.tobytes() == estimator.raw(world.source, batch).tobytes()


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 40), st.booleans(), st.data())
def test_no_label_makes_the_covariance_larger(make_world, seed, classes, size, soft, data):
    """Exactly, by the law of total covariance, in every direction of the mix."""
    labelled = data.draw(st.integers(0, size))
    world = make_world(seed, classes=classes, points=3 * classes)
    mix = np.random.default_rng(seed).dirichlet(np.ones(classes))
    confusion = world.source.soft_confusion if soft else world.source.confusion
    assume(np.linalg.cond(confusion) < 1e6)  # without an inverse there is no estimate
    inverse = world.source.soft_confusion_inverse if soft else world.source.confusion_inverse
    row = inverse @ world.mean_covariance(mix, 1, soft) @ inverse.T
    label = np.diag(mix) - np.outer(mix, mix)
    with_labels = (labelled * label + (size - labelled) * row) / size**2
    gain = np.linalg.eigvalsh(row / size - with_labels)
    assert gain.min() >= -1e-9 * max(1.0, np.abs(row).max())


def test_labels_make_the_estimate_better_also_when_they_favour_a_class(make_world):
    world, mix = make_world(5, sharpness=1.5), np.array([0.6, 0.3, 0.1])
    rng, found = np.random.default_rng(7), {"none": [], "fair": [], "one class": []}
    for _ in range(1500):
        batch, y = world_batch(world, mix, 12, rng)
        luck = rng.random(12)
        known = {
            "none": np.full(12, -1),
            "fair": np.where(luck < 0.3, y, -1),
            "one class": np.where((luck < 0.9) & (y == 2), y, -1),
        }
        for name, labels in known.items():
            batch = batch._replace(known=labels)
            found[name].append(estimate_with_labels(BBSE(), world.source, batch))
    worst = {}
    for name, estimates in found.items():
        errors = np.array(estimates) - mix
        spread = errors.std(axis=0) / np.sqrt(len(errors))
        assert (np.abs(errors.mean(axis=0)) < 4 * spread + 1e-12).all(), name
        worst[name] = (errors**2).sum(axis=1).mean()
    assert worst["fair"] < 0.9 * worst["none"]
    assert worst["one class"] < worst["none"]
