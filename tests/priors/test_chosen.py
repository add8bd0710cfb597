"""Labels or probabilities: BBSE takes what is less noisy on the held-out set."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.priors import BBSE, as_estimator
from priorshift.priors.bbse import row_noise, soft_is_sharper
from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel


def source_of(sharp, seed=0, rows=600):
    """Probabilities that say how sure they are, or that scatter around labels that are right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    if sharp:
        scores = 2.0 * np.eye(3)[y] + rng.normal(size=(rows, 3))
        P = np.exp(2.0 * scores)
    else:
        P = np.eye(3)[y] + rng.uniform(0.0, 0.9, size=(rows, 3))
    return build_source(ProbabilityModel(classes=[0, 1, 2]), P / P.sum(axis=1, keepdims=True), y)


@pytest.mark.parametrize("soft", [True, False])
def test_noise_is_the_variance_of_row_estimates_within_classes(soft):
    source = source_of(sharp=True)
    P = source.proba if soft else np.eye(3)[source.proba.argmax(axis=1)]
    C = source.soft_confusion if soft else source.confusion
    rows = np.linalg.solve(C, P.T).T
    within = [rows[source.labels == k].var(axis=0).sum() for k in range(3)]
    assert row_noise(source, soft) == pytest.approx(np.mean(within), rel=1e-6)


@pytest.mark.parametrize("soft", [True, False])
def test_the_less_noisy_one_is_taken(soft):
    source = source_of(sharp=soft)
    assert soft_is_sharper(source) is soft
    batch = source.read(source.proba[:50])
    chosen = as_estimator("bbse-auto")
    assert chosen.name == "bbse-auto"
    np.testing.assert_array_equal(chosen.raw(source, batch), BBSE(soft=soft).raw(source, batch))
    np.testing.assert_array_equal(
        chosen.estimate(source, batch).covariance,
        BBSE(soft=soft).estimate(source, batch).covariance,
    )
