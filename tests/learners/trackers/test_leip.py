from __future__ import annotations

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.learners import LEIP
from priorshift.learners.trackers.leip import sure_from
from priorshift.source import Batch


def whole_set(proba, prior, least, counts):
    """The paper's algorithm for one set, row by row: labels counted, and those of the last pass."""
    counts, order = list(counts), sorted(range(len(proba)), key=lambda i: -max(proba[i]))
    sure = [i for i in order if max(proba[i]) >= least]
    for i in sure:
        counts[int(np.argmax(proba[i]))] += 1

    def call(row):
        scores = [counts[k] * row[k] / prior[k] for k in range(len(prior))]
        return int(np.argmax(scores if sum(scores) > 0 else row))

    for i in order:
        if i not in sure:
            counts[call(proba[i])] += 1
    return [call(row) for row in proba]


@pytest.mark.parametrize("least", [0.5, 0.7, 0.999, 2.0])
def test_the_first_batch_is_the_papers_algorithm(source, batches, least):
    rows = np.concatenate([batch.proba for batch in batches[:8]])
    learner = LEIP(confidence=least, memory=None)
    state = learner.adapt(source, learner.start(source), Batch(rows, np.empty((len(rows), 0))))
    final = whole_set(rows, source.prior, least, np.zeros(3))
    np.testing.assert_array_equal(state.counts, np.bincount(final, minlength=3))


@pytest.mark.parametrize("memory", [None, 40.0])
def test_a_stream_goes_on_from_what_is_left_of_its_counts(source, batches, memory):
    learner, counts = LEIP(memory=memory), np.zeros(3)
    state, least = learner.start(source), sure_from(source)
    for batch in batches[:12]:
        fades = 1.0 if memory is None else (1 - 1 / memory) ** len(batch.proba)
        final = whole_set(batch.proba, source.prior, least, fades * counts)
        counts = fades * counts + np.bincount(final, minlength=3)
        state = learner.adapt(source, state, batch)
        np.testing.assert_allclose(state.counts, counts, atol=1e-9)
        prior = (counts + source.prior) / (counts.sum() + 1)
        np.testing.assert_allclose(learner.prior(source, state), prior, atol=1e-9)


def test_the_share_of_sure_rows_is_the_least_recall(source):
    called = source.proba.argmax(axis=1)
    recall = min(np.mean(called[source.labels == k] == k) for k in range(3))
    share = np.mean(source.proba.max(axis=1) >= sure_from(source))
    assert share == pytest.approx(recall, abs=1 / len(called))


def test_labels_are_counted_as_they_are(source, batches):
    learner, batch = LEIP(), batches[0]
    told = batch._replace(known=np.full(len(batch.proba), 2))
    state = learner.adapt(source, learner.start(source), told)
    np.testing.assert_array_equal(state.counts, [0, 0, len(batch.proba)])


def test_settings_are_checked():
    for bad in ({"confidence": 0.0}, {"memory": -1.0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            LEIP(**bad)
