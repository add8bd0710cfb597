"""What users of scikit-learn, pandas, polars and Arrow expect to work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from checks import state_bytes
from priorshift import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.river import LabelShiftStream

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def clf(blobs, fitted):
    return LabelShiftClassifier(fitted, learner="tracker", safety="off").fit(blobs.X, blobs.y)


def test_partial_fit_is_adapt(clf, rounds, blobs, fitted):
    other = LabelShiftClassifier(fitted, learner="tracker", safety="off").fit(blobs.X, blobs.y)
    clf.adapt(rounds[0], {3: 1}, batch_id="monday", timestamp=60.0).adapt(rounds[1])
    other.partial_fit(rounds[0], {3: 1}, batch_id="monday", timestamp=60.0)
    other.partial_fit(rounds[1], None, [2, 0, 1])
    assert state_bytes(clf.state_) == state_bytes(other.state_)
    assert other.history_["time"].iloc[0] == 60.0
    other.learn_labels("monday", {0: 1})


def test_the_first_partial_fit_is_fit(blobs, fitted):
    clf = LabelShiftClassifier(fitted, learner="fth").partial_fit(blobs.X, blobs.y, [0, 1, 2])
    assert clf.n_rounds_ == 0
    assert clf.partial_fit(blobs.X[:50]).n_rounds_ == 1
    with pytest.raises(ValueError, match="y"):
        LabelShiftClassifier(fitted, learner="fth").partial_fit(blobs.X)


def test_partial_fit_learns_no_new_classes(clf, rounds):
    before = state_bytes(clf.state_)
    with pytest.raises(InputError, match="learns no new classes"):
        clf.partial_fit(rounds[0], classes=[0, 1, 2, 3])
    with pytest.raises(InputError, match="learns no new classes"):
        LabelShiftClassifier(learner="fth").partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1, 2])
    assert state_bytes(clf.state_) == before


class Router(ClassifierMixin, BaseEstimator):
    """A meta-estimator as scikit-learn's are: it hands on what its estimator asked for."""

    def __init__(self, estimator):
        self.estimator = estimator

    def partial_fit(self, X, y=None, **params):
        routed = process_routing(self, "partial_fit", **params)
        self.estimator.partial_fit(X, y, **routed.estimator.partial_fit)
        return self

    def get_metadata_routing(self):
        mapping = MethodMapping().add(caller="partial_fit", callee="partial_fit")
        router = MetadataRouter(owner=self)
        return router.add(estimator=self.estimator, method_mapping=mapping)


def test_time_and_name_of_a_batch_are_routed(clf, rounds):
    with sklearn.config_context(enable_metadata_routing=True):
        clf.set_partial_fit_request(timestamp=True, batch_id="key")
        Router(clf).partial_fit(rounds[0], timestamp=3600.0, key="monday")
        clf.set_partial_fit_request(batch_id=False)
        with pytest.raises(TypeError, match="key"):
            Router(clf).partial_fit(rounds[0], key="tuesday")
    assert clf.history_["time"].tolist() == [3600.0]
    clf.learn_labels("monday", {0: 1})


def test_score_is_accuracy_under_the_present_class_prior(clf, blobs):
    found = clf.score(blobs.X, blobs.y)
    assert found == np.mean(clf.predict(blobs.X) == blobs.y)
    weights = (blobs.y == 2).astype(float)
    recall = np.mean(clf.predict(blobs.X)[blobs.y == 2] == 2)
    assert clf.score(blobs.X, blobs.y, sample_weight=weights) == pytest.approx(recall)


