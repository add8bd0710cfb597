from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError, InputTypeError
from priorshift.learners import AtlasAda
from priorshift.learners.linear.hints import (
    HINTS,
    Forward,
    Hint,
    LastPrior,
    NoHint,
    OnlineKMeans,
    Periodic,
    Window,
    as_hint,
)
from priorshift.source import Batch

K, D = 3, 2


@pytest.fixture(scope="session")
def small():
    """All that a hint reads of a source."""
    return SimpleNamespace(
        n_classes=K, prior=np.full(K, 1 / K), risk=SimpleNamespace(XT=np.zeros((D, 1)))
    )


def sequence(seed, length):
    """Estimates (some with negative entries, as BBSE gives them) and the batches they came from."""
    rng = np.random.default_rng(seed)
    estimates = rng.dirichlet(np.ones(K), length) + 0.2 * rng.normal(size=(length, K))
    rows = [
        rng.normal(size=(int(rng.integers(1, 6)), D)) + 3 * rng.integers(3) for _ in range(length)
    ]
    return estimates, rows


def answers(hint, source, estimates, rows):
    """What the hint says after each batch: ``prior`` and ``forecast``."""
    state, said = hint.start(source), []
    for estimate, X in zip(estimates, rows, strict=True):
        state = hint.update(source, state, Batch(np.zeros((len(X), K)), X), estimate)
        said.append((hint.prior(state), hint.forecast(state)))
    return np.array(said).transpose(1, 0, 2), state


SEQUENCES = given(seed=st.integers(0, 10_000), length=st.integers(1, 40))
FEW = settings(max_examples=25)


@FEW
@SEQUENCES
def test_forward_is_the_last_estimate(small, seed, length):
    estimates, rows = sequence(seed, length)
    (prior, forecast), _ = answers(Forward(), small, estimates, rows)
    np.testing.assert_array_equal(prior, estimates)
    np.testing.assert_array_equal(forecast, estimates)


@FEW
@SEQUENCES
def test_no_hint_is_zero(small, seed, length):
    (prior, forecast), _ = answers(NoHint(), small, *sequence(seed, length))
    assert not prior.any()
    assert not forecast.any()


@FEW
@given(seed=st.integers(0, 10_000), length=st.integers(1, 40), size=st.integers(1, 12))
def test_window_is_the_mean_of_the_last_estimates(small, seed, length, size):
    estimates, rows = sequence(seed, length)
    (prior, forecast), _ = answers(Window(size), small, estimates, rows)
    for t in range(length):
        expected = np.mean(estimates[max(0, t + 1 - size) : t + 1], axis=0)
        np.testing.assert_allclose(prior[t], expected, atol=1e-12)
        np.testing.assert_allclose(forecast[t], expected, atol=1e-12)


@FEW
@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 40),
    period=st.integers(1, 9),
    rate=st.sampled_from([None, 0.3, 1.0]),
)
def test_periodic_keeps_a_mean_for_each_slot(small, seed, length, period, rate):
    estimates, rows = sequence(seed, length)
    (prior, forecast), _ = answers(Periodic(period, rate), small, estimates, rows)
    slots = {}
    for t in range(length):
        slots.setdefault(t % period, []).append(estimates[t])

        def mean(visits):
            if rate is None:
                return np.mean(visits, axis=0)
            value = visits[0]
            for visit in visits[1:]:
                value = (1 - rate) * value + rate * visit
            return value

        np.testing.assert_allclose(prior[t], mean(slots[t % period]), atol=1e-12)
        # The slot of the round to come, if it was ever filled, else the best that is known.
        ahead = slots.get((t + 1) % period, slots[t % period])
        np.testing.assert_allclose(forecast[t], mean(ahead), atol=1e-12)


