from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from priorshift._numerics import reweight
from priorshift.errors import InputError, InputTypeError, PriorshiftError
from priorshift.learners import ATLAS, FIX, FTFWH, FTH, LEARNERS, ROGD, UOGD, AtlasAda, as_learner
from priorshift.learners.linear.ensemble import hedge_weights, linear_proba
from priorshift.learners.linear.hints import Window
from priorshift.learners.settings import LinearSettings, PriorSettings, StepSettings
from priorshift.priors import BBSE, MLLS, RLLS, project_simplex
from priorshift.risk import Blocks, ImplicitSolver  # noqa: F401 (for eval)

LOSSES = arrays(np.float64, (25, 4), elements=st.floats(-3, 3))
HINTS = arrays(np.float64, (25, 4), elements=st.floats(-3, 3))


def meta_regret(losses, hints, rate):
    """Regret of (optimistic) Hedge against the best expert in hindsight."""
    paid, total = 0.0, np.zeros(losses.shape[1])
    for loss, hint in zip(losses, hints, strict=True):
        paid += hedge_weights(total + hint, rate) @ loss
        total = total + loss
    return paid - total.min()


def lemma_12(losses, hints, rate):
    """``(ln N + 2) / eps + eps sum ||l_t - m_t||_inf^2``."""
    gaps = np.abs(losses - hints).max(axis=1)
    return (np.log(losses.shape[1]) + 2) / rate + rate * (gaps**2).sum()


@settings(max_examples=60)
@given(losses=LOSSES, rate=st.floats(0.01, 2))
def test_hedge_keeps_its_bound(losses, rate):
    nothing = np.zeros_like(losses)
    assert meta_regret(losses, nothing, rate) <= lemma_12(losses, nothing, rate) + 1e-9


@settings(max_examples=60)
@given(losses=LOSSES, hints=HINTS, rate=st.floats(0.01, 2))
def test_optimistic_hedge_keeps_its_bound(losses, hints, rate):
    assert meta_regret(losses, hints, rate) <= lemma_12(losses, hints, rate) + 1e-9


@settings(max_examples=30)
@given(losses=LOSSES, rate=st.floats(0.01, 2))
def test_a_perfect_hint_leaves_a_regret_without_rounds(losses, rate):
    assert meta_regret(losses, losses, rate) <= (np.log(4) + 2) / rate + 1e-9


@pytest.mark.parametrize("rate", [0.05, 0.2, 1.0])
def test_hedge_against_an_adversary(rate):
    """The expert with the largest weight is always hit: no constant weighing survives this."""
    total, paid, losses = np.zeros(4), 0.0, []
    for _ in range(400):
        p = hedge_weights(total, rate)
        loss = (p == p.max()).astype(float)
        paid += p @ loss
        total += loss
        losses.append(loss)
    losses = np.array(losses)
    assert paid - total.min() <= lemma_12(losses, np.zeros_like(losses), rate)


@settings(max_examples=60)
@given(losses=arrays(np.float64, 5, elements=st.floats(-1e6, 1e6)), rate=st.floats(1e-4, 10))
def test_hedge_weights_are_the_softmax(losses, rate):
    weights = hedge_weights(losses, rate)
    scores = [np.exp(np.float64(-rate) * (loss - losses.min())) for loss in losses]
    np.testing.assert_allclose(weights, np.array(scores) / sum(scores), rtol=1e-12)
    assert weights.sum() == pytest.approx(1)
    assert weights[losses.argmin()] == weights.max()
    np.testing.assert_allclose(hedge_weights(losses + 1e3, rate), weights, atol=1e-6)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000))
