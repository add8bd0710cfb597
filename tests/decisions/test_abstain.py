"""The confidence that answers need."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorshift.decisions import abstained, needed_confidence


@given(st.integers(0, 10**6), st.floats(0.01, 0.9), st.booleans())
def test_against_every_threshold(seed: int, target: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    confidence = rng.random(40).round(1 if ties else 12)
    wrong, weights = rng.random(40) > confidence, rng.dirichlet(np.ones(40))
    one_more = (weights**2).sum()

    def error(least: float) -> float:
        answered = confidence >= least
        return float(
            (weights[answered & wrong].sum() + one_more) / (weights[answered].sum() + one_more)
        )

    fine = [least for least in confidence if error(least) <= target]
    expected = min(fine, default=math.inf)
    found = needed_confidence(confidence, wrong, weights, target)
    # Sums in another order may decide a tie with the target the other way.
    close = [least for least in confidence if abs(error(least) - target) < 1e-12]
    assert found == expected or found in close or expected in close


def test_few_rows_without_a_mistake_are_no_proof() -> None:
    confidence, wrong = np.linspace(0.9, 1.0, 20), np.zeros(20, dtype=bool)
    assert needed_confidence(confidence, wrong, np.full(20, 0.05), 0.04) == math.inf
    assert needed_confidence(confidence, wrong, np.full(20, 0.05), 0.05) == 0.9


def test_the_error_of_new_rows_is_the_target_on_the_mean() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        confidence = rng.uniform(0.5, 1.0, 500)
        wrong = rng.random(500) > confidence
        found.append(needed_confidence(confidence, wrong, np.full(500, 0.002), 0.1))
    # Answers at or above c are wrong as often as (1 - c) / 2.
    assert np.mean([(1.0 - least) / 2.0 for least in found]) == pytest.approx(0.1, abs=0.01)


def test_answers_stay_what_they_were() -> None:
    silent = np.array([False, True, False])
    assert abstained(np.array(["a", "b", "c"]), silent).tolist() == ["a", None, "c"]
    kept = abstained(np.array([1, 2, 3]), silent)
    assert kept.tolist() == [1, None, 3]
    assert kept.dtype == object
