"""What every learner must obey, whoever wrote it.

``every_learner`` lists the learners of the registry, each with every hint, order and preset that it
takes; ``CHECKS`` lists the checks. A learner or hint that is added to its registry is checked here
before its author has written a test.
"""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.learners import LEARNERS
from priorshift.learners.linear.hints import HINTS
from priorshift.risk import Blocks
from priorshift.saving import (
    Saved,
    load_parts,
    save_parts,
    stream_from_bytes,
    stream_to_bytes,
)
from priorshift.source import Batch
from priorshift.stream import Deployment, Stream


def every_learner(sketched: bool = False) -> list[Any]:
    """Return pytest parameters, one for each learner in each of its variants.

    With ``sketched``, also learners that read another part of the offline set each round: they obey
    the checks, but not the invariances that need all of it.
    """
    found = []
    for name, kind in LEARNERS.items():
        settings = {field.name for field in fields(kind)}
        presets = ("paper", "theory", "anytime") if "preset" in settings else (None,)
        hints = tuple(HINTS) if "hint" in settings else (None,)
        orders = ("adapt-first", "predict-first") if "order" in settings else (None,)
        for preset in presets:
            for hint in hints:
                for order in orders:
                    given = {"preset": preset, "hint": hint, "order": order, "horizon": 100}
                    given = {k: v for k, v in given.items() if k in settings and v is not None}
                    label = "-".join(str(v) for v in (name, preset, hint, order) if v)
                    found.append(pytest.param(kind(**given), id=label))
        if sketched and "sketch" in settings:
            found.append(pytest.param(kind(sketch=Blocks(size=60)), id=f"{name}-sketched"))
            found.append(pytest.param(kind(sketch="coreset:60"), id=f"{name}-coreset"))
    found.append(
        pytest.param(LEARNERS["rogd"](gradient="smoothed", horizon=100), id="rogd-smoothed")
    )
    found.append(pytest.param(LEARNERS["ftfwh"](window=4), id="ftfwh-4"))
    return found


def state_bytes(state: Any) -> bytes:
    """Every bit of a state, with its shapes and types."""
    if isinstance(state, tuple):
        return b"(" + b",".join(state_bytes(part) for part in state) + b")"
    if isinstance(state, np.ndarray):
        return f"{state.dtype}{state.shape}".encode() + state.tobytes()
    return repr(state).encode()


def leaves(state: Any) -> list[Any]:
    """Arrays and numbers of a state, however deep."""
    if isinstance(state, tuple):
        return [leaf for part in state for leaf in leaves(part)]
    return [state]


def held_memory(state: Any) -> int:
    """Bytes that a state keeps alive, views counted as what they are views of."""
    owners = {}
    for leaf in leaves(state):
        if isinstance(leaf, np.ndarray):
            while isinstance(leaf.base, np.ndarray):
                leaf = leaf.base
            owners[id(leaf)] = leaf.nbytes
    return sum(owners.values())


def run(learner: Any, source: Any, batches: list[Batch]) -> list[Any]:
    """All states from the start on."""
    states = [learner.start(source)]
    for batch in batches:
        states.append(learner.adapt(source, states[-1], batch))
    return states


def source_bytes(source: Any) -> bytes:
    parts = (source.prior, source.proba, source.labels, source.risk.XT, source.head)
    return b"".join(part.tobytes() for part in parts)


def check_states_are_plain(learner: Any, source: Any, batches: list[Batch]) -> None:
    """Named tuples, arrays, numbers; nothing else, so that a state can be saved and compared."""

    def look(part: Any) -> None:
        if isinstance(part, tuple):
            assert hasattr(part, "_fields"), f"a bare tuple: {part!r}"
            for piece in part:
                look(piece)
        elif isinstance(part, np.ndarray):
            assert part.dtype.kind in "fiub", part.dtype
        else:
            assert isinstance(part, (int, float, np.integer, np.floating)), type(part)

    for state in run(learner, source, batches[:3]):
        assert state._fields[0] == "t"
        look(state)


def check_rounds_are_counted(learner: Any, source: Any, batches: list[Batch]) -> None:
    for t, state in enumerate(run(learner, source, batches[:5])):
        assert state.t == t
        assert isinstance(state.t, int)


def check_shapes_never_change(learner: Any, source: Any, batches: list[Batch]) -> None:
    """A state of round 1000 has the form of the state of round 0."""
    states = run(learner, source, batches[:6])
    forms = [
        [(leaf.dtype, leaf.shape) if isinstance(leaf, np.ndarray) else () for leaf in leaves(state)]
        for state in states
    ]
    assert all(form == forms[0] for form in forms)
    assert all(type(state) is type(states[0]) for state in states)


