from __future__ import annotations

import numpy as np
import pytest

from checks import every_learner
from priorshift.source import build_source
from priorshift.source.model import LinearModel

# To these, twice the rows are twice the evidence.
EVIDENCE_GROWS = {"auto", "em", "regimes", "tracker", "flh-ftl", "window-hedge", "wavelet"}
EVIDENCE_GROWS |= {"online-fmapls", "leip"}
ORDER = np.array([2, 0, 1])  # new class ORDER[k] is old class k


def probabilities(learner, source, rounds):
    """What the learner predicts, and believes, in each round, before it adapts."""
    state, seen, priors = learner.start(source), [], []
    for X in rounds:
        batch = source.read(X)
        seen.append(learner.predict_proba(source, state, batch))
        priors.append(learner.prior(source, state))
        state = learner.adapt(source, state, batch)
    return np.array(seen), np.array(priors)


def room(learner):
    """Implicit steps are solved to a tolerance, everything else to the rounding of float32."""
    return 4e-3 if learner.name == "atlas-ada" else 1e-4


@pytest.fixture(scope="module")
def relabelled(blobs, fitted):
    coef = np.empty_like(fitted.coef_)
    coef[ORDER] = fitted.coef_
    return build_source(LinearModel(coef, [0, 1, 2]), blobs.X, ORDER[blobs.y], intercept=False)


@pytest.fixture(scope="module")
def doubled(blobs, fitted):
    model = LinearModel(fitted.coef_, [0, 1, 2])
    X, y = np.repeat(blobs.X, 2, axis=0), np.repeat(blobs.y, 2)
    return build_source(model, X, y, intercept=False)


@pytest.mark.parametrize("learner", every_learner())
def test_names_of_classes_are_only_names(learner, plain_source, relabelled, rounds):
    proba, prior = probabilities(learner, plain_source, rounds[:12])
    turned, turned_prior = probabilities(learner, relabelled, rounds[:12])
    np.testing.assert_allclose(turned[:, :, ORDER], proba, atol=room(learner))
    np.testing.assert_allclose(turned_prior[:, ORDER], prior, atol=1e-9)
    assert not np.allclose(turned, proba, atol=0.05)  # the order really changed something


# To these, twice the rows of the held-out set are twice the evidence that features pay.
HOLD_OUT_IS_EVIDENCE = {"auto"}


@pytest.mark.parametrize(
    "learner", [p for p in every_learner() if p.values[0].name not in HOLD_OUT_IS_EVIDENCE]
)
def test_a_hold_out_twice_over_is_the_same_hold_out(learner, plain_source, doubled, rounds):
    proba, prior = probabilities(learner, plain_source, rounds[:12])
    twice, twice_prior = probabilities(learner, doubled, rounds[:12])
    np.testing.assert_allclose(twice, proba, atol=room(learner))
    np.testing.assert_allclose(twice_prior, prior, atol=1e-9)


@pytest.mark.parametrize(
    "learner", [p for p in every_learner() if p.values[0].name not in EVIDENCE_GROWS]
)
def test_a_batch_twice_over_is_the_same_batch(learner, plain_source, rounds):
    """Estimates, means and hints depend on shares, not on counts."""
    first = second = learner.start(plain_source)
    for X in rounds[:6]:
        first = learner.adapt(plain_source, first, plain_source.read(X))
        second = learner.adapt(plain_source, second, plain_source.read(np.vstack([X, X])))
    batch = plain_source.read(rounds[6])
    np.testing.assert_allclose(
        learner.predict_proba(plain_source, first, batch),
        learner.predict_proba(plain_source, second, batch),
        atol=room(learner),
    )


def test_the_invariances_hold_of_the_source(plain_source, relabelled, doubled):
    np.testing.assert_allclose(
        relabelled.confusion[np.ix_(ORDER, ORDER)], plain_source.confusion, atol=1e-12
    )
    for other in (relabelled, doubled):
        assert other.sigma_min == pytest.approx(plain_source.sigma_min)
        assert other.gradient_bound == pytest.approx(plain_source.gradient_bound)
        assert other.loss_bound == pytest.approx(plain_source.loss_bound)
        assert other.diameter == pytest.approx(plain_source.diameter)
