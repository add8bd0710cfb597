"""Metrics: values against scikit-learn's, influences against differences, spread against draws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as theirs

from priorshift.monitoring.metrics import (
    Weighed,
    accuracy,
    brier,
    calibration_error,
    call_forms,
    confusion,
    kish,
    log_loss,
    positive_interval,
    ranking,
    rowwise,
    share_interval,
)
from priorshift.monitoring.performance import Performance


def drawn(n, K, seed, ties=False):
    """Predictions that know something of the labels, of classes that all occur."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    P = rng.dirichlet(np.ones(K), n) + 0.7 * np.eye(K)[y] * rng.random((n, 1))
    P = P / P.sum(axis=1, keepdims=True)
    if ties:
        P = np.maximum(np.round(P, 1), 0.05)
        P /= P.sum(axis=1, keepdims=True)
    return P, y


FORMS = {
    "accuracy": accuracy,
    "log_loss": log_loss,
    "brier": brier,
    "recall": lambda held: call_forms(held).recall,
    "precision": lambda held: call_forms(held).precision,
    "overlap": lambda held: call_forms(held).overlap,
    "specificity": lambda held: call_forms(held).specificity,
    "auc": lambda held: ranking(held)[0],
    "average_precision": lambda held: ranking(held)[1],
    "confusion": confusion,
}


def by_scikit_learn(name, P, y, weights):
    K, called, labels = P.shape[1], P.argmax(axis=1), np.arange(P.shape[1])
    each = {"labels": labels, "average": None, "sample_weight": weights}
    if name == "accuracy":
        return [theirs.accuracy_score(y, called, sample_weight=weights)]
    if name == "log_loss":
        return [theirs.log_loss(y, P, labels=labels, sample_weight=weights)]
    if name == "brier":
        gap = ((P - np.eye(K)[y]) ** 2).sum(axis=1)
        return [np.average(gap, weights=weights) / (2 if K == 2 else 1)]
    if name == "confusion":
        return theirs.confusion_matrix(y, called, labels=labels, sample_weight=weights).ravel()
    if name == "specificity":
        return [
            theirs.recall_score(y != k, called != k, sample_weight=weights, zero_division=0.0)
            for k in labels
        ]
    if name in ("auc", "average_precision"):
        score = theirs.roc_auc_score if name == "auc" else theirs.average_precision_score
        return [score(y == k, P[:, k], sample_weight=weights) for k in labels]
    if name == "overlap":
        return theirs.jaccard_score(y, called, **each)
    return getattr(theirs, f"{name}_score")(y, called, **each)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("name", FORMS)
def test_values_are_those_of_scikit_learn_with_weighed_rows(name, K, ties) -> None:
    P, y = drawn(300, K, seed=K, ties=ties)
    mu = np.random.default_rng(1).dirichlet(np.ones(K))
    rows = np.random.default_rng(2).random(300) + 0.5
    held = Weighed.of(P, y, mu, rows)
    assert held.by_class(np.ones(300)) == pytest.approx(np.ones(K))
    expected = by_scikit_learn(name, P, y, held.weights)
    assert FORMS[name](held).value == pytest.approx(np.asarray(expected), abs=1e-7)


def test_of_two_classes_the_brier_score_is_scikit_learns() -> None:
    P, y = drawn(100, 2, seed=0)
    held = Weighed.of(P, y, np.bincount(y) / 100)
    assert brier(held).value[0] == pytest.approx(theirs.brier_score_loss(y, P[:, 1]))


