"""The card that a notebook shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

from priorshift import LabelShiftClassifier

P = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.1, 0.9]] * 30)
NAMES = np.array(["<b>a</b>", "<b>a</b>", "c & d", "c & d"] * 30)


class Balance(HTMLParser):
    """That every tag is closed, and what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.said = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        assert tag not in ("script", "img", "link", "iframe")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


@pytest.mark.parametrize("learner", ["auto", "fth", "uogd"])
def test_it_says_what_a_person_wants_to_know(learner) -> None:
    clf = LabelShiftClassifier.from_probabilities(P, NAMES, learner)
    clf.adapt(P[:30]).adapt(P[30:60])
    page = Balance()
    page.feed(clf._repr_html_())
    page.close()
    assert page.open == []
    text = " ".join(page.said)
    for part in ("source", "120 held-out rows", learner, "2 batches", "accuracy", "guard", "shift"):
        assert part in text
    assert "<b>a</b>" in page.said
    assert re.search(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]", text)
    bundle = clf._repr_mimebundle_()
    assert bundle["text/html"] == clf._repr_html_()
    assert bundle["text/plain"].startswith("LabelShiftClassifier(")


def test_before_fit_it_is_scikit_learns() -> None:
    assert "sk-" in LabelShiftClassifier()._repr_html_()
    assert set(LabelShiftClassifier()._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.mark.parametrize("fitted", [True, False])
def test_who_wants_text_gets_text(fitted) -> None:
    clf = LabelShiftClassifier(learner="fth")
    if fitted:
        clf = LabelShiftClassifier.from_probabilities(P, NAMES, "fth")
    with config_context(display="text"):
        assert not hasattr(clf, "_repr_html_")
        assert set(clf._repr_mimebundle_()) == {"text/plain"}


def test_many_classes_are_cut() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 20)
    Q = rng.dirichlet(np.ones(12), 240) + np.eye(12)[y]
    clf = LabelShiftClassifier.from_probabilities(Q / Q.sum(axis=1, keepdims=True), y, "fth")
    assert "and 6 rarer classes" in clf._repr_html_()
