"""Prediction sets: quantiles against their definition, coverage against theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorshift.decisions import set_thresholds


@given(st.integers(0, 10**6), st.floats(0.02, 0.98), st.booleans())
def test_per_class_quantiles_are_the_order_statistics(seed: int, level: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    labels, scores = np.sort(rng.integers(0, 3, 25)), rng.random((25, 3)).round(1 if ties else 15)
    found = set_thresholds(scores, labels, rng.dirichlet([5.0]).repeat(25) / 25, level)
    for k in range(3):
        own = np.sort(scores[labels == k, k])[::-1]
        number = math.ceil((len(own) + 1) * level - 1e-9)
        expected = own[number - 1] if 0 < len(own) >= number else -math.inf
        assert found[k] == expected


@pytest.mark.parametrize(("rows", "level"), [(19, 0.9), (9, 0.9), (10, 0.8), (30, 0.95)])
def test_coverage_of_a_class_is_exact(rows: int, level: float) -> None:
    """The mean over draws of held-out rows and a new row, which theory knows to the last digit."""
    rng = np.random.default_rng(rows)
    repeats, hits = 5000, 0
    scores = rng.normal(size=(repeats, rows + 1))
    labels, weights = np.zeros(rows, dtype=int), np.full(rows, 1.0 / rows)
    for *held, new in scores:
        hits += new >= set_thresholds(np.array(held)[:, None], labels, weights, level)[0]
    expected = math.ceil((rows + 1) * level - 1e-9) / (rows + 1)
    noise = math.sqrt(expected * (1 - expected) / repeats) + 1e-9
    assert hits / repeats == pytest.approx(expected, abs=4 * noise)


def test_a_class_with_too_few_rows_is_in_every_set() -> None:
    labels, scores = np.array([0] * 8 + [1] * 9), np.ones((17, 3))
    found = set_thresholds(scores, labels, np.full(17, 1 / 17), 0.9)
    assert found.tolist() == [-math.inf, 1.0, -math.inf]


@given(st.integers(0, 10**6), st.floats(0.05, 0.9))
def test_marginal_quantiles_by_their_definition(seed: int, level: float) -> None:
    """Of held-out rows and one more of class k, by weight, the level is at or above."""
    rng = np.random.default_rng(seed)
    labels, scores, prior = np.repeat([0, 1, 1], 10), rng.random((30, 2)), rng.dirichlet([1, 1])
    counts = np.array([10, 20])
    weights = (prior / counts)[labels]
    found = set_thresholds(scores, labels, weights, level, prior)
    own = scores[np.arange(30), labels]
    for k in (0, 1):
        total = 1.0 + prior[k] / counts[k]
        share = {s: weights[own >= s].sum() / total for s in own}
        able = [s for s in own if share[s] >= level - 1e-9]
        assert found[k] == max(able, default=-math.inf)


def test_marginal_coverage_under_the_true_prior() -> None:
    rng, prior, level = np.random.default_rng(0), np.array([0.8, 0.2]), 0.9
    labels = np.repeat([0, 1], [20, 40])
    weights = (prior / [20, 40])[labels]
    hits = []
    for _ in range(2000):
        x = rng.normal(2.0 * labels - 1.0)
        p = 1.0 / (1.0 + np.exp(-2.0 * x))
        found = set_thresholds(np.column_stack([1 - p, p]), labels, weights, level, prior)
        new = int(rng.random() < prior[1])
        q = 1.0 / (1.0 + np.exp(-2.0 * rng.normal(2.0 * new - 1.0)))
        hits.append((q if new else 1 - q) >= found[new])
    assert np.mean(hits) >= level - 0.02
    assert np.mean(hits) <= level + prior.max() / 20 + 0.02
