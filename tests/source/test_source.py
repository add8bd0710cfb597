from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from priorshift.datasets.synthetic import synthetic_problem
from priorshift.errors import InputError, PriorshiftWarning, SourceError
from priorshift.simulation.shifts import PAPER_COURSE, Bernoulli, Sine
from priorshift.source import Batch, build_source
from priorshift.source.confusion import closest_classes, warn_if_weak
from priorshift.source.model import ProbabilityModel

NAMES = np.array(["bee", "ant", "cat"])  # not in sorted order


class Predicts(ClassifierMixin, BaseEstimator):
    """Only ``predict``, around a fitted model."""

    def __init__(self, model=None):
        self.model = model

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.model.predict(X)


def test_confusion_by_counting(blobs, fitted, source):
    predicted = fitted.predict(blobs.X)
    for j in range(3):
        for i in range(3):
            share = np.mean([p == i for p, y in zip(predicted, blobs.y, strict=True) if y == j])
            assert source.confusion[i, j] == pytest.approx(share)
    np.testing.assert_allclose(source.confusion.sum(axis=0), 1)
    assert 0.02 < 1 - np.diag(source.confusion).mean() < 0.5  # f0 is neither perfect nor useless


def test_confusion_against_scikit_learn(blobs, fitted, source):
    expected = confusion_matrix(blobs.y, fitted.predict(blobs.X), normalize="true").T
    np.testing.assert_allclose(source.confusion, expected)


def test_soft_confusion_is_the_mean_probability_of_each_class(blobs, fitted, source):
    proba = fitted.predict_proba(blobs.X)
    for j in range(3):
        np.testing.assert_allclose(source.soft_confusion[:, j], proba[blobs.y == j].mean(axis=0))


