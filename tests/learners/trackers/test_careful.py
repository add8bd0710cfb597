"""The hypothesis that nothing has changed, against brute force, and what it is there for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from noisy_scores import scores, source_of
from priorshift import LabelShiftClassifier, load
from priorshift.errors import InputError, InputTypeError
from priorshift.learners import FTH, Auto, Careful, Tracker
from priorshift.learners.trackers import careful
from priorshift.learners.trackers.careful import (
    answered,
    drawn_back,
    reluctant,
    settled,
    still_proba,
)
from priorshift.learners.trackers.components import likelihoods
from priorshift.risk import compiled
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel


def played(learner, source, priors, batch_size, seed=1):
    """Beliefs of each round, and the last state."""
    rng = np.random.default_rng(seed)
    K, state, beliefs = source.n_classes, learner.start(source), []
    for prior in priors:
        labels = rng.choice(K, batch_size, p=prior)
        state = learner.adapt(source, state, source.read(scores(labels, K, rng)))
        beliefs.append(state.unchanged.belief)
    return np.array(beliefs), state


def test_its_class_prior_is_that_of_held_out_set_and_stream_together():
    source = source_of(400, 3)
    learner = Careful(Tracker())
    skewed = np.array([0.4, 0.35, 0.25])
    rng = np.random.default_rng(3)
    labels = rng.choice(3, 4000, p=skewed)
    proba = scores(labels, 3, rng)
    held = learner.held(source)
    nothing = learner.start(source).unchanged._replace(by_evidence=1.0)
    for rows in np.split(np.arange(4000), 200):
        ratios = likelihoods(held.source, Batch(proba[rows], np.empty((20, 0))))
        # A tracker that is always as good: the belief stays, and all that moves is the prior.
        called = proba[rows].argmax(axis=1)
        nothing = learner._weighed(source, nothing, ratios, called, 0.0)._replace(by_evidence=1.0)
    found = held.source.prior * np.exp(nothing.moved)
    found /= found.sum()
    every = np.concatenate([source.proba, proba]) / held.source.prior

    def loss(logits):
        prior = np.exp(logits - logits.max())
        return -np.log(every @ (prior / prior.sum())).mean()

    best = np.exp(minimize(loss, np.zeros(3), tol=1e-10).x)
    assert np.abs(found - best / best.sum()).max() < 0.02
    assert np.abs(found - 1 / 3).max() > 0.04


def test_belief_follows_bayes_rule_of_two_states():
    source = source_of(300, 3)
    learner = Careful(Tracker())
    held, state = learner.held(source), learner.start(source)
    state = state._replace(unchanged=state.unchanged._replace(by_evidence=0.999))
    batch = source.read(scores(np.array([2]), 3, np.random.default_rng(0)))
    seen = learner.learner.judged(held.source, state.inner, batch, predict=False)
    first = 0.999 * (1 - learner.chance(held)) + 0.001 * learner.chance(held)
    own = np.prod(seen.evidence @ held.source.prior)
    other = math.exp(seen.nats)
    after = learner.adapt(source, state, batch)
    odds = first * own / ((1 - first) * other)
    assert after.unchanged.by_evidence == pytest.approx(odds / (1 + odds))
    assert after.unchanged.belief == pytest.approx(5 * odds / (1 + 5 * odds))


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("rows", [30, 600])
def test_single_rows_cost_little_more_than_with_the_better_of_the_two(rows, kernels, monkeypatch):
    """The bound of the module's text, with the losses of the mixture from the beliefs."""
    monkeypatch.setattr(compiled, "available", lambda: kernels)
    source, learner = source_of(rows, 3), Careful(Tracker())
    held, rng = learner.held(source), np.random.default_rng(rows)
    chance, ahead = learner.chance(held), []
    for concentration in (1e6, 1e6, 3.0, 1.0, 0.1):  # from no shift to one class alone
        state, losses = learner.start(source), np.zeros(3)
        for label in rng.choice(3, 150, p=rng.dirichlet(np.full(3, concentration))):
            before = state.unchanged
            belief = (1 - chance) * before.by_evidence + chance * (1 - before.by_evidence)
            # A row that says nothing shows where the forecast of the next one starts.
            moved = learner._weighed(source, before, np.ones((1, 3)), np.zeros(1, int), 0.0).moved
            prior = held.prior * np.exp(moved)
            batch = source.read(scores(np.array([label]), 3, rng))
            state, seen = learner.observed(source, state, batch)
            own, other = (seen.evidence @ (prior / prior.sum())).item(), math.exp(seen.nats)
            losses -= np.log([own, other, belief * own + (1 - belief) * other])
        assert losses[2] <= losses[:2].min() + 150 * math.log(1 / (1 - chance)) + math.log(2)
        ahead.append(losses[0] - losses[1])
    assert min(ahead) < -1 < 10 < max(ahead)  # either was the better one


