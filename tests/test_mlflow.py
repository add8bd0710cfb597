"""MLflow's face: log, load, predict; adapting only when it is asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from priorshift import LabelShiftClassifier
from priorshift.mlflow import LabelShiftModel, log_model, save_model

COLUMNS = ["a", "b"]


@pytest.fixture
def clf():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame(rng.normal(size=(200, 2)) + y[:, None], columns=COLUMNS)
    return LabelShiftClassifier(learner="fth").fit(X, np.array(["no", "yes"])[y])


@pytest.fixture
def batch():
    return pd.DataFrame(np.random.default_rng(1).normal(size=(60, 2)) + 1, columns=COLUMNS)


def check(model, clf, batch):
    """A loaded model answers as the classifier, and adapts when it is told to."""
    for adapts in (False, True, False, True):
        found = model.predict(batch, params={"adapt": adapts})
        proba = clf.adapt_predict_proba(batch) if adapts else clf.predict_proba(batch)
        np.testing.assert_array_equal(found[["p_no", "p_yes"]].to_numpy(), proba)
        assert found["label"].tolist() == clf.classes_[proba.argmax(axis=1)].tolist()
    before = clf.n_rounds_
    np.testing.assert_array_equal(model.predict(batch)["p_no"], clf.predict_proba(batch)[:, 0])
    assert clf.n_rounds_ == before == 2


def test_the_model_itself(clf, batch):
    model = LabelShiftModel(clf)
    model.predict(batch)
    assert clf.n_rounds_ == 0
    model.predict(batch, params={"adapt": True})
    assert clf.n_rounds_ == 1
    with pytest.raises(ValueError, match="only adapt"):
        model.predict(batch, params={"learn": True})


def test_a_frame_for_a_classifier_without_names(clf, batch):
    plain = LabelShiftClassifier(learner="fth").fit(np.asarray(batch), np.asarray(batch)[:, 0] > 1)
    assert len(LabelShiftModel(plain).predict(batch)) == 60


def test_saved_and_loaded(clf, batch, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    save_model(clf, tmp_path / "model")
    assert not list((tmp_path / "model").rglob("*.pkl"))
    check(mlflow.pyfunc.load_model(str(tmp_path / "model")), clf, batch)


def test_logged_and_loaded(clf, batch, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small one knows no database
    mlflow.set_tracking_uri(f"file:{tmp_path}/runs")
    with mlflow.start_run():
        info = log_model(clf)
    check(mlflow.pyfunc.load_model(info.model_uri), clf, batch)
