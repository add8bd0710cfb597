"""The class mix that a model expects, against exact posteriors and a search of its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier, PriorshiftWarning
from priorshift.calibration import expected, expected_mix


def drawn(shares, rows, seed, spread=0.7):
    """Labels of Gaussian classes and the logarithms of each row's exact densities."""
    rng = np.random.default_rng(seed)
    centres = spread * np.random.default_rng(len(shares)).normal(size=(len(shares), 3))
    labels = rng.choice(len(shares), rows, p=shares)
    X = centres[labels] + rng.normal(size=(rows, 3))
    return labels, -0.5 * ((X[:, None] - centres) ** 2).sum(axis=2)


def posterior(logs, prior, scale=1.0):
    return softmax(scale * (logs + np.log(prior)), axis=1)


@pytest.mark.parametrize(
    ("model", "rows", "scale"),
    [
        ([0.97, 0.03], [0.5, 0.5], 1.0),
        ([0.97, 0.03], [0.5, 0.5], 0.7),
        ([0.97, 0.03], [0.5, 0.5], 1.8),
        ([0.5, 0.5], [0.95, 0.05], 1.0),
        ([0.7, 0.25, 0.05], [0.2, 0.3, 0.5], 1.0),
        ([0.7, 0.25, 0.05], [0.2, 0.3, 0.5], 1.4),
    ],
)
def test_an_exact_model_of_another_mix_is_found_out(model, rows, scale) -> None:
    labels, logs = drawn(rows, 4000, seed=0)
    found = expected_mix(posterior(logs, np.array(model), scale), labels)
    assert found.differs
    np.testing.assert_allclose(found.shares, rows, atol=0.03)
    if scale == 1.0:
        np.testing.assert_allclose(found.prior, model, atol=0.03)
        assert found.scale == pytest.approx(1.0, abs=0.1)


def test_it_is_the_mix_under_which_reweighted_probabilities_are_likeliest(monkeypatch) -> None:
    """A search over scales and mixes in place of the fit, without the pull."""
    monkeypatch.setattr(expected, "_PULL", 0.0)
    labels, logs = drawn([0.4, 0.6], 1500, seed=3)
    proba = posterior(logs, np.array([0.8, 0.2]), 1.2)
    shares = np.bincount(labels) / len(labels)

    def searched(loss):
        """The best mix of all and the least loss where nothing differs, with the best scales."""
        scales, mixes = np.linspace(0.6, 1.2, 61), np.linspace(0.6, 0.98, 96)
        told = [(loss(s, np.array([q, 1 - q])), q) for s in scales for q in mixes]
        return min(told)[1], min(loss(s, shares) for s in scales)

    def own(scores):
        return -log_softmax(scores, axis=1)[np.arange(len(labels)), labels].mean()

    x = np.log(proba)
    first = searched(lambda s, q: own(s * x - np.log(q) + np.log(shares)))
    other = searched(lambda s, q: own(s * (x - np.log(q)) + np.log(shares)))
    nearer = min(first[0], other[0], key=lambda q: abs(q - shares[0]))
    found = expected_mix(proba, labels)
    assert found.prior[0] == pytest.approx(nearer, abs=0.006)
    mix = np.array([nearer, 1 - nearer])
    assert found.nats == pytest.approx(shares @ np.log(shares / mix), abs=0.02)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.97, 0.03], [0.6, 0.3, 0.1], [0.1] * 10])
@pytest.mark.parametrize("rows", [60, 400])
def test_noise_and_models_that_are_too_sure_raise_nothing(shares, rows) -> None:
    sure = []
    for seed in range(40):
        labels, logs = drawn(shares, rows, seed)
        if len(np.unique(labels)) < 2:
            continue
        right = posterior(logs, np.array(shares))
        found = [expected_mix(right, labels)]
        found += [expected_mix(softmax(s * np.log(right), axis=1), labels) for s in (0.5, 2.0)]
        found.append(expected_mix(softmax(3.0 * logs + np.log(shares), axis=1), labels))
        assert not any(one.differs for one in found)
        sure.append(found[0].log_chance < np.log(0.05))
    assert np.mean(sure) < 0.2  # a level of 5 % is kept, as far as 40 draws can tell


