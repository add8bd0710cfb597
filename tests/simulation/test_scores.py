"""Scores of predictions, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, f1_score, log_loss, roc_auc_score

from priorshift.simulation.scores import roc_auc, score


def rows(n_classes, seed=0, n=400):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 3.0)))
    proba = rng.dirichlet(np.ones(n_classes), n) + 0.5 * np.eye(n_classes)[y]
    proba = np.round(proba, 2)  # with ties
    return y, proba / proba.sum(axis=1, keepdims=True)


def test_two_classes():
    y, proba = rows(2)
    found = score(y, proba)
    assert found.log_loss == pytest.approx(log_loss(y, proba))
    assert found.brier == pytest.approx(brier_score_loss(y, proba[:, 1]))
    assert found.f1 == pytest.approx(f1_score(y, proba.argmax(axis=1)))
    assert found.auc == pytest.approx(roc_auc_score(y, proba[:, 1]))


def test_many_classes():
    y, proba = rows(5)
    found = score(y, proba)
    assert found.log_loss == pytest.approx(log_loss(y, proba))
    assert found.brier == pytest.approx(np.mean(((proba - np.eye(5)[y]) ** 2).sum(axis=1)))
    assert found.f1 == pytest.approx(f1_score(y, proba.argmax(axis=1), average="macro"))
    assert found.auc == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))


def test_classes_that_never_come_are_left_out():
    y, proba = rows(3)
    wider = np.column_stack([proba, np.zeros(len(y))])
    assert score(y, wider).auc == pytest.approx(score(y, proba).auc)
    assert score(y, wider).f1 == pytest.approx(score(y, proba).f1)
    assert np.isnan(roc_auc(np.zeros(3, dtype=bool), np.arange(3.0)))
    assert score(np.zeros(4, dtype=int), np.tile([1.0, 0.0], (4, 1))).auc == 0.5


def test_a_chance_of_none_costs_much_but_not_everything():
    found = score(np.array([1]), np.array([[1.0, 0.0]]))
    assert found.log_loss == pytest.approx(-np.log(np.finfo(float).eps))
