"""Labels in a batch, and labels that come after it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from checks import state_bytes
from priorshift.learners import EM, FTFWH, FTH, LEARNERS, Regimes, Tracker, as_learner
from priorshift.learners.trackers.components import evidence_rows, look
from priorshift.learners.trackers.late import Late, believed_change, merged, remembered_batch
from priorshift.source import Batch
from simulated import plain_source, rounds

LATE = [FTH(), FTFWH(window=4), EM(), Regimes(), Tracker()]
NAMES = [learner.name for learner in LATE]


def labelled(batch, y, rng, share=0.5):
    return batch._replace(known=np.where(rng.random(len(y)) < share, y, -1))


def late_run(learner, source, stream, labels, delay):
    """Adapt to unlabelled batches; the labels (-1: none) of each come ``delay`` rounds later."""
    state, kept = learner.start(source), []
    for t, (batch, _) in enumerate(stream):
        before, state = state, learner.adapt(source, state, batch)
        kept.append(remembered_batch(learner, source, before, state, batch, t))
        if t >= delay:
            late = merged(kept[t - delay], labels[t - delay], state.t)[1]
            state = learner.correct(source, state, late)
    return state


@pytest.fixture(scope="module")
def stream(blobs):
    rng = np.random.default_rng(4)
    found = []
    for mix in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8]) * 4:
        y = rng.choice(3, 20, p=mix)
        found.append((blobs.population.draw(y, rng), y))
    return found


@pytest.fixture(scope="module")
def read(source, stream):
    return [(source.read(X), y) for X, y in stream]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_labels_change_no_bit_and_labels_change_the_state(name, source, read):
    learner, rng = as_learner(name, horizon=20), np.random.default_rng(0)
    states = []
    for mark in ("none", "unknown", "some"):
        state = learner.start(source)
        for batch, y in read[:4]:
            if mark == "unknown":
                batch = batch._replace(known=np.full(len(y), -1))
            elif mark == "some":
                batch = labelled(batch, (y + 1) % 3, rng)
            state = learner.adapt(source, state, batch)
        states.append(state)
    assert state_bytes(states[0]) == state_bytes(states[1])
    assert (state_bytes(states[0]) == state_bytes(states[2])) == (name == "fix")
    np.testing.assert_allclose(learner.prior(source, states[2]).sum(), 1.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_predictions_do_not_read_labels(name, source, read):
    learner = as_learner(name, horizon=20)
    state = learner.adapt(source, learner.start(source), read[0][0])
    for batch, y in read[:2]:
        plain = learner.predict_proba(source, state, batch)
        told = learner.predict_proba(source, state, batch._replace(known=(y + 1) % 3))
        assert plain.tobytes() == told.tobytes()


def test_the_evidence_of_labels_is_that_of_counts():
    """A Dirichlet mix of n labelled rows: a ratio of beta functions."""
    alpha = np.array([[1.0, 2.0, 0.5], [4.0, 1.0, 1.0]])
    y = np.array([0, 2, 1, 1, 1, 0, 2])
    batch = Batch(np.full((7, 3), 1 / 3), np.zeros((7, 1)), known=y)
    seen = look(alpha, evidence_rows(plain_source([0.2, 0.3, 0.5]), batch))
    counts = np.bincount(y, minlength=3)

    def log_beta(a):
        return gammaln(a).sum(axis=1) - gammaln(a.sum(axis=1))

    np.testing.assert_allclose(seen.evidence, log_beta(alpha + counts) - log_beta(alpha), atol=1e-6)
    np.testing.assert_allclose(seen.counts, np.tile(counts, (2, 1)), atol=1e-6)


@pytest.mark.parametrize("learner", [FTH(), FTFWH(window=4), FTH(estimator="mlls")])
def test_late_labels_do_what_they_would_have_done_in_time(learner, source, read):
    rng = np.random.default_rng(2)
    labels = [labelled(batch, y, rng).known for batch, y in read]
    state = learner.start(source)
    for (batch, _), known in zip(read, labels, strict=True):
        state = learner.adapt(source, state, batch._replace(known=known))
    late = learner.start(source)
    kept = []
    for t, (batch, _) in enumerate(read):
        before, late = late, learner.adapt(source, late, batch)
        kept.append(remembered_batch(learner, source, before, late, batch, t))
    for record, known in zip(kept, labels, strict=True):
        late = learner.correct(source, late, merged(record, known, late.t)[1])
    np.testing.assert_allclose(
        learner.predict_proba(source, state, read[0][0]),
        learner.predict_proba(source, late, read[0][0]),
        atol=1e-9,
    )


def test_experts_move_by_what_is_left_of_a_row(source, read):
    """The counts are a discounted sum over rounds; replace one row's part in it by its label."""
    learner, row, round_ = EM(rates=(0.9, 0.3, 0.01)), 5, 2
    state, parts, record, own = learner.start(source), [], None, None
    for t, (batch, _) in enumerate(read):
        before, state = state, learner.adapt(source, state, batch)
        counts = before.experts.counts
        parts.append(state.experts.counts - counts * (1 - np.array(learner.rates))[:, None])
        if t == round_:
            record = remembered_batch(learner, source, before, state, batch, t)
            weighted = record.trace * batch.proba[row] / source.prior
            own = weighted / weighted.sum(axis=1, keepdims=True)
    known = np.full(len(read[0][1]), -1)
    known[row] = 1
    found = learner.correct(source, state, merged(record, known, state.t)[1])
    parts[round_] = parts[round_] - own + np.eye(3)[1]
    for j, rate in enumerate(learner.rates):
        total = sum((1 - rate) ** (len(parts) - 1 - s) * part[j] for s, part in enumerate(parts))
        np.testing.assert_allclose(found.experts.counts[j], total, atol=1e-7)


