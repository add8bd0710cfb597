"""Decisions through the scikit-learn face: actions, thresholds, no answer, prediction sets."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from priorshift import FileFormatError, LabelShiftClassifier, load
from priorshift.errors import InputError, InputTypeError, PriorshiftWarning
from saved_files import forge

COSTS = [[0, 10], [1, 0]]


def draw(n: int, seed: int, share: float = 0.5) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], np.array(["no", "yes"])[y]


MODEL = LogisticRegression().fit(*draw(2000, 0))


def fitted(learner: Any = None, **settings: Any) -> LabelShiftClassifier:
    if learner is None:
        learner, settings = "em", {"safety": "off", **settings}  # quick
    return LabelShiftClassifier(MODEL, learner, **settings).fit(*draw(1000, 1))


def followed(clf: LabelShiftClassifier, share: float) -> LabelShiftClassifier:
    for seed in range(5):
        clf.adapt(draw(400, 10 + seed, share)[0])
    return clf


def test_without_costs_the_most_probable_class_is_decided_on() -> None:
    clf, (X, _) = followed(fitted(), 0.2), draw(100, 2)
    assert clf.decide(X).tolist() == clf.predict(X).tolist()


def test_costs_move_with_the_prior() -> None:
    """A row is an alarm where its adapted probability is at least 1/11."""
    X, _ = draw(500, 2)
    for share in (0.5, 0.05):
        clf = followed(fitted(costs=COSTS), share)
        alarm = clf.predict_proba(X)[:, 1] > 1 / 11
        assert (clf.decide(X) == np.where(alarm, "yes", "no")).all()


def test_actions_that_are_no_classes() -> None:
    X, _ = draw(300, 2)
    clf = fitted(costs={"pass": {"yes": 8, "no": 0}, "look": [1, 1], "stop": [4, 0]})
    assert set(clf.decide(X)) == {"pass", "look", "stop"}
    clf.set_params(costs=np.array([[0, 8], [1, 1], [4, 0]]))
    assert set(clf.decide(X)) == {0, 1, 2}
    with pytest.raises(ValueError, match="shape"):
        clf.set_params(costs=[[1, 2, 3]]).decide(X)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_answers_are_as_often_wrong_as_asked_for(costs: Any) -> None:
    clf = followed(fitted(abstain=0.05, costs=costs), 0.2)
    X, y = draw(20_000, 3, share=0.2)
    answers = clf.decide(X)
    given = np.array([answer is not None for answer in answers])
    assert 0.3 < given.mean() < 0.95
    assert (answers[given] != y[given]).mean() == pytest.approx(0.05, abs=0.02)
    everything = clf.set_params(abstain=None).decide(X)
    assert answers[given].tolist() == everything[given].tolist()


def test_nothing_is_answered_when_nothing_is_sure_enough() -> None:
    assert fitted(abstain=1e-4).decide(draw(50, 2)[0]).tolist() == [None] * 50


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_thresholds_follow_the_prior(share: float) -> None:
    """Against the best threshold for many labelled rows of today."""
    clf = followed(fitted(costs=COSTS), share)
    X, y = draw(40_000, 4, share)
    score, positive = clf.predict_proba(X)[:, 1], y == "yes"

    def f1(threshold: float) -> float:
        called = score >= threshold
        return float(2 * (called & positive).sum() / (called.sum() + positive.sum()))

    best = max(f1(t) for t in np.linspace(0.01, 0.99, 99))
    assert f1(clf.threshold_for("f1")) > best - 0.02
    assert clf.threshold_for("cost") == pytest.approx(1 / 11, abs=0.06)
    called = score >= clf.threshold_for("top-k", share=0.1)
    assert called.mean() == pytest.approx(0.1, abs=0.03)
    called = score >= clf.threshold_for("precision", recall=0.8)
    assert called[positive].mean() == pytest.approx(0.8, abs=0.06)
    called = score >= clf.threshold_for("recall", precision=0.6)
    assert positive[called].mean() == pytest.approx(0.6, abs=0.12)
    assert clf.threshold_for("f-beta", beta=2.0) < clf.threshold_for("f-beta", beta=0.5)


def test_the_positive_class_can_be_named() -> None:
    clf = fitted(costs=[[0, 1], [1, 0]])
    for metric in ("f1", "cost"):
        first = clf.threshold_for(metric, pos_label="no")
        assert first == pytest.approx(1.0 - clf.threshold_for(metric), abs=0.25)
    with pytest.raises(ValueError, match="pos_label is 'maybe'"):
        clf.threshold_for("f1", pos_label="maybe")


def test_one_of_several_classes_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    P = rng.dirichlet(np.ones(3), 600) + 2 * np.eye(3)[y]
    clf = LabelShiftClassifier.from_probabilities(P / 3.0, y, learner="fth")
    with pytest.raises(ValueError, match="pass pos_label="):
        clf.threshold_for("f1")
    assert 0.0 < clf.threshold_for("f1", pos_label=2) < 1.0
    with pytest.raises(ValueError, match="two classes"):
        clf.threshold_for("cost", pos_label=2)


@pytest.mark.parametrize("learner", ["auto", "tracker", "fth", "uogd", "fix"])
def test_every_class_is_covered_under_any_shift(learner: str) -> None:
    clf = followed(fitted(learner), 0.1)
    X, y = draw(10_000, 5)
    for coverage in ("per-class", "exact"):
        sets = clf.predict_set(X, 0.9, coverage=coverage)
        assert sets.shape == (10_000, 2)
        assert sets.dtype == bool
        for k, label in enumerate(clf.classes_):
            # 500 held-out rows of a class: a standard deviation of 1.3 points.
            assert sets[y == label, k].mean() == pytest.approx(0.9, abs=0.045)


def test_marginal_coverage_is_that_of_todays_rows() -> None:
    clf = followed(fitted(), 0.1)
    X, y = draw(10_000, 6, share=0.1)
    sets = clf.predict_set(X, 0.9, coverage="marginal")
    assert sets[np.arange(len(y)), (y == "yes").astype(int)].mean() == pytest.approx(0.9, abs=0.03)
    assert sets.sum() < clf.predict_set(X, 0.9).sum()


def test_a_class_that_the_prior_has_none_of_is_not_in_every_set() -> None:
    """Its adapted probability is 0 everywhere: f0 decides."""
    clf = fitted("fth")
    clf.adapt(draw(300, 7, share=0.0)[0] - 2.0)
    assert clf.prior_[1] == 0.0
    X, y = draw(4000, 8)
    sets = clf.predict_set(X)
    assert sets[y == "yes", 1].mean() == pytest.approx(0.9, abs=0.045)
    assert sets[y == "no", 1].mean() < 0.6


def test_exact_sets_need_a_model_of_other_rows() -> None:
    clf = LabelShiftClassifier(LogisticRegression(), "em").fit(*draw(300, 1))
    assert clf.predict_set(draw(5, 2)[0]).shape == (5, 2)
    with pytest.raises(ValueError, match="pass a fitted model"):
        clf.predict_set(draw(5, 2)[0], coverage="exact")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"abstain": 2}, "abstain, the share of wrong answers, is 2"),
        ({"abstain": "often"}, "abstain"),
        ({"costs": [[1, 2, 3]]}, "there are 2 classes"),
        ({"costs": [[0, 1], [1, 0], [0.2, 0.2]], "abstain": 0.1}, "no answers"),
        ({"costs": {"pass": [0, 1], "stop": [1, 0]}, "abstain": 0.1}, "no answers"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(**settings)


def test_calls_that_are_refused_change_nothing() -> None:
    clf, (X, _) = followed(fitted(), 0.2), draw(10, 2)
    before = clf.stream_
    for call in (
        lambda: clf.predict_set(X, 90),
        lambda: clf.predict_set(X, coverage="all"),
        lambda: clf.predict_set(X[:, :1]),
        lambda: clf.threshold_for("auc"),
        lambda: clf.threshold_for("cost"),
        lambda: clf.decide(X[:, :1]),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    assert clf.stream_ is before


def test_what_is_kept_of_the_held_out_set_follows_the_stream() -> None:
    clf = fitted()
    before = clf.threshold_for("top-k", share=0.2)
    assert followed(clf, 0.02).threshold_for("top-k", share=0.2) < before
    assert clf.reset().threshold_for("top-k", share=0.2) == before
    assert "_held_out" not in pickle.loads(pickle.dumps(clf)).__dict__
    assert copy.deepcopy(clf).threshold_for("top-k", share=0.2) == before


@pytest.mark.parametrize(
    "settings",
    [
        {"costs": COSTS, "abstain": 0.1},
        {"costs": np.array([[0, 8], [1, 1], [4, 0]])},
        {"costs": {"pass": {"yes": 8, "no": 0}, 3: [1, 1]}},
        {"abstain": 0.05},
    ],
)
def test_settings_survive_clone_and_file(settings: dict[str, Any], tmp_path: Path) -> None:
    clf, (X, _) = followed(fitted(**settings), 0.2), draw(200, 2)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.decide(X).tolist() == clf.decide(X).tolist()
    assert again.predict_set(X).tolist() == clf.predict_set(X).tolist()
    assert again.threshold_for("f1") == clf.threshold_for("f1")
    assert again.get_params()["abstain"] == clf.get_params()["abstain"]
    other = clone(clf)
    assert set(other.get_params()) == set(clf.get_params())
    refitted = fitted(costs=other.costs, abstain=other.abstain)
    assert refitted.decide(X).tolist() == clf.reset().decide(X).tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("abstain", 3.0),
        ("abstain", "0.1"),
        ("abstain", True),
        ("costs", [[0.0, 1.0, 2.0]]),
        ("costs", [["a", "b"]]),
        ("costs", {"pairs": [[["x"], [0.0, 1.0]]]}),
        ("costs", "cheap"),
    ],
)
def test_forged_settings_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    fitted(costs=COSTS, abstain=0.1).save(tmp_path / "model")
    change = lambda manifest, _: manifest["extra"].update({name: value})  # noqa: E731
    forge(tmp_path / "model", tmp_path / "forged", change)
    with pytest.raises(FileFormatError):
        load(tmp_path / "forged")


def test_arguments_in_the_wrong_place_are_told_where_they_belong() -> None:
    clf, X = fitted(), draw(5, 9)[0]
    with pytest.raises(InputError, match=r"or ask for threshold_for\('recall', precision=0.8\)"):
        clf.threshold_for(precision=0.8)
    with pytest.raises(InputError, match=r"or ask for threshold_for\('top-k', share=0.1\)"):
        clf.threshold_for("cost", share=0.1)
    with pytest.raises(InputTypeError, match=r"not costs=: costs and abstain belong to the clas"):
        clf.decide(X, costs=COSTS)
    clf.set_params(costs=COSTS).decide(X)


def test_a_precision_that_the_held_out_rows_do_not_show_is_told() -> None:
    P, y = [0.1] * 40 + [0.6] * 40 + [0.9] * 20, [0] * 40 + [0, 1] * 20 + [1] * 20
    clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kept in (0.5, 0.9, 0.95):  # 20 rows of 21 are 0.952
            assert math.isfinite(clf.threshold_for("recall", precision=kept))
    with pytest.warns(PriorshiftWarning, match="is not shown: only 20 held-out rows are at or"):
        assert math.isfinite(clf.threshold_for("recall", precision=0.9999))
    clf = LabelShiftClassifier.from_probabilities(P[:80], y[:80], learner="fth")
    with pytest.warns(
        PriorshiftWarning, match=r"no threshold keeps precision=0.9: the most .* 0.5;"
    ):
        assert clf.threshold_for("recall", precision=0.9) == math.inf
