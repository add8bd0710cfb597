"""Protocols and errors of quantification, against QuaPy's where it is installed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.simulation.protocols import (
    absolute_error,
    app,
    kl_divergence,
    npp,
    relative_absolute_error,
    upp,
)


@pytest.mark.parametrize(("classes", "steps"), [(1, 3), (2, 20), (3, 6), (4, 5)])
def test_app_is_the_whole_grid(classes, steps):
    """By brute force: all tuples of multiples that add up to 1."""
    every = {t for t in product(range(steps + 1), repeat=classes) if sum(t) == steps}
    found = {tuple(np.rint(row * steps).astype(int)) for row in app(classes, steps)}
    assert found == every
    assert len(app(classes, steps, repeats=3)) == 3 * len(every)


def test_app_refuses_grids_that_nobody_can_run():
    with pytest.raises(InputError, match=r"upp\(\)"):
        app(26)


def test_upp_is_uniform_on_the_simplex():
    """The largest of three entries has the mean 11/18, the smallest 1/9."""
    priors = np.sort(upp(3, 20_000, rng=1), axis=1)
    np.testing.assert_allclose(priors.mean(axis=0), [1 / 9, 5 / 18, 11 / 18], atol=0.005)
    assert (upp(3, 5, rng=2) == upp(3, 5, rng=2)).all()


def test_npp_repeats_a_prior_and_refuses_what_is_none():
    assert npp([0.2, 0.8], 3).tolist() == [[0.2, 0.8]] * 3
    with pytest.raises(ValueError, match="prior"):
        npp([0.2, 0.9], 3)


def test_errors_agree_with_quapys():
    qp = pytest.importorskip("quapy")
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), size=30), rng.dirichlet(np.ones(4), size=30)
    p[:, 0], q[0] = 0.0, [1.0, 0.0, 0.0, 0.0]
    p /= p.sum(axis=1, keepdims=True)
    assert absolute_error(p, q) == pytest.approx(qp.error.mae(p, q))
    for ours, theirs in ((relative_absolute_error, qp.error.mrae), (kl_divergence, qp.error.mkld)):
        assert ours(p, q, rows=100) == pytest.approx(theirs(p, q, eps=1 / 200))


def test_errors_refuse_shapes_that_do_not_fit():
    with pytest.raises(InputError, match="shapes"):
        absolute_error([0.5, 0.5], [1.0])


@pytest.mark.parametrize("wrong", [[50.0, 50.0], [0.5, np.nan], [2.0, -1.0]])
@pytest.mark.parametrize("turned", [False, True])
def test_errors_refuse_what_is_no_class_prior(wrong, turned):
    pair = ([0.5, 0.5], wrong)[:: -1 if turned else 1]
    with pytest.raises(InputError, match=r"(true|estimated) (sums|has)"):
        absolute_error(*pair)
