"""Quantifiers of other libraries as prior estimators."""

from __future__ import annotations

import numpy as np
import pytest

from noisy_scores import scores
from priorshift import (
    FTH,
    UOGD,
    FileFormatError,
    ForeignEstimator,
    InputError,
    InputTypeError,
    LabelShiftClassifier,
    load,
)
from priorshift.priors import BBSE, MLLS, estimate_with_labels


class Adjusted:
    """Classify and count, adjusted by the confusion matrix: hard BBSE, written anew."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        hot = np.eye(X.shape[1])[X.argmax(axis=1)]
        self.rates = np.stack([hot[y == k].mean(axis=0) for k in range(X.shape[1])], axis=1)
        return self

    def predict(self, X):
        shares = np.eye(X.shape[1])[X.argmax(axis=1)].mean(axis=0)
        return np.linalg.solve(self.rates, shares)


class Older(Adjusted):
    predict = None

    def quantify(self, X):
        return Adjusted.predict(self, X)


class Aggregative:
    def aggregation_fit(self, posteriors, y):
        self.inner = Adjusted().fit(posteriors, y)

    def aggregate(self, posteriors):
        return self.inner.predict(posteriors)


class Answers:
    """Says what it was told to."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("kind", [Adjusted, Older, Aggregative])
def test_each_protocol_gives_bbse(source, batches, kind):
    foreign = ForeignEstimator(kind())
    for batch in batches[:3]:
        np.testing.assert_allclose(
            foreign.raw(source, batch), BBSE().raw(source, batch), atol=1e-10
        )
    assert not hasattr(foreign.quantifier, "rates")
    assert not hasattr(foreign.quantifier, "inner")


def test_it_is_fitted_once_for_each_source(source, plain_source, batches):
    foreign, before = ForeignEstimator(Adjusted()), Adjusted.fits
    for batch in batches[:4]:
        foreign.raw(source, batch)
    foreign.raw(plain_source, batches[0])
    assert Adjusted.fits == before + 2


def test_a_learner_wraps_it_and_goes_as_with_ours(source, batches):
    ours, theirs = FTH(estimator="bbse"), FTH(estimator=Adjusted())
    assert isinstance(theirs.estimator, ForeignEstimator)
    first, second = ours.start(source), theirs.start(source)
    for batch in batches[:5]:
        first, second = ours.adapt(source, first, batch), theirs.adapt(source, second, batch)
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-10)


def test_features_come_without_the_intercept(source, batches):
    class Width:
        def fit(self, X, y):
            self.width = X.shape[1]
            return self

        def predict(self, X):
            assert X.shape[1] == self.width == 4
            return np.array([0.5, 0.25, 0.25])

    foreign = ForeignEstimator(Width(), on="features")
    assert foreign.raw(source, batches[0]).tolist() == [0.5, 0.25, 0.25]


def test_the_covariance_is_near_that_of_bbse(source, batches):
    own = BBSE().estimate(source, batches[0]).covariance
    found = ForeignEstimator(Adjusted()).estimate(source, batches[0]).covariance
    np.testing.assert_allclose(found, own, atol=0.4 * np.abs(own).max())


@pytest.mark.parametrize(
    "answer",
    [
        np.array([0.5, 0.5]),
        np.array([0.5, 0.5, np.nan]),
        np.array([0.5, 0.5, 0.5]),
        "many",
        None,
        RuntimeError("no idea"),
    ],
    ids=["two", "nan", "sum", "text", "none", "raises"],
)
def test_odd_answers_are_refused_at_the_start(blobs, fitted, answer):
    clf = LabelShiftClassifier(fitted, learner=UOGD(estimator=Answers(answer)))
    with pytest.raises(InputError, match="prior estimator Answers"):
        clf.fit(blobs.X, blobs.y)


def test_a_classifier_is_no_quantifier(blobs, fitted):
    with pytest.raises(InputError, match="must return 3 finite shares"):
        LabelShiftClassifier(fitted, learner=FTH(estimator=fitted)).fit(blobs.X, blobs.y)
    for odd in (object(), Adjusted, 3):
        with pytest.raises(InputTypeError, match="fit"):
            FTH(estimator=odd)
    with pytest.raises(InputError, match="choose one of"):
        ForeignEstimator(Adjusted(), on="labels")


def test_a_file_refers_to_it(blobs, fitted, rounds, tmp_path):
    learner = FTH(estimator=Adjusted())
    clf = LabelShiftClassifier(fitted, learner=learner).fit(blobs.X, blobs.y).adapt(rounds[0])
    clf.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match=r"Adjusted.*load\(path, learner=...\)"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", learner=FTH(estimator=Adjusted()))
    assert again.adapt(rounds[1]).prior_.tobytes() == clf.adapt(rounds[1]).prior_.tobytes()


def test_quapys_methods_agree_with_ours(source, batches):
    from quapy.method import aggregative

    big = batches[0]
    for batch in batches[1:20]:
        big = big._replace(proba=np.concatenate([big.proba, batch.proba]))
    pairs = (
        (aggregative.ACC(), BBSE()),
        (aggregative.PACC(), BBSE(soft=True)),
        (aggregative.EMQ(), MLLS()),
    )
    for theirs, ours in pairs:
        np.testing.assert_allclose(
            ForeignEstimator(theirs).raw(source, big), ours.raw(source, big), atol=5e-3
        )


def test_quapys_density_matching_comes_through_the_door():
    """DyS, of two classes, and KDEy-ML: fitted on f0's held-out answers, asked by a learner."""
    from quapy.method import aggregative

    rng = np.random.default_rng(0)
    for quantifier, K in ((aggregative.DyS(), 2), (aggregative.KDEyML(), 3)):
        labels, prior = np.arange(600) % K, np.array([0.2, 0.8] if K == 2 else [0.1, 0.3, 0.6])
        P_held = scores(labels, K, rng, 2.0)
        learner = FTH(estimator=ForeignEstimator(quantifier))
        clf = LabelShiftClassifier.from_probabilities(P_held, labels, learner)
        for _ in range(4):
            clf.adapt(scores(rng.choice(K, 300, p=prior), K, rng, 2.0))
        np.testing.assert_allclose(clf.prior_, prior, atol=0.06)


def test_labels_and_a_foreign_estimator(source, batches):
    batch = batches[0]
    known = np.full(len(batch.proba), -1)
    known[:5] = [0, 1, 2, 0, 1]
    args = source, batch._replace(known=known)
    np.testing.assert_allclose(
        estimate_with_labels(ForeignEstimator(Adjusted()), *args),
        estimate_with_labels(BBSE(), *args),
        atol=1e-10,
    )
