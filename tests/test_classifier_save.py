"""Saving and loading through the scikit-learn face."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift import FileFormatError, InputError, LabelShiftClassifier, PriorshiftWarning, load
from priorshift.learners import LEARNERS


def draw(n: int, seed: int, share: float = 0.5) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], np.array(["no", "yes"])[y]


BATCHES = [draw(20, 20 + t, share=0.1 * t)[0] for t in range(6)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_loaded_classifier_goes_on_as_if_it_had_never_stopped(
    learner: str, tmp_path: Path
) -> None:
    clf = LabelShiftClassifier(learner=learner).fit(*draw(120, 1))
    for X in BATCHES[:3]:
        clf.adapt(X)
    clf.save(tmp_path / "model")
    again = load(str(tmp_path / "model"))
    for X in BATCHES[3:]:
        assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
        clf.adapt(X)
        again.adapt(X)
        assert again.prior_.tobytes() == clf.prior_.tobytes()
        assert again.predict(X).tolist() == clf.predict(X).tolist()
    assert again.n_rounds_ == clf.n_rounds_ == 6
    assert again.n_features_in_ == 3
    again.save(tmp_path / "twice")
    assert load(tmp_path / "twice").prior_.tobytes() == clf.prior_.tobytes()


def test_frames_keep_their_column_names(tmp_path: Path) -> None:
    X, y = draw(120, 1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), LogisticRegression())
    clf = LabelShiftClassifier(model, "uogd").fit(frame, pd.Series(y))
    clf.adapt(frame[:30]).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    assert again.feature_names_in_.dtype == object
    assert again.predict_proba(frame).tobytes() == clf.predict_proba(frame).tobytes()
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


class Sign:
    """A model of the user's own."""

    def predict(self, X: Any) -> Any:
        return np.array(["no", "yes"])[(np.asarray(X).sum(axis=1) > 1.5).astype(int)]


def double(X: Any) -> Any:
    return 2 * np.asarray(X)


def test_objects_that_the_file_only_refers_to(tmp_path: Path) -> None:
    clf = LabelShiftClassifier(Sign(), "uogd", features=double).fit(*draw(120, 1))
    with pytest.warns(PriorshiftWarning, match="only refers to") as caught:
        clf.save(tmp_path / "model")
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    with pytest.raises(FileFormatError, match=r"Sign.*estimator="):
        load(tmp_path / "model")
    with pytest.raises(FileFormatError, match=r"double.*features="):
        load(tmp_path / "model", estimator=Sign())
    again = load(tmp_path / "model", estimator=Sign(), features=double)
    assert again.predict_proba(BATCHES[0]).tobytes() == clf.predict_proba(BATCHES[0]).tobytes()


def test_an_unfitted_classifier_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        LabelShiftClassifier().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_settings_of_numpy_types_can_be_saved(blobs, fitted, tmp_path):
    clf = LabelShiftClassifier(
        fitted, "fth", random_state=np.int64(5), cv=np.int32(4), diameter=np.float32(3.0)
    ).fit(blobs.X, blobs.y)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.random_state, again.cv, again.diameter) == (5, 4, 3.0)


def test_paths_of_every_kind(tmp_path: Path) -> None:
    clf = LabelShiftClassifier(learner="fth").fit(*draw(60, 1))
    for name in (os.fsencode(tmp_path / "bytes"), str(tmp_path / "\udcff")):
        clf.save(name)
        assert load(name).n_rounds_ == 0
    for name in (tmp_path / ("a" * 300), f"{tmp_path}/a\0b"):
        with pytest.raises(InputError, match="no path of a file"):
            clf.save(name)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_label_memory_of_numpy_is_saved(tmp_path: Path) -> None:
    clf = LabelShiftClassifier(learner="fth", label_memory=np.int64(3)).fit(*draw(60, 1))
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").label_memory == 3