@FEW
@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 40),
    prototypes=st.integers(1, 6),
    rate=st.sampled_from([None, 0.3]),
)
def test_kmeans_moves_the_nearest_prototype(small, seed, length, prototypes, rate):
    estimates, rows = sequence(seed, length)
    (prior, forecast), state = answers(OnlineKMeans(prototypes, rate), small, estimates, rows)
    centres, mixes, counts = [], [], []
    for t in range(length):
        if len(centres) < prototypes:
            i = len(centres)
            centres.append(np.mean(rows[t], axis=0))
            mixes.append(estimates[t])
            counts.append(1)
        else:
            # The paper's distance: mean over the batch's rows, not to the batch's mean.
            distance = [np.mean([((c - x) ** 2).sum() for x in rows[t]]) for c in centres]
            i = int(np.argmin(distance))
            counts[i] += 1
            kappa = 1 / counts[i] if rate is None else rate
            centres[i] = centres[i] + kappa * (np.mean(rows[t], axis=0) - centres[i])
            mixes[i] = mixes[i] + kappa * (estimates[t] - mixes[i])
        np.testing.assert_allclose(prior[t], mixes[i], atol=1e-9)
        np.testing.assert_allclose(forecast[t], mixes[i], atol=1e-9)
    np.testing.assert_allclose(state.centres[: len(centres)], centres, atol=1e-9)
    assert state.counts.sum() == length


@pytest.mark.parametrize("name", HINTS)
def test_before_the_first_batch(small, name):
    """A hint has no opinion, or the source's; either way it can be asked."""
    hint = HINTS[name]()
    state = hint.start(small)
    for mix in (hint.prior(state), hint.forecast(state)):
        assert mix.shape == (K,)
        assert not mix.any() or np.allclose(mix, small.prior)


@pytest.mark.parametrize("name", HINTS)
def test_updates_are_pure(small, name):
    hint = HINTS[name]()
    estimates, rows = sequence(0, 6)
    _, state = answers(hint, small, estimates, rows)
    kept = [np.array(part).tobytes() for part in state]
    batch = Batch(np.zeros((2, K)), np.ones((2, D)))
    first, second = (hint.update(small, state, batch, estimates[0]) for _ in range(2))
    assert kept == [np.array(part).tobytes() for part in state]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_periodic_stream_is_forecast_exactly(small):
    pattern = np.eye(K)[[0, 0, 1, 2]]
    estimates = np.tile(pattern, (5, 1))
    (_, forecast), _ = answers(Periodic(4), small, estimates, [np.zeros((1, D))] * 20)
    np.testing.assert_allclose(forecast[3:-1], estimates[4:], atol=1e-12)


@dataclass(frozen=True)
class Half(Hint):
    """A hint of one's own: half of the way to each new estimate."""

    def start(self, source):
        return LastPrior(source.prior)

    def update(self, source, state, batch, estimate):
        return LastPrior((state.last + estimate) / 2)

    def prior(self, state):
        return state.last


@pytest.mark.parametrize("order", ["adapt-first", "predict-first"])
def test_a_hint_of_ones_own(source, batches, order):
    learner = AtlasAda(hint=Half(), order=order, horizon=50)
    state, memory = learner.start(source), source.prior
    for batch in batches[:6]:
        state = learner.adapt(source, state, batch)
        memory = (memory + learner.batch_prior(source, batch)) / 2
        np.testing.assert_allclose(state.hint_prior, np.maximum(memory, 0), atol=1e-12)
    plain = AtlasAda(hint="none", order=order, horizon=50)
    other = plain.start(source)
    for batch in batches[:6]:
        other = plain.adapt(source, other, batch)
    assert not np.allclose(state.W, other.W, atol=1e-3)  # the hint was really followed


def test_names_and_objects():
    for name, kind in HINTS.items():
        assert as_hint(name) == kind()
    mine = Half()
    assert as_hint(mine) is mine
    with pytest.raises(InputError, match="crystal"):
        as_hint("crystal")
    for wrong in (3, None, object()):
        with pytest.raises(InputTypeError):
            as_hint(wrong)


def test_a_class_in_the_place_of_an_object_is_refused_at_once():
    with pytest.raises((TypeError, ValueError), match="Window"):
        AtlasAda(hint=Window)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Window(0),
        lambda: Periodic(0),
        lambda: Periodic(3, rate=0.0),
        lambda: Periodic(3, rate=1.5),
        lambda: OnlineKMeans(0),
        lambda: OnlineKMeans(2, rate=-0.1),
        lambda: OnlineKMeans(2, rate=float("nan")),
    ],
)
def test_settings_are_checked(build):
    with pytest.raises(InputError):
        build()
