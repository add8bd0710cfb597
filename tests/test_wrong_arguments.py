"""A wrong argument of any public method is refused in our own words, and changes nothing."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift import Fleet, LabelShiftClassifier, load, report
from priorshift.errors import InputError, InputTypeError, PriorshiftError

P = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 30)
Y = np.array(["no", "no", "yes", "yes"] * 30)
# None of these is a level, a class prior, a number of rows, a metric, a label or a path.
WRONG = (
    "x",
    b"x",
    -1,
    float("nan"),
    1j,
    10**400,
    {},
    {"no": 0.5, "yes": 0.5},
    [0.5],
    [None, 1],
    np.array([[0.5, 0.5]]),
    np.array(["a", "b"]),
    object(),
    len,
)


@pytest.fixture(scope="module")
def clf():
    return LabelShiftClassifier.from_probabilities(P, Y, "fth").adapt(P[:9], batch_id="a")


CALLS = {
    "prior_interval": lambda clf, v: clf.prior_interval(level=v),
    "performance level": lambda clf, v: clf.performance(v),
    "performance prior": lambda clf, v: clf.performance(prior=v),
    "performance last": lambda clf, v: clf.performance(last=v),
    "performance rows": lambda clf, v: clf.performance(rows=v),
    "predict_set level": lambda clf, v: clf.predict_set(P[:3], v),
    "predict_set coverage": lambda clf, v: clf.predict_set(P[:3], coverage=v),
    "threshold_for": lambda clf, v: clf.threshold_for(v),
    "threshold_for beta": lambda clf, v: clf.threshold_for("f-beta", beta=v),
    "threshold_for share": lambda clf, v: clf.threshold_for("top-k", share=v),
    "threshold_for pos_label": lambda clf, v: clf.threshold_for(pos_label=v),
    "costs": lambda clf, v: clf.set_params(costs=v).decide(P[:3]),
    "abstain": lambda clf, v: clf.set_params(abstain=v).decide(P[:3]),
    "adapt y": lambda clf, v: clf.adapt(P[:3], v),
    "adapt timestamp": lambda clf, v: clf.adapt(P[:3], timestamp=v),
    "learn_labels": lambda clf, v: clf.learn_labels("a", v),
    "partial_fit classes": lambda clf, v: clf.partial_fit(P[:3], classes=v),
    "plot classes": lambda clf, v: clf.plot(classes=v),
    "plot x": lambda clf, v: clf.plot(x=v),
    "plot axes": lambda clf, v: clf.plot(axes=v),
    "fleet": lambda clf, v: Fleet(v),
    "fleet ids": lambda clf, v: Fleet(clf).adapt(v, P[:3]),
    "fleet priors": lambda clf, v: Fleet(clf).priors(v),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_refused_in_our_words(clf, name) -> None:
    """Some calls can do with some of the values; none may fail in any other way."""
    refused = 0
    for value in WRONG:
        one = copy(clf)
        try:
            CALLS[name](one, value)
        except PriorshiftError:
            refused += one.stream_ is clf.stream_
    assert refused >= 8


def test_what_the_words_are(clf, tmp_path) -> None:
    with pytest.raises(InputError, match=r"names 1 classes: .*of the 2 classes once; .*'maybe'"):
        clf.performance(prior={"maybe": 1.0})
    with pytest.raises(InputError, match=rf"'{clf.classes_[1]}' is missing"):
        clf.performance(prior={clf.classes_[0]: 1.0})
    with pytest.raises(InputTypeError, match=r"prior is .*: give 2 shares as numbers, in"):
        clf.performance(prior="even")
    with pytest.raises(InputError, match="level is 'x': give a chance between 0 and 1"):
        clf.prior_interval(level="x")
    with pytest.raises(InputError, match="metric is 'nonsense': choose one of 'f1'"):
        clf.threshold_for("nonsense")
    for path in (None, 3, ["a"]):
        with pytest.raises(InputTypeError, match="give the name of a file"):
            clf.save(path)
        with pytest.raises(InputTypeError, match="give the name of a file"):
            load(path)
        with pytest.raises(InputTypeError, match="give the name of a file"):
            report(clf, P).save(path)
    for save in (clf.save, report(clf, P).save):
        with pytest.raises(InputError, match=r"there is no folder .*missing.*make it first"):
            save(tmp_path / "missing" / "file")


def test_before_fit() -> None:
    new = LabelShiftClassifier()
    for ask in (
        lambda: new.history_,
        lambda: new.prior_interval(),
        lambda: new.performance(),
        lambda: new.threshold_for("f1"),
        lambda: new.decide(P),
        lambda: new.plot(),
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize("fitted", [False, True])
def test_a_regressor_is_no_classifier(fitted) -> None:
    for model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        if fitted:
            model.fit(P, Y == "yes")
        with pytest.raises(InputTypeError, match="predicts numbers and not classes: pass a class"):
            LabelShiftClassifier(model).fit(P, Y)
    LabelShiftClassifier(make_pipeline(StandardScaler(), LogisticRegression()), "fth").fit(P, Y)


def test_the_held_out_labels_are_called_y() -> None:
    model = LogisticRegression().fit(P, Y)
    for y in (Y[:-1], np.where(Y == "no", "no", "maybe")):
        with pytest.raises(PriorshiftError, match=r"\by\b") as refused:
            LabelShiftClassifier(model, "fth").fit(P, y)
        assert "y0" not in str(refused.value)
