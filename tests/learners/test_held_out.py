"""What a stream would predict of the held-out rows: as new rows of their classes have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier
from priorshift.calibration.base import row_losses
from priorshift.learners.trackers import correction
from priorshift.learners.trackers.careful import Careful

PLAIN = ("tracker", "em", "regimes", "fth", "ftfwh", "rogd", "fix", "flh-ftl", "uogd")
CENTRES = np.random.default_rng(0).normal(size=(3, 20))


def draw(n: int, seed: int, mix: Any = (1, 1, 1)) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=np.divide(mix, np.sum(mix)))
    return 0.5 * CENTRES[y] + rng.normal(size=(n, 20)), y


POOR = LogisticRegression().fit(
    *draw(40, 1)
)  # few rows: calibration and correction have to mend it


def followed(learner: str, rows: int = 400, **settings: Any) -> LabelShiftClassifier:
    clf = LabelShiftClassifier(POOR, learner, **settings).fit(*draw(rows, 2))
    for seed in range(4):
        clf.adapt(draw(100, 10 + seed, (8, 1, 1))[0])
    return clf


@pytest.mark.parametrize("learner", PLAIN)
def test_without_a_fit_on_them_rows_are_predicted_like_any_others(learner: str) -> None:
    """With nothing fitted to the held-out set, its rows in a batch say the same."""
    clf = followed(learner, calibration="none", safety="off")
    batch = clf.source_.held_out
    expected = clf.deployment_.predict_proba(clf.stream_, batch)
    assert clf.deployment_.predict_held_out(clf.stream_) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("learner", "safety"), [("auto", "on"), ("auto", "off"), ("tracker", "on")]
)
def test_held_out_rows_are_predicted_as_well_as_new_ones(learner: str, safety: str) -> None:
    """And not as well as what was fitted to them predicts them."""
    clf = followed(learner, safety=safety)
    deployment, stream, source = clf.deployment_, clf.stream_, clf.source_
    X, y = draw(30_000, 3)
    by_class = np.array([1.0, 1.0, 1.0]) / 3

    def loss(proba: Any, labels: Any) -> float:
        rows = row_losses(proba, labels)
        return float(by_class @ [rows[labels == k].mean() for k in range(3)])

    new = loss(clf.predict_proba(X), y)
    honest = loss(deployment.predict_held_out(stream), source.labels)
    fitted = loss(
        deployment.predict_proba(stream, source.read(source.risk.XT[:-1].T)), source.labels
    )
    assert abs(honest - new) < 0.06
    if learner == "auto":
        found = source.derived["correction"]
        assert found.used
        assert fitted < honest - 0.04


def test_rows_that_the_correction_was_not_fitted_to_are_read_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(correction, "_MOST_ROWS", 200)
    clf = followed("auto", safety="off")
    source, stream = clf.source_, clf.stream_
    found = source.derived["correction"]
    assert found.used
    proba = clf.deployment_.predict_held_out(stream)
    others = np.setdiff1d(np.arange(len(source.labels)), correction.some_rows(source))
    assert len(others) > 100
    expected = clf.deployment_.predict_proba(stream, source.held_out.rows(others))
    assert proba[others] == pytest.approx(expected, abs=1e-9)
    assert np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9


def test_each_half_is_predicted_by_the_model_of_the_other() -> None:
    """Written out for one row of each half."""
    clf = followed("auto", safety="off")
    source, state = clf.source_, clf.state_
    found = source.derived["correction"]
    proba = clf.deployment_.predict_held_out(clf.stream_)
    rows = correction.some_rows(source)
    trust = state.weights * (1 - 1e-4) + 1e-4 / 2
    tracker = clf.learner_
    assert not isinstance(tracker, Careful)
    from priorshift.learners import Tracker
    from priorshift.source import Batch

    for place in (0, 1):
        read = Batch(np.exp(found.logs[place : place + 1]), np.empty((1, 0)))
        plain = Tracker().predict_proba(source, state.tracker, read)[0]
        tilt = state.models[1 - place] @ found.components[place]
        bent = plain * np.exp(tilt)
        expected = trust[0] * plain + trust[1] * bent / bent.sum()
        assert proba[rows[place]] == pytest.approx(expected / expected.sum(), abs=1e-5)


def test_at_an_alarm_they_are_f0s_own() -> None:
    clf = followed("tracker")
    assert clf.stream_.guard is not None
    for share in (1.0, 0.25):
        stream = clf.stream_._replace(guard=clf.stream_.guard._replace(share=share))
        mixed = clf.deployment_.predict_held_out(stream)
        adapted = clf.deployment_.learner.predict_held_out(clf.source_, stream.state)
        expected = share * clf.source_.f0_proba + (1 - share) * adapted
        assert mixed == pytest.approx(expected)


def test_a_sketch_leaves_nothing_to_predict_for_linear_learners() -> None:
    clf = followed("uogd", sketch="coreset:60")
    with pytest.raises(ValueError, match="a sketch has replaced"):
        clf.predict_set(draw(5, 4)[0])
    assert clf.predict_set(draw(5, 4)[0], coverage="exact").shape == (5, 3)
    assert followed("auto", sketch="coreset:60").predict_set(draw(5, 4)[0]).shape == (5, 3)