def test_reweight_is_bayes_rule(seed):
    rng = np.random.default_rng(seed)
    proba, ratio = rng.dirichlet(np.ones(3), 5), rng.random(3) * 4
    for row, found in zip(proba, reweight(proba, ratio), strict=True):
        expected = [row[k] * ratio[k] / sum(row[j] * ratio[j] for j in range(3)) for k in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_reweight_keeps_rows_of_which_the_prior_says_nothing():
    proba = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    found = reweight(proba, np.array([0.0, 1.0, 1.0]))
    np.testing.assert_array_equal(found, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(proba, [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])


def test_linear_proba_is_the_softmax_of_the_scores():
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(6, 4))
    for x, row in zip(X, linear_proba(W, X), strict=True):
        scores = np.array([sum(float(w) * v for w, v in zip(ws, x, strict=True)) for ws in W])
        np.testing.assert_allclose(row, np.exp(scores) / np.exp(scores).sum(), rtol=1e-12)
    assert np.isfinite(linear_proba(1e30 * W, X)).all()


@pytest.mark.parametrize("form", ["raw", "clipped", "simplex"])
def test_forms_of_the_estimate(source, batches, form):
    learner = UOGD(preset="paper", prior_form=form)
    for batch in batches[:20]:
        shares = np.array([(batch.labels == k).mean() for k in range(3)])
        raw = np.linalg.solve(source.confusion, shares)
        expected = {"raw": raw, "clipped": np.maximum(raw, 0), "simplex": project_simplex(raw)}
        np.testing.assert_allclose(learner.batch_prior(source, batch), expected[form], atol=1e-9)


def test_the_practice_preset_takes_what_the_held_out_set_shows():
    """It is the default of FTH and FTFWH; what is given by hand stays in both."""
    for kind in (UOGD, FTH, FTFWH):
        assert kind().preset == ("paper" if kind is UOGD else "practice")
        assert kind(preset="paper").estimator == BBSE()
        assert kind(preset="practice").estimator == BBSE(soft=None)
        assert kind(preset="practice", estimator="mlls").estimator == MLLS()
    assert (FTH().calibration, FTH(preset="paper").calibration) == ("auto", "none")
    assert UOGD(preset="practice").form == "simplex"
    assert UOGD(preset="practice").anytime
    assert not UOGD().anytime
    assert ATLAS().preset == AtlasAda().preset == ROGD().preset == "paper"


def test_which_form_is_used_where():
    for kind in (UOGD, ATLAS, AtlasAda):
        assert kind(preset="paper").form == "clipped"
        assert kind(preset="theory").form == "raw"
        assert kind(preset="paper", prior_form="simplex").form == "simplex"
    for learner in (FTH(), FTFWH(), ROGD(preset="paper"), ROGD(preset="theory")):
        assert learner.form == "raw"
    assert FTH(prior_form="simplex").form == "simplex"


def test_an_estimator_by_name_or_object(source, batches):
    by_name, by_object = UOGD(estimator="bbse-soft"), UOGD(estimator=BBSE(soft=True))
    for batch in batches[:3]:
        np.testing.assert_array_equal(
            by_name.batch_prior(source, batch), by_object.batch_prior(source, batch)
        )


NAN, INF = float("nan"), float("inf")


LINEAR = (UOGD, ATLAS, AtlasAda)


@pytest.mark.parametrize(
    ("sharing", "setting"),
    [
        (StepSettings, {"preset": "papers"}),
        (StepSettings, {"preset": None}),
        (PriorSettings, {"prior_form": "round"}),
        (StepSettings, {"horizon": 0}),
        (StepSettings, {"horizon": -5}),
        (StepSettings, {"horizon": "many"}),
        (StepSettings, {"gradient_bound": 0.0}),
        (StepSettings, {"gradient_bound": -1.0}),
        (StepSettings, {"gradient_bound": NAN}),
        (PriorSettings, {"estimator": "em"}),
        (PriorSettings, {"colour": "red"}),
        # Without a refusal these end in weights that are NaN, or in a learner that never moves.
        (StepSettings, {"horizon": NAN}),
        (StepSettings, {"horizon": INF}),
        (StepSettings, {"gradient_bound": INF}),
        # And these in an AttributeError at the first batch.
        (PriorSettings, {"estimator": 3}),
        (LinearSettings, {"sketch": 1000}),
        (LinearSettings, {"sketch": "blocks-1000"}),
    ],
    ids=str,
)
def test_shared_settings_are_checked(sharing, setting):
    kinds = [kind for kind in LEARNERS.values() if issubclass(kind, sharing)]
    assert set(LINEAR) <= set(kinds)
    for kind in kinds:
        with pytest.raises((ValueError, TypeError)):
            kind(**setting)


def test_settings_that_a_learner_does_not_use_are_refused():
    unused = [
        *((kind, setting) for kind in (FTH, FTFWH) for setting in ("horizon", "sketch")),
        *((kind, "gradient_bound") for kind in (FTH, FTFWH)),
        (ROGD, "sketch"),
        *((FIX, setting) for setting in ("estimator", "preset", "horizon")),
    ]
    for kind in (FTH, FTFWH):
        with pytest.raises(InputError, match="preset is 'best'"):
            kind(preset="best")
    for kind, setting in unused:
        with pytest.raises(TypeError, match=setting):
            kind(**{setting: None})
        assert as_learner(kind.name, **{setting: "blocks:20"}) == kind()  # one set serves many


def test_names_become_objects_once():
    learner = AtlasAda(hint="win", estimator="rlls", sketch="blocks:50")
    assert learner.hint == Window()
    assert learner.estimator == RLLS()
    assert learner.sketch == Blocks(50)
    assert learner == AtlasAda(hint=Window(), estimator=RLLS(), sketch=Blocks(50))
    assert replace(learner, horizon=5).hint is learner.hint
    assert eval(repr(learner), globals()) == learner
    assert UOGD().sketch is None


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (UOGD, {"step": 0.0}),
        (UOGD, {"step": -1.0}),
        (UOGD, {"step": NAN}),
        (ROGD, {"step": 0.0}),
        (ROGD, {"gradient": "exact"}),
        (ROGD, {"floor": 0.0}),
        (ROGD, {"floor": NAN}),
        (ROGD, {"width": 0.0}),
        (ROGD, {"width": -0.1}),
        (FTFWH, {"window": 0}),
        (FTFWH, {"window": -2}),
        (ATLAS, {"steps": ()}),
        (ATLAS, {"steps": (0.1, 0.0)}),
        (ATLAS, {"steps": (0.1, -0.2)}),
        (ATLAS, {"steps": (0.1, NAN)}),
        (ATLAS, {"steps": 0.1}),
        (ATLAS, {"meta_rate": 0.0}),
        (ATLAS, {"meta_rate": NAN}),
        (AtlasAda, {"steps": ()}),
        (AtlasAda, {"meta_rate": "confident"}),
        (AtlasAda, {"meta_rate": -1.0}),
        (AtlasAda, {"order": "adapt"}),
        (AtlasAda, {"hint": "crystal"}),
        (AtlasAda, {"hint": None}),
        # An infinite step or rate makes the weights NaN at the first or second batch.
        (UOGD, {"step": INF}),
        (ROGD, {"step": INF}),
        (ATLAS, {"steps": (0.1, INF)}),
        (ATLAS, {"meta_rate": INF}),
        (AtlasAda, {"steps": (INF,)}),
        (AtlasAda, {"meta_rate": INF}),
        (AtlasAda, {"solver": 3}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_settings_of_single_learners_are_checked(kind, setting):
    with pytest.raises((ValueError, TypeError)):
        kind(**setting)


def test_refusals_belong_to_the_family():
    for build in (lambda: UOGD(preset="x"), lambda: UOGD(horizon=0), lambda: as_learner("x")):
        with pytest.raises(PriorshiftError):
            build()


def test_learners_by_name():
    assert list(LEARNERS) == [
        "fix",
        "fth",
        "ftfwh",
        "rogd",
        "uogd",
        "atlas",
        "atlas-ada",
        "auto",
        "em",
        "regimes",
        "tracker",
        "flh-ftl",
        "window-hedge",
        "wavelet",
        "online-fmapls",
        "leip",
        "asap",
    ]
    for name, kind in LEARNERS.items():
        assert as_learner(name) == kind()
    assert as_learner("atlas-ada", hint="win", horizon=7, window=3) == AtlasAda(
        hint="win", horizon=7
    )
    assert as_learner("uogd", horizon=None) == UOGD()
    mine = UOGD(step=0.3)
    assert as_learner(mine) is mine
    with pytest.raises(InputError, match="oracle"):
        as_learner("oracle")
    for wrong in (3, None, UOGD, object()):
        with pytest.raises(TypeError, match=r"derived from priorshift\.Learner"):
            as_learner(wrong)


def test_what_only_looks_like_a_learner_is_refused():
    """One that lacks the base class would lack ``cost``, ``weights`` and the like."""
    own = SimpleNamespace(
        **{step: None for step in ("start", "predict_proba", "adapt", "prior")}, name="own"
    )
    with pytest.raises(InputTypeError, match=r"derived from priorshift\.Learner"):
        as_learner(own)
