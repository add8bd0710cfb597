"""Data sets of a convolutional network: rows of its own, the same every time, good features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from priorshift.datasets import load_dataset
from priorshift.errors import InputError
from priorshift.experiments.convert import deep
from priorshift.experiments.convert.deep import convolutional_network, network_arrays

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def test_no_row_of_the_networks_own_is_offline_or_in_the_pool(digits, monkeypatch):
    trained, read = [], []

    def fine_tune(module, X, y, **settings):
        trained.extend(zip(X, y, strict=True))
        return module

    def last_layer(module, X, **settings):
        read.append(X)
        return real(module, X, **settings)

    real = deep.last_layer
    monkeypatch.setattr(deep, "fine_tune", fine_tune)
    monkeypatch.setattr(deep, "last_layer", last_layer)
    found = network_arrays(digits, hidden=4, train=400)
    offline, pool = read
    labels = {row.tobytes(): label for row, label in zip(digits.X0, digits.y0, strict=True)}
    own = {row.tobytes() for row, _ in trained}
    assert len(labels) == len(digits.X0)  # no two images are the same, so they can be told apart
    assert len(own) == len(trained) == 400
    assert all(labels[row.tobytes()] == label for row, label in trained)
    assert not own & {row.tobytes() for row in offline}
    assert not own & {row.tobytes() for row in pool}
    assert len(offline) == len(digits.X0) - 400
    assert [labels[row.tobytes()] for row in offline] == found["y0"].tolist()
    np.testing.assert_array_equal(pool, digits.X1)


def test_features_and_probabilities_are_of_one_network(digits):
    """The last layer is linear in the features, standardised or not: so are the log odds."""
    found = network_arrays(digits, hidden=8, train=500, epochs=3)
    design = np.column_stack([found["X0"], np.ones(len(found["X0"]))]).astype(float)
    odds = np.log(found["P0"].astype(float))
    odds -= odds[:, :1]
    weights, *_ = np.linalg.lstsq(design, odds, rcond=None)
    pool = np.column_stack([found["X1"], np.ones(len(found["X1"]))]) @ weights
    expected = np.exp(pool) / np.exp(pool).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["P1"], expected, atol=1e-4)
    np.testing.assert_allclose(found["X0"].mean(axis=0), 0, atol=1e-5)
    assert {found[name].dtype.name for name in ("X0", "X1", "P0", "P1")} == {"float32"}


def test_the_same_seed_gives_the_same_bytes(digits):
    def arrays(seed):
        found = network_arrays(digits, hidden=8, train=300, epochs=2, seed=seed)
        return b"".join(found[name].tobytes() for name in sorted(found))

    assert arrays(1) == arrays(1)
    assert arrays(1) != arrays(2)


def test_features_carry_the_classes(digits):
    found = network_arrays(digits, train=599, epochs=20)
    model = LogisticRegression(max_iter=500).fit(found["X0"], found["y0"])
    assert model.score(found["X1"], found["y1"]) > 0.94
    assert np.mean(found["P1"].argmax(axis=1) == found["y1"]) > 0.9


def test_a_network_of_your_own(digits):
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    found = network_arrays(digits, module=module, train=300, epochs=1)
    assert found["X0"].shape[1] == 64  # the pixels: what its last layer sees
    with pytest.raises(InputError, match="from 0 to 1 as the network has 2 outputs"):
        network_arrays(
            digits, module=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))
        )
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 11))
    with pytest.raises(InputError, match="module has 11 outputs, digits has 10 classes"):
        network_arrays(digits, module=wide, train=300, epochs=1)


def test_colour_and_sides_that_do_not_halve():
    network = convolutional_network((9, 14, 3), classes=4, hidden=5).eval()
    assert network(torch.zeros(2, 3, 9, 14)).shape == (2, 4)


def test_refusals(digits):
    with pytest.raises(InputError, match="no images"):
        network_arrays(replace(digits, probabilities=True))
    with pytest.raises(InputError, match="not negative"):
        network_arrays(replace(digits, X0=-digits.X0))
    with pytest.raises(InputError, match="63 numbers, which are no square grey images"):
        network_arrays(replace(digits, X0=digits.X0[:, 1:]))
    with pytest.raises(InputError, match="2x32 is too small; give 4x4"):
        network_arrays(digits, image=(2, 32, 1))
    with pytest.raises(InputError, match="an image of 9x9x1 has 81"):
        network_arrays(digits, image=(9, 9, 1))
