"""Intervals and accuracy: closed forms, invariances, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.insight import Gauss, discounted
from scipy import optimize, stats

import priorshift
from priorshift import (
    InputError,
    batch_prior_interval,
    estimate_accuracy,
    estimate_prior,
    held_out_size,
    prior_interval,
)
from priorshift._numerics import reweight
from priorshift.monitoring.believed import believed
from priorshift.monitoring.influence import influence_at, moments_of, recentred
from priorshift.monitoring.intervals import compatible, normal_score
from priorshift.monitoring.metrics import kish
from priorshift.priors import project_simplex
from priorshift.priors.mlls import MLLS
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel


def sure_source(counts):
    P = np.repeat(np.eye(len(counts)), counts, axis=0)
    return build_source(ProbabilityModel(classes=list(range(len(counts)))), P, P.argmax(axis=1))


@pytest.fixture(scope="module")
def population():
    return Gauss(1.3 * np.random.default_rng(3).normal(size=(4, 4)))


@pytest.fixture(scope="module")
def gauss(population):
    return population.source(2000, np.random.default_rng(4))


def test_influence_is_one_on_its_class_and_zero_on_the_others(gauss) -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    h = influence_at(gauss, prior, 500).of(gauss, gauss.proba)
    means = np.array([h[gauss.labels == k].mean(axis=0) for k in range(4)])
    assert np.allclose(means, np.eye(4), atol=1e-9)


def test_the_influence_is_that_of_maximum_likelihood_where_f0_is_right(population) -> None:
    """G is the Fisher information: its inverse, less mu mu', is the variance of one row."""
    source = population.source(100_000, np.random.default_rng(0))
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    found = influence_at(source, prior, 1e9)
    g = source.proba / source.prior / (source.proba / source.prior @ prior)[:, None]
    weights = (prior / source.counts)[source.labels]
    information = (g.T * weights) @ g
    variance = np.diag(moments_of(source, found).squares @ prior) - np.diag(prior**2)
    expected = np.linalg.inv(information) - np.outer(prior, prior)
    assert np.allclose(np.diag(variance), np.diag(expected), rtol=0.03)


def mid_p_interval(hits, rows, level):
    """The exact interval of a binomial share with half of the seen count's chance in each tail."""

    def tail(m):
        return stats.binom.cdf(hits, rows, m) - 0.5 * stats.binom.pmf(hits, rows, m)

    share, part = hits / rows, (1 - level) / 2
    return (
        optimize.brentq(lambda m: tail(m) - 1 + part, 1e-9, share),
        optimize.brentq(lambda m: tail(m) - part, share, 1 - 1e-9),
    )


@pytest.mark.parametrize(
    ("hits", "rows", "near"), [(120, 400, 2e-4), (30, 100, 1e-3), (8, 400, 1e-3)]
)
def test_for_an_f0_that_is_always_right_it_is_the_mid_p_interval(hits, rows, near) -> None:
    source = sure_source([200_000, 200_000])
    low, high = batch_prior_interval(
        source, np.repeat(np.eye(2), [hits, rows - hits], axis=0), 0.95
    )
    expected = mid_p_interval(hits, rows, 0.95)
    assert (low[0], high[0]) == pytest.approx(expected, abs=near)
    assert (1 - high[1], 1 - low[1]) == pytest.approx(expected, abs=near)


def test_a_class_that_is_not_there_has_an_interval_from_zero() -> None:
    source = sure_source([5000, 5000, 5000])
    low, high = batch_prior_interval(source, np.repeat(np.eye(3), [50, 50, 0], axis=0))
    assert low[2] == 0.0
    assert 0.0 < high[2] < 0.04


@pytest.mark.parametrize("cut", [False, True])
def test_every_share_near_the_bound_has_its_coverage(cut) -> None:
    """A normal estimate of a mean above 0, cut off at 0 or not."""
    x = np.random.default_rng(0).normal(size=400_000)
    for room in (0.0, 0.3, 1.0, 1.5, 2.5):
        score = np.maximum(x, -room) if cut else x
        for level in (0.8, 0.95):
            held = compatible(score, np.full(len(x), room), level).mean()
            assert held == pytest.approx(level, abs=0.004)


@pytest.mark.parametrize("skewness", [-1.0, -0.3, 0.0, 0.3, 1.0])
def test_normal_scores_are_those_of_a_gamma(skewness) -> None:
    x = np.linspace(-1.5, 1.5, 31)
    expected = stats.norm.ppf(stats.pearson3.cdf(x, skewness))
    assert np.allclose(normal_score(x, np.full(31, skewness)), expected, atol=0.03)


