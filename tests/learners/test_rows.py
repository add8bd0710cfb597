"""Every row is predicted by itself: to the last bit the same in any batch."""

from __future__ import annotations

import numpy as np
import pytest

from checks import every_learner
from priorshift.learners.settings import PriorSettings
from priorshift.risk import compiled

LEARNERS = [one for one in every_learner(sketched=True) if isinstance(one.values[0], PriorSettings)]


@pytest.mark.parametrize("numba", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_part_of_a_batch_is_predicted_as_in_the_whole(
    learner, numba, source, batches, monkeypatch
):
    if not numba:
        monkeypatch.setattr(compiled, "available", lambda: False)
    rng = np.random.default_rng(7)
    state = learner.start(source)
    for length in (0, 1, 4):  # after any history
        for place in rng.integers(0, len(batches), length):
            state = learner.adapt(source, state, batches[place])
        rows = np.concatenate([batch.features for batch in batches[:8]])
        batch = source.read(rows[:, : source.head.shape[1] - 1])
        whole = learner.predict_proba(source, state, batch)
        for first, last in ((0, 50), (3, 10), (17, 18), (1, len(rows))):
            part = learner.predict_proba(source, state, batch.rows(slice(first, last)))
            assert part.tobytes() == whole[first:last].tobytes()
