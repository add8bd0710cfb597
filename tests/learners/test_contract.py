from __future__ import annotations

import pytest

from checks import CHECKS, every_learner


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("learner", every_learner(sketched=True))
def test_every_learner(learner, check, source, batches):
    check(learner, source, batches)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(
    "learner", [p for p in every_learner() if "paper-okm" in p.id or p.id == "uogd-paper"]
)
def test_linear_learners_with_the_hinge(learner, check, hinge_source, batches):
    check(learner, hinge_source, batches)