@pytest.mark.parametrize("order", [[1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]])
def test_renaming_classes_renames_intervals(gauss, population, order) -> None:
    order = np.array(order)
    P, y = gauss.proba, gauss.labels
    names = ProbabilityModel(classes=[0, 1, 2, 3])
    plain = build_source(names, P, y)
    other = build_source(names, P[:, order], np.argsort(order)[y])
    rows = population.proba(population.draw(np.arange(80) % 3, np.random.default_rng(1)))
    a, b = batch_prior_interval(plain, rows), batch_prior_interval(other, rows[:, order])
    assert np.allclose(a[0][order], b[0], atol=1e-6)
    assert np.allclose(a[1][order], b[1], atol=1e-6)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    one = estimate_accuracy(plain, prior, 100)
    two = estimate_accuracy(other, prior[order], 100)
    assert one.accuracy == pytest.approx(two.accuracy)
    assert np.allclose(one.recall[order], two.recall)


def test_intervals_are_wider_with_fewer_rows_a_higher_level_and_a_smaller_held_out_set(
    gauss, population
) -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])

    def width(source, size, level):
        low, high = prior_interval(source, prior, size, level)
        assert (low <= prior).all()
        assert (prior <= high).all()
        return high - low

    assert (width(gauss, 50, 0.9) > width(gauss, 500, 0.9)).all()
    assert (width(gauss, 500, 0.95) > width(gauss, 500, 0.8)).all()
    small = population.source(100, np.random.default_rng(4))
    assert width(small, 1e6, 0.9).sum() > width(gauss, 1e6, 0.9).sum()


def test_coverage(population) -> None:
    rng = np.random.default_rng(8)
    mu = np.array([0.5, 0.3, 0.2, 0.0])
    hits = np.zeros((2, 4))
    for _ in range(300):
        source = population.source(800, rng)
        rows = population.proba(population.draw(rng.choice(4, 150, p=mu), rng))
        for i, level in enumerate((0.8, 0.95)):
            low, high = batch_prior_interval(source, rows, level)
            hits[i] += (low <= mu) & (mu <= high)
    # Three standard errors of 300 draws, and two points for the method.
    assert abs(hits[0, :3].mean() / 300 - 0.8) < 0.06
    assert abs(hits[1, :3].mean() / 300 - 0.95) < 0.04
    assert hits[0, 3] / 300 > 0.72
    assert hits[1, 3] / 300 > 0.9


def covered(kind, n_classes, draws, seed):
    """Coverage at 80 % of shares above 0, populations, held-out sets and priors drawn anew."""
    rng = np.random.default_rng(seed)
    weights = 0.99 ** np.arange(600)
    hits = []
    for _ in range(draws):
        population = Gauss(1.4 * rng.normal(size=(n_classes, 4)))
        source, mu = population.source(1000, rng), rng.dirichlet(np.full(n_classes, 0.7))
        rows = 10 if kind == "batch" else len(weights)
        proba = population.proba(population.draw(rng.choice(n_classes, rows, p=mu), rng))
        if kind == "batch":
            low, high = batch_prior_interval(source, proba, 0.8)
        else:
            prior = discounted(proba, source, weights / weights.sum())
            low, high = prior_interval(source, prior, kish(weights), 0.8)
        hits.append((low <= mu) & (mu <= high))
    return np.mean(hits)


@pytest.mark.parametrize("kind", ["batch", "tracker"])
def test_intervals_of_few_rows_and_of_a_tracked_prior_are_not_too_wide(kind) -> None:
    # The standard error of 200 draws of 10 shares is one point, and two are for the method.
    assert abs(covered(kind, 10, 200, seed=6) - 0.8) < 0.03


def test_the_interval_of_a_tracked_prior_allows_for_an_f0_that_is_not_calibrated(gauss) -> None:
    """Held-out rows in the shares mu: what f0 gets wrong there is known exactly."""
    P = gauss.proba**2.0
    source = build_source(
        ProbabilityModel(classes=[0, 1, 2, 3]), P / P.sum(axis=1, keepdims=True), gauss.labels
    )
    mu = np.array([0.05, 0.15, 0.3, 0.5])
    prior = discounted(source.proba, source, (mu / source.counts)[source.labels])
    assert np.abs(prior - mu).max() > 0.01
    assert np.allclose(recentred(source, prior, np.full(4, True)), mu, atol=1e-6)
    low, high = prior_interval(source, prior, 10**5)
    assert ((low <= mu) & (mu <= high)).all()
    low, high = prior_interval(source, mu, 10**5, corrected=True)
    assert ((low <= mu) & (mu <= high)).all()