@pytest.mark.parametrize("shares", [[0.3, 0.3, 0.4], [0.15, 0.25, 0.6]])
def test_rows_of_a_batch_are_weighed_as_if_they_came_one_by_one(shares, monkeypatch):
    """But for the chances of a change, a round, kept small here, and terms of third order."""
    monkeypatch.setattr(careful, "_MOST_CHANCE", 1e-3)
    source = source_of(300, 3)
    learner, rng = Careful(Tracker()), np.random.default_rng(4)
    held, start = learner.held(source), learner.start(source).unchanged
    proba = scores(rng.choice(3, 30, p=shares), 3, rng)
    ratios = likelihoods(held.source, Batch(proba, np.empty((30, 0))))
    called = proba.argmax(axis=1)
    nats = np.log(ratios @ held.source.prior)  # of one that stays where it is
    at_once, single = learner._weighed(source, start, ratios, called, nats.sum()), start
    for i in range(30):
        single = learner._weighed(source, single, ratios[i : i + 1], called[i : i + 1], nats[i])

    def odds(belief):
        return math.log(belief / (1 - belief))

    assert odds(at_once.by_evidence) == pytest.approx(odds(single.by_evidence), abs=0.12)
    assert (odds(single.by_evidence) > 0.5) == (shares[2] > 0.5)


@pytest.mark.parametrize("batch_size", [1, 20])
def test_without_a_shift_it_believes_that_nothing_has_changed(batch_size):
    source = source_of(300, 3)
    beliefs, state = played(Careful(Tracker()), source, np.tile(source.prior, (300, 1)), batch_size)
    assert beliefs[-1] > 0.8
    assert np.abs(Careful(Tracker()).prior(source, state) - source.prior).max() < 0.05


@pytest.mark.parametrize("batch_size", [1, 20])
def test_a_shift_is_believed_and_adapting_is_then_the_trackers(batch_size):
    source = source_of(300, 3)
    priors = np.tile([0.05, 0.05, 0.9], (200, 1))
    beliefs, state = played(Careful(Tracker()), source, priors, batch_size)
    assert beliefs[-1] < 0.02
    assert Careful(Tracker()).prior(source, state)[2] > 0.75


def test_a_larger_caution_needs_more_evidence_and_an_infinite_one_never_adapts():
    source = source_of(60, 3)
    priors = np.tile([0.05, 0.05, 0.9], (60, 1))
    ends = [played(Careful(Tracker(), c), source, priors, 2)[0][-1] for c in (1.0, 16.0)]
    assert ends[0] < 0.1 < 0.3 < ends[1]
    never = Careful(Tracker(), math.inf)
    beliefs, state = played(never, source, priors, 20)
    assert (beliefs == 1.0).all()
    batch = source.read(scores(np.arange(3), 3, np.random.default_rng(5)))
    np.testing.assert_allclose(never.predict_proba(source, state, batch), batch.f0_proba)


def test_what_is_known_well_is_believed_sooner():
    found = []
    for rows in (15, 60, 150, 1500):
        source, learner = source_of(rows, 3), Careful(Tracker())
        assert learner.held(source).fewest == rows // 3
        found.append(learner.chance(learner.held(source)))
    assert found == pytest.approx([1e-3, 2e-3, 3e-3, 3e-3])
    held = Careful(Tracker()).held(source_of(150, 3))
    assert Careful(Tracker(), 16.0).chance(held) == 1e-3
    assert Careful(Tracker(), math.inf).chance(held) == 0.0


def test_an_odd_held_out_set_stays_explained():
    """In doubt, what was learned of a stream that never changed is not forgotten."""
    source, learner = source_of(30, 3), Careful(Tracker())
    state = learner.start(source)
    moved = np.array([0.5, -0.2, -0.3])
    ratios, called = np.full((1, 3), 1.0), np.zeros(1, dtype=np.int64)
    for belief, kept in ((0.9, 1.0), (0.5, 1.0), (0.2, 0.2 * 0.999 / (0.2 * 0.999 + 0.8e-3))):
        before = state.unchanged._replace(by_evidence=belief, moved=moved)
        after = learner._weighed(source, before, ratios, called, 0.0)
        np.testing.assert_allclose(after.moved, kept * moved, atol=1e-12)