def test_numbers_of_the_source(blobs, fitted, source):
    counts = np.bincount(blobs.y)
    np.testing.assert_array_equal(source.counts, counts)
    np.testing.assert_allclose(source.prior, counts / 300)
    roots = np.sqrt(np.linalg.eigvalsh(source.confusion.T @ source.confusion))
    assert source.sigma_min == pytest.approx(roots[0])
    np.testing.assert_allclose(source.confusion_inverse @ source.confusion, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(
        source.soft_confusion_inverse @ source.soft_confusion, np.eye(3), atol=1e-9
    )
    order = np.argsort(blobs.y, kind="stable")
    np.testing.assert_array_equal(source.labels, blobs.y[order])
    np.testing.assert_allclose(source.proba, fitted.predict_proba(blobs.X)[order], atol=1e-12)
    np.testing.assert_array_equal(source.risk.XT[:4].T, blobs.X[order].astype(np.float32))
    np.testing.assert_array_equal(source.risk.XT[4], 1.0)
    assert source.n_classes == 3
    assert source.radius == source.diameter / 2


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_bounds_of_loss_and_gradient_hold_over_the_ball(blobs, fitted, reference, loss):
    source = build_source(fitted, blobs.X, blobs.y, loss=loss)
    rng = np.random.default_rng(0)
    X, y = source.risk.XT.T.astype(np.float64), source.labels
    losses, slopes = [], []
    for i in range(200):
        W = rng.normal(size=source.head.shape)
        if i % 2:  # the worst case: one class against another along a long row
            x = X[np.linalg.norm(X, axis=1).argmax()]
            W = np.outer([1.0, -1.0, 0.0], x)[rng.permutation(3)]
        W *= source.radius / np.linalg.norm(W)
        row = int(np.linalg.norm(X, axis=1).argmax()) if i % 2 else int(rng.integers(300))
        losses.append(reference.loss(loss, W @ X[row], y[row]))
        scores = X @ W.T + (0 if loss == "softmax" else (np.arange(3) != y[:, None]))
        top = scores == scores.max(axis=1, keepdims=True)
        P = np.exp(scores - scores.max(axis=1, keepdims=True)) if loss == "softmax" else top
        P = P / P.sum(axis=1, keepdims=True) - np.eye(3)[y]
        slopes.append((np.linalg.norm(P, axis=1) * np.linalg.norm(X, axis=1)).max())
    assert 0.7 * source.loss_bound < max(losses) <= source.loss_bound
    assert 0.7 * source.gradient_bound < max(slopes) <= source.gradient_bound * (1 + 1e-6)


def test_read_gives_what_the_model_says(blobs, fitted, source):
    batch = source.read(blobs.train_X[:7])
    assert isinstance(batch, Batch)
    np.testing.assert_allclose(batch.proba, fitted.predict_proba(blobs.train_X[:7]), atol=1e-12)
    np.testing.assert_array_equal(batch.features, np.column_stack([blobs.train_X[:7], np.ones(7)]))
    np.testing.assert_array_equal(batch.labels, fitted.predict(blobs.train_X[:7]))
    assert batch.proba.dtype == batch.features.dtype == np.float64
    np.testing.assert_array_equal(source.read(blobs.train_X[:7].tolist()).proba, batch.proba)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        LinearSVC(random_state=0),
        KNeighborsClassifier(5),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_fitted_estimator_is_left_alone(blobs, estimator):
    estimator = copy.deepcopy(estimator).fit(blobs.train_X, blobs.train_y)
    before = copy.deepcopy(estimator)
    source = build_source(estimator, blobs.X, blobs.y)
    assert source.model.estimator is estimator
    assert source.honest
    assert vars(estimator).keys() == vars(before).keys()
    np.testing.assert_array_equal(estimator.predict(blobs.X), before.predict(blobs.X))
    for name in ("coef_", "classes_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(estimator, name, 0), getattr(before, name, 0))


def test_an_unfitted_estimator_is_cloned_and_cross_fitted(blobs):
    """1-NN remembers its own rows: an error of zero on them would be a lie."""
    memory = KNeighborsClassifier(1)
    source = build_source(memory, blobs.X, blobs.y)
    assert not hasattr(memory, "classes_")
    assert source.model.estimator is not memory
    order = np.argsort(blobs.y, kind="stable")
    np.testing.assert_array_equal(source.model.estimator.predict(blobs.X), blobs.y)  # fitted on all
    held = 1 - np.mean(source.proba.argmax(axis=1) == source.labels)
    fresh = KNeighborsClassifier(1).fit(blobs.train_X, blobs.train_y)
    honest = 1 - fresh.score(blobs.X, blobs.y)
    assert honest > 0.15
    assert abs(held - honest) < 0.1
    assert source.honest
    np.testing.assert_array_equal(source.labels, blobs.y[order])


def test_cross_fitting_has_a_seed_of_its_own(blobs):
    first, again, other = (
        build_source(KNeighborsClassifier(1), blobs.X, blobs.y, random_state=seed)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.proba, again.proba)
    assert (first.proba != other.proba).any()


def test_cross_fitting_with_fewer_rows_than_folds(blobs):
    y = blobs.y.copy()
    rare = np.flatnonzero(y == 2)
    keep = np.sort(np.concatenate([np.flatnonzero(y != 2), rare[:3]]))
    source = build_source(LogisticRegression(), blobs.X[keep], y[keep], cv=5)
    assert not source.honest
    assert source.counts[2] == 3


def test_only_predict(blobs, fitted, source):
    hard = build_source(Predicts(fitted), blobs.X, blobs.y)
    np.testing.assert_allclose(hard.confusion, source.confusion)
    np.testing.assert_allclose(hard.soft_confusion, source.confusion)
    assert set(np.unique(hard.read(blobs.X).proba)) == {0.0, 1.0}


def test_only_decision_function(blobs):
    model = RidgeClassifier().fit(blobs.train_X, blobs.train_y)
    source = build_source(model, blobs.X, blobs.y)
    scores = model.decision_function(blobs.X)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(source.read(blobs.X).proba, expected, atol=1e-12)


def test_binary_decision_function(blobs):
    two, held = blobs.train_y < 2, blobs.y < 2
    model = LinearSVC().fit(blobs.train_X[two], blobs.train_y[two])
    source = build_source(model, blobs.X[held], blobs.y[held])
    scores = model.decision_function(blobs.X)
    proba = source.read(blobs.X).proba
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-12)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.predict(blobs.X))


def test_labels_may_be_words(blobs, source):
    words, held = NAMES[blobs.train_y], NAMES[blobs.y]
    named = build_source(LogisticRegression().fit(blobs.train_X, words), blobs.X, held)
    assert named.classes.tolist() == ["ant", "bee", "cat"]
    order = np.array([1, 0, 2])  # ant, bee, cat are the old classes 1, 0, 2
    np.testing.assert_allclose(named.confusion, source.confusion[np.ix_(order, order)], atol=0.02)
    np.testing.assert_array_equal(named.counts, source.counts[order])


@pytest.mark.parametrize("labels", [[10, 20, 30], [-1, 0, 1], [0.0, 1.0, 2.0], [True, False]])
def test_labels_may_be_any_numbers(blobs, labels):
    k = len(labels)
    train, held = blobs.train_y < k, blobs.y < k
    y, y0 = np.array(labels)[blobs.train_y[train]], np.array(labels)[blobs.y[held]]
    source = build_source(LogisticRegression().fit(blobs.train_X[train], y), blobs.X[held], y0)
    assert source.classes.tolist() == sorted(labels)


