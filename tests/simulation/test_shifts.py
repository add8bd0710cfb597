"""The shifts against the paper's formulas, written out round by round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift._validation import check_priors
from priorshift.errors import InputError, InputTypeError
from priorshift.simulation.shifts import (
    PAPER_COURSE,
    Bernoulli,
    Constant,
    Linear,
    Sine,
    Square,
    shift_by_name,
    total_variation,
)

MU1 = [1 / 3, 1 / 3, 1 / 3]
MU2 = [0.0, 0.0, 1.0]
NAMES = ["lin", "squ", "sin", "ber", "constant"]


def mixed(alpha: float) -> list[float]:
    return [(1 - alpha) * a + alpha * b for a, b in zip(MU1, MU2, strict=True)]


def test_linear_is_t_over_T_from_1_to_T() -> None:
    priors = Linear().priors(MU1, MU2, 7, rng=0)
    np.testing.assert_allclose(priors, [mixed(t / 7) for t in range(1, 8)], atol=1e-15)
    np.testing.assert_array_equal(priors[-1], MU2)


@pytest.mark.parametrize("period", [2, 6, 40])
def test_square_starts_at_mu1_and_switches_every_half_period(period: int) -> None:
    side, expected = 0, []
    for t in range(95):
        if t and t % (period // 2) == 0:
            side = 1 - side
        expected.append(MU2 if side else MU1)
    np.testing.assert_array_equal(Square(period).priors(MU1, MU2, 95, rng=0), expected)


def test_square_with_the_default_period_switches_every_20_rounds() -> None:
    priors = Square().priors(MU1, MU2, 60, rng=0)
    moved = np.flatnonzero(np.abs(np.diff(priors, axis=0)).sum(axis=1))
    np.testing.assert_array_equal(moved + 1, [20, 40])


def test_square_with_an_odd_period_has_that_period() -> None:
    alpha = Square(5).weights(20, np.random.default_rng(0))
    np.testing.assert_array_equal(alpha[:5], [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(alpha[:15], alpha[5:])


@pytest.mark.parametrize("period", [2, 7, 40])
def test_sine_puts_a_half_wave_on_mu1(period: int) -> None:
    expected = []
    for t in range(100):
        weight = math.sin((t % period) * math.pi / (period - 1))
        expected.append([weight * a + (1 - weight) * b for a, b in zip(MU1, MU2, strict=True)])
    np.testing.assert_allclose(Sine(period).priors(MU1, MU2, 100, rng=0), expected, atol=1e-14)


def test_bernoulli_starts_at_mu1_and_stays_with_probability_0() -> None:
    np.testing.assert_array_equal(Bernoulli(0).priors(MU1, MU2, 9, rng=0), [MU1] * 9)
    for seed in range(20):
        np.testing.assert_array_equal(Bernoulli(1).priors(MU1, MU2, 1, rng=seed), [MU1])


def test_bernoulli_switches_as_often_as_it_should() -> None:
    rounds, p = 40_000, 0.05
    alpha = Bernoulli(p).weights(rounds, np.random.default_rng(5))
    assert set(np.unique(alpha)) == {0.0, 1.0}
    switches = np.count_nonzero(np.diff(alpha))
    spread = math.sqrt(rounds * p * (1 - p))
    assert abs(switches - rounds * p) < 5 * spread


def test_bernoulli_repeats_with_its_seed_alone() -> None:
    first, again, other = (Bernoulli().priors(MU1, MU2, 500, rng=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    from_generator = Bernoulli().priors(MU1, MU2, 500, np.random.default_rng(3))
    np.testing.assert_array_equal(first, from_generator)


def test_bernoulli_with_a_course_is_the_same_in_every_stream() -> None:
    """The course of the tables: 450 switches, and 48 % of the rounds at mu_2."""
    one, other = (
        Bernoulli(course=PAPER_COURSE).weights(10_000, np.random.default_rng(seed))
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(one, other)
    assert one.mean() == pytest.approx(0.4798)
    own = Bernoulli().weights(10_000, np.random.default_rng(PAPER_COURSE))
    np.testing.assert_array_equal(one, own)
    with pytest.raises(InputError, match="course"):
        Bernoulli(course=-1)


def test_constant_stays() -> None:
    np.testing.assert_array_equal(Constant().priors(MU1, MU2, 4, rng=0), [MU1] * 4)


simplex = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(
    lambda values: np.array(values) / np.sum(values)
)


@settings(max_examples=60)
@given(
    name=st.sampled_from(NAMES),
    mu1=simplex,
    mu2=simplex,
    rounds=st.integers(1, 120),
    seed=st.integers(0, 2**32),
)
def test_every_round_is_on_the_simplex_between_the_two_priors(
    name: str, mu1: np.ndarray, mu2: np.ndarray, rounds: int, seed: int
) -> None:
    priors = shift_by_name(name).priors(mu1, mu2, rounds, seed)
    assert priors.shape == (rounds, 4)
    np.testing.assert_allclose(priors.sum(axis=1), 1, atol=1e-12)
    assert (priors >= np.minimum(mu1, mu2) - 1e-12).all()
    assert (priors <= np.maximum(mu1, mu2) + 1e-12).all()
    check_priors(priors)


def test_total_variation_is_the_sum_of_the_steps() -> None:
    priors = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)
    brute = sum(
        abs(priors[t, k] - priors[t - 1, k]) for t in range(1, len(priors)) for k in range(3)
    )
    assert total_variation(priors) == pytest.approx(brute)
    assert total_variation(priors[:1]) == 0
    # Squ over 10,000 rounds: 499 jumps of length 4/3.
    square = Square().priors(MU1, MU2, 10_000, rng=0)
    assert total_variation(square) == pytest.approx(499 * 4 / 3)


def test_registry_makes_each_shift_with_its_options() -> None:
    assert [type(shift_by_name(name)) for name in NAMES] == [
        Linear,
        Square,
        Sine,
        Bernoulli,
        Constant,
    ]
    assert shift_by_name("ber", probability=0.5) == Bernoulli(0.5)
    with pytest.raises(
        InputError, match=r"'zig'; choose one of 'lin', 'squ', 'sin', 'ber', 'constant'"
    ):
        shift_by_name("zig")
    with pytest.raises(InputError, match="no option 'period'; it takes no options"):
        shift_by_name("lin", period=3)
    with pytest.raises(InputError, match="no shift is called"):
        shift_by_name(["lin"])  # type: ignore[arg-type]


@pytest.mark.parametrize("period", [1, 0, -4, 2.5, True, "40", None])
def test_bad_periods_are_refused(period: object) -> None:
    for shift in (Square, Sine):
        with pytest.raises(InputError, match="period"):
            shift(period)  # type: ignore[arg-type]


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_bad_probabilities_are_refused(probability: object) -> None:
    with pytest.raises(InputError, match="probability"):
        Bernoulli(probability)  # type: ignore[arg-type]


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_bad_rounds_are_refused(rounds: object) -> None:
    with pytest.raises(InputError, match="rounds"):
        Linear().priors(MU1, MU2, rounds, rng=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mu1", "mu2", "says"),
    [
        ([0.5, 0.6], [1, 0], "mu1 sums to 1.1"),
        ([1, 0], [-0.5, 1.5], "mu2 has a negative"),
        ([np.nan, 1], [1, 0], "mu1 has a negative or missing"),
        ([np.inf, 1], [1, 0], "mu1 sums to inf"),
        ([0.5, 0.5], [1, 0, 0], "same classes"),
        ([[0.5, 0.5]], [[1, 0]], "same classes"),
        ([], [], "shape"),
        (["a", "b"], [1, 0], "not a table of numbers"),
    ],
)
def test_bad_priors_are_refused(mu1: list[float], mu2: list[float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Linear().priors(mu1, mu2, 3, rng=0)


def test_a_bad_round_is_named() -> None:
    with pytest.raises(InputError, match="in round 2"):
        check_priors([[1, 0], [0.5, 0.5], [0.5, 0.4]])
    with pytest.raises(InputError, match="one row per round"):
        total_variation([0.5, 0.5])


def test_no_seed_from_the_clock() -> None:
    with pytest.raises(InputTypeError, match="rng is None"):
        Bernoulli().priors(MU1, MU2, 3, rng=None)  # type: ignore[arg-type]
