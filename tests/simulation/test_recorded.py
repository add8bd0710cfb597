"""Streams in their recorded order, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.errors import InputError
from priorshift.learners import FIX, FTH
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.recorded import RecordedStream, prior_around
from priorshift.simulation.shifts import total_variation
from priorshift.simulation.streams import GaussianPopulation

POPULATION = GaussianPopulation([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], np.eye(2))


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return data, offline_stage(data)


@pytest.mark.parametrize("near", [0, 4, 1000])
def test_the_prior_around_a_round_counts_labels_on_both_sides(near):
    y = np.random.default_rng(0).integers(0, 3, 47)
    found = prior_around(y, 3, batch_size=5, near=near)
    assert found.shape == (9, 3)
    for t, prior in enumerate(found):
        part = y[max(5 * t - near, 0) : 5 * t + 5 + near]
        np.testing.assert_allclose(prior, np.bincount(part, minlength=3) / len(part))


def test_given_rows_keep_their_order(digits):
    data, source = digits
    y = data.y1[:67]
    stream = RecordedStream(data.population, y, 20, X=data.X1[:67])
    assert len(stream) == 3
    result = evaluate(FIX(), source, stream)
    wrong = source.read(data.X1[:60]).proba.argmax(axis=1) != y[:60]
    np.testing.assert_allclose(result.errors, wrong.reshape(3, 20).mean(axis=1))
    assert result.variation == pytest.approx(total_variation(stream.priors))


def test_drawn_rows_are_of_the_label_s_class_and_of_the_seed(digits):
    data, _ = digits
    y = np.sort(data.y1)
    known = {row.tobytes(): label for row, label in zip(data.X1, data.y1, strict=True)}
    first, again, other = (
        np.concatenate([X for X, _ in RecordedStream(data.population, y, 7, seed=seed)])
        for seed in (3, 3, 4)
    )
    assert [known[row.tobytes()] for row in first] == y[: len(first)].tolist()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_shorter_stream_begins_like_a_longer_one():
    y = np.random.default_rng(1).integers(0, 3, 1000)
    long, short = (RecordedStream(POPULATION, y, 5, rounds=rounds) for rounds in (None, 130))
    assert (len(long), len(short)) == (200, 130)
    for (X, labels), (X_short, labels_short) in zip(long, short, strict=False):
        np.testing.assert_array_equal(X, X_short)
        np.testing.assert_array_equal(labels, labels_short)


def test_thinning_keeps_each_kth_label_with_its_row():
    y = np.random.default_rng(2).integers(0, 3, 101)
    X = np.arange(202).reshape(101, 2)
    stream = RecordedStream(POPULATION, y, 4, X=X, every=3)
    rows = np.concatenate([part for part, _ in stream])
    labels = np.concatenate([part for _, part in stream])
    np.testing.assert_array_equal(rows, X[::3][:32])
    np.testing.assert_array_equal(labels, y[::3][:32])


def test_thinning_makes_the_prior_move_faster_from_round_to_round():
    y = np.repeat(np.random.default_rng(3).integers(0, 3, 40), 100)
    slow, fast = (RecordedStream(POPULATION, y, 10, near=20, every=every) for every in (1, 5))
    assert len(fast) == len(slow) // 5
    assert fast.variation / len(fast) > 2 * slow.variation / len(slow)


def test_a_learner_runs_on_it(digits):
    data, source = digits
    y = np.full(300, 8)
    result = evaluate(FTH(), source, RecordedStream(data.population, y, 25, rounds=12))
    assert result.error < result.fix_error  # all one class, and FTH finds out


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"y": [0, 3]}, "from 0 to 3"),
        ({"y": [-1, 2]}, "from -1 to 2"),
        ({"y": [0.0, 1.0]}, "class index"),
        ({"y": [[0, 1]]}, "class index"),
        ({"batch_size": 3}, "fill no round of 3"),
        ({"y": [0, 1, 2], "every": 2, "batch_size": 3}, "every 2"),
        ({"X": [[1.0, 2.0]]}, "for 2 labels"),
        ({"X": [["a"], ["b"]]}, "give numbers"),
        ({"every": 0}, "every is 0"),
        ({"near": -1}, "near is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"rounds": 0}, "rounds is 0"),
    ],
)
def test_refusals(changes, says):
    settings = {"y": [0, 1], "batch_size": 2, **changes}
    with pytest.raises(InputError, match=says):
        RecordedStream(POPULATION, **settings)