@pytest.mark.parametrize("name", FORMS)
def test_means_of_the_influence_are_the_slope_in_the_class_prior(name) -> None:
    P, y = drawn(400, 3, seed=5)
    mu, step = np.array([0.5, 0.3, 0.2]), 1e-5
    means = FORMS[name](Weighed.of(P, y, mu)).means
    for direction in (np.array([1.0, -1.0, 0.0]), np.array([0.5, 0.5, -1.0])):
        ends = [FORMS[name](Weighed.of(P, y, mu + s * step * direction)).value for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert direction @ means == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("name", FORMS)
def test_the_variance_is_that_of_held_out_sets_drawn_anew(name) -> None:
    """Rows of each class drawn again and again from a large set, and a class prior with noise."""
    P, y = drawn(6000, 3, seed=6)
    mu, sizes, rng = np.array([0.6, 0.3, 0.1]), (150, 250, 200), np.random.default_rng(7)
    pools = [np.flatnonzero(y == k) for k in range(3)]
    root = 0.015 * np.array([[1.0, -1.0, 0.0], [0.0, 0.5, -0.5]])
    values, said = [], []
    for _ in range(300):
        rows = np.concatenate([rng.choice(p, n) for p, n in zip(pools, sizes, strict=True)])
        moved = mu + rng.normal(size=2) @ root
        held = Weighed.of(P[rows], y[rows], moved)
        form = FORMS[name](held)
        values.append(form.value)
        said.append(form.variance(held, root.T @ root))
    ratio = np.mean(said, axis=0) / np.var(values, axis=0)
    # The standard error of a variance of 300 draws is 8 %.
    assert ratio.mean() == pytest.approx(1.0, abs=0.15)
    assert ratio.min() > 0.65
    assert ratio.max() < 1.45


@pytest.mark.parametrize("name", ["accuracy", "overlap", "auc", "log_loss"])
def test_with_rows_it_is_the_variance_of_so_many_rows_too(name) -> None:
    P, y = drawn(6000, 3, seed=8)
    mu, rng = np.array([0.6, 0.3, 0.1]), np.random.default_rng(9)
    held, none = Weighed.of(P, y, mu), np.zeros((3, 3))
    form = FORMS[name](held)
    values = []
    for _ in range(300):
        rows = rng.choice(6000, 500, p=held.weights)
        shares = np.bincount(y[rows], minlength=3) / 500
        values.append(FORMS[name](Weighed.of(P[rows], y[rows], shares)).value)
    more = form.variance(held, none, rows=500.0) - form.variance(held, none)
    assert (more / np.var(values, axis=0)).mean() == pytest.approx(1.0, abs=0.15)


def test_what_held_out_set_and_class_prior_have_in_common_is_counted_once() -> None:
    """A class prior that rests on nothing but the held-out rows that also judge: errors cancel."""
    P, y = drawn(2000, 2, seed=3)
    right = (P.argmax(axis=1) == y).astype(float)
    mu = np.array([0.5, 0.5])
    # An estimate of the class prior by the very values that are judged: 'right' of class 0 rows.
    influence = np.column_stack([right, -right])
    held = Weighed.of(P, y, mu, influence=influence)
    form = rowwise(held, right)
    slope = form.means[:, 0]
    rest = (right - influence @ slope)[:, None]
    weights = held.weights
    both = sum(
        ((weights[y == k] ** 2)[:, None] * (rest[y == k] - rest[y == k].mean(axis=0)) ** 2).sum()
        for k in (0, 1)
    )
    spread = sum(
        (weights[y == k] ** 2 * (influence[y == k, 0] - influence[y == k, 0].mean()) ** 2).sum()
        for k in (0, 1)
    )
    covariance = spread * np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert form.variance(held, covariance)[0] == pytest.approx(both, rel=0.01)


def test_the_calibration_error_is_not_raised_by_chance() -> None:
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1.0, 4000)
    P = np.column_stack([top, 1 - top])
    y = (rng.random(4000) > top).astype(int)  # calibrated to the last
    held = Weighed.of(P, y, np.bincount(y) / 4000)
    plain = np.bincount(
        (top * 10).astype(int).clip(max=9), ((P.argmax(axis=1) == y) - top) / 4000, 10
    )
    assert calibration_error(held).value[0] < np.abs(plain).sum()
    proud = np.column_stack([np.sqrt(top), 1 - np.sqrt(top)])
    gap = (np.sqrt(top) - top).mean()
    held = Weighed.of(proud, y, np.bincount(y) / 4000)
    assert calibration_error(held).value[0] == pytest.approx(gap, abs=0.02)


def test_a_class_without_rows_and_one_that_is_never_called() -> None:
    P = np.array([[0.8, 0.2, 0.0]] * 6)
    held = Weighed.of(P, np.array([0, 0, 0, 1, 1, 1]), np.array([0.5, 0.25, 0.25]))
    assert held.prior.tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])
    found = Performance(held, np.zeros((3, 3)), np.arange(3))
    assert np.isnan(found.recall.value).tolist() == [False, False, True]
    assert np.isnan(found.precision.value).tolist() == [False, True, True]
    assert (found.precision.low[1], found.precision.high[1]) == (0.0, 1.0)
    assert np.isnan(found.auc.value[2])
    assert found.confusion.value.sum() == pytest.approx(1.0)
    assert "nan" in str(found)


def test_intervals_at_the_ends() -> None:
    z = 1.6448536
    low, high = share_interval(np.array([0.0, 1.0]), np.zeros(2), np.array([50.0, 50.0]), 0.9)
    assert low == pytest.approx([0.0, 50 / (50 + z**2)], abs=1e-6)
    assert high == pytest.approx([z**2 / (50 + z**2), 1.0], abs=1e-6)
    low, high = positive_interval(np.array([0.3]), np.array([0.0]), 0.9)
    assert low[0] == high[0] == 0.3
    assert kish(np.array([2.0, 2.0])) == 2.0


