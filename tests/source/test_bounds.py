"""G and B estimated on the way to the head, against the definition, row by row."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from priorshift import LabelShiftClassifier, load
from priorshift.learners import ATLAS, ROGD, UOGD, AtlasAda
from priorshift.source import build_source
from priorshift.source.bounds import PATH, QUANTILE, estimate_bounds

RNG = np.random.default_rng(5)
Y = np.repeat([0, 1, 2], [60, 40, 20])
X = RNG.normal(size=(120, 4)) + 1.5 * np.eye(3, 4)[Y]
MODEL = LogisticRegression().fit(X, Y)


@pytest.fixture(scope="module", params=["softmax", "hinge"])
def known(request):
    return build_source(MODEL, X, Y, loss=request.param)


def loss_of(name, W, x, y):
    z = W @ x
    if name == "softmax":
        return logsumexp(z) - z[y]
    return (z + (np.arange(3) != y)).max() - z[y]


def by_definition(source, aside):
    """Sorted norms of numerical gradients, and sorted losses, of all rows at all points."""
    slopes, losses = [], []
    head, labels = source.head.astype(float), source.labels
    for s in PATH:
        for x, y in zip(source.risk.XT.T.astype(float), labels, strict=True):

            def value(flat, x=x, y=y):
                return loss_of(source.loss.name, flat.reshape(head.shape), x, y)

            # A little off the kinks that the hinge has at zero weights.
            at = (s * head).ravel() + (1e-5 * aside if source.loss.name == "hinge" else 0.0)
            slopes.append(np.linalg.norm(approx_fprime(at, value, 1e-7)))
            losses.append(value((s * head).ravel()))
    return np.sort(slopes), np.sort(losses)


def test_the_quantile_of_every_rows_gradient_and_loss(known):
    slopes, losses = by_definition(known, RNG.normal(size=known.head.size))
    for quantile in (0.5, 0.9, QUANTILE, 0.99):
        found = estimate_bounds(known.risk, known.loss, known.head, known.prior, quantile)
        place = int(np.ceil(quantile * len(slopes))) - 1
        assert found.gradient == pytest.approx(slopes[place], rel=2e-3)
        assert found.loss == pytest.approx(losses[place], rel=2e-3, abs=1e-4)
    assert known.estimated_bounds == estimate_bounds(
        known.risk, known.loss, known.head, known.prior
    )


def test_estimates_lie_below_the_bounds_that_always_hold(known):
    found = known.estimated_bounds
    assert 0 < found.gradient < known.gradient_bound
    assert 0 < found.loss < known.loss_bound


def test_zero_weights_alone_have_a_closed_form():
    source = replace(build_source(MODEL, X, Y), head=np.zeros((3, 5), np.float32))
    lengths = np.sort(np.sqrt(2 / 3) * np.linalg.norm(np.column_stack([X, np.ones(120)]), axis=1))
    assert source.estimated_bounds.gradient == pytest.approx(lengths[113], rel=1e-3)
    assert source.estimated_bounds.loss == pytest.approx(np.log(3), rel=1e-3)


def test_a_class_counts_with_its_prior():
    """Rows of one class ten times as long: with a small prior they are above the quantile."""
    scaled = X * np.where(Y == 2, 10.0, 1.0)[:, None]
    often, rare = (
        build_source(MODEL, scaled, Y, prior=np.array(prior)).estimated_bounds.gradient
        for prior in ((0.3, 0.3, 0.4), (0.49, 0.49, 0.02))
    )
    assert often > 3 * rare


def test_weights_of_rows_count_as_copies_of_them():
    rows = np.repeat(np.arange(120), RNG.integers(1, 4, 120))
    copies = build_source(MODEL, X[rows], Y[rows], diameter=20.0)
    first = build_source(MODEL, X, Y, diameter=20.0, prior=copies.prior)
    order = np.argsort(Y, kind="stable")
    counts = np.bincount(rows, minlength=120)[order].astype(float)
    totals = np.bincount(Y, weights=np.bincount(rows, minlength=120))
    weighted = replace(first.risk, weights=(counts / totals[Y[order]]).astype(np.float32))
    source = replace(first, risk=weighted)
    assert source.estimated_bounds == copies.estimated_bounds


def test_estimates_survive_saving_and_pickling(known, tmp_path):
    clf = LabelShiftClassifier(MODEL, learner=ATLAS(gradient_bound="estimate"))
    clf.fit(X, Y).adapt(X[:20])
    clf.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    before, after = clf.deployment_.source, again.deployment_.source
    assert after.estimated_bounds == before.estimated_bounds
    assert again.deployment_.learner == clf.deployment_.learner
    np.testing.assert_array_equal(
        again.adapt(X[20:40]).predict_proba(X), clf.adapt(X[20:40]).predict_proba(X)
    )
    assert pickle.loads(pickle.dumps(known)).estimated_bounds == known.estimated_bounds


@pytest.mark.parametrize("kind", [UOGD, ATLAS, AtlasAda])
def test_learners_use_the_estimate_of_g_as_if_it_were_given(known, kind):
    given = kind(gradient_bound=known.estimated_bounds.gradient)
    estimated = kind(gradient_bound="estimate")
    assert estimated.steepness(known) == known.estimated_bounds.gradient
    assert kind().steepness(known) == known.gradient_bound
    for name in ("steps", "step"):
        if hasattr(given.start(known), name):
            np.testing.assert_array_equal(
                getattr(estimated.start(known), name), getattr(given.start(known), name)
            )


def test_hedges_rate_with_b():
    source = build_source(MODEL, X, Y)
    B = source.estimated_bounds.loss
    for preset, default in (
        ("theory", source.loss_bound),
        ("paper", source.gradient_bound * source.diameter),
    ):
        plain, estimated = ATLAS(preset=preset), ATLAS(preset=preset, loss_bound="estimate")
        t, N = 100_000, 8  # so late that no rate is cut at 1
        ratio = estimated.rate(source, t, N) / plain.rate(source, t, N)
        assert ratio == pytest.approx(default / B)
        assert ATLAS(preset=preset, loss_bound=B).rate(source, t, N) == estimated.rate(source, t, N)
    ada = AtlasAda(loss_bound="estimate")
    assert ada.rate(source, 400, 8, 0.0) == pytest.approx(min(1.0, 1 / (B * 20)))


@pytest.mark.parametrize("bad", ["guess", 0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [ATLAS, AtlasAda])
def test_a_bound_that_will_not_do_is_refused(kind, bad):
    for setting in ("gradient_bound", "loss_bound"):
        with pytest.raises(ValueError, match=setting):
            kind(**{setting: bad})


def test_who_has_no_linear_model_cannot_estimate():
    with pytest.raises(ValueError, match="rogd has none, give a number"):
        ROGD(gradient_bound="estimate")
    with pytest.raises(TypeError):
        UOGD(loss_bound=1.0)  # there is no Hedge in it