@pytest.mark.parametrize("learner", LATE, ids=NAMES)
def test_a_label_may_be_put_right(learner, source, read):
    def after(*answers):
        start = learner.start(source)
        state = learner.adapt(source, start, read[0][0])
        record = remembered_batch(learner, source, start, state, read[0][0], 0)
        state = learner.adapt(source, state, read[1][0])
        for answer in answers:
            known = np.full(len(read[0][1]), -1)
            known[[3, 4]] = answer
            record, late = merged(record, known, state.t)
            state = learner.correct(source, state, late)
        return learner.prior(source, state), learner.predict_proba(source, state, read[2][0])

    for first, second in zip(after([1, 2]), after([0, 2], [1, 2]), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-9)
    twice, once = after([1, 2], [1, 2]), after([1, 2])
    assert twice[1].tobytes() == once[1].tobytes()


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from(LATE), st.permutations(range(3)), st.integers(0, 3))
def test_permuting_classes_permutes_late_labels(source, seed, learner, order, delay):
    if learner.name in ("fth", "ftfwh"):
        return  # their invariance is that of the estimate
    order, K = np.array(order), 3
    prior = np.array([0.5, 0.3, 0.2])
    stream = rounds(np.tile([0.6, 0.2, 0.2], (6, 1)), 8, 1.5, seed)
    back = np.argsort(order)
    turned = [(Batch(b.proba[:, order], b.features), back[y]) for b, y in stream]
    labels = [np.where(np.arange(8) < 4, y, -1) for _, y in stream]
    turned_labels = [np.where(k >= 0, back[k], -1) for k in labels]
    first = late_run(learner, plain_source(prior), stream, labels, delay)
    second = late_run(learner, plain_source(prior[order]), turned, turned_labels, delay)
    mix = learner.prior(plain_source(prior), first)
    assert mix.shape == (K,)
    assert (mix >= 0).all()
    np.testing.assert_allclose(
        mix[order], learner.prior(plain_source(prior[order]), second), atol=1e-9
    )


@pytest.mark.parametrize("learner", [EM(), Regimes(), Tracker()], ids=["em", "regimes", "tracker"])
@pytest.mark.parametrize("delay", [0, 3, 15])
def test_labels_bring_the_mix_nearer_and_never_further(learner, delay):
    """A weak f, a mix that jumps between two: the distance over all rounds, with and without."""
    source = plain_source(np.full(4, 0.25))
    ends = np.array([[0.7, 0.1, 0.1, 0.1], [0.05, 0.05, 0.3, 0.6]])
    mixes = ends[(np.arange(160) // 40) % 2]
    apart = {0.0: 0.0, 0.2: 0.0, 1.0: 0.0}
    for seed in range(4):
        stream = rounds(mixes, 8, 0.9, seed)
        luck = np.random.default_rng(seed).random((len(mixes), 8))
        for share in apart:
            state, kept = learner.start(source), []
            for t, (batch, y) in enumerate(stream):
                labels = np.where(luck[t] < share, y, -1)
                if delay == 0:
                    batch = batch._replace(known=labels)
                before, state = state, learner.adapt(source, state, batch)
                kept.append((remembered_batch(learner, source, before, state, batch, t), labels))
                if delay and t >= delay:
                    late = merged(*kept[t - delay], state.t)[1]
                    state = learner.correct(source, state, late)
                apart[share] += np.abs(learner.prior(source, state) - mixes[t]).sum()
    assert apart[0.2] <= 1.01 * apart[0.0]
    assert apart[1.0] < 0.98 * apart[0.0]


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_a_batch_that_is_shared_out_anew_keeps_its_rows(seed):
    """Brute force over regimes and rows; whatever the labels, there are as many rows as before."""
    rng = np.random.default_rng(seed)
    source, proba = plain_source([0.3, 0.3, 0.4]), rng.dirichlet(np.ones(3), 5)
    centre, belief = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(4))
    first, before, after = (
        np.where(rng.random(5) < s, rng.integers(0, 3, 5), -1) for s in (0.2, 0.5, 0.9)
    )
    late = Late(Batch(proba, np.empty((5, 0)), known=after), before, first, 2, np.empty((0, 0)))
    found = believed_change(source, late, centre, belief)
    assert abs(found.sum()) < 1e-9

    def shared_out(known):
        weights, counts = belief.copy(), np.zeros((4, 3))
        for h in range(4):
            for i, label in enumerate(known):
                weighted = centre[h] * proba[i] / source.prior
                was = centre[h][first[i]] if first[i] >= 0 else weighted.sum()
                now = centre[h][label] if label >= 0 else weighted.sum()
                weights[h] *= now / was
                counts[h] += np.eye(3)[label] if label >= 0 else weighted / weighted.sum()
        return (weights / weights.sum())[:, None] * counts

    np.testing.assert_allclose(found, shared_out(after) - shared_out(before), atol=1e-5)
