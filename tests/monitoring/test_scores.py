"""Mean scores of a block: against brute force, simulated nulls, and changes that no region sees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f as fisher
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.monitoring.evidence import judge_regions, log_share
from priorshift.monitoring.guard import guard_regions
from priorshift.monitoring.regions import count
from priorshift.monitoring.scores import LEAST_ROWS, Scores
from priorshift.source import build_source
from priorshift.source.model import LinearModel

CELLS = 14


def cells_of(rng, labels, views=3):
    """Views whose middle and width differ from class to class."""
    values = rng.normal(size=(len(labels), views)) * (1 + labels[:, None]) + 2.0 * labels[:, None]
    return np.clip(np.floor(values * 1.5 + 4), 0, CELLS - 1).astype(int)


def fitted(seed, rows):
    labels = np.repeat(np.arange(len(rows)), rows)
    cells = cells_of(np.random.default_rng(seed), labels)
    return Scores.of(cells, labels, len(rows), CELLS, [0, 1, 2])


def test_scores_are_mid_ranks_and_then_polynomials_of_them() -> None:
    labels = np.repeat([0, 1], 300)
    cells = cells_of(np.random.default_rng(0), labels)
    scores = Scores.of(cells, labels, 2, CELLS, [0, 1, 2])
    ranks = (cells[:, [0]] > cells[:, 0]).mean(axis=1) - (cells[:, [0]] < cells[:, 0]).mean(axis=1)
    assert scores.values[0, cells[:, 0]] == pytest.approx(ranks)
    assert scores.view[:6].tolist() == [0, 1, 2, 0, 1, 2]
    assert scores.values[3] == pytest.approx(1.5 * scores.values[0] ** 2 - 0.5)
    assert scores.means[1] == pytest.approx(
        scores.values[np.arange(scores.size), cells[labels == 1][:, scores.view]].mean(axis=0)
    )


def test_it_is_the_least_statistic_over_all_class_priors() -> None:
    """Two classes: every class prior is tried."""
    rows, n = np.array([150, 90]), 200
    scores = fitted(1, rows)
    rng = np.random.default_rng(2)
    block = np.clip(cells_of(rng, (rng.random(n) < 0.4).astype(int)) + 1, 0, CELLS - 1)
    sums = scores.sums(count_cells(block))
    found = scores.judge(sums, n, rows)
    best = 0.0
    for share in np.linspace(0.001, 0.999, 999):
        prior = np.array([1 - share, share])
        r = sums / n - prior @ scores.means
        within = [scores.spreads[k] for k in (0, 1)]
        gap = scores.means[1] - scores.means[0]
        V = sum((prior[k] / n + prior[k] ** 2 / rows[k]) * within[k] for k in (0, 1))
        V = V + prior[0] * prior[1] * np.outer(gap, gap) / n
        weights = prior / n + prior**2 / rows
        known = weights.sum() ** 2 / (weights**2 / (rows - 1)).sum()
        left, freedom = known - scores.size + 1, scores.size - 1
        T = r @ np.linalg.inv(V) @ r
        best = max(best, fisher.sf(T * left / (known * freedom), freedom, left))
    assert 1e-12 < best < 1e-3
    assert found.log_p == pytest.approx(np.log(best), abs=0.3)
    assert abs(found.mean - found.explained) > 0.1


def count_cells(cells):
    return np.array([np.bincount(column, minlength=CELLS) for column in cells.T])


@pytest.mark.parametrize("rows", [(150, 150), (60, 60, 60), (200, 8)])
@pytest.mark.parametrize("alone", [False, True])
def test_under_label_shift_small_p_values_are_rare(rows, alone) -> None:
    """Held-out set and block are both drawn anew; the block may be one class alone."""
    rows, found = np.array(rows), []
    for seed in range(300):
        rng = np.random.default_rng([seed, 3])
        prior = np.eye(len(rows))[seed % len(rows)] if alone else rng.dirichlet(np.ones(len(rows)))
        labels = rng.choice(len(rows), LEAST_ROWS, p=prior)
        sums = (scores := fitted([seed, 4], rows)).sums(count_cells(cells_of(rng, labels)))
        found.append(scores.judge(sums, LEAST_ROWS, rows).log_p)
    for level in (0.1, 0.01):
        error = 3 * np.sqrt(level * (1 - level) / len(found))
        assert np.mean(np.array(found) < np.log(level)) < level + error
    assert min(found) > np.log(1e-5)


def tilted(rng, X, size, by=0.8):
    """Covariate shift: rows are taken the more often the larger their second feature is."""
    weights = np.exp(by * X[:, 1])
    return rng.choice(len(X), size, p=weights / weights.sum())


@pytest.fixture(scope="module")
def noisy():
    """Two classes, eight features, a fifth of the labels thrown at random."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 8))
    y = (X @ rng.normal(size=8) > 0).astype(int)
    y = np.where(rng.random(6000) < 0.2, rng.integers(0, 2, 6000), y)
    model = LogisticRegression().fit(X[:2000], y[:2000])
    return model, X[2000:2300], y[2000:2300], X[2300:], y[2300:]


