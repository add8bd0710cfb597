from __future__ import annotations

from itertools import product
from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.learners.trackers import components
from priorshift.learners.trackers.components import (
    Latest,
    Posterior,
    bayes,
    left_out,
    likelihoods,
    look,
    row_nats,
)
from priorshift.source import Batch
from simulated import plain_source

SEEDS = st.integers(0, 10_000)


def problem(seed, rows, classes=3, components=4):
    rng = np.random.default_rng(seed)
    alpha = rng.gamma(0.7, 3.0, (components, classes)) + 1e-3
    ratios = rng.dirichlet(np.full(classes, 0.5), rows)
    return alpha, np.maximum(ratios / ratios.max(axis=1, keepdims=True), 1e-9)


def exact_evidence(alpha, ratios):
    """Sum over every labelling of the rows: Dirichlet-multinomial chance times likelihood."""
    total = 0.0
    for labels in product(range(len(alpha)), repeat=len(ratios)):
        counts = np.bincount(labels, minlength=len(alpha))
        log = lgamma(alpha.sum()) - lgamma(alpha.sum() + len(labels))
        log += sum(lgamma(a + c) - lgamma(a) for a, c in zip(alpha, counts, strict=True))
        total += np.exp(log) * np.prod([ratios[i, k] for i, k in enumerate(labels)])
    return np.log(total)


@settings(max_examples=30)
@given(seed=SEEDS, rows=st.integers(1, 5))
def test_the_bound_is_below_the_evidence_and_not_far(seed, rows):
    alpha, ratios = problem(seed, rows)
    exact = np.array([exact_evidence(a, ratios) for a in alpha])
    found = look(alpha, ratios).evidence
    assert (found <= exact + 1e-9).all()
    assert (found >= exact - 0.7 * rows).all()
    if rows == 1:
        np.testing.assert_allclose(found, exact, atol=1e-9)


@settings(max_examples=20)
@given(seed=SEEDS, rows=st.integers(1, 6))
def test_the_bound_is_exact_where_f_is_sure(seed, rows):
    alpha, _ = problem(seed, rows)
    labels = np.random.default_rng(seed).integers(0, 3, rows)
    ratios = np.where(np.eye(3)[labels] > 0, 1.0, 1e-13)
    exact = [exact_evidence(a, ratios) for a in alpha]
    seen = look(alpha, ratios)
    np.testing.assert_allclose(seen.evidence, exact, atol=1e-6)
    np.testing.assert_allclose(
        seen.counts, np.tile(np.bincount(labels, minlength=3), (4, 1)), atol=1e-6
    )


@settings(max_examples=30)
@given(seed=SEEDS, rows=st.integers(1, 7))
def test_counts_add_up_to_the_rows(seed, rows):
    alpha, ratios = problem(seed, rows)
    seen = look(alpha, ratios)
    np.testing.assert_allclose(seen.counts.sum(axis=1), rows)
    np.testing.assert_allclose(seen.centre.sum(axis=1), 1.0)
    assert (seen.counts >= 0).all()


@settings(max_examples=30)
@given(seed=SEEDS, rows=st.integers(1, 7))
def test_leaving_out_row_by_row(seed, rows):
    """Each row's prior is the mixture without that row, as the definition writes it."""
    alpha, ratios = problem(seed, rows)
    prior = np.random.default_rng(seed).dirichlet(np.ones(len(alpha)))
    seen = look(alpha, ratios)
    weights, _ = bayes(prior, seen.evidence)
    found = left_out(Posterior(weights, alpha + seen.counts, seen.centre), ratios)
    for i, r in enumerate(ratios):
        mix = np.zeros(3)
        scale = []
        for h in range(len(alpha)):
            own = seen.centre[h] * r / (seen.centre[h] @ r)
            without = alpha[h] + seen.counts[h] - own
            without /= without.sum()
            scale.append(weights[h] / (without @ r))
            mix += scale[-1] * without
        mix /= sum(scale)
        expected = mix * r / (mix @ r)
        np.testing.assert_allclose(found[i], expected, atol=2e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@settings(max_examples=30)
@given(seed=SEEDS, rows=st.integers(1, 7))
def test_the_exponential_of_row_nats_is_concave(seed, rows):
    """That makes a mixture of forecasts at least as good as Bayes' rule thinks it is."""
    alpha, ratios = problem(seed, rows)
    mixes = alpha / alpha.sum(axis=1, keepdims=True)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(alpha)))
    each, together = row_nats(mixes, ratios), row_nats((weights @ mixes)[None], ratios)
    product = [np.prod([mix @ row for row in ratios]) ** (1 / rows) for mix in mixes]
    np.testing.assert_allclose(np.exp(each), product)
    assert together[0] >= bayes(weights, each)[1] - 1e-12
    if rows == 1:
        np.testing.assert_allclose(each, look(alpha, ratios).evidence, atol=1e-9)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_a_lone_row_does_not_vote_for_itself(seed):
    alpha, ratios = problem(seed, 1)
    prior = np.random.default_rng(seed).dirichlet(np.ones(len(alpha)))
    seen = look(alpha, ratios)
    weights, _ = bayes(prior, seen.evidence)
    found = left_out(Posterior(weights, alpha + seen.counts, seen.centre), ratios)
    blind = Latest.of(Posterior(prior, alpha, alpha)).prior * ratios
    np.testing.assert_allclose(found, blind / blind.sum(), atol=2e-5)