def check_inputs_are_left_alone(learner: Any, source: Any, batches: list[Batch]) -> None:
    before = source_bytes(source)
    state = run(learner, source, batches[:2])[-1]
    batch = Batch(batches[2].proba.copy(), batches[2].features.copy())
    kept = state_bytes(state), batch.proba.tobytes(), batch.features.tobytes()
    learner.start(source)
    learner.predict_proba(source, state, batch)
    learner.prior(source, state)
    learner.adapt(source, state, batch)
    assert kept == (state_bytes(state), batch.proba.tobytes(), batch.features.tobytes())
    assert source_bytes(source) == before


def check_frozen_arrays_will_do(learner: Any, source: Any, batches: list[Batch]) -> None:
    """Nothing writes into what it was given, not even to put it back after."""

    def freeze(part: Any) -> Any:
        if isinstance(part, tuple):
            return type(part)(*(freeze(piece) for piece in part))
        if isinstance(part, np.ndarray):
            part = part.copy()
            part.flags.writeable = False
        return part

    state = learner.start(source)
    for batch in batches[:3]:
        still = freeze(batch)
        learner.predict_proba(source, freeze(state), still)
        state = learner.adapt(source, freeze(state), still)


def check_the_same_call_gives_the_same_bits(
    learner: Any, source: Any, batches: list[Batch]
) -> None:
    assert state_bytes(learner.start(source)) == state_bytes(learner.start(source))
    state = run(learner, source, batches[:3])[-1]
    batch = batches[3]
    first, second = (learner.predict_proba(source, state, batch) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert state_bytes(learner.adapt(source, state, batch)) == state_bytes(
        learner.adapt(source, state, batch)
    )


def check_a_rerun_is_identical(learner: Any, source: Any, batches: list[Batch]) -> None:
    """Also by an equal learner that is another object: nothing hides in the learner."""
    again = replace(learner)
    assert again == learner
    first, second = run(learner, source, batches[:8]), run(again, source, batches[:8])
    assert [state_bytes(s) for s in first] == [state_bytes(s) for s in second]


def check_adapting_does_something(learner: Any, source: Any, batches: list[Batch]) -> None:
    states = run(learner, source, batches[:2])
    assert state_bytes(states[0]) != state_bytes(states[1]) != state_bytes(states[2])


def check_probabilities(learner: Any, source: Any, batches: list[Batch]) -> None:
    for state, batch in zip(run(learner, source, batches[:6]), batches, strict=False):
        proba = learner.predict_proba(source, state, batch)
        assert proba.shape == (len(batch.proba), source.n_classes)
        assert proba.dtype == np.float64
        assert (proba >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)


def check_prior_is_on_the_simplex(learner: Any, source: Any, batches: list[Batch]) -> None:
    for state in run(learner, source, batches[:10]):
        prior = learner.prior(source, state)
        assert prior.shape == (source.n_classes,)
        assert prior.dtype == np.float64
        assert (prior >= 0).all()
        assert abs(prior.sum() - 1) < 1e-9


def check_a_batch_of_one_row(learner: Any, source: Any, batches: list[Batch]) -> None:
    state = learner.start(source)
    for i in range(5):
        one = Batch(batches[i].proba[:1], batches[i].features[:1])
        proba = learner.predict_proba(source, state, one)
        assert proba.shape == (1, source.n_classes)
        state = learner.adapt(source, state, one)
        assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in leaves(state)])).all()


def check_a_batch_without_a_class(learner: Any, source: Any, batches: list[Batch]) -> None:
    """f0 calls no row of the batch one of the classes, for many rounds."""
    batch = batches[0]
    rows = batch.labels == 0
    alone = Batch(batch.proba[rows], batch.features[rows])
    assert len(alone.proba)
    state = run(learner, source, [alone] * 12)[-1]
    assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in leaves(state)])).all()
    assert np.isfinite(learner.predict_proba(source, state, batch)).all()


def check_memory_stays_flat(learner: Any, source: Any, batches: list[Batch]) -> None:
    states = run(learner, source, batches[:15])
    assert held_memory(states[15]) == held_memory(states[2])


def check_it_can_be_saved(learner: Any, source: Any, batches: list[Batch]) -> None:
    """What comes back goes on to the same bits."""
    state = run(learner, source, batches[:3])[-1]
    deployment = Deployment(source, learner)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.priorshift"
        save_parts(path, Saved(deployment, Stream(state), {}))
        again = load_parts(path)
    there = again.deployment
    assert there.learner == learner
    assert state_bytes(again.stream.state) == state_bytes(state)
    on, on_again = (
        place.learner.adapt(place.source, stream.state, batches[3])
        for place, stream in ((deployment, Stream(state)), (there, again.stream))
    )
    assert state_bytes(on) == state_bytes(on_again)
    data = stream_to_bytes(deployment, Stream(state))
    assert stream_to_bytes(there, again.stream) == data  # also on another machine
    assert state_bytes(stream_from_bytes(there, data).state) == state_bytes(state)