def test_a_class_that_the_hold_out_lacks_is_named(blobs):
    model = LogisticRegression().fit(blobs.train_X, NAMES[blobs.train_y])
    keep = blobs.y != 2
    with pytest.warns(PriorshiftWarning, match="no row of cat: "):
        source = build_source(model, blobs.X[keep], NAMES[blobs.y[keep]])
    assert source.counts.tolist() == [*np.bincount(blobs.y[keep])[[1, 0]], 0]
    said = model.predict_proba(blobs.X[keep])[:, 2].mean()
    assert source.prior[2] == pytest.approx(said)
    assert source.prior.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(source.confusion[:, 2], [0, 0, 1])
    np.testing.assert_array_equal(source.soft_confusion[:, 2], [0, 0, 1])


def test_one_class_is_too_few(blobs):
    with pytest.raises(SourceError, match="1 class"):
        build_source(LogisticRegression(), blobs.X, np.zeros(300))


class Confused(Predicts):
    """Calls every cat a bee."""

    def predict(self, X):
        said = self.model.predict(X)
        return np.where(said == "cat", "bee", said)


def test_a_singular_confusion_matrix_names_its_classes(blobs):
    rows = np.repeat(np.eye(3), 20, axis=0)
    y = np.repeat(["ant", "bee", "cat"], 20)
    perfect = DecisionTreeClassifier().fit(rows, y)
    source = build_source(Confused(perfect), rows, y)
    with pytest.raises(SourceError, match=r"singular value.*class bee from class cat"):
        _ = source.confusion_inverse
    with pytest.raises(SourceError, match="bee"):
        _ = source.soft_confusion_inverse
    assert source.sigma_min < 1e-8


def test_closest_classes_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(20):
        C = rng.dirichlet(np.ones(5), 5).T
        pairs = [(np.linalg.norm(C[:, a] - C[:, b]), a, b) for b in range(5) for a in range(b)]
        assert closest_classes(C) == min(pairs)[1:]


def test_a_weak_confusion_matrix_is_warned_of(blobs, fitted, source, recwarn):
    warn_if_weak(source.confusion, source.classes, int(source.counts.min()))
    assert not recwarn.list
    rng = np.random.default_rng(0)
    P = np.repeat([[0.49, 0.51], [0.51, 0.49]], 500, axis=0)
    y = rng.integers(0, 2, 1000)
    y[:500] = np.arange(500) % 2
    y[500:] = (np.arange(500) + 0) % 2
    y[0] = 1 - y[0]
    useless = build_source(ProbabilityModel([0, 1]), P, y)
    assert 0 < useless.sigma_min < 0.01
    with pytest.warns(PriorshiftWarning, match="class 0 from class 1"):
        warn_if_weak(useless.confusion, useless.classes, int(useless.counts.min()))


def test_features_by_a_transformer(blobs, fitted):
    pca = PCA(2).fit(blobs.train_X)
    source = build_source(fitted, blobs.X, blobs.y, features=pca)
    batch = source.read(blobs.X[:5])
    np.testing.assert_allclose(batch.features[:, :2], pca.transform(blobs.X[:5]))
    np.testing.assert_array_equal(batch.features[:, 2], 1.0)
    np.testing.assert_allclose(batch.proba, fitted.predict_proba(blobs.X[:5]), atol=1e-12)
    assert source.head.shape == (3, 3)


@pytest.mark.parametrize("intercept", [True, False])
def test_features_by_a_callable(blobs, fitted, intercept):
    source = build_source(fitted, blobs.X, blobs.y, features=np.tanh, intercept=intercept)
    batch = source.read(blobs.X[:5])
    np.testing.assert_array_equal(batch.features[:, :4], np.tanh(blobs.X[:5]))
    assert batch.features.shape[1] == 4 + intercept


def test_features_that_change_their_width_are_refused(blobs, fitted):
    source = build_source(fitted, blobs.X, blobs.y, features=lambda X: np.asarray(X)[:, : len(X)])
    with pytest.raises(InputError, match="columns"):
        source.read(blobs.X[:2])


def test_features_that_are_not_finite_are_refused(blobs, fitted):
    source = build_source(fitted, blobs.X, blobs.y, features=FunctionTransformer(np.abs))
    bad = blobs.X[:3].copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"features\(X\).*row 1"):
        source.read(bad)


def test_the_hold_out_s_prior_may_be_given(blobs, fitted):
    given = build_source(fitted, blobs.X, blobs.y, prior=[0.2, 0.3, 0.5])
    np.testing.assert_array_equal(given.prior, [0.2, 0.3, 0.5])
    for wrong in ([0.5, 0.5], [0.5, 0.6, 0.1], [1.0, 0.0, 0.0], [1.2, -0.1, -0.1]):
        with pytest.raises(InputError):
            build_source(fitted, blobs.X, blobs.y, prior=wrong)


def test_the_head_is_f0_where_f0_is_linear(blobs, fitted, source):
    scores = np.column_stack([blobs.X, np.ones(300)]) @ source.head.T.astype(np.float64)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expected, fitted.predict_proba(blobs.X), atol=1e-5)
    assert source.diameter == pytest.approx(2 * np.linalg.norm(source.head), rel=1e-6)