@pytest.mark.parametrize("prior", [[1.0, 0.0], [0.0, 1.0]])
def test_a_tracked_prior_on_the_edge_has_a_finite_interval(prior) -> None:
    low, high = prior_interval(sure_source([50, 50]), np.array(prior), size=20)
    assert (low[0], high[0]) == pytest.approx((1 - high[1], 1 - low[1]))
    assert 0.05 < (high - low).min() <= (high - low).max() < 0.2


def test_the_covariance_of_the_prior_is_that_of_a_multinomial_for_a_sure_f0() -> None:
    source = sure_source([10**5] * 3)
    prior = np.array([0.5, 0.3, 0.2])
    expected = (np.diag(prior) - np.outer(prior, prior)) / 200
    assert np.allclose(believed(source, prior, 200).covariance, expected, atol=1e-8)


def test_the_estimated_prior_is_right_for_an_f0_that_is_not_calibrated(population, gauss) -> None:
    def blunt(P):
        Q = P**3 * [1.0, 2.0, 0.5, 1.0]
        return Q / Q.sum(axis=1, keepdims=True)

    names = ProbabilityModel(classes=[0, 1, 2, 3])
    source = build_source(names, blunt(gauss.proba), gauss.labels)
    rng = np.random.default_rng(2)
    mu = np.array([0.1, 0.2, 0.3, 0.4])
    rows = population.proba(population.draw(rng.choice(4, 20_000, p=mu), rng))
    assert np.allclose(estimate_prior(source, blunt(rows)), mu, atol=0.02)


