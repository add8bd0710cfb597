"""scikit-learn's own checks, over the classifier with every learner."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from priorshift import ATLAS, AtlasAda, LabelShiftClassifier
from priorshift.learners import LEARNERS


def _failures(classifier: LabelShiftClassifier) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(classifier, on_fail=None)
    assert len(results) > 40
    wrong = [r for r in results if r["status"] not in ("passed", "skipped")]
    return [f"{r['check_name']}: {r['exception']!r}" for r in wrong]


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_every_learner(learner: str) -> None:
    assert _failures(LabelShiftClassifier(LogisticRegression(), learner=learner)) == []


@pytest.mark.parametrize(
    "classifier",
    [
        LabelShiftClassifier(),
        LabelShiftClassifier(DecisionTreeClassifier(random_state=0), learner="uogd"),
        LabelShiftClassifier(LogisticRegression(), learner=ATLAS(preset="theory")),
        LabelShiftClassifier(LogisticRegression(), learner=AtlasAda(hint="win"), loss="hinge"),
    ],
    ids=["default", "tree", "theory", "hinge"],
)
def test_other_settings(classifier: LabelShiftClassifier) -> None:
    assert _failures(classifier) == []
