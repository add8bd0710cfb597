"""LabelShiftClassifier as a user meets it."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from priorshift import (
    ATLAS,
    EM,
    FTH,
    InputError,
    LabelShiftClassifier,
    PriorshiftWarning,
    SourceError,
    Tracker,
    load,
)
from priorshift.learners import LEARNERS

CENTRES = np.array([[0.0, 0.0, 0.0], [1.5, 0.0, 1.0], [0.0, 1.5, 1.0]])
NAMES = np.array(["bear", "cat", "dog"])


def draw(prior: list[float], size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size, p=prior)
    return CENTRES[y] + 0.8 * rng.normal(size=(size, 3)), NAMES[y]


UNIFORM = [1 / 3, 1 / 3, 1 / 3]
SKEWED = [0.05, 0.05, 0.9]


@pytest.fixture(scope="module")
def model() -> Any:
    return LogisticRegression().fit(*draw(UNIFORM, 600, 1))


def fitted(model: Any, learner: Any = "atlas-ada", **settings: Any) -> LabelShiftClassifier:
    return LabelShiftClassifier(model, learner=learner, **settings).fit(*draw(UNIFORM, 900, 2))


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "fix"])
def test_adapting_beats_the_fixed_model(model: Any, learner: str) -> None:
    if learner == "rogd":  # its default step is tuned for 10,000 rounds
        from priorshift import ROGD

        clf = fitted(model, ROGD(horizon=40))
    elif learner in ("uogd", "atlas", "atlas-ada", "asap"):
        clf = fitted(model, LEARNERS[learner](horizon=40))
    else:
        clf = fitted(model, learner)
    for seed in range(40):
        clf.adapt(draw(SKEWED, 50, 100 + seed)[0])
    X, y = draw(SKEWED, 4000, 3)
    assert clf.score(X, y) > model.score(X, y) + 0.01
    assert clf.n_rounds_ == 40
    np.testing.assert_allclose(clf.prior_.sum(), 1.0)
    assert clf.prior_[2] > 0.6


def test_a_fitted_model_is_left_as_it_is(model: Any) -> None:
    before = (model.coef_.tobytes(), model.intercept_.tobytes())
    clf = fitted(model, "atlas").adapt(draw(SKEWED, 50, 5)[0])
    assert (model.coef_.tobytes(), model.intercept_.tobytes()) == before
    assert clf.source_.model.estimator is model


def test_an_unfitted_model_stays_unfitted() -> None:
    estimator = LogisticRegression()
    clf = LabelShiftClassifier(estimator, learner="fth").fit(*draw(UNIFORM, 300, 2))
    assert not hasattr(estimator, "coef_")
    assert clf.score(*draw(UNIFORM, 500, 3)) > 0.7


def test_predict_changes_no_state(model: Any) -> None:
    clf = fitted(model).adapt(draw(SKEWED, 50, 5)[0])
    state = clf.state_
    first = clf.predict_proba(draw(UNIFORM, 50, 6)[0])
    clf.predict(draw(SKEWED, 50, 7)[0])
    assert clf.state_ is state
    np.testing.assert_array_equal(first, clf.predict_proba(draw(UNIFORM, 50, 6)[0]))


def test_string_labels_come_back(model: Any) -> None:
    clf = fitted(model, "uogd")
    assert clf.classes_.tolist() == NAMES.tolist()
    assert set(clf.predict(draw(UNIFORM, 50, 6)[0])) <= set(NAMES)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("prefit", [True, False])
def test_frames_give_the_same_as_arrays(frame: Any, prefit: bool) -> None:
    columns = ["a", "b", "c"]

    def wrap(X: np.ndarray) -> Any:
        return frame(dict(zip(columns, X.T, strict=True)))

    X_train, y_train = draw(UNIFORM, 300, 1)
    X0, y0 = draw(UNIFORM, 300, 2)
    X1, _ = draw(SKEWED, 50, 3)
    results = []
    for make in (np.asarray, wrap):
        estimator = LogisticRegression()
        if prefit:
            estimator.fit(make(X_train), y_train)
        clf = LabelShiftClassifier(estimator, learner="atlas").fit(make(X0), y0).adapt(make(X1))
        results.append(clf.predict_proba(make(X1)))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
    assert clf.feature_names_in_.tolist() == columns


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(20, random_state=0),
        KNeighborsClassifier(),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("prefit", [True, False])
def test_any_classifier(estimator: Any, prefit: bool) -> None:
    if prefit:
        estimator = estimator.fit(*draw(UNIFORM, 400, 1))
    clf = LabelShiftClassifier(estimator, learner=ATLAS(horizon=50)).fit(*draw(UNIFORM, 400, 2))
    for seed in range(10):
        clf.adapt(draw(SKEWED, 50, 100 + seed)[0])
    X, y = draw(SKEWED, 1000, 9)
    assert clf.score(X, y) > 0.8


def test_a_plain_object_with_only_predict() -> None:
    class Rule:
        def predict(self, X: np.ndarray) -> np.ndarray:
            scores = X @ CENTRES.T - (CENTRES**2).sum(axis=1) / 2
            return NAMES[scores.argmax(axis=1)]

    clf = fitted(Rule(), "fth").adapt(draw(SKEWED, 500, 5)[0])
    assert clf.prior_[2] > 0.8


def test_features_by_callable_and_by_transformer(model: Any) -> None:
    scaler = StandardScaler().fit(draw(UNIFORM, 300, 1)[0])
    X, _ = draw(SKEWED, 50, 3)
    one = fitted(model, "uogd", features=scaler).adapt(X).predict_proba(X)
    two = fitted(model, "uogd", features=scaler.transform).adapt(X).predict_proba(X)
    plain = fitted(model, "uogd").adapt(X).predict_proba(X)
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - plain).max() > 1e-6


BAD = {
    "nan": (np.array([[0.0, np.nan, 0.0]]), "NaN in row 0, column 1"),
    "infinity": (np.array([[0.0, 0.0, np.inf]]), "inf"),
    "width": (np.zeros((2, 5)), "5 features"),
    "empty": (np.zeros((0, 3)), "0 sample"),
    "text": (np.array([["a", "b", "c"]]), "text|numeric|string"),
    "one-dimensional": (np.zeros(3), "Reshape your data"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0]], "."),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("method", ["adapt", "predict", "predict_proba"])
def test_bad_batches_are_refused_and_change_nothing(model: Any, kind: str, method: str) -> None:
    clf = fitted(model, "atlas").adapt(draw(SKEWED, 50, 5)[0])
    before = [np.asarray(part).tobytes() for part in clf.state_]
    X, words = BAD[kind]
    with pytest.raises((ValueError, TypeError), match=words):
        getattr(clf, method)(X)
    assert [np.asarray(part).tobytes() for part in clf.state_] == before
    assert clf.n_rounds_ == 1


def test_unknown_names_list_the_known_ones(model: Any) -> None:
    with pytest.raises(InputError, match="'atlas-ada'"):
        fitted(model, "atlass")
    with pytest.raises(InputError, match="'okm'"):
        fitted(model, "atlas-ada", hint="k-means")
    with pytest.raises(InputError, match="hinge"):
        fitted(model, "atlas", loss="squared")
    with pytest.raises(InputError, match="atlas-ada"):
        fitted(model, "atlas", hint="okm")


def test_a_class_missing_from_the_hold_out_is_named(model: Any) -> None:
    X, y = draw(UNIFORM, 300, 2)
    with pytest.warns(PriorshiftWarning, match="no row of cat"):
        clf = LabelShiftClassifier(model, learner="atlas").fit(X[y != "cat"], y[y != "cat"])
    assert clf.classes_.tolist() == NAMES.tolist()


def test_a_singular_confusion_matrix_names_classes_and_sigma() -> None:
    X, y = draw(UNIFORM, 300, 2)
    blind = DummyClassifier(strategy="constant", constant="dog").fit(X, y)
    with pytest.raises(SourceError, match=r"singular value .*bear.*cat"):
        LabelShiftClassifier(blind, learner="atlas").fit(X, y)
    assert (
        LabelShiftClassifier(blind, learner="fix").fit(X, y).predict(X[:2]).tolist() == ["dog"] * 2
    )


def test_too_small_a_hold_out_warns_at_fit_and_refuses_at_adapt() -> None:
    X, y = draw(UNIFORM, 12, 4)
    with pytest.warns(PriorshiftWarning, match="very few rows"):
        clf = LabelShiftClassifier(DummyClassifier(), learner="fth").fit(X, y)
    with pytest.raises(SourceError, match="cannot be inverted"):
        clf.adapt(X)
    assert clf.n_rounds_ == 0


def test_before_fit() -> None:
    clf = LabelShiftClassifier(LogisticRegression())
    for method in ("predict", "adapt"):
        with pytest.raises(NotFittedError):
            getattr(clf, method)(np.zeros((1, 3)))
    assert not hasattr(clf, "classes_")
    with pytest.raises(TypeError, match="pass a classifier"):
        LabelShiftClassifier(3).fit(*draw(UNIFORM, 30, 1))


def test_a_refused_fit_keeps_the_old_one(model: Any) -> None:
    clf = fitted(model, "fth").adapt(draw(SKEWED, 50, 5)[0])
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full((10, 3), np.nan), NAMES[np.arange(10) % 3])
    assert clf.n_rounds_ == 1
    clf.adapt(draw(SKEWED, 50, 6)[0])
    assert clf.n_rounds_ == 2


def test_a_refused_fit_with_other_columns_keeps_the_old_columns(model: Any) -> None:
    clf = fitted(model, "fth")
    with pytest.raises(ValueError, match=r"at least 2 classes"):
        clf.fit(np.zeros((10, 5)), np.repeat("cat", 10))
    assert clf.n_features_in_ == 3
    assert clf.predict(np.zeros((1, 3))).shape == (1,)


def test_labels_as_objects_are_the_same_labels(model: Any) -> None:
    X, y = draw(UNIFORM, 300, 2)
    one = LabelShiftClassifier(model, learner="fth").fit(X, y.astype(object)).predict_proba(X)
    two = LabelShiftClassifier(model, learner="fth").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)


def test_strange_labels_are_named_before_missing_ones(model: Any) -> None:
    X, _ = draw(UNIFORM, 300, 2)
    with pytest.raises(SourceError, match=r"class 0, which the model does not know.*bear"):
        LabelShiftClassifier(model, learner="fth").fit(X, np.arange(300) % 3)


def test_pairwise_scores_are_not_class_scores() -> None:
    X, y = draw(UNIFORM, 300, 2)
    voting = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(InputError, match="ovr"):
        LabelShiftClassifier(voting, learner="fth").fit(X, y)
    rest = SVC(decision_function_shape="ovr").fit(X, y)
    assert LabelShiftClassifier(rest, learner="fix").fit(X, y).score(X, y) > 0.7


def test_estimators_that_need_no_inverse_are_not_refused() -> None:
    X, y = draw(UNIFORM, 300, 2)

    class Timid(ClassifierMixin, BaseEstimator):
        """Always names the first class, but with honest probabilities."""

        classes_ = NAMES

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            P = LogisticRegression().fit(*draw(UNIFORM, 600, 1)).predict_proba(X)
            return 0.4 * P + 0.6 * np.array([1.0, 0.0, 0.0])

    with pytest.raises(SourceError, match="cannot be inverted"):
        LabelShiftClassifier(Timid(), learner=FTH(preset="paper")).fit(X, y)
    practice = FTH()  # takes the probabilities
    assert LabelShiftClassifier(Timid(), learner=practice).fit(X, y).n_rounds_ == 0
    assert LabelShiftClassifier(Timid(), learner=FTH(estimator="mlls")).fit(X, y).n_rounds_ == 0
    clf = LabelShiftClassifier(Timid(), learner=FTH(estimator="bbse-soft")).fit(X, y)
    assert clf.adapt(draw(SKEWED, 300, 3)[0]).prior_[2] > 0.7


def test_a_fitted_object_that_is_not_scikit_learns() -> None:
    class Rule:
        classes_ = NAMES

        def fit(self, X: Any, y: Any) -> Any:
            raise AssertionError("a fitted model is not fitted again")

        def predict(self, X: np.ndarray) -> np.ndarray:
            return NAMES[(X @ CENTRES.T - (CENTRES**2).sum(axis=1) / 2).argmax(axis=1)]

    assert fitted(Rule(), "fix").score(*draw(UNIFORM, 300, 5)) > 0.7


def test_a_model_that_wants_frames_gets_frames() -> None:
    class ByName:
        classes_ = NAMES

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            X = frame[["a", "b", "c"]].to_numpy()
            return NAMES[(X @ CENTRES.T - (CENTRES**2).sum(axis=1) / 2).argmax(axis=1)]

    X, y = draw(UNIFORM, 300, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = LabelShiftClassifier(ByName(), learner="fth").fit(frame, y)
    assert clf.adapt(frame).score(frame, y) > 0.7


def test_text_columns_say_what_to_do(model: Any) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 10, "b": 1.0})
    with pytest.raises(InputError, match=r"column 'a' of X .*features="):
        LabelShiftClassifier(LogisticRegression(), learner="uogd").fit(frame, [0, 1] * 10)
    with pytest.raises(ValueError, match="could not convert"):  # the model's own refusal
        LabelShiftClassifier(LogisticRegression(), learner="fth").fit(frame, [0, 1] * 10)


def test_clones_keep_a_frozen_model(model: Any) -> None:
    clf = clone(LabelShiftClassifier(FrozenEstimator(model), "fth", calibration="none"))
    X, y = draw(UNIFORM, 300, 2)
    got = clf.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(got, model.predict_proba(X), rtol=1e-12)


def test_what_streams_share_cannot_be_written(model: Any) -> None:
    clf = fitted(model, "uogd")
    with pytest.raises(ValueError, match="read-only"):
        clf.state_.estimate[0] = 9.0


def test_measuring_a_model_on_its_own_rows_is_said() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(PriorshiftWarning, match="too few rows for cross-fitting"):
        LabelShiftClassifier(KNeighborsClassifier(1), learner="fix").fit(X, ["a", "b", "c"])


def test_features_of_very_different_scales_are_warned_of(model: Any) -> None:
    X, y = draw(UNIFORM, 300, 2)
    X = X * np.array([1.0, 1.0, 1e4])
    fit = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    with pytest.warns(PriorshiftWarning, match="differ in scale by a factor of 8"):
        LabelShiftClassifier(fit, learner="atlas").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorshiftWarning)
        LabelShiftClassifier(fit, learner="fth").fit(X, y)
        LabelShiftClassifier(fit, learner="atlas", features=fit[:-1]).fit(X, y)


def test_threads_adapt_one_after_the_other(blobs, fitted):
    """No round is lost, and who predicts meanwhile sees one whole state."""
    clf = LabelShiftClassifier(fitted, learner="tracker").fit(blobs.X, blobs.y)
    batches = [blobs.X[start : start + 5] for start in range(0, 100, 5)]

    def adapt() -> None:
        for batch in batches:
            clf.adapt(batch)
            assert np.isfinite(clf.predict_proba(batch)).all()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(adapt) for _ in range(4)]:
            done.result()
    assert clf.n_rounds_ == 80
    assert copy.copy(clf).adapt(batches[0]).n_rounds_ == 81
    assert pickle.loads(pickle.dumps(clf)).adapt(batches[0]).n_rounds_ == 81
    assert clf.n_rounds_ == 80


@pytest.mark.parametrize(
    "missing", [None, float("nan"), pd.NA, pd.NaT], ids=["None", "nan", "NA", "NaT"]
)
def test_a_missing_label_is_named(blobs, fitted, missing):
    y = np.array(["bee", "ant", "cat"], dtype=object)[blobs.y]
    y[7] = missing
    with pytest.raises(InputError, match="y has no label in row 7"):
        LabelShiftClassifier(LogisticRegression()).fit(blobs.X, y)
    with pytest.raises(InputError, match="y has no label in row 7"):
        LabelShiftClassifier(LogisticRegression()).fit(blobs.X, pd.Series(y))


def test_a_masked_label_is_a_missing_one(blobs):
    y = np.ma.masked_array(blobs.y, mask=np.arange(len(blobs.y)) == 3)
    with pytest.raises(InputError, match="y has no label in row 3"):
        LabelShiftClassifier(LogisticRegression()).fit(blobs.X, y)


@pytest.mark.parametrize("learner", ["auto", "em", "fth", Tracker(), EM(share=0.01)])
def test_a_file_gives_the_learner_as_it_was_given(blobs, fitted, learner, tmp_path):
    """A name as the name, an object as an object, with its settings."""
    clf = LabelShiftClassifier(fitted, learner=learner).fit(blobs.X, blobs.y)
    clf.save(tmp_path / "model.priorshift")
    again = load(tmp_path / "model.priorshift")
    assert again.get_params()["learner"] == learner
    assert again.learner_ == clf.learner_


def test_a_file_gives_a_learner_with_a_hint_as_one_object(blobs, fitted, tmp_path):
    clf = LabelShiftClassifier(fitted, "atlas-ada", hint="win").fit(blobs.X, blobs.y)
    clf.save(tmp_path / "model.priorshift")
    again = load(tmp_path / "model.priorshift")
    assert again.get_params()["learner"] == clf.learner_
    assert again.get_params()["hint"] is None


@pytest.mark.parametrize("learner", ["fix", "fth", "tracker", "auto", "uogd"])
def test_a_class_prior_that_is_known_takes_the_place_of_the_learners(model: Any, learner) -> None:
    clf = fitted(model, learner).adapt(draw(SKEWED, 200, 3)[0])
    X, before = draw(UNIFORM, 40, 4)[0], clf.state_
    told = dict(zip(clf.classes_.tolist(), (0.7, 0.1, 0.2), strict=True))
    found = clf.predict_proba(X, prior=[0.7, 0.1, 0.2])
    np.testing.assert_array_equal(clf.predict_proba(X, prior=told), found)
    own = clf.predict_proba(X, prior=clf.source_.prior)
    expected = own * np.array([0.7, 0.1, 0.2]) / clf.source_.prior
    np.testing.assert_allclose(found, expected / expected.sum(axis=1)[:, None], rtol=1e-9)
    if learner in ("fix", "uogd"):
        np.testing.assert_allclose(own, model.predict_proba(X), rtol=1e-9)
    assert clf.state_ is before
    for wrong in ([0.5, 0.5], [0.7, 0.7, 0.2], {0: 1.0}):
        with pytest.raises(ValueError, match="prior"):
            clf.predict_proba(X, prior=wrong)
