"""Walking through many rounds gives the bits that going round by round gives."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from checks import state_bytes
from priorshift.learners import ATLAS, FTH, UOGD, AtlasAda
from priorshift.learners.linear.walk import can_walk
from priorshift.risk import compiled
from priorshift.simulation.evaluate import evaluate

pytestmark = pytest.mark.skipif(not compiled.available(), reason="walks are compiled")


@pytest.mark.parametrize("protocol", ["predict-first", "adapt-first"])
@pytest.mark.parametrize("sketch", [None, "blocks:60", "coreset:60"])
@pytest.mark.parametrize("preset", ["paper", "theory"])
@pytest.mark.parametrize("kind", [UOGD, ATLAS])
def test_a_walk_is_its_rounds(kind, preset, sketch, protocol, source, stream, monkeypatch):
    learner = kind(preset=preset, sketch=sketch, horizon=100)
    assert can_walk(learner, source, learner.start(source))
    walked = evaluate(learner, source, stream, protocol=protocol)
    monkeypatch.setattr(sys.modules["priorshift.simulation.evaluate"], "can_walk", lambda *_: False)
    stepped = evaluate(learner, source, stream, protocol=protocol)
    assert state_bytes(walked.state) == state_bytes(stepped.state)
    np.testing.assert_array_equal(walked.errors, stepped.errors)
    np.testing.assert_array_equal(walked.priors, stepped.priors)


@pytest.mark.parametrize(
    "learner",
    [FTH(), AtlasAda(), UOGD(estimator="mlls"), ATLAS(prior_form="simplex")],
    ids=lambda learner: learner.name,
)
def test_what_it_does_not_know_is_left_alone(learner, source):
    assert not can_walk(learner, source, learner.start(source))


def test_other_losses_are_left_alone(hinge_source):
    assert not can_walk(UOGD(), hinge_source, UOGD().start(hinge_source))


def test_a_sketch_of_ones_own_is_left_alone(source):
    class Own:
        name, fixed, size = "own", False, 10

        def at(self, data, t):
            return data

    learner = UOGD(sketch=Own())
    assert not can_walk(learner, source, learner.start(source))