def test_classes_that_change_places_change_nothing_else():
    order = np.array([2, 0, 1])
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    P, stream = scores(labels, 3, rng), scores(rng.integers(0, 3, 60), 3, rng)
    found = []
    for places in (np.arange(3), order):
        own = np.argsort(places)[labels]
        source = build_source(ProbabilityModel(classes=np.arange(3)), P[:, places], own)
        learner = Careful(Tracker())
        state = learner.start(source)
        for rows in np.split(stream[:, places], 6):
            state, proba = learner.adapt_predict(source, state, source.read(rows))
        found.append((proba[:, np.argsort(places)], state.unchanged.belief))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-9)


def test_where_calls_are_asked_both_witnesses_have_to_agree():
    source = source_of(3000, 6)
    alone, both = Careful(Tracker()), Careful(Tracker(), calls=True)
    states = [learner.start(source) for learner in (alone, both)]
    assert [len(state.unchanged.calls.counts) for state in states] == [0, 6]
    rng = np.random.default_rng(2)
    for _ in range(30):
        batch = source.read(scores(rng.choice(6, 4, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), 6, rng))
        states = [x.adapt(source, s, batch) for x, s in zip((alone, both), states, strict=True)]
        one, two = (state.unchanged for state in states)
        assert one.by_evidence == two.by_evidence
        assert one.belief == reluctant(one.by_evidence)
        assert two.belief == reluctant(max(two.by_evidence, two.calls.belief)) >= one.belief
    assert two.belief > one.belief + 1e-6


def test_only_learners_that_weigh_batches_can_be_careful():
    with pytest.raises(InputTypeError, match="weighs every batch"):
        Careful(FTH())
    with pytest.raises(InputTypeError, match="weighs every batch"):
        Careful(Careful(Tracker()))
    with pytest.raises(InputError, match="caution"):
        Careful(Auto(), 0.5)


