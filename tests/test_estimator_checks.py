"""scikit-learn's own checks, over the classifier with every learner."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from priorshift import ATLAS, AtlasAda, LabelShiftClassifier
from priorshift.learners import LEARNERS

# Scikit-learn gives a list of splits as cv there; here it is a number of folds.
SPLITS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "cv is a number of folds"
    for kind in ("dense", "sparse")
}


def _failures(classifier: LabelShiftClassifier) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(classifier, on_fail=None, expected_failed_checks=SPLITS)
    assert len(results) > 40
    wrong = [r for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    return [f"{r['check_name']}: {r['exception']!r}" for r in wrong]


# The checks are of the classifier's face: one learner of each family, and all in `make slow`.
FAMILIES = ("rogd", "atlas", "tracker", "flh-ftl")


@pytest.mark.parametrize(
    "learner",
    [name if name in FAMILIES else pytest.param(name, marks=pytest.mark.slow) for name in LEARNERS],
)
def test_every_learner(learner: str) -> None:
    # Safety is the classifier's own, and the same around every learner: "default" below has it on.
    classifier = LabelShiftClassifier(LogisticRegression(), learner=learner, safety="off")
    assert _failures(classifier) == []


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
