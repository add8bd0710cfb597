from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from priorshift.risk import Hinge, RiskData, Softmax
from priorshift.source import build_source
from priorshift.source.head import fit_head, linear_weights
from priorshift.source.model import LinearModel


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "build",
    [
        lambda: LogisticRegression(),
        lambda: LogisticRegression(fit_intercept=False),
        lambda: LinearDiscriminantAnalysis(),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        lambda: make_pipeline(StandardScaler(with_mean=False), LogisticRegression()),
        lambda: make_pipeline(StandardScaler(with_std=False), LogisticRegression()),
        lambda: make_pipeline(StandardScaler(), StandardScaler(), LogisticRegression()),
        lambda: make_pipeline("passthrough", LogisticRegression()),
    ],
    ids=["lr", "no-bias", "lda", "scaled", "unit", "centred", "twice", "passed"],
)
def test_weights_reproduce_the_probabilities(blobs, classes, build):
    keep, held = blobs.train_y < classes, blobs.X
    X = 3 * blobs.train_X[keep] + 5  # far from centred, so that a wrong mean shows
    model = build().fit(X, blobs.train_y[keep])
    W = linear_weights(model, classes, intercept=True)
    assert W.shape == (classes, 5)
    np.testing.assert_allclose(W.sum(axis=0), 0, atol=1e-9)
    expected = model.predict_proba(3 * held + 5)
    np.testing.assert_allclose(softmax(with_ones(3 * held + 5) @ W.T), expected, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_without_an_intercept(blobs, classes):
    keep = blobs.train_y < classes
    X, y = blobs.train_X[keep], blobs.train_y[keep]
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    W = linear_weights(model, classes, intercept=False)
    assert W.shape == (classes, 4)
    np.testing.assert_allclose(softmax(X @ W.T), model.predict_proba(X), atol=1e-9)
    unit = make_pipeline(
        StandardScaler(with_mean=False), LogisticRegression(fit_intercept=False)
    ).fit(X, y)
    W = linear_weights(unit, classes, intercept=False)
    np.testing.assert_allclose(softmax(X @ W.T), unit.predict_proba(X), atol=1e-9)


def test_a_bias_does_not_fit_where_there_is_no_intercept(blobs, fitted):
    assert linear_weights(fitted, 3, intercept=False) is None
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(blobs.X, blobs.y)
    assert linear_weights(scaled, 3, intercept=False) is None


def test_models_that_are_not_linear_have_no_weights(blobs):
    for model in (
        GaussianNB(),
        make_pipeline(MinMaxScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), GaussianNB()),
    ):
        assert linear_weights(model.fit(blobs.X, blobs.y), 3, intercept=True) is None


def test_a_linear_svm_of_pairs_is_no_linear_model_of_classes(blobs):
    """SVC compares classes in pairs, and three classes have three pairs: the shape misleads."""
    model = SVC(kernel="linear").fit(blobs.train_X, blobs.train_y)
    W = linear_weights(model, 3, intercept=True)
    if W is not None:
        agree = np.mean((with_ones(blobs.X) @ W.T).argmax(axis=1) == model.predict(blobs.X))
        assert agree > 0.9


def test_rows_follow_the_sorted_classes(blobs, fitted):
    """A model may list its classes in any order; the head's rows are in the sorted one."""
    turned = LinearModel(fitted.coef_[[2, 0, 1]], classes=[2, 0, 1])
    source = build_source(turned, blobs.X, blobs.y, intercept=False)
    batch = source.read(blobs.X)
    proba = softmax(batch.features @ source.head.T.astype(np.float64))
    np.testing.assert_allclose(proba, batch.proba, atol=1e-5)


def test_scores_that_are_no_logits_still_give_a_sane_start(blobs):
    model = SGDClassifier(random_state=0).fit(blobs.train_X, blobs.train_y)
    source = build_source(model, blobs.X, blobs.y)
    agree = (source.read(blobs.X).features @ source.head.T).argmax(axis=1)
    np.testing.assert_array_equal(agree, model.predict(blobs.X))


@pytest.fixture(scope="module")
def offline(blobs):
    X = with_ones(blobs.X)
    return X, blobs.y, RiskData.of(X, blobs.y, 3), np.bincount(blobs.y) / 300


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_fit_in_the_ball_obeys_kkt(offline, reference, radius):
    """On the sphere the gradient points against W: ``grad = -lambda W`` with lambda >= 0."""
    X, y, data, prior = offline
    W = fit_head(data, Softmax(), prior, radius)
    assert np.linalg.norm(W) == pytest.approx(radius, rel=1e-9)
    gradient = reference.value_and_gradient("softmax", X, y, W, prior)[1]
    cosine = -(gradient * W).sum() / np.linalg.norm(gradient) / radius
    assert cosine > 1 - 1e-3


@pytest.mark.parametrize("radius", [0.5, 1.5])
def test_fit_in_the_ball_against_scipy(offline, reference, radius):
    X, y, data, prior = offline

    def objective(flat):
        value, gradient = reference.value_and_gradient("softmax", X, y, flat.reshape(3, 5), prior)
        return value, gradient.ravel()

    best = minimize(
        objective,
        np.zeros(15),
        jac=True,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    W = fit_head(data, Softmax(), prior, radius)
    assert objective(W.ravel())[0] == pytest.approx(best.fun, abs=1e-5)
    np.testing.assert_allclose(W.ravel(), best.x, atol=5e-3)


def test_fit_in_a_large_ball_is_the_free_optimum(offline, reference):
    X, y, data, prior = offline
    W = fit_head(data, Softmax(), prior, 1e4)
    assert np.linalg.norm(W) < 100
    gradient = reference.value_and_gradient("softmax", X, y, W, prior)[1]
    assert np.linalg.norm(gradient) < 2e-3


def test_fit_without_a_ball_is_ridge(offline, reference):
    X, y, data, prior = offline
    W = fit_head(data, Softmax(), prior, None)
    gradient = reference.value_and_gradient("softmax", X, y, W, prior)[1] + W / 300
    assert np.linalg.norm(gradient) < 2e-3


@pytest.mark.parametrize("radius", [0.8, None])
def test_fit_with_the_hinge(offline, reference, radius):
    X, y, data, prior = offline
    W = fit_head(data, Hinge(), prior, radius)
    value = reference.value_and_gradient("hinge", X, y, W, prior)[0]
    penalty = 0.0 if radius else 0.5 / 300
    total = value + penalty * (W**2).sum()
    rng = np.random.default_rng(0)
    for scale in np.geomspace(0.01, 3, 100):
        other = W + scale * rng.normal(size=W.shape) / 4
        if radius:
            other *= min(1.0, radius / np.linalg.norm(other))
        rival = reference.value_and_gradient("hinge", X, y, other, prior)[0]
        assert total <= rival + penalty * (other**2).sum() + 0.02  # tau log K and rounding


def test_a_weighted_prior_changes_the_fit(offline):
    _, _, data, prior = offline
    plain = fit_head(data, Softmax(), prior, 1.0)
    tilted = fit_head(data, Softmax(), np.array([0.05, 0.05, 0.9]), 1.0)
    assert tilted[2, -1] > plain[2, -1] + 0.1