def test_a_small_diameter_is_kept(blobs, fitted):
    source = build_source(fitted, blobs.X, blobs.y, diameter=1.0)
    assert source.diameter == 1.0
    assert np.linalg.norm(source.head) == pytest.approx(0.5, rel=1e-5)


def test_a_head_of_one_s_own(blobs, fitted):
    W = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(build_source(fitted, blobs.X, blobs.y, head=W).head, W, rtol=1e-6)
    with pytest.raises(InputError, match="shape"):
        build_source(fitted, blobs.X, blobs.y, head=W[:, :4])


@pytest.mark.parametrize("diameter", [0.0, -1.0, float("nan"), float("inf"), 1e-300, 1e300])
def test_bad_diameters(blobs, fitted, diameter):
    with pytest.raises(InputError, match="diameter"):
        build_source(fitted, blobs.X, blobs.y, diameter=diameter)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (X[:-1], y),
        lambda X, y: (X, y[:-1]),
        lambda X, y: (X[:0], y[:0]),
        lambda X, y: (X, None),
        lambda X, y: (X.astype(str), y),
        lambda X, y: (np.where(X > 2, np.nan, X), y),
        lambda X, y: (X, np.where(y == 0, np.nan, y)),
        lambda X, y: (X, np.column_stack([y, y])),
        lambda X, y: (X[0], y),
    ],
)
def test_bad_hold_outs(blobs, fitted, spoil):
    X, y = spoil(blobs.X, blobs.y)
    with pytest.raises((ValueError, TypeError)):
        build_source(fitted, X, y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_beyond_float32_are_refused_or_survived(blobs, fitted):
    """The kernels count in float32: what is infinite there must not become NaN in silence."""
    X = blobs.X.copy()
    X[0, 0] = 1e39
    try:
        source = build_source(fitted, X, blobs.y)
    except ValueError:
        return
    assert np.isfinite(source.risk.XT).all()


def test_frames_are_read(blobs, fitted):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(blobs.X, columns=list("abcd"))
    for estimator in (fitted, LogisticRegression()):
        by_frame = build_source(estimator, frame, pandas.Series(blobs.y))
        by_array = build_source(estimator, blobs.X, blobs.y)
        np.testing.assert_allclose(by_frame.proba, by_array.proba, atol=1e-12)
        np.testing.assert_allclose(
            by_frame.read(frame[:5]).proba, by_array.read(blobs.X[:5]).proba, atol=1e-12
        )


def test_polars_frames_are_read(blobs):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: blobs.X[:, i] for i, name in enumerate("abcd")})
    by_frame = build_source(LogisticRegression(), frame, blobs.y)
    by_array = build_source(LogisticRegression(), blobs.X, blobs.y)
    np.testing.assert_allclose(by_frame.proba, by_array.proba, atol=1e-12)


def test_facts_of_the_synthetic_problem(synthetic):
    """f0 lies on the sphere, and errs on 5.7 % of the held-out set."""
    source = synthetic.source
    assert np.linalg.norm(source.model.estimator.coef_) == pytest.approx(5.0, rel=1e-6)
    assert 4.9 < np.linalg.norm(source.head) < 5.0  # centred over the classes
    assert source.diameter == 10.0
    by_class = 100 * (1 - np.diag(source.confusion))
    np.testing.assert_allclose(by_class, [5.8, 1.2, 10.2], atol=0.1)
    assert by_class @ source.counts / source.counts.sum() == pytest.approx(5.7, abs=0.1)
    np.testing.assert_allclose(source.prior, 1 / 3)
    assert source.risk.XT.shape == (12, 10_000)


def test_f0_of_the_synthetic_problem_gives_the_papers_row_fix(synthetic):
    """Exact errors: the logits of a Gaussian class are Gaussian, and two differences decide."""
    W = synthetic.source.head.astype(np.float64)
    population = synthetic_problem().population
    errors = np.empty(3)
    for k, centre in enumerate(population.centres):
        gaps = W[k] - np.delete(W, k, axis=0)
        law = multivariate_normal(-gaps @ centre, gaps @ population.covariance @ gaps.T)
        errors[k] = 100 * (1 - law.cdf(np.zeros(2)))
    last, even = errors[2], errors.mean()
    course = Bernoulli(course=PAPER_COURSE).weights(10_000, np.random.default_rng(0)).mean()
    assert (even + last) / 2 == pytest.approx(7.87, abs=0.02)  # Lin and Squ
    sine = Sine().weights(40, np.random.default_rng(0)).mean()
    assert (1 - sine) * even + sine * last == pytest.approx(7.34, abs=0.02)
    assert (1 - course) * even + course * last == pytest.approx(7.79, abs=0.02)
