"""A world of any number of classes whose f is calibrated by construction."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from priorshift.source import Batch


def plain_source(prior):
    """What trackers read of a source: the class prior, and how many rows were held out."""
    K = len(prior)
    labels = np.repeat(np.arange(K), 50)
    return SimpleNamespace(prior=np.asarray(prior, dtype=float), n_classes=K, labels=labels)


def draw(labels, n_classes, distance, rng):
    """f's probabilities of rows ``x ~ N(distance * e_y, 1)`` under a uniform prior."""
    X = rng.normal(size=(len(labels), n_classes))
    X[np.arange(len(labels)), labels] += distance
    scores = distance * X
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def rounds(mixes, rows, distance, seed=0):
    """Batches and labels, one round for each row of ``mixes`` (T, K)."""
    rng = np.random.default_rng(seed)
    found = []
    for mix in mixes:
        labels = rng.choice(len(mix), rows, p=mix)
        proba = draw(labels, len(mix), distance, rng)
        found.append((Batch(proba, np.zeros((rows, 1))), labels))
    return found


def errors(learner, source, stream, mixes, protocol="adapt-first"):
    """Shares of wrong rows: of the learner, of f, and of f with the true mix."""
    state, wrong, total = learner.start(source), np.zeros(3), 0
    for (batch, labels), mix in zip(stream, mixes, strict=True):
        if protocol == "predict-first":
            proba = learner.predict_proba(source, state, batch)
            state = learner.adapt(source, state, batch)
        else:
            state = learner.adapt(source, state, batch)
            proba = learner.predict_proba(source, state, batch)
        known = batch.proba / source.prior * mix
        wrong += [np.count_nonzero(p.argmax(axis=1) != labels) for p in (proba, batch.proba, known)]
        total += len(labels)
    return SimpleNamespace(learner=wrong[0] / total, fix=wrong[1] / total, known=wrong[2] / total)
