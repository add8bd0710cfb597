"""Streams: the same data however they are read, and the right distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from priorshift.errors import InputError
from priorshift.simulation.shifts import Linear, Square
from priorshift.simulation.streams import (
    GaussianPopulation,
    PoolPopulation,
    Population,
    SimulatedStream,
    _draw_labels,
)

CENTRES = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5], [4.0, 2.0, 0.0]])
COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, -0.1], [0.0, -0.1, 2.0]])
MU1, MU2 = [1 / 3] * 3, [0.0, 0.0, 1.0]


def pool_population(rows: int = 60) -> PoolPopulation:
    rng = np.random.default_rng(9)
    y = np.arange(rows) % 3
    return PoolPopulation(rng.normal(size=(rows, 4)), rng.permutation(y), 3)


POPULATIONS = {
    "correlated": GaussianPopulation(CENTRES, COVARIANCE),
    "independent": GaussianPopulation(CENTRES, 0.1 * np.eye(3)),
    "pool": pool_population(),
}


def make(population: Population, rounds: int, batch_size: int, seed: int = 1) -> SimulatedStream:
    return SimulatedStream(population, Linear().priors(MU1, MU2, rounds, rng=0), batch_size, seed)


def whole(stream: SimulatedStream, size: int | None = None) -> tuple[np.ndarray, ...]:
    chunks = list(stream.chunks(size))
    return tuple(
        np.concatenate([getattr(chunk, part) for chunk in chunks]) for part in ("X", "y", "priors")
    )


@settings(max_examples=40)
@given(
    population=st.sampled_from(sorted(POPULATIONS)),
    rounds=st.integers(1, 200),
    batch_size=st.integers(1, 7),
    size=st.integers(1, 250),
    seed=st.integers(0, 2**40),
)
def test_data_do_not_depend_on_the_chunk_size(
    population: str, rounds: int, batch_size: int, size: int, seed: int
) -> None:
    stream = make(POPULATIONS[population], rounds, batch_size, seed)
    X, y, priors = whole(stream)
    for got, expected in zip(whole(stream, size), (X, y, priors), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(priors, stream.priors)
    batches = list(stream)
    assert len(batches) == len(stream) == rounds
    np.testing.assert_array_equal(np.concatenate([X_t for X_t, _ in batches]), X)
    np.testing.assert_array_equal(np.concatenate([y_t for _, y_t in batches]), y)
    assert {len(y_t) for _, y_t in batches} == {batch_size}


def test_chunks_are_numbered_and_complete() -> None:
    stream = make(POPULATIONS["pool"], 150, 3)
    chunks = list(stream.chunks(70))
    assert [(chunk.first, chunk.rounds) for chunk in chunks] == [(0, 70), (70, 70), (140, 10)]
    for chunk in chunks:
        assert chunk.X.shape == (chunk.rounds * 3, 4)
        assert chunk.X.dtype == np.float64
        assert chunk.y.shape == (chunk.rounds * 3,)
        np.testing.assert_array_equal(chunk.priors, stream.priors[chunk.first :][: chunk.rounds])


@pytest.mark.parametrize("population", sorted(POPULATIONS))
def test_seeds_repeat_and_differ(population: str) -> None:
    first, again, other = (
        whole(make(POPULATIONS[population], 70, 5, seed))[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).all()


def test_blocks_do_not_repeat_each_other() -> None:
    stream = SimulatedStream(POPULATIONS["independent"], [MU1] * 128, 10, seed=0)
    first, second = stream.chunks(64)
    assert not np.array_equal(first.X, second.X)
    assert not np.array_equal(first.y, second.y)


@pytest.mark.parametrize("population", ["independent", "pool"])
def test_a_longer_stream_begins_like_a_shorter_one(population: str) -> None:
    priors = np.random.default_rng(0).dirichlet([1, 1, 1], size=150)
    long, short = (
        whole(SimulatedStream(POPULATIONS[population], priors[:n], 4, seed=3)) for n in (150, 90)
    )
    for a, b in zip(long, short, strict=True):
        np.testing.assert_array_equal(a[: len(b)], b)


def test_a_batch_larger_than_a_block_works() -> None:
    stream = make(POPULATIONS["pool"], 3, 10_000)
    assert [X.shape for X, _ in stream] == [(10_000, 4)] * 3
    np.testing.assert_array_equal(whole(stream, 2)[0], whole(stream)[0])


def test_class_shares_follow_the_priors_of_each_round() -> None:
    priors = np.array([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9], [0.7, 0.0, 0.3], [0.0, 1.0, 0.0]])
    size = 40_000
    for prior, (_, y) in zip(
        priors, SimulatedStream(POPULATIONS["pool"], priors, size, seed=0), strict=True
    ):
        shares = np.bincount(y, minlength=3) / size
        assert (np.abs(shares - prior) <= 5 * np.sqrt(prior * (1 - prior) / size)).all()


@settings(max_examples=50)
@given(st.integers(0, 2), st.integers(0, 2**32))
def test_a_class_of_share_0_is_never_drawn(empty: int, seed: int) -> None:
    prior = np.random.default_rng(seed).dirichlet([1, 1])
    for _, y in SimulatedStream(POPULATIONS["pool"], [np.insert(prior, empty, 0.0)] * 3, 50, seed):
        assert empty not in y


def test_rounding_never_reaches_a_class_of_share_0() -> None:
    class Largest:
        """Gives the largest number below 1, which real draws reach once in 2**53."""

        def random(self, shape: tuple[int, int]) -> np.ndarray:
            return np.full(shape, np.nextafter(1.0, 0.0))

    short_of_1 = np.array([[0.3, 0.7 - 5e-7, 0.0]])
    labels = _draw_labels(short_of_1, 4, Largest())  # type: ignore[arg-type]
    np.testing.assert_array_equal(labels, [1, 1, 1, 1])


def test_pool_rows_come_from_their_class_and_evenly() -> None:
    X = np.arange(10.0)[:, np.newaxis]
    y = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 1])
    labels = np.repeat([0, 1], [30_000, 60_000])
    drawn = PoolPopulation(X, y, 2).draw(labels, np.random.default_rng(0))[:, 0].astype(int)
    np.testing.assert_array_equal(y[drawn], labels)
    counts = np.bincount(drawn, minlength=10)
    expected = np.where(y == 0, 30_000 / 4, 60_000 / 6)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_pool_keeps_float32_and_draws_float64() -> None:
    population = PoolPopulation(np.eye(2, dtype=np.float32), np.array([0, 1]), 2)
    assert population.X.dtype == np.float32
    assert population.draw(np.array([1]), np.random.default_rng(0)).dtype == np.float64


def test_gaussian_rows_have_the_mean_and_covariance_of_their_class() -> None:
    population = GaussianPopulation(CENTRES, COVARIANCE)
    for label in range(3):
        X = population.draw(np.full(60_000, label), np.random.default_rng(label))
        np.testing.assert_allclose(X.mean(axis=0), CENTRES[label], atol=0.03)
        np.testing.assert_allclose(np.cov(X.T), COVARIANCE, atol=0.04)


def test_log_densities_agree_with_scipy() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    expected = np.stack([multivariate_normal(c, COVARIANCE).logpdf(X) for c in CENTRES], axis=1)
    np.testing.assert_allclose(GaussianPopulation(CENTRES, COVARIANCE).log_densities(X), expected)


def test_worlds_and_streams_satisfy_the_protocol_and_show_themselves() -> None:
    for population in POPULATIONS.values():
        assert isinstance(population, Population)
        assert population.n_classes == 3
    text = repr(
        SimulatedStream(POPULATIONS["pool"], Square().priors(MU1, MU2, 9, rng=0), 5, seed=2)
    )
    assert (
        text
        == "SimulatedStream(PoolPopulation(60 rows x 4, 3 classes), 9 rounds of 5 rows, seed=2)"
    )
    assert repr(POPULATIONS["correlated"]) == "GaussianPopulation(3 classes in 3 dimensions)"


def test_priors_of_a_stream_cannot_be_changed_from_outside() -> None:
    priors = np.array([MU1, MU1])
    stream = SimulatedStream(POPULATIONS["pool"], priors, 5, seed=0)
    priors[:] = MU2
    np.testing.assert_array_equal(stream.priors, [MU1, MU1])
    with pytest.raises(ValueError, match="read-only"):
        stream.priors[0, 0] = 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"priors": [MU1, [0.5, 0.5, 0.5]]}, "in round 1"),
        ({"priors": MU1}, "one row per round"),
        ({"priors": [[0.5, 0.5]]}, "population's 3 classes"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.0}, "batch_size"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_bad_streams_are_refused(changes: dict[str, object], says: str) -> None:
    settings = {"population": POPULATIONS["pool"], "priors": [MU1], "batch_size": 3, "seed": 0}
    with pytest.raises(InputError, match=says):
        SimulatedStream(**{**settings, **changes})  # type: ignore[arg-type]


def test_bad_chunk_sizes_are_refused_at_the_call() -> None:
    with pytest.raises(InputError, match="rounds_per_chunk"):
        make(POPULATIONS["pool"], 3, 3).chunks(0)


@pytest.mark.parametrize(
    ("X", "y", "n_classes", "says"),
    [
        (np.eye(3), [0, 1, 1], 3, "class 2 has no rows"),
        (np.eye(3), [0, 1], 2, "for 2 labels"),
        (np.eye(3), [0, 1, 5], 2, "from 0 to 5"),
        (np.eye(3), [0, 1, -1], 2, "from -1 to 1"),
        (np.eye(3), [0.0, 1.0, 1.0], 2, "one class index per row"),
        (np.ones(3), [0, 1, 1], 2, r"\(rows, features\)"),
        (np.full((2, 2), np.nan), [0, 1], 2, "NaN"),
        (np.array([["a"], ["b"]]), [0, 1], 2, r"\(rows, features\)"),
        (np.empty((0, 2)), np.empty(0, dtype=int), 2, "class 0 has no rows"),
        (np.eye(2), [0, 1], 0, "n_classes"),
    ],
)
def test_bad_pools_are_refused(X: np.ndarray, y: list[int], n_classes: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        PoolPopulation(X, np.asarray(y), n_classes)


@pytest.mark.parametrize(
    ("centres", "covariance", "says"),
    [
        ([1.0, 2.0], np.eye(2), "centres"),
        ([[np.nan, 2.0]], np.eye(2), "centres"),
        ([[1.0, 2.0]], np.eye(3), r"symmetric \(2, 2\)"),
        ([[1.0, 2.0]], [[1, 0.5], [0, 1]], "symmetric"),
        ([[1.0, 2.0]], [[1, 2], [2, 1]], "not positive definite"),
    ],
)
def test_bad_gaussians_are_refused(centres: object, covariance: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        GaussianPopulation(centres, covariance)  # type: ignore[arg-type]


def test_densities_of_the_wrong_width_are_refused() -> None:
    with pytest.raises(InputError, match="3 features"):
        POPULATIONS["correlated"].log_densities(np.ones((2, 2)))  # type: ignore[attr-defined]


def test_discriminants_are_densities_but_for_a_number_of_the_row():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    population = GaussianPopulation(5 * rng.normal(size=(3, 4)), root @ root.T + np.eye(4))
    X = 5 * rng.normal(size=(50, 4))
    gaps = population.log_densities(X) - population.discriminants(X)
    np.testing.assert_allclose(gaps - gaps[:, :1], 0.0, atol=1e-9)
