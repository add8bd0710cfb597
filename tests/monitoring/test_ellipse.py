"""The joint region of the class prior: whether it holds it, as often as it says."""

from __future__ import annotations

import numpy as np
import pytest

from noisy_scores import scores
from priorshift import LabelShiftClassifier
from priorshift.errors import InputError
from priorshift.monitoring.believed import Believed, believed
from priorshift.monitoring.ellipse import PriorRegion, region_of
from priorshift.monitoring.intervals import estimate_prior
from priorshift.source import build_source
from priorshift.source.model import ProbabilityModel


@pytest.mark.parametrize(("prior", "level"), [([0.25] * 4, 0.9), ([0.7, 0.1, 0.1, 0.1], 0.8)])
def test_it_holds_the_class_prior_as_often_as_it_says(prior, level):
    """Held-out set and batch are drawn anew each time."""
    held, times = 0, 60
    for seed in range(times):
        rng = np.random.default_rng(seed)
        labels, y = np.arange(600) % 4, rng.choice(4, 300, p=prior)
        source = build_source(ProbabilityModel([0, 1, 2, 3]), scores(labels, 4, rng, 2.0), labels)
        rows = scores(y, 4, rng, 2.0)
        found = believed(source, estimate_prior(source, rows), len(rows))
        held += int(region_of(found, level).contains(prior)[0])
    sure = 3.0 * np.sqrt(level * (1.0 - level) / times)
    assert abs(held / times - level) < sure


def test_of_two_classes_it_is_the_normal_interval():
    region = PriorRegion(np.array([0.4, 0.6]), 0.01 * np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.95)
    ends = 0.4 + np.array([-0.1961, -0.1959, 0.1959, 0.1961])
    assert region.contains(np.column_stack([ends, 1.0 - ends])).tolist() == [
        False,
        True,
        True,
        False,
    ]


def test_shares_that_do_not_add_up_to_1_are_outside_and_odd_ones_refused():
    region = region_of(Believed(np.full(3, 1 / 3), np.zeros((3, 3)), 10.0))
    assert region.contains(np.full(3, 1 / 3)).tolist() == [True]
    assert region.contains([[0.3333333] * 3, [0.34] * 3]).tolist() == [True, False]
    wide = PriorRegion(np.array([0.99, 0.01]), 0.01 * np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.9)
    assert wide.contains([[1.0, 0.0], [1.05, -0.05]]).tolist() == [True, False]
    with pytest.raises(InputError, match="priors has 2 columns: give 3"):
        region.contains([0.5, 0.5])


def test_classes_that_change_places_change_nothing_else():
    rng = np.random.default_rng(0)
    labels, y = np.arange(300) % 3, rng.choice(3, 200, p=[0.6, 0.3, 0.1])
    P_held, P, turn = scores(labels, 3, rng, 2.0), scores(y, 3, rng, 2.0), np.array([2, 0, 1])
    plain = {"learner": "fth", "calibration": "none"}  # maps choose by folds, which labels order
    clf = LabelShiftClassifier.from_probabilities(P_held, labels, **plain).adapt(P)
    turned = LabelShiftClassifier.from_probabilities(
        P_held[:, turn], turn.argsort()[labels], **plain
    )
    region, other = clf.prior_region(), turned.adapt(P[:, turn]).prior_region()
    np.testing.assert_allclose(other.centre, region.centre[turn], atol=1e-6)
    priors = rng.dirichlet(30 * region.centre + 1.0, 200)
    inside = region.contains(priors)
    assert 0 < inside.sum() < 200
    assert (other.contains(priors[:, turn]) == inside).mean() > 0.99
