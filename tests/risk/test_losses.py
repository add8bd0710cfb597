from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from priorshift.errors import InputError
from priorshift.risk import Hinge, SmoothedHinge, Softmax, loss_by_name

LOGITS = arrays(np.float32, (1, 4, 3), elements=st.floats(-30, 30, width=32))


@settings(max_examples=60)
@given(logits=LOGITS, label=st.integers(0, 3), tau=st.sampled_from([1.0, 0.1, 0.01]))
def test_smoothed_hinge_lies_within_tau_log_k_above_the_hinge(logits, label, tau):
    hinge = Hinge().potential(logits.copy(), label)
    smooth = SmoothedHinge(tau).potential(logits.copy(), label)
    rounding = 1e-5  # float32 at logits up to 30
    assert (smooth - hinge >= -rounding).all()
    assert (smooth - hinge <= tau * np.log(4) + rounding).all()


@settings(max_examples=60)
@given(logits=LOGITS, label=st.integers(0, 3))
def test_every_loss_is_a_loss(reference, logits, label):
    """Each column against the float64 formula, and the gradient of the potential on the simplex."""
    for name, loss in (
        ("softmax", Softmax()),
        ("hinge", Hinge()),
        ("smoothed", SmoothedHinge(reference.tau)),
    ):
        Z = logits.copy()
        potential = loss.potential(Z, label)
        for j in range(3):
            z = logits[0, :, j].astype(np.float64)
            expected = reference.loss(name, z, label)
            assert potential[0, j] - z[label] == pytest.approx(expected, abs=2e-5)
            assert expected >= -1e-12
        assert (Z >= 0).all()
        np.testing.assert_allclose(Z.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("softmax", Softmax()), ("hinge", Hinge()), ("smoothed", SmoothedHinge(0.05))],
)
@pytest.mark.parametrize("gap", [0.0, 1.0, 12.0])
def test_largest_is_never_passed(reference, name, loss, gap):
    rng = np.random.default_rng(1)
    bound = loss.largest(gap, 4)
    seen = [reference.loss(name, gap * rng.random(4), int(rng.integers(4))) for _ in range(500)]
    worst = reference.loss(name, gap * np.array([0.0, 1.0, 1.0, 1.0]), 0)
    assert max(seen) <= bound + 1e-12
    assert worst <= bound + 1e-12
    slack = reference.tau * np.log(4) if name == "smoothed" else 1e-9
    assert worst >= bound - slack


def test_names():
    assert loss_by_name("softmax") == Softmax()
    assert loss_by_name("hinge") == Hinge()
    with pytest.raises(InputError, match="'squared'"):
        loss_by_name("squared")