def check_predictions_are_row_by_row(learner: Any, source: Any, batches: list[Batch]) -> None:
    """How a batch is cut changes no bit of a row's prediction, also of a batch just seen."""
    for seen in (0, 1, 5):
        state = run(learner, source, batches[:seen])[-1]
        for batch in (batches[seen], batches[max(seen - 1, 0)]):
            whole = learner.predict_proba(source, state, batch)
            for rows in (slice(0, 1), slice(3, 10), slice(None, None, -1)):
                piece = learner.predict_proba(source, state, batch.rows(rows))
                np.testing.assert_array_equal(piece, whole[rows])


def check_adapting_and_predicting_at_once(learner: Any, source: Any, batches: list[Batch]) -> None:
    """The state is that of ``adapt``; the probabilities are some, for every row."""
    state = learner.start(source)
    for batch in batches[:5]:
        plain = learner.adapt(source, state, batch)
        state, proba = learner.adapt_predict(source, state, batch)
        assert state_bytes(state) == state_bytes(plain)
        assert proba.shape == batch.proba.shape
        assert (proba >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)


def check_what_it_says_of_itself(learner: Any, source: Any, batches: list[Batch]) -> None:
    """The answers of the base class's questions agree with each other."""
    before, after = run(learner, source, batches[:1])
    learner.check(source)
    assert learner.cost(source, after) >= 0
    weights, model = learner.weights(source, after), learner.model(source, after)
    if weights is not None:
        assert weights.ndim == 1
        np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-9)
    assert learner.has_model == (model is not None)
    if model is not None:
        assert model.shape == source.head.shape
    size = learner.effective_size(source, after)
    assert size is None or size >= 0
    gap = learner.hint_gap(before, after)
    assert gap is None or gap >= 0
    assert learner.trace(source, before, after, batches[0]).dtype == np.float64


def check_the_order_of_rows_is_nothing(learner: Any, source: Any, batches: list[Batch]) -> None:
    """A batch is a set: hints and estimates may only differ by the rounding of a mean."""
    shuffle = np.random.default_rng(0).permutation(len(batches[0].proba))
    turned = [Batch(b.proba[shuffle], b.features[shuffle]) for b in batches[:4]]
    first, second = run(learner, source, batches[:4])[-1], run(learner, source, turned)[-1]
    np.testing.assert_allclose(
        learner.predict_proba(source, first, batches[5]),
        learner.predict_proba(source, second, batches[5]),
        atol=1e-6,
    )


BAD = {
    "nan": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 5, np.nan, X),
    "inf": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 5, np.inf, X),
    "minus-inf": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 5, -np.inf, X),
    "too-narrow": lambda X: X[:, 1:],
    "too-wide": lambda X: np.column_stack([X, X[:, 0]]),
    "no-rows": lambda X: X[:0],
    "text": lambda X: X.astype(str),
    "words": lambda X: [["a", "b", "c", "d"]],
    "one-dimension": lambda X: X[0],
    "three-dimensions": lambda X: X[None],
    "a-number": lambda X: 3.0,
    "none": lambda X: None,
    "ragged": lambda X: [[1.0, 2.0, 3.0, 4.0], [1.0]],
    "complex": lambda X: X + 1j,
    "objects": lambda X: np.array([[object()] * 4], dtype=object),
}


def check_bad_batches_leave_the_state(learner: Any, source: Any, batches: list[Batch]) -> None:
    """A refusal is a ValueError or a TypeError, and the stream goes on as if nothing had been."""
    state = run(learner, source, batches[:2])[-1]
    before = state_bytes(state)
    good = batches[2].features[:, :4]
    for name, spoil in BAD.items():
        try:
            learner.adapt(source, state, source.read(spoil(good)))
        except (ValueError, TypeError):
            pass
        else:
            raise AssertionError(f"{name} was accepted")
        assert state_bytes(state) == before
        assert len(source.read(good).proba) == len(good)


def check_it_has_a_face(learner: Any, source: Any, batches: list[Batch]) -> None:
    assert learner.name in LEARNERS
    assert isinstance(learner, LEARNERS[learner.name])
    assert learner.protocol in ("predict-first", "adapt-first")
    assert hash(learner) == hash(replace(learner))
    with pytest.raises(AttributeError):
        learner.name_that_nobody_has = 1


CHECKS = [value for key, value in list(globals().items()) if key.startswith("check_")]