def lost(clf, X, y, batch_size):
    """Points of error that adapting costs, over the source model itself."""
    batches = np.split(X, len(X) // batch_size)
    adapted = np.concatenate([clf.adapt_predict_proba(rows) for rows in batches])
    wrong = [(P.argmax(axis=1) != y).mean() for P in (adapted, clf.source_.read(X).f0_proba)]
    return 100 * (wrong[0] - wrong[1])


@pytest.mark.parametrize("seed", [7, 9])
def test_naive_bayes_with_forty_held_out_rows_comes_to_no_harm(seed):
    """Eight features that say the same: a model that is far too sure, and nothing shifts."""
    rng = np.random.default_rng(seed)

    def rows(y):
        common = rng.normal(size=(len(y), 1))
        return common + 0.6 * rng.normal(size=(len(y), 8)) + 1.2 * y[:, None]

    y = rng.integers(0, 2, 1000)
    model = GaussianNB().fit(rows(y), y)
    held = np.repeat([0, 1], 20)
    X_held, y = rows(held), rng.integers(0, 2, 1000)
    X = rows(y)
    on, off = (LabelShiftClassifier(model, safety=s).fit(X_held, held) for s in ("on", "off"))
    assert lost(on, X, y, 20) <= 1.0
    assert lost(off, X, y, 20) > 3.0
    assert on.rehearsal_.rows[0].shift == "none"


def test_many_single_rows_without_a_shift_come_to_no_harm():
    rng = np.random.default_rng(4)
    held, y = np.arange(300) % 10, rng.integers(0, 10, 400)
    P_held, P = scores(held, 10, rng, sharp=1.5), scores(y, 10, rng, sharp=1.5)
    found = [LabelShiftClassifier.from_probabilities(P_held, held, safety=s) for s in ("on", "off")]
    assert lost(found[0], P, y, 1) <= 1.0
    assert lost(found[1], P, y, 1) > 1.5


def texts(K, seed, *extra):
    """Probabilities and labels of a held-out set and a stream: K classes of texts, Zipf-like.

    ``extra`` rows to train on, held out, and of the stream come with one row of every class.
    """
    rng = np.random.default_rng(seed)
    prior = np.arange(1, K + 1) ** -0.5
    words = 0.35 * rng.dirichlet(np.full(300, 0.03), K) + 0.65 * rng.dirichlet(np.ones(300))
    y_train, held, y = (
        np.append(np.arange(K), rng.choice(K, n, p=prior / prior.sum())) for n in extra
    )
    counts = [rng.multinomial(12, words[labels]) for labels in (y_train, held, y)]
    model = MultinomialNB(alpha=0.1).fit(counts[0], y_train)
    P_held, P = (model.predict_proba(rows) for rows in counts[1:])
    return P_held, held, P, y


def test_many_classes_of_texts_with_one_held_out_row_in_some_come_to_no_harm():
    P_held, held, P, y = texts(60, 1, 1140, 140, 940)
    assert (np.bincount(held) == 1).sum() == 10
    found = [LabelShiftClassifier.from_probabilities(P_held, held, safety=s) for s in ("on", "off")]
    assert lost(found[0], P, y, 20) <= 1.0
    assert lost(found[1], P, y, 20) > 4.0


@pytest.mark.parametrize("seed", [0, 6, 11])
def test_few_rows_righted_by_a_map_that_was_chosen_on_them_decide_nothing(seed):
    """40 classes, 130 held-out rows: the map rights 5 to 10 of them more than it spoils."""
    P_held, held, P, y = texts(40, seed, 760, 90, 960)
    clf = LabelShiftClassifier.from_probabilities(P_held, held)
    assert not clf.learner_.held(clf.source_).decides
    assert lost(clf, P, y, 20) <= 0.5


def skewed_rows(n, rng):
    """Rows of two classes with shares .9 and .1, and the exact probabilities of that prior."""
    y = (rng.random(n) < 0.1).astype(int)
    x = rng.normal(size=n) + 1.5 * y
    odds = np.exp(1.5 * x - 1.125) / 9
    return y, np.column_stack([1 / (1 + odds), odds / (1 + odds)])


@pytest.mark.parametrize("how", ["prior", "sample_weight"])
def test_held_out_rows_with_another_prior_are_weighed_by_the_one_that_is_given(how):
    rng = np.random.default_rng(0)
    y, P = skewed_rows(8000, rng)
    rows = np.concatenate([np.flatnonzero(y == 0)[:400], np.flatnonzero(y == 1)[:400]])
    given = {"prior": [0.9, 0.1]} if how == "prior" else {}
    clf = LabelShiftClassifier(ProbabilityModel(classes=[0, 1]), "tracker", **given)
    weight = np.where(y[rows] == 1, 0.1, 0.9) if how == "sample_weight" else None
    clf.fit(P[rows], y[rows], sample_weight=weight)
    for _ in range(40):
        clf.adapt(skewed_rows(50, rng)[1])
    assert abs(clf.prior_[1] - 0.1) < 0.04


def test_a_class_that_the_model_never_named_does_not_take_over():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    P = np.column_stack([scores(y, 2, rng), np.zeros(200)])
    model = ProbabilityModel(classes=[0, 1, 2])
    clf = LabelShiftClassifier(model, "tracker", calibration="none")
    with pytest.warns(UserWarning, match="no row of 2"):
        clf.fit(P, y)
    odd = np.array(P[:20])
    odd[0] = [0.3, 0.3, 0.4]
    for _ in range(3):
        clf.adapt(odd)
    assert clf.prior_[2] < 0.5


@pytest.mark.parametrize("learner", ["auto", "tracker"])
def test_a_class_that_was_gone_for_long_comes_back(learner):
    """With guard and history, as they come."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    clf = LabelShiftClassifier.from_probabilities(scores(y, 3, rng), y, learner)
    for _ in range(1000):
        clf.adapt(scores(rng.integers(0, 2, 20), 3, rng))
    assert clf.prior_[2] < 1e-3
    for _ in range(3):
        proba = clf.adapt_predict_proba(scores(rng.choice(3, 20, p=[0.1, 0.1, 0.8]), 3, rng))
    assert clf.prior_[2] > 0.6
    assert (proba.argmax(axis=1) == 2).mean() > 0.5
    assert not clf.guard_report_.alarm
    past = clf.history_
    assert (past["batches"].sum(), past.index[-1]) == (1003, 1003)
    assert np.isfinite(past.filter(like="prior")).all(axis=None)


def test_labels_that_come_late_are_evidence_of_a_change():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    P = scores(y, 2, rng, sharp=0.1)  # the model knows next to nothing
    clf = LabelShiftClassifier(ProbabilityModel(classes=[0, 1]), "tracker", guard=False).fit(P, y)
    for t in range(20):
        clf.adapt(scores(np.ones(10, int), 2, rng, sharp=0.1), batch_id=t)
    for t in range(20):
        clf.learn_labels(t, np.ones(10, int))
    assert clf.state_.unchanged.belief < 0.01
    assert clf.prior_[1] > 0.8


class Mine(Tracker):
    """A tracker of a user's own."""


def test_a_learner_of_ones_own_is_handed_to_load_as_it_was_given(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    clf = LabelShiftClassifier(ProbabilityModel(classes=[0, 1]), Mine())
    clf.fit(scores(y, 2, rng), y)
    clf.save(tmp_path / "file")
    again = load(tmp_path / "file", learner=Mine())
    assert again.learner_ == clf.learner_
    assert again.rehearsal_ == clf.rehearsal_


def test_what_never_adapts_is_saved_too(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    clf = LabelShiftClassifier(
        ProbabilityModel(classes=[0, 1]), Careful(Tracker(), math.inf), guard=False
    )
    clf.fit(scores(y, 2, rng), y).save(tmp_path / "file")
    again = load(tmp_path / "file")
    assert again.learner_ == clf.learner_
    assert (again.guard, again.on_alarm) == (False, None)


CENTRES = np.array([[0.0, 0.0], [1.6, 0.0], [0.0, 1.6]])


def three_clouds(labels, rng, sharp, apart=1.0):
    """Probabilities of three classes that overlap; right ones where ``sharp`` is 1."""
    x = apart * CENTRES[labels] + rng.normal(size=(len(labels), 2))
    logs = -0.5 * sharp * np.square(x[:, None] - apart * CENTRES).sum(axis=2)
    P = np.exp(logs - logs.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def gained(seed, sharp, apart, prior):
    """What adapting gains, a share of the rows, with 40 held-out rows that have equal classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 40)
    clf = LabelShiftClassifier.from_probabilities(three_clouds(y, rng, sharp, apart), y)
    labels = rng.choice(3, 1200, p=prior)
    return -lost(clf, three_clouds(labels, rng, sharp, apart), labels, 20) / 100


@pytest.mark.parametrize("sharp", [0.5, 1.0, 2.0])
def test_forty_held_out_rows_do_no_harm_without_a_shift(sharp):
    """These differ most from a stream by chance, of 12: up to 8 points were lost."""
    found = [gained(seed, sharp, 1.0, np.full(3, 1 / 3)) for seed in (4, 5, 9)]
    assert min(found) > -0.005


@pytest.mark.parametrize("sharp", [0.5, 1.0, 2.0])
def test_forty_held_out_rows_follow_a_shift_that_a_better_model_sees(sharp):
    """Classes that are easier to tell make the same rows worth more."""
    assert np.mean([gained(seed, sharp, 1.8, [0.04, 0.04, 0.92]) for seed in range(6)]) > 0.025


@pytest.mark.parametrize("n", [20, 60])
def test_a_class_that_no_held_out_row_is_called_does_not_take_over(n):
    """A model that says 0 or 1, and says 0 of every held-out row, the one positive among them."""
    rng = np.random.default_rng(5)
    y = (rng.random(n + 1000) < 0.05).astype(int)
    y[:n] = np.arange(n) == 0
    called = np.where(y == 1, rng.random(len(y)) < 0.5, rng.random(len(y)) < 0.03)
    called[:n] = False
    P = np.eye(2)[called.astype(int)]
    clf = LabelShiftClassifier.from_probabilities(P[:n], y[:n])
    assert lost(clf, P[n:], y[n:], 50) <= 0.0
    assert math.isinf(clf.rehearsal_.caution)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_answers_of_a_timid_model_are_kept_while_a_change_is_in_doubt(seed):
    """Its leads are a hundredth: a few percent of what a tracker says would take its answers."""
    rng = np.random.default_rng(seed)
    held, y = rng.integers(0, 5, 150), rng.integers(0, 5, 400)

    def timid(labels):
        proba = scores(labels, 5, rng, 1.0) ** 0.03
        return proba / proba.sum(axis=1, keepdims=True)

    P_held, P = timid(held), timid(y)
    found = [LabelShiftClassifier.from_probabilities(P_held, held, safety=s) for s in ("on", "off")]
    assert lost(found[0], P, y, 1) <= 0.5
    assert lost(found[1], P, y, 1) > 1.0


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "numpy"])
def test_f0_keeps_its_answers_while_no_change_is_as_likely(kernels, monkeypatch):
    if not kernels:
        monkeypatch.setattr(compiled, "available", lambda: False)
    held = Careful(Tracker()).held(source_of(60, 3))._replace(decides=False)
    still, tracked = np.tile([0.4, 0.35, 0.25], (3, 1)), np.tile([0.1, 0.8, 0.1], (3, 1))
    found = settled(held, np.array([0.9, 0.5, 0.49]), still, tracked)
    assert found.argmax(axis=1).tolist() == [0, 0, 1]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[2], 0.49 * still[2] + 0.51 * tracked[2])
    tie = np.array([[0.5, 0.5, 0.0]])  # of which f0 answers the first
    assert settled(held, 0.9, tie, tracked[:1]).tolist() == tie.tolist()
    free = settled(held._replace(decides=True), 0.5, still, tracked)
    np.testing.assert_allclose(free, 0.5 * (still + tracked))


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_that_look_like_another_class_by_chance_do_no_harm(seed):
    """Two positives of six: all that the tracker sees of positives, it takes for two thirds."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], [194, 6])
    looks = np.where(np.arange(200) >= 198, 0, labels)
    model = ProbabilityModel(classes=np.arange(2))
    clf = LabelShiftClassifier(model, learner="tracker").fit(scores(looks, 2, rng), labels)
    for _ in range(10):
        clf.adapt(scores(rng.binomial(1, 0.3, 100), 2, rng))
    labels = rng.binomial(1, 0.3, 4000)
    rows = scores(labels, 2, rng)
    wrong = [(p.argmax(axis=1) != labels).mean() for p in (clf.predict_proba(rows), rows)]
    assert clf.state_.unchanged.belief < 0.01
    assert wrong[0] <= wrong[1] + 0.01


def test_with_few_rows_an_answer_leaves_f0_only_for_a_class_that_became_likelier():
    source, rng = source_of(30, 4), np.random.default_rng(0)
    held = Careful(Tracker()).held(source)
    assert held.few is not None
    assert held.few.all()
    read, f0 = rng.dirichlet(np.ones(4), (2, 2000))
    ratios = likelihoods(held.source, Batch(read, read))
    lifts = np.array([1.0, 4.0, 0.5, 2.0])
    tracked = ratios * lifts
    tracked /= tracked.sum(axis=1, keepdims=True)
    found = answered(held, 0.0, read, f0, tracked)
    assert found.sum(axis=1) == pytest.approx(1.0)
    lifts = lifts / held.prior
    before, after = f0.argmax(axis=1), found.argmax(axis=1)
    assert (lifts[after] >= lifts[before]).all()
    assert (after != before).any()
    plain = settled(held, 0.0, still_proba(held, read, f0), tracked).argmax(axis=1)
    assert (lifts[plain] < lifts[before]).any()


def test_with_ten_rows_a_class_answers_are_those_of_both_hypotheses_to_the_bit():
    source, rng = source_of(40, 4), np.random.default_rng(1)
    held = Careful(Tracker()).held(source)
    read, f0, tracked = rng.dirichlet(np.ones(4), (3, 500))
    found = answered(held, 0.3, read, f0, tracked)
    np.testing.assert_array_equal(found, settled(held, 0.3, still_proba(held, read, f0), tracked))


def test_classes_with_few_rows_are_drawn_back_and_the_others_share_the_rest():
    rng = np.random.default_rng(2)
    mean, few = rng.dirichlet(np.ones(5)), np.array([True, False, True, False, False])
    prior = rng.dirichlet(np.full(5, 0.3), 1000)
    found = drawn_back(prior, mean, few)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert (found >= 0.0).all()
    own = found[:, few]
    assert (own <= np.maximum(prior, mean)[:, few] + 1e-9).all()
    assert (own >= np.minimum(prior, mean)[:, few] - 1e-9).all()
    shares = prior[:, ~few] / prior[:, ~few].sum(axis=1, keepdims=True)
    rest = shares * (1.0 - own.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found[:, ~few], rest, atol=1e-9)
    np.testing.assert_allclose(drawn_back(prior, mean, np.zeros(5, bool)), prior, atol=1e-9)
    np.testing.assert_allclose(drawn_back(mean[None], mean, few)[0], mean)