def test_a_class_without_rows_is_left_out() -> None:
    labels, logs = drawn([0.5, 0.0, 0.5], 500, seed=1)
    found = expected_mix(posterior(logs, np.array([0.9, 0.05, 0.05])), labels)
    assert found.differs
    assert found.prior[1] == found.shares[1] == 0.0
    assert found.prior.sum() == pytest.approx(1.0)


def test_more_rows_than_are_read_change_nothing(monkeypatch) -> None:
    labels, logs = drawn([0.5, 0.5], 3000, seed=2)
    proba = posterior(logs, np.array([0.95, 0.05]))
    whole = expected_mix(proba, labels)
    monkeypatch.setattr(expected, "_MOST_ROWS", 1000)
    part = expected_mix(proba, labels)
    assert part.differs
    np.testing.assert_allclose(part.shares, whole.shares, atol=0.002)
    np.testing.assert_allclose(part.prior, whole.prior, atol=0.05)


NATURAL, EVEN = [0.97, 0.03], [0.5, 0.5]


def rows_of(shares, rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(2, rows, p=shares)
    return rng.normal(size=(rows, 3)) + 1.2 * y[:, None], y


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if "another class mix" in str(one.message)]


def test_a_held_out_set_chosen_class_by_class_is_warned_of() -> None:
    model = LogisticRegression().fit(*rows_of(NATURAL, 4000, 0))
    X, y = rows_of(EVEN, 600, 1)
    for fit in (
        lambda: LabelShiftClassifier(model, "tracker").fit(X, y),
        lambda: LabelShiftClassifier.from_probabilities(model.predict_proba(X), y, "fth"),
    ):
        (said,) = warned(fit)
        assert "class 0: 51.7 % of the held-out rows, about 92 % expected" in said
        assert "give prior=" in said
    with pytest.warns(PriorshiftWarning, match="another class mix"):
        LabelShiftClassifier(model, "fth").fit(X, y)
    for quiet in (
        lambda: LabelShiftClassifier(model, "fth", prior=NATURAL).fit(X, y),
        lambda: LabelShiftClassifier(model, "fth").fit(*rows_of(NATURAL, 600, 2)),
        lambda: LabelShiftClassifier(model, "fth").fit(X, y, np.where(y == 1, 0.03, 0.97)),
        lambda: LabelShiftClassifier(LogisticRegression(), "fth").fit(X, y),
        lambda: LabelShiftClassifier(model, "fix").fit(X, y),
    ):
        assert not warned(quiet)


def test_a_model_trained_on_a_mix_made_even_is_told_that_this_is_fine() -> None:
    model = LogisticRegression(class_weight="balanced").fit(*rows_of(NATURAL, 4000, 0))
    (said,) = warned(lambda: LabelShiftClassifier(model, "fth").fit(*rows_of(NATURAL, 1500, 1)))
    assert "class 0: 9" in said
    assert "nothing is to be done" in said
    assert not warned(lambda: LabelShiftClassifier(model, "fth").fit(*rows_of(EVEN, 600, 1)))


def test_with_the_mix_of_the_stream_there_is_no_harm() -> None:
    model = LogisticRegression().fit(*rows_of(NATURAL, 4000, 0))
    held, (X, y) = rows_of(EVEN, 600, 1), rows_of(NATURAL, 4000, 2)
    with pytest.warns(PriorshiftWarning, match="another class mix"):
        even = LabelShiftClassifier(model, "tracker").fit(*held)
    told = LabelShiftClassifier(model, "tracker", prior=NATURAL).fit(*held)
    alone, wrong, right = (np.mean(f.predict(X) != y) for f in (model, even, told))
    assert wrong > alone + 0.02
    assert right <= alone + 0.002
