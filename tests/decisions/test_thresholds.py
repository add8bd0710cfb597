"""Thresholds against brute force, closed forms and the smoothed sums written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import f1_score, fbeta_score, precision_score, recall_score

from priorshift.decisions import best_threshold
from priorshift.decisions.thresholds import check_metric, curve_of, smooth_curve

COSTS = np.array([[0.0, 10.0], [1.0, -0.5]])


def rows(seed: int, n: int = 30, ties: bool = False) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    positive[:2] = True, False
    score = expit(rng.normal(2.0 * positive - 1.0))
    return np.round(score, 1) if ties else score, positive, rng.dirichlet(np.ones(n))


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10**6), st.booleans())
def test_the_curve_counts_what_is_at_or_above_each_threshold(seed: int, ties: bool) -> None:
    score, positive, weights = rows(seed, ties=ties)
    curve = curve_of(score, positive, weights)
    assert curve.thresholds[0] == math.inf
    assert curve.thresholds[-1] == 0.0
    assert (np.diff(curve.thresholds) < 0).all()
    assert len(curve.thresholds) == len(np.unique(score)) + 1
    for i, threshold in enumerate(curve.thresholds):
        called = score >= threshold
        assert curve.hits[i] == pytest.approx(weights[called & positive].sum())
        assert curve.false[i] == pytest.approx(weights[called & ~positive].sum())
        if called.any():
            given = {"sample_weight": weights, "zero_division": 0.0}
            assert curve.precision[i] == pytest.approx(precision_score(positive, called, **given))
            assert curve.recall[i] == pytest.approx(recall_score(positive, called, **given))
            assert curve.f_beta(1.0)[i] == pytest.approx(f1_score(positive, called, **given))
            two = fbeta_score(positive, called, beta=2.0, **given)
            assert curve.f_beta(2.0)[i] == pytest.approx(two)
        cost = sum(
            weight * COSTS[int(call), int(truth)]
            for weight, call, truth in zip(weights, called, positive, strict=True)
        )
        assert curve.cost(COSTS)[i] == pytest.approx(cost)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("metric", ["f1", "recall"])
def test_of_a_class_without_rows_none_is_called(metric: str) -> None:
    score, _, weights = rows(0)
    none, kept = np.zeros(len(score), dtype=bool), {"precision": 0.5} if metric == "recall" else {}
    assert best_threshold(score, none, weights, metric, **kept) == math.inf


@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.booleans())
def test_what_has_to_be_kept_is_kept_and_nothing_better_keeps_it(
    seed: int, kept: float, ties: bool
) -> None:
    score, positive, weights = rows(seed, ties=ties)
    curve = curve_of(score, positive, weights)

    def at(threshold: float) -> int:
        return int(np.flatnonzero(curve.thresholds == threshold)[0])

    found = at(best_threshold(score, positive, weights, "precision", recall=kept))
    assert curve.recall[found] >= kept - 1e-9
    assert curve.precision[found] == curve.precision[curve.recall >= kept - 1e-12].max()
    found = at(best_threshold(score, positive, weights, "recall", precision=kept))
    able = curve.precision >= kept - 1e-12
    assert curve.recall[found] == (curve.recall[able].max() if able.any() else 0.0)
    found = at(best_threshold(score, positive, weights, "top-k", share=kept))
    assert curve.called[found] <= kept + 1e-9
    if found + 1 < len(curve.called):
        assert curve.called[found + 1] > kept


def test_a_precision_that_nothing_keeps_calls_nobody() -> None:
    score, positive = np.array([0.2, 0.9]), np.array([True, False])
    found = best_threshold(score, positive, np.full(2, 0.5), "recall", precision=0.9)
    assert found == math.inf


def test_the_smoothed_sums_written_out() -> None:
    score, positive, weights = rows(3, n=200)
    curve = smooth_curve(score, positive, weights)
    z = logit(score)
    for kind, sums in ((positive, curve.hits), (~positive, curve.false)):
        some = z[kind]
        spread = min(some.std(), (np.percentile(some, 75) - np.percentile(some, 25)) / 1.34)
        width = 0.9 * spread / len(some) ** 0.2
        for i in range(1, len(sums) - 1, 20):
            above = norm.cdf((some - logit(curve.thresholds[i])) / width)
            assert sums[i] == pytest.approx(weights[kind] @ above, abs=2e-3)
    assert (np.diff(curve.hits) >= -1e-12).all()
    assert curve.hits[[0, -1]] == pytest.approx([0.0, weights[positive].sum()])


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_closed_forms_for_probabilities_that_are_right(share: float) -> None:
    """Normal classes, and the exact posterior as score; rows weighed to another class prior."""
    rng = np.random.default_rng(0)
    positive = np.arange(40_000) % 2 == 0
    x = rng.normal(2.0 * positive - 1.0)
    score = expit(2.0 * x + logit(share))
    weights = np.where(positive, share, 1.0 - share) / 20_000
    found = best_threshold(score, positive, weights, "cost", costs=np.array([[0, 10], [1, 0]]))
    assert logit(found) == pytest.approx(logit(1 / 11), abs=0.2)
    found = best_threshold(score, positive, weights, "f1")
    cuts = np.linspace(-3, 3, 601)
    hits, false = share * norm.sf(cuts - 1), (1 - share) * norm.sf(cuts + 1)
    best = cuts[(2 * hits / (share + hits + false)).argmax()]
    assert logit(found) == pytest.approx(2.0 * best + logit(share), abs=0.3)
    found = best_threshold(score, positive, weights, "top-k", share=0.1)
    above = share * norm.sf(cuts - 1) + (1 - share) * norm.sf(cuts + 1)
    assert found == pytest.approx(
        expit(2 * cuts[np.abs(above - 0.1).argmin()] + logit(share)), abs=0.02
    )


def test_smoothing_pays_where_rows_are_few() -> None:
    """The mean F1 of the threshold over draws of 300 rows, 5 % of them positive."""
    rng, share = np.random.default_rng(1), 0.05
    cuts = {"smooth": [], "counted": []}
    for _ in range(60):
        positive = np.arange(300) < 15
        score = expit(2.0 * rng.normal(2.0 * positive - 1.0) + logit(share))
        weights = np.full(300, 1 / 300)
        curve = curve_of(score, positive, weights)
        cuts["counted"].append(curve.thresholds[curve.f_beta(1.0).argmax()])
        cuts["smooth"].append(best_threshold(score, positive, weights, "f1"))

    def f1(threshold: float) -> float:
        x = (logit(threshold) - logit(share)) / 2.0
        hits, false = share * norm.sf(x - 1), (1 - share) * norm.sf(x + 1)
        return float(2 * hits / (share + hits + false))

    means = {name: np.mean([f1(t) for t in found]) for name, found in cuts.items()}
    assert means["smooth"] > means["counted"] + 0.005


def few(rng: np.random.Generator, number: int, share: float = 0.05) -> tuple[Any, Any, Any]:
    """200 rows, some positive, with the probabilities that are right for a share of them."""
    positive = np.arange(200) < number
    score = expit(2.0 * rng.normal(2.0 * positive - 1.0) + logit(share))
    return score, positive, np.where(positive, share / number, (1.0 - share) / (200 - number))


@pytest.mark.parametrize(("number", "saved"), [(2, 0.1), (4, 0.05)])
def test_a_handful_of_rows_is_not_believed_over_the_probabilities(
    number: int, saved: float
) -> None:
    """The mean cost over draws; the threshold of the same held-out rows alone costs more."""
    rng, share, table = np.random.default_rng(2), 0.05, np.array([[0.0, 10.0], [1.0, 0.0]])

    def cost(threshold: float) -> float:
        x = (logit(threshold) - logit(share)) / 2.0
        return float(10 * share * norm.cdf(x - 1) + (1 - share) * norm.sf(x + 1))

    found, alone = [], []
    for _ in range(100):
        score, positive, weights = few(rng, number, share)
        found.append(cost(best_threshold(score, positive, weights, "cost", costs=table)))
        curve = smooth_curve(score, positive, weights)
        own = curve.thresholds[curve.cost(table).argmin()]
        alone.append(cost(min(own, 1.0 - 1e-12)))
    assert np.mean(found) < (1.0 - saved) * np.mean(alone)
    assert np.mean(found) < 1.05 * cost(1 / 11)


def test_positive_rows_that_look_like_all_others_do_not_make_every_row_positive() -> None:
    """Four rows with low scores: F1 of the held-out rows is largest where all are positive."""
    score = np.concatenate([[0.011, 0.012, 0.02, 0.02], np.geomspace(0.01, 0.5, 196)])
    positive, weights = np.arange(200) < 4, np.full(200, 1 / 200)
    curve = smooth_curve(score, positive, weights)
    assert curve.thresholds[curve.f_beta(1.0).argmax()] < 0.012
    found = best_threshold(score, positive, weights, "f1")
    assert 0.05 < (score >= found).mean() < 0.5


@pytest.mark.parametrize("number", [1, 10, 90])
def test_the_parts_of_rows_and_probabilities(number: int) -> None:
    """Half of each at ten rows of the rarer kind; F by brute force, of the expected counts."""
    rng = np.random.default_rng(number)
    score, positive, weights = few(rng, number)

    def expected_f1(threshold: float) -> float:
        called = score >= threshold
        hits = (weights * score)[called].sum()
        return float(2 * hits / ((weights * score).sum() + weights[called].sum()))

    tried = np.sort(score)
    tried = np.concatenate([tried[:1], (tried[1:] + tried[:-1]) / 2])
    believed = max(tried, key=expected_f1)
    curve = smooth_curve(score, positive, weights)
    alone = np.clip(curve.thresholds[curve.f_beta(1.0).argmax()], score.min(), score.max())
    part = number / (number + 10)
    both = expit(part * logit(alone) + (1 - part) * logit(believed))
    assert best_threshold(score, positive, weights, "f1") == pytest.approx(both)


@pytest.mark.parametrize("table", [[[0, 1], [0, 0]], [[0, 0], [1, 0]], [[1, 0], [0, 1]]])
def test_costs_that_leave_nothing_to_weigh(table: Any) -> None:
    """One answer is never the dearer one, or each is right for the other class."""
    score, positive, weights = rows(4)
    curve = smooth_curve(score, positive, weights)
    best = curve.thresholds[curve.cost(np.array(table, dtype=float)).argmin()]
    assert best_threshold(score, positive, weights, "cost", costs=np.array(table)) == best


@pytest.mark.parametrize(
    ("metric", "given", "message"),
    [
        ("auc", {}, "choose one of 'f1'"),
        ("f-beta", {}, "needs beta="),
        ("f-beta", {"beta": 0}, "above 0"),
        ("precision", {"precision": 0.9}, "does not go with"),
        ("recall", {"precision": 1.5}, "chance between 0 and 1"),
        ("top-k", {}, "needs share="),
        ("top-k", {"share": "all"}, "chance between 0 and 1"),
        ("f1", {"beta": 2.0}, "does not go with"),
        ("cost", {"share": 0.1}, "does not go with"),
    ],
)
def test_refusals(metric: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_metric(metric, given)
    with pytest.raises(ValueError, match=message):
        best_threshold(*rows(0), metric, **given)


def test_costs_are_needed_for_the_cost() -> None:
    with pytest.raises(ValueError, match="needs costs="):
        best_threshold(*rows(0), "cost")


@pytest.mark.parametrize("score", [np.full(6, 0.5), np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])])
@pytest.mark.parametrize("metric", ["f1", "cost"])
def test_scores_without_spread(score: Any, metric: str) -> None:
    positive = np.array([False, False, False, True, True, True])
    costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = best_threshold(score, positive, np.full(6, 1 / 6), metric, costs=costs)
    if score[0] != score[-1]:
        assert ((score >= found) == positive).all()
    else:
        assert found >= 0.0