@settings(max_examples=20)
@given(seed=SEEDS, rows=st.integers(1, 6))
def test_classes_are_only_names(seed, rows):
    alpha, ratios = problem(seed, rows)
    order = np.random.default_rng(seed).permutation(3)
    one, two = look(alpha, ratios), look(alpha[:, order], ratios[:, order])
    np.testing.assert_allclose(two.evidence, one.evidence, atol=1e-9)
    np.testing.assert_allclose(two.counts, one.counts[:, order], atol=1e-9)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_moved_counts_move_the_prior(seed):
    """Counts that move between classes: the prior is that of the moved counts; in any order."""
    rng = np.random.default_rng(seed)
    counts, weights = rng.gamma(2.0, 10.0, (3, 4)) + 1.0, rng.dirichlet(np.ones(3))
    first, second = (rng.uniform(-0.2, 0.2, (3, 4)) for _ in range(2))
    first -= first.mean(axis=1, keepdims=True)
    second -= second.mean(axis=1, keepdims=True)
    start = Latest.of(Posterior(weights, counts, counts))
    moved = start.moved(first).moved(second)
    expected = Latest.of(Posterior(weights, counts + first + second, counts)).prior
    np.testing.assert_allclose(moved.prior, expected, atol=1e-12)
    assert moved.size == start.size


def test_likelihoods_of_impossible_rows():
    source = plain_source([0.5, 0.3, 0.2])
    proba = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    ratios = likelihoods(source, Batch(proba, np.zeros((2, 1))))
    np.testing.assert_allclose(ratios[0], [1.0, 1e-9, 1e-9])
    assert len(set(ratios[1])) == 1


@settings(max_examples=20)
@given(seed=SEEDS)
def test_effective_size_matches_the_variance_of_draws(seed):
    rng = np.random.default_rng(seed)
    counts, weights = rng.gamma(2.0, 10.0, (3, 4)), rng.dirichlet(np.ones(3))
    which = rng.choice(3, 20_000, p=weights)
    draws = rng.gamma(counts[which])
    draws /= draws.sum(axis=1, keepdims=True)
    mean = draws.mean(axis=0)
    expected = (mean * (1 - mean)).sum() / draws.var(axis=0).sum() - 1
    assert Latest.of(Posterior(weights, counts, counts)).size == pytest.approx(expected, rel=0.08)


def test_of_many_rows_nothing_is_left_over(monkeypatch):
    """One batch of 1,500 rows leads where EM ends; two steps, which are enough of 100, do not."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    ratios = np.exp(-0.5 * (rng.normal(1.5 * y, 1.0)[:, None] - 1.5 * np.arange(3)) ** 2)
    alpha = np.array([[4.0, 12.0, 4.0]])
    mix = alpha / alpha.sum()
    for _ in range(1000):
        mix = alpha + mix * ((1.0 / (mix @ ratios.T)) @ ratios)
        mix /= mix.sum()

    def left_over():
        seen = look(alpha, ratios)
        return np.abs((alpha + seen.counts) / (alpha.sum() + 1500) - mix).max(), seen.evidence[0]

    gap, evidence = left_over()
    monkeypatch.setattr(components, "em_steps", lambda rows: 2)
    gap_of_two, evidence_of_two = left_over()
    assert gap < 0.03 < 0.1 < gap_of_two
    assert evidence > evidence_of_two
