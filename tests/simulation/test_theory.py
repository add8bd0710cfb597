from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from priorshift.simulation.theory import atlas_ada_bound, atlas_bound, static_bound, uogd_bound

GAMMA, G, B, SIGMA, K = 3.0, 1.7, 4.2, 0.6, 5


@pytest.fixture
def constants():
    return SimpleNamespace(
        diameter=GAMMA, gradient_bound=G, loss_bound=B, sigma_min=SIGMA, n_classes=K
    )


def test_static_bound_by_hand(constants):
    """Lemma 3: 2 G Gamma / sigma sqrt(KT) = 2 * 1.7 * 3 / 0.6 * sqrt(500) = 17 * 22.36068."""
    assert static_bound(constants, 100) == pytest.approx(380.1315561749642)


def test_uogd_bound_by_hand(constants):
    """Theorem 1 at eta = 0.2, T = 100, V = 7."""
    expected = (
        2 * (5 * 1.7**2 / 0.6**2 + 4.2**2) * 0.2 * 100
        + 3.0**2 / 0.2
        + 4 * (3.0 + 1) * (4.2 * 7 * 100 / 0.2) ** 0.5
    )
    assert uogd_bound(constants, 100, 7.0, 0.2) == pytest.approx(expected)


@pytest.mark.parametrize("rounds", [1, 7, 200, 2000])
@pytest.mark.parametrize("variation", [0.0, 0.3, 50.0])
def test_atlas_bound_is_the_best_interval(constants, rounds, variation):
    """Proof of Theorem 2, every interval length tried."""
    meta = 2 * B / SIGMA * np.sqrt((np.log(8) + 2) * K * rounds)
    values = [
        (2 * B * length * variation if length > 1 else 0.0)
        + 3 * G * GAMMA / SIGMA * np.sqrt(K * rounds * (1 + 2 * rounds / length))
        for length in range(1, rounds + 1)
    ]
    found = atlas_bound(constants, rounds, variation, 8)
    # Not every length is looked at, so the bound may be a little above the best, never below it.
    assert min(values) + meta <= found * (1 + 1e-12)
    assert found <= 1.01 * (min(values) + meta)


def meta_regret_of_lemma_8(gamma, reusability, number):
    """Lemma 12 at Lemma 8's rate, for the largest sum of squared gaps, Gamma^2 G_T."""
    squares = gamma**2 * reusability
    rate = np.sqrt((np.log(number) + 2) / (1 + squares))
    return (np.log(number) + 2) / rate + rate * squares


@pytest.mark.parametrize("rounds", [1, 7, 200, 2000])
@pytest.mark.parametrize("variation", [0.0, 50.0])
@pytest.mark.parametrize("reusability", [0.0, 12.0, 3000.0])
@pytest.mark.parametrize("gamma", [0.2, GAMMA])
def test_atlas_ada_bound_is_the_best_interval(constants, rounds, variation, reusability, gamma):
    """Proof of Theorem 3, every interval length tried, with the meta-regret derived anew.

    The text's ``Gamma sqrt((ln N + 2)(1 + G_T))`` lacks a 2, and is too small for Gamma < 1.
    """
    constants.diameter = gamma
    values = [
        (2 * B * length * variation if length > 1 else 0.0)
        + 3 * np.sqrt((1 + reusability) * (gamma**2 + 2 * gamma * gamma * rounds / length))
        for length in range(1, rounds + 1)
    ]
    meta = meta_regret_of_lemma_8(gamma, reusability, 12)
    loose = 2 * np.sqrt((np.log(12) + 2) * (1 + gamma**2 * reusability))
    found = atlas_ada_bound(constants, rounds, variation, reusability, 12)
    assert min(values) + meta <= found * (1 + 1e-12)
    assert found <= 1.01 * (min(values) + loose)


def test_the_simplified_bound_of_theorem_2_is_not_smaller(constants):
    """The last line of the proof, with Gamma in the place of its sqrt(Gamma)."""
    T, V, N = 1000, 6.0, 8
    cube = 3 * (9 * K * B * G**2 * GAMMA**2 / SIGMA**2) ** (1 / 3) * V ** (1 / 3) * T ** (2 / 3)
    root = 3 * np.sqrt(K) * (G * GAMMA + B * np.sqrt(np.log(N) + 2)) / SIGMA * np.sqrt(T)
    assert atlas_bound(constants, T, V, N) <= cube + root + 2 * B * V


def test_rates(constants):
    """O(sqrt T) without drift, O(V^(1/3) T^(2/3)) with it."""
    assert static_bound(constants, 4000) == pytest.approx(2 * static_bound(constants, 1000))
    calm = atlas_bound(constants, 400_000, 0.0, 8) / atlas_bound(constants, 100_000, 0.0, 8)
    assert calm == pytest.approx(2.0, rel=0.01)
    # V large enough that the drift rules, small enough that the interval is not a single round.
    busy = atlas_bound(constants, 4_000_000, 40.0, 8) / atlas_bound(constants, 500_000, 40.0, 8)
    assert 3.0 < busy < 4.2  # 8^(2/3) = 4, less what the sqrt(T) terms take away


@pytest.mark.parametrize("rounds", [10, 300, 4000])
@pytest.mark.parametrize("share", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("step", [1e-3, 0.03, 1.0])
def test_theorem_1_with_the_variation_of_the_risks(constants, rounds, share, step):
    """Inequality (uogd-vt-bound) before it is simplified, for every length of its intervals.

    V_T^R is at most B a round. The appendix prints B V_T^R, which for B > 1 is larger.
    """
    functions = share * B * rounds
    lengths = np.arange(1, 200 * rounds + 1)  # beyond T there is one interval: no harm
    before = (
        2 * step * K * G**2 * rounds / SIGMA**2
        + (2 * GAMMA**2 * rounds / lengths + GAMMA**2) / (2 * step)
        + 2 * lengths * functions
    )
    found = uogd_bound(constants, rounds, functions / B, step)
    printed = uogd_bound(constants, rounds, functions, step)
    assert before.min() <= found < printed


@pytest.mark.parametrize("b", [0.5, 4.2, 30.0])
def test_lemma_7_with_another_rate(constants, b):
    """Its proof: (ln N + 2) / rate + rate B^2 K T / sigma^2, at the rate of another B."""
    T, N = 500, 8
    rate = SIGMA / b * np.sqrt((np.log(N) + 2) / (K * T))
    meta = (np.log(N) + 2) / rate + rate * B**2 * K * T / SIGMA**2
    own = 2 * B / SIGMA * np.sqrt((np.log(N) + 2) * K * T)
    difference = atlas_bound(constants, T, 1.0, N, b) - atlas_bound(constants, T, 1.0, N)
    assert difference == pytest.approx(meta - own, abs=1e-6)
    assert difference >= -1e-6  # Lemma 7's own rate is the best one