def test_covariate_shift_is_seen_that_no_region_sees(noisy) -> None:
    model, X_hold, y_hold, X, _ = noisy
    source = build_source(model, X_hold, y_hold)
    regions = guard_regions(source)
    rng, n = np.random.default_rng(6), 2048
    batch = source.read(X[tilted(rng, X, n, by=0.6)])
    counts = count(regions.cells(batch))
    calls = np.bincount(batch.f0_proba.argmax(axis=1), minlength=2)[None]
    share = log_share(np.array([3]), np.array([1]))
    assert judge_regions(regions, counts[None], calls, share).log_p[0] > np.log(0.01)
    found = regions.scores.judge(regions.scores.sums(counts), n, regions.rows)
    assert found.log_p < -10.0
    assert regions.name(regions.size + found.column) == "feature 1"


def test_covariate_shift_harms_no_more_than_it_harms_the_model(noisy) -> None:
    model, X_hold, y_hold, X, y = noisy
    clf = LabelShiftClassifier(model).fit(X_hold, y_hold)
    rng, wrong = np.random.default_rng(7), np.zeros(2)
    for t in range(150):
        rows = tilted(rng, X, 20) if t >= 20 else rng.choice(len(X), 20)
        answers = model.predict(X[rows]), clf.adapt_predict(X[rows])
        wrong += [(answer != y[rows]).mean() for answer in answers]
    assert clf.guard_report_.alarm
    assert clf.guard_report_.evidence.startswith("rank of feature")
    assert wrong[1] <= wrong[0] + 1.5  # a point of error is 1.5 of 150 rounds


def test_without_rows_enough_nothing_is_asked() -> None:
    rows = np.array([10, 8])
    scores = fitted(8, rows)
    assert scores.size == 0
    assert scores.judge(np.zeros(0), 1000, rows).log_p == 0.0
    assert fitted(9, np.array([200, 100])).judge(np.ones(18), LEAST_ROWS - 1, rows).log_p == 0.0


def test_scores_that_do_not_fit_are_refused() -> None:
    scores = fitted(10, np.array([100, 100]))
    scores.check((3, CELLS, 2))
    for forged in (
        scores._replace(means=scores.means[:1]),
        scores._replace(values=scores.values[:, 1:]),
        scores._replace(view=scores.view + 2),
        scores._replace(spreads=-scores.spreads),
        scores._replace(means=np.full_like(scores.means, np.nan)),
    ):
        with pytest.raises(InputError, match="scores"):
            forged.check((3, CELLS, 2))


def test_means_that_are_all_zero_are_no_trouble() -> None:
    """Every class, and the block, has every value equally often."""
    base = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = LinearModel(np.zeros((2, 2)), [0, 1])
    X, y = np.tile(base, (60, 1)), np.repeat([0, 1], 120)
    source = build_source(model, X, y, intercept=False)
    regions = guard_regions(source)
    block = count(regions.cells(source.read(np.repeat(base, 128, axis=0))))
    assert regions.scores.size == 2
    assert regions.scores.judge(regions.scores.sums(block), 512, regions.rows).log_p > -1.0
