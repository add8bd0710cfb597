from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.offline import offline_stage, paper_settings
from priorshift.errors import InputError
from priorshift.simulation.streams import PoolPopulation


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def test_synthetic_f0_is_what_500_steps_of_gradient_descent_end_at(synthetic):
    """Written out once more: on the sphere, on the way to the optimum there, and not at it."""
    X, y = synthetic.dataset.X0, synthetic.dataset.y0
    W = np.random.default_rng(2).uniform(-1, 1, (3, 12)) / np.sqrt(12)
    for _ in range(500):
        P = np.exp(X @ W.T)
        P = P / P.sum(axis=1, keepdims=True) - np.eye(3)[y]
        W = W - 0.1 * P.T @ X / len(X)
        W = W * min(1.0, 5.0 / np.linalg.norm(W))
    found = synthetic.source.model.estimator.coef_
    np.testing.assert_allclose(found, W, atol=1e-4)
    assert np.linalg.norm(found) == pytest.approx(5.0, rel=1e-6)
    cosine = -(P.T @ X * W).sum() / np.linalg.norm(P.T @ X) / 5.0
    assert 0.97 < cosine < 0.99  # 1 at the optimum
    np.testing.assert_allclose(synthetic.source.head, W - W.mean(axis=0), atol=1e-4)
    assert not synthetic.source.features.intercept


def test_synthetic_f0_errs_as_the_paper_s(synthetic):
    said = synthetic.source.model.estimator.predict(synthetic.dataset.X0)
    assert 100 * np.mean(said != synthetic.dataset.y0) == pytest.approx(5.7, abs=0.1)


def test_features_get_a_logistic_regression_on_one_half(digits):
    source = offline_stage(digits)
    labels = digits.classes[digits.y0]
    train_X, hold_X, train_y, hold_y = train_test_split(
        digits.X0, labels, test_size=0.5, stratify=digits.y0, random_state=0
    )
    model = LogisticRegression(max_iter=300).fit(train_X, train_y)
    assert len(source.labels) == len(hold_y)
    said = model.predict(hold_X)
    for j, label in enumerate(digits.classes):
        expected = [np.mean(said[hold_y == label] == other) for other in digits.classes]
        np.testing.assert_allclose(source.confusion[:, j], expected, atol=0.02)


def test_probabilities_are_f0_themselves(digits):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    P = rng.dirichlet(np.ones(3), 400) * 0.5 + 0.5 * np.eye(3)[y]
    data = Dataset(
        name="mine",
        X0=P[:200],
        y0=y[:200],
        X1=P[200:],
        y1=y[200:],
        probabilities=True,
        focus=0,
        population=PoolPopulation(P[200:], y[200:], n_classes=3),
        classes=np.arange(3),
    )
    source = offline_stage(data)
    batch = source.read(P[200:210])
    np.testing.assert_allclose(batch.proba, P[200:210], atol=1e-9)
    np.testing.assert_allclose(batch.features[:, :3], np.log(P[200:210]), atol=1e-9)


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_the_loss_is_passed_on(digits, loss):
    assert offline_stage(digits, loss=loss).loss.name == loss


def test_paper_settings(synthetic, digits):
    assert paper_settings(synthetic.dataset, "paper") == {"gradient_bound": 1.0}
    assert paper_settings(synthetic.dataset, "theory") == {}
    assert paper_settings(digits, "paper") == {}


def test_the_paper_s_constants_can_be_asked_for_by_name(digits):
    assert paper_settings(digits, "paper", problem="shl") == {"gradient_bound": 20.0}
    assert paper_settings(digits, "theory", problem="shl") == {}
    own, named = offline_stage(digits), offline_stage(digits, problem="shl")
    assert named.diameter == 20.0 != own.diameter
    # The start of the linear learners lies in that ball; f0 is the same.
    assert np.linalg.norm(named.head) <= 10 * (1 + 1e-6)
    np.testing.assert_array_equal(named.proba, own.proba)
    for call in (offline_stage, lambda data, problem: paper_settings(data, "paper", problem)):
        with pytest.raises(InputError, match="choose one of 'synthetic', 'shl'"):
            call(digits, problem="shl2019")