def judged(hits: int, of_class: int, false: int, rows: int) -> Performance:
    """So many hits among the rows of the second class, so many others that are called it."""
    y, called = np.zeros(rows, dtype=int), np.zeros(rows, dtype=int)
    y[:of_class] = called[:hits] = called[of_class : of_class + false] = 1
    held = Weighed.of(0.05 + 0.9 * np.eye(2)[called], y, np.bincount(y) / rows)
    return Performance(held, np.zeros((2, 2)), np.arange(2))


def test_f1_is_scikit_learns_and_as_sure_as_recall_and_precision() -> None:
    found = judged(40, 50, 20, 500)
    held = found.held
    assert found.f1.value == pytest.approx(theirs.f1_score(held.labels, held.calls, average=None))
    # Without a false call F1 is a function of recall, and so are the ends of its interval.
    for hits in (30, 47, 50):
        found = judged(hits, 50, 0, 500)
        for recall, f1 in zip(found.recall, found.f1, strict=True):
            assert f1[1] == pytest.approx(2 * recall[1] / (1 + recall[1]), abs=1e-6)


def test_f1_near_1_is_held_as_often_as_recall() -> None:
    rng, truth, held = np.random.default_rng(0), 0.97, []
    for hits in rng.binomial(60, truth, 1000).tolist():
        f1 = judged(hits, 60, 0, 600).f1
        held.append(f1.low[1] <= 2 * truth / (1 + truth) <= f1.high[1])
    assert np.mean(held) > 0.86


@pytest.mark.parametrize("value", [0.9, 0.99, 0.999999, 1.0])
def test_an_error_of_the_class_prior_is_no_larger_near_1(value) -> None:
    """What does not come from counting rows does not make a share of fewer of them."""
    sizes, deviation = np.array([1000.0]), 0.05
    low, high = share_interval(np.array([value]), np.array([deviation**2]), sizes, 0.9)
    assert low[0] == pytest.approx(value - 1.645 * deviation, abs=0.005)
    assert high[0] == pytest.approx(min(value + 1.645 * deviation, 1.0), abs=0.005)


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e-3, 0.2])
def test_small_numbers_with_large_errors_have_finite_intervals(value):
    low, high = positive_interval(np.array([value]), np.array([1e-4]), 0.9)
    assert 0.0 <= low[0] <= value < high[0] < value + 0.05


@pytest.mark.parametrize("K", [2, 3, 7])
def test_shares_stay_within_0_and_1_and_within_their_intervals(K) -> None:
    """All right, all wrong, or as it comes: weights add up to 1 only up to rounding."""
    for seed in range(20):
        P, y = drawn(80, K, seed)
        prior = np.random.default_rng(seed).dirichlet(np.ones(K))
        for answers in (np.eye(K)[y], np.eye(K)[(y + 1) % K], P):
            found = Performance(Weighed.of(answers, y, prior), np.zeros((K, K)), np.arange(K))
            for name in ("accuracy", "error", "recall", "precision", "f1", "specificity", "auc"):
                value, low, high = map(np.asarray, getattr(found, name))
                there = ~np.isnan(value)
                ends = np.array([low, value, high])[:, there]
                assert (ends >= 0.0).all(), name
                assert (ends <= 1.0).all(), name
                assert (np.diff(ends, axis=0) >= 0.0).all(), name


def test_a_variance_that_few_rows_make_is_widened():
    """Normal intervals of means with heavy tails hold too seldom; where rows are alike nothing."""
    rng, prior = np.random.default_rng(0), np.array([0.5, 0.5])
    y, none, held = np.repeat([0, 1], 500), np.zeros((2, 2)), [[], []]
    judged = Weighed.of(np.full((1000, 2), 0.5), y, prior)
    for _ in range(600):
        form = rowwise(judged, rng.lognormal(sigma=2.0, size=1000))
        for each, one in zip(held, (form._replace(few=None), form), strict=True):
            half = 1.645 * np.sqrt(one.variance(judged, none)[0])
            each.append(abs(form.value[0] - np.exp(2.0)) <= half)
    plain, widened = np.mean(held, axis=1)
    assert plain < 0.83
    assert widened > plain + 0.03
    flat = rowwise(judged, rng.choice([-1.0, 1.0], 1000))
    wide = flat.variance(judged, none) / flat._replace(few=None).variance(judged, none)
    assert wide[0] == pytest.approx(1000 / 999, rel=1e-3)
    single = np.zeros(1000)
    single[7] = 1.0
    assert rowwise(judged, single).few[0] < 1.1
