from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift._validation import as_probabilities
from priorshift.errors import InputError, InputTypeError
from priorshift.source.model import (
    LinearModel,
    Model,
    ProbabilityModel,
    check_estimator_object,
    is_fitted,
    log_probabilities,
)


class Says:
    """Whatever ``predict_proba`` is told to answer, for a list of classes."""

    def __init__(self, answer, classes=None):
        self.answer = answer
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        return self.answer


class Scores:
    def __init__(self, answer, classes):
        self.answer, self.classes_ = answer, np.asarray(classes)

    def decision_function(self, X):
        return self.answer


X = np.zeros((2, 1))
P = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])
ABC = np.array(["a", "b", "c"])


def test_columns_are_put_into_sorted_order():
    found = Model(Says(P, ["c", "a", "b"]), ABC).predict_proba(X)
    np.testing.assert_allclose(found, P[:, [1, 2, 0]])
    np.testing.assert_allclose(Model(Says(P), ABC).predict_proba(X), P)


def test_a_class_that_the_model_does_not_know_gets_nothing():
    found = Model(Says(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True), ["a", "c"]), ABC)
    np.testing.assert_array_equal(found.predict_proba(X)[:, 1], 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        P[:, :2],
        P[0],
        P * 2,
        -P,
        np.full((2, 3), np.nan),
        np.array([[1.2, -0.1, -0.1], [1.0, 0.0, 0.0]]),
    ],
)
def test_what_is_no_probability_is_refused(answer):
    with pytest.raises(InputError, match="Says"):
        Model(Says(answer), ABC).predict_proba(X)


def test_small_rounding_is_repaired():
    found = Model(Says(P * (1 + 1e-7)), ABC).predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-15)


def test_decision_functions():
    scores = np.array([-0.5, 2.0])
    found = Model(Scores(scores, [0, 1]), np.array([0, 1])).predict_proba(X)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    many = np.array([[1.0, 2.0, 3.0], [1e3, 0.0, -1e3]])
    found = Model(Scores(many, ["c", "a", "b"]), ABC).predict_proba(X)
    np.testing.assert_allclose(found[0], np.exp([2, 3, 1]) / np.exp([1, 2, 3]).sum())
    np.testing.assert_allclose(found[1], [0, 0, 1], atol=1e-12)


def test_predict_only():
    class Hard:
        def predict(self, X):
            return ["c", "a"]

    np.testing.assert_array_equal(Model(Hard(), ABC).predict_proba(X), [[0, 0, 1], [1, 0, 0]])
    with pytest.raises(InputError, match="does not know"):
        Model(Hard(), np.array(["a", "b"])).predict_proba(X)


def test_linear_model_is_the_softmax_of_its_scores():
    rng = np.random.default_rng(0)
    coef, rows = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    model = LinearModel(coef, [0, 1, 2])
    for x, row in zip(rows, model.predict_proba(rows), strict=True):
        weights = np.exp([coef[k] @ x for k in range(3)])
        np.testing.assert_allclose(row, weights / weights.sum())
    np.testing.assert_array_equal(model.predict(rows), (rows @ coef.T).argmax(axis=1))
    with pytest.raises(InputError):
        model.predict_proba(rows[:, :3])


def test_probability_model():
    model = ProbabilityModel(["x", "y", "z"])
    np.testing.assert_allclose(model.predict_proba(P), P)
    assert model.predict(P).tolist() == ["y", "x"]
    assert model.fit(P) is model
    for wrong in (P[:, :2], 2 * P, P - 0.3):
        with pytest.raises(InputError):
            model.predict_proba(wrong)


@pytest.mark.parametrize("K", [1, 2, 7, 32, 33])
@pytest.mark.parametrize("n", [1, 2, 100])
def test_compiled_or_not_probabilities_are_the_same_bits(n, K):
    rng = np.random.default_rng(n + K)
    exact = rng.dirichlet(np.full(K, 0.3), n)
    rough = exact * rng.uniform(0.9995, 1.0005, (n, 1))
    below = rough - 1e-9 * (rng.random((n, K)) < 0.2)
    for rows in (exact, rough, below, np.asfortranarray(rough)):
        found = ProbabilityModel(range(K)).predict_proba(rows)
        np.testing.assert_array_equal(found, as_probabilities(rows, "rows"), strict=True)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5, 1.5])
def test_probabilities_that_are_none_are_refused_by_row(wrong):
    rows = np.full((3, 2), 0.5)
    rows[1, 0] = wrong
    with pytest.raises(InputError, match="row 1"):
        ProbabilityModel([0, 1]).predict_proba(rows)


def test_log_probabilities():
    np.testing.assert_allclose(log_probabilities(P), [[np.log(p) for p in row] for row in P])
    assert np.isfinite(log_probabilities([[1.0, 0.0]])).all()


def test_what_can_be_an_estimator():
    for wrong in (3, "model", None, LogisticRegression, object()):
        with pytest.raises(InputTypeError):
            check_estimator_object(wrong)
    check_estimator_object(LogisticRegression())
    check_estimator_object(Says(P))


def test_is_fitted(blobs, fitted):
    class Plain:
        def predict(self, X):
            return X

    assert is_fitted(fitted)
    assert is_fitted(Plain())
    assert is_fitted(LinearModel([[1.0]], [0]))
    assert not is_fitted(LogisticRegression())
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert not is_fitted(pipeline)
    assert is_fitted(pipeline.fit(blobs.X, blobs.y))