def test_in_a_pipeline(blobs):
    pipe = make_pipeline(StandardScaler(), LabelShiftClassifier(learner="fth"))
    pipe.fit(blobs.train_X, blobs.train_y)
    pipe[-1].adapt(pipe[:-1].transform(blobs.X))
    assert pipe[-1].n_rounds_ == 1
    assert pipe.score(blobs.X, blobs.y) > 0.6
    pipe.set_output(transform="pandas")
    found = pipe.transform(blobs.X[:5])
    assert found.columns.tolist() == ["p_0", "p_1", "p_2"]
    np.testing.assert_array_equal(found.to_numpy(), pipe.predict_proba(blobs.X[:5]))
    stacked = make_pipeline(LabelShiftClassifier(learner="fix"), LogisticRegression())
    assert stacked.fit(blobs.train_X, blobs.train_y).score(blobs.X, blobs.y) > 0.6


@pytest.mark.parametrize(
    ("library", "frame"), [("pandas", pd.DataFrame), ("polars", polars.DataFrame)]
)
def test_frames_in_and_out(clf, blobs, library, frame):
    assert isinstance(clf.transform(blobs.X), np.ndarray)
    found = clf.set_output(transform=library).transform(blobs.X)
    assert isinstance(found, frame)
    assert list(found.columns) == clf.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found.to_numpy(), clf.predict_proba(blobs.X))
    assert isinstance(
        clf.predict_proba(blobs.X), np.ndarray
    )  # what scikit-learn's own tools expect


def test_the_index_of_a_frame_is_kept(blobs):
    frame = pd.DataFrame(blobs.X, columns=NAMES, index=np.arange(len(blobs.X)) + 1000)
    clf = LabelShiftClassifier(learner="fth").fit(frame, blobs.y).set_output(transform="pandas")
    assert clf.transform(frame[5:9]).index.tolist() == [1005, 1006, 1007, 1008]


class ArrowTable:
    """A table that can do nothing but hand out Arrow's C stream, as those of many libraries."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "arrow"])
def test_arrow_in(blobs, kind):
    """A table of Arrow is read as what the held-out set came in."""
    table = polars.DataFrame(blobs.X, schema=NAMES)
    held_out = {
        "array": blobs.X,
        "pandas": pd.DataFrame(blobs.X, columns=NAMES),
        "polars": table,
        "arrow": ArrowTable(table),
    }[kind]
    clf = LabelShiftClassifier(learner="fth").fit(held_out, blobs.y)
    expected = clf.predict_proba(table if kind == "arrow" else held_out)
    np.testing.assert_allclose(clf.predict_proba(ArrowTable(table)), expected, rtol=1e-12)
    assert clf.adapt(ArrowTable(table[:40])).n_rounds_ == 1
    if kind != "array":
        with pytest.raises(ValueError, match=r"names|columns"):
            clf.predict_proba(ArrowTable(table.rename({"a": "z"})))


def test_clone_search_and_frozen(blobs, fitted):
    clf = LabelShiftClassifier(FrozenEstimator(fitted), learner="fth", calibration="none")
    again = clone(clf)
    assert again.get_params(deep=False).keys() == clf.get_params(deep=False).keys()
    assert clone(clf.set_params(learner="em")).learner == "em"
    search = GridSearchCV(clf.set_params(learner="fth"), {"learner": ["fix", "fth"]}, cv=2)
    assert search.fit(blobs.X, blobs.y).best_estimator_.n_rounds_ == 0
    assert cross_val_score(again, blobs.X, blobs.y, cv=2, scoring="neg_log_loss").min() > -2


def test_tags_say_what_it_is():
    tags = LabelShiftClassifier().__sklearn_tags__()
    assert (tags.estimator_type, tags.target_tags.required) == ("classifier", True)
    assert tags.transformer_tags is not None


def test_rivers_pipelines(clf, rounds):
    from river import compose, evaluate, metrics

    rows = [dict(zip(NAMES, row, strict=True)) for row in np.concatenate(rounds[:20]).tolist()]
    model = compose.Select(*NAMES) | LabelShiftStream(clf, 10, features=NAMES)
    labels = clf.predict(np.concatenate(rounds[:20])).tolist()
    stream = ((row, label) for row, label in zip(rows, labels, strict=True))
    found = evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    assert found.get() > 0.7
