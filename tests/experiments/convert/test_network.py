"""Features of a network: rows of its own, the same every time, good enough to be worth it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from priorshift.datasets import load_dataset
from priorshift.errors import InputError
from priorshift.experiments.convert.network import network_features


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def test_the_networks_rows_are_not_in_the_offline_set(digits, monkeypatch):
    seen = {}
    from priorshift.experiments.convert import network

    class Spy(network.MLPClassifier):
        def fit(self, X, y):
            seen["X"] = np.array(X)
            return super().fit(X, y)

    monkeypatch.setattr(network, "MLPClassifier", Spy)
    found = network_features(digits, hidden=8, train=400)
    trained = {row.tobytes() for row in seen["X"]}
    assert len(seen["X"]) == 400
    assert len(found.X0) == len(digits.X0) - 400
    # The offline rows that are left, in the same order, are those whose features came back.
    left = [i for i, row in enumerate(digits.X0) if row.tobytes() not in trained]
    assert sorted(digits.y0[left].tolist()) == sorted(found.y0.tolist())
    pool = {row.tobytes() for row in digits.X1}
    assert not trained & pool


def test_two_calls_agree_to_the_last_bit(digits):
    one, two = (network_features(digits, hidden=8, train=400, seed=3) for _ in range(2))
    assert one.X0.tobytes() == two.X0.tobytes()
    assert one.X1.tobytes() == two.X1.tobytes()


def test_features_carry_the_classes(digits):
    found = network_features(digits, hidden=32, train=599)
    model = LogisticRegression(max_iter=500).fit(found.X0, found.y0)
    assert model.score(found.X1, found.y1) > 0.9
    assert abs(found.X0.mean()) < 1e-9
    assert found.population.n_classes == 10


def test_rows_limits_what_is_left(digits):
    assert len(network_features(digits, hidden=4, train=100, rows=300).X0) == 300


def test_probabilities_are_refused(digits):
    with pytest.raises(InputError, match="needs features"):
        network_features(replace(digits, probabilities=True))