def test_a_prior_that_f0_says_little_about_still_is_a_prior() -> None:
    """Two classes that f0 hardly tells apart: their covariance is capped, not their total's.

    It is as far as the estimate is from class priors that are drawn by Jeffreys' prior.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 300)
    hint = 0.01 * rng.normal(size=900) + 0.0005 * (y == 1)
    P = np.where((y < 2)[:, None], np.c_[0.48 - hint, 0.48 + hint, np.full(900, 0.04)], 0.02)
    P[y == 2, 2] = 0.96
    source = build_source(ProbabilityModel(classes=[0, 1, 2]), P, y)
    covariance = believed(source, np.array([0.4, 0.3, 0.3]), 500).covariance
    value, vector = (part[..., -1] for part in np.linalg.eigh(covariance))
    gaps = (rng.dirichlet([0.5] * 3, 200_000) - [0.4, 0.3, 0.3]) @ vector
    assert value == pytest.approx((gaps**2).mean(), rel=0.01)
    assert covariance[2, 2] == pytest.approx(0.3 * 0.7 / 500, rel=0.1)
    report = estimate_accuracy(source, np.array([0.4, 0.3, 0.3]), 500)
    assert 0.4 < report.accuracy < 0.9


def test_the_estimate_starts_again_where_the_likeliest_prior_is_far_off(population, gauss) -> None:
    """An f0 that hardly believes in class 0: influence functions at its prior are not sharp."""
    tilt = np.array([0.003, 1.0, 1.0, 1.0])

    def doubting(P):
        Q = (P * tilt) ** 0.5
        return Q / Q.sum(axis=1, keepdims=True)

    source = build_source(
        ProbabilityModel(classes=[0, 1, 2, 3]), doubting(gauss.proba), gauss.labels
    )
    rng = np.random.default_rng(0)
    mu = np.array([0.4, 0.3, 0.2, 0.1])
    errors = []
    for _ in range(40):
        rows = doubting(population.proba(population.draw(rng.choice(4, 300, p=mu), rng)))
        likeliest = MLLS(tol=1e-5).raw(source, Batch(rows, rows))
        plain = project_simplex(influence_at(source, likeliest, 300).of(source, rows).mean(axis=0))
        errors.append([((m - mu) ** 2).sum() for m in (plain, estimate_prior(source, rows))])
    first, final = np.mean(errors, axis=0)
    assert final < 0.9 * first


def test_sizes() -> None:
    source = sure_source([90, 10])
    assert held_out_size(source, source.prior) == pytest.approx(100)
    assert held_out_size(source, np.array([0.0, 1.0])) == pytest.approx(10)
    rate = 0.02
    weights = (1 - rate) ** np.arange(5000)
    assert kish(weights) == pytest.approx((2 - rate) / rate, rel=1e-6)


def test_accuracy_without_rows_is_the_weighted_recall(gauss) -> None:
    prior = np.array([0.7, 0.1, 0.1, 0.1])
    adapted = reweight(gauss.proba, prior / gauss.prior)
    right = adapted.argmax(axis=1) == gauss.labels
    recall = np.array([right[gauss.labels == k].mean() for k in range(4)])
    given = estimate_accuracy(gauss, prior, 1000, held_out=adapted)
    assert np.allclose(given.recall, recall)
    assert given.accuracy == pytest.approx(prior @ recall)
    called = adapted.argmax(axis=1)
    weights = (prior / gauss.counts)[gauss.labels]
    for k in range(4):
        mine = called == k
        assert given.precision[k] == pytest.approx(
            (weights * (mine & (gauss.labels == k))).sum() / (weights * mine).sum()
        )
    own = estimate_accuracy(gauss, prior, 1000)
    assert own.accuracy == given.accuracy
    assert own.low <= own.accuracy <= own.high


def test_accuracy_is_close_to_the_truth_on_average(gauss, population) -> None:
    rng = np.random.default_rng(5)
    errors, held = [], 0
    for _ in range(60):
        mu = rng.dirichlet(np.ones(4))
        y = rng.choice(4, 1000, p=mu)
        proba = population.proba(population.draw(y, rng))
        prior = estimate_prior(gauss, proba)
        adapted = reweight(proba, prior / gauss.prior)
        report = estimate_accuracy(gauss, prior, 1000, rows=adapted, level=0.95)
        truth = (adapted.argmax(axis=1) == y).mean()
        errors.append(report.accuracy - truth)
        held += report.low - 0.02 <= truth <= report.high + 0.02
    assert abs(np.mean(errors)) < 0.01
    assert held >= 55


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: batch_prior_interval(s, np.ones((2, 3))), "columns"),
        (lambda s: batch_prior_interval(s, np.eye(4), level=1.0), "level"),
        (lambda s: batch_prior_interval(s, np.empty((0, 4))), "empty"),
        (lambda s: prior_interval(s, [1.0, 0.0], 10), "4 shares"),
        (lambda s: prior_interval(s, [0.25] * 4, 0), "size"),
        (lambda s: prior_interval(s, [0.5, 0.6, -0.1, 0.0], 5), "shares"),
        (lambda s: estimate_accuracy(s, [0.25] * 4, np.nan), "size"),
        (lambda s: estimate_accuracy(s, [0.25] * 4, 9, held_out=np.eye(4)), "held_out"),
        (lambda s: held_out_size(s, [2.0, 0, 0, 0]), "shares"),
    ],
)
def test_bad_input_is_refused(gauss, call, words) -> None:
    with pytest.raises(InputError, match=words):
        call(gauss)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("estimate_mix", "estimate_prior"),
        ("hold_out_size", "held_out_size"),
        ("mix_interval", "batch_prior_interval"),
    ],
)
def test_an_old_name_says_the_new_one(old, new) -> None:
    with pytest.warns(DeprecationWarning, match=f"called priorshift.{new} now"):
        found = getattr(priorshift, old)
    assert found is getattr(priorshift, new)
    assert old not in dir(priorshift)


def test_held_out_rows_count_by_their_weights():
    """Hard rows are 90 % of a class in the held-out set, half of it in truth; weights say so."""
    rng = np.random.default_rng(0)

    def rows(n, positives, hard):
        y = (rng.random(n) < positives).astype(int)
        tough = (rng.random(n) < hard) & (y == 1)
        centre = np.where(y == 0, -1.5, np.where(tough, 0.0, 3.0))
        score = 1 / (1 + np.exp(-1.5 * (centre + rng.normal(size=n))))
        return np.column_stack([1 - score, score]), y, np.where(tough, 0.5 / 0.9, 0.5 / 0.1)

    P, y, weight = rows(6000, 0.5, 0.9)
    weight[y == 0] = 1.0
    model = ProbabilityModel(classes=[0, 1])
    clf = priorshift.LabelShiftClassifier(
        model, "tracker", calibration="none", features="probabilities"
    )
    stream, truth, _ = rows(6000, 0.7, 0.5)
    found = estimate_prior(clf.fit(P, y, sample_weight=weight).source_, stream)
    assert found[1] == pytest.approx(truth.mean(), abs=0.03)
    assert clf.deployment_.guard is None  # it counts rows
    plain = estimate_prior(clf.fit(P, y).source_, stream)
    assert abs(plain[1] - truth.mean()) > 0.06
