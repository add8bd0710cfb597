"""A source whose held-out set a sketch has replaced."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from checks import state_bytes
from priorshift import LabelShiftClassifier, load
from priorshift.errors import InputError, InputTypeError, SourceError
from priorshift.learners import ATLAS, LEARNERS, UOGD, AtlasAda
from priorshift.risk import Blocks, Coreset, Herding
from priorshift.saving import Saved, load_parts, save_parts
from priorshift.source import build_source
from priorshift.stream import Deployment, Stream


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 4))
    X[np.arange(n), y] += 1.8
    return X, y


MODEL = LogisticRegression().fit(*draw(500, 1))
HOLD = draw(3000, 2)
BATCHES = [draw(40, 10 + t)[0] for t in range(6)]


@pytest.fixture(scope="module")
def whole():
    return build_source(MODEL, *HOLD)


@pytest.mark.parametrize("name", ["coreset:150", "herding:150", "blocks:150"])
def test_only_the_features_change(whole, name):
    small = whole.sketched(name)
    for constant in ("gradient_bound", "loss_bound", "sigma_min", "radius", "diameter"):
        assert getattr(small, constant) == getattr(whole, constant)
    for array in ("prior", "proba", "labels", "counts", "confusion", "soft_confusion", "head"):
        np.testing.assert_array_equal(getattr(small, array), getattr(whole, array))
    assert small.risk.n_classes == whole.risk.n_classes


def test_memory_falls_in_proportion_and_the_features_are_let_go():
    source = build_source(MODEL, *HOLD)
    gone = weakref.ref(source.risk)
    small = source.sketched(Coreset(150))
    assert small.risk.XT.nbytes * 20 == source.risk.XT.nbytes
    del source
    gc.collect()
    assert gone() is None
    UOGD().adapt(small, UOGD().start(small), small.read(BATCHES[0]))


def test_blocks_keep_one_copy_and_need_no_other():
    source = build_source(MODEL, *HOLD)
    gone = weakref.ref(source.risk)
    expected = [Blocks(150).at(source.risk, t).XT.copy() for t in range(3)]
    kept = source.sketched("blocks:150")
    del source
    gc.collect()
    assert gone() is None
    for t in range(3):
        np.testing.assert_array_equal(Blocks(150).at(kept.risk, t).XT, expected[t])
    assert not any(isinstance(key, tuple) for key in kept.risk.sketches)  # no shuffled copy


@pytest.mark.parametrize("sketch", [Coreset(150), Herding(150), Blocks(150)])
@pytest.mark.parametrize("kind", [UOGD, ATLAS, AtlasAda])
def test_a_learner_with_a_sketch_and_a_sketched_source_agree(whole, kind, sketch):
    small = whole.sketched(sketch)
    with_sketch = kind(horizon=50, sketch=sketch)
    plain = kind(horizon=50, sketch=None if sketch.fixed else sketch)
    first, second = with_sketch.start(whole), plain.start(small)
    for X in BATCHES:
        first = with_sketch.adapt(whole, first, whole.read(X))
        second = plain.adapt(small, second, small.read(X))
    if sketch.fixed:
        assert state_bytes(first) == state_bytes(second)
    else:  # curvature and moments come from other rows or another order
        np.testing.assert_allclose(first.W, second.W, atol=2e-3)


@pytest.mark.parametrize("name", ["coreset:150", "herding:150", "blocks:150"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_saving_keeps_every_bit(learner: str, name: str, tmp_path: Path) -> None:
    source = build_source(MODEL, *HOLD, sketch=name)
    recipe = LEARNERS[learner]()
    if name.startswith("blocks") and recipe.has_model:
        recipe = LEARNERS[learner](sketch=name)
    state = recipe.start(source)
    for X in BATCHES[:3]:
        state = recipe.adapt(source, state, source.read(X))
    save_parts(tmp_path / "file", Saved(Deployment(source, recipe), Stream(state), {}))
    again = load_parts(tmp_path / "file")
    there = again.deployment
    assert there.learner == recipe
    ours, theirs = source.risk, there.source.risk
    assert ours.XT.tobytes() == theirs.XT.tobytes()
    assert ours.shuffled == theirs.shuffled
    assert ours.largest_norm == theirs.largest_norm
    if ours.weights is not None:
        assert ours.weights.tobytes() == theirs.weights.tobytes()
    second = again.stream.state
    for X in BATCHES[3:]:
        state = recipe.adapt(source, state, source.read(X))
        second = there.learner.adapt(there.source, second, there.source.read(X))
    assert state_bytes(state) == state_bytes(second)


def test_a_file_with_weights_that_are_none_is_not_written(whole, tmp_path):
    small = whole.sketched("coreset:150")
    small.risk.weights.setflags(write=True)
    small.risk.weights[3] = -1.0
    deployment = Deployment(small, UOGD())
    with pytest.raises(InputError, match=r"risk\.weights"):
        save_parts(tmp_path / "file", Saved(deployment, deployment.start(), {}))


def test_the_classifier_takes_a_sketch(tmp_path: Path) -> None:
    clf = LabelShiftClassifier(MODEL, "atlas", sketch=Coreset(150, seed=4)).fit(*HOLD)
    assert clf.source_.risk.XT.shape == (5, 150)
    clf.adapt(BATCHES[0]).save(tmp_path / "file")
    again = load(tmp_path / "file")
    assert again.sketch == Coreset(150, seed=4)
    assert again.adapt(BATCHES[1]).predict_proba(BATCHES[2]).tobytes() == (
        clf.adapt(BATCHES[1]).predict_proba(BATCHES[2]).tobytes()
    )
    assert clone(clf).sketch == clf.sketch
    named = LabelShiftClassifier(MODEL, "uogd", sketch="herding:90").fit(*HOLD)
    named.save(tmp_path / "named")
    assert load(tmp_path / "named").sketch == "herding:90"
    with pytest.raises(InputError, match="no sketch is called"):
        LabelShiftClassifier(MODEL, sketch="corset:9").fit(*HOLD)


@dataclass(frozen=True)
class Odd:
    size: int = 10
    name: ClassVar[str] = "odd"
    fixed: ClassVar[bool] = False

    def at(self, data: Any, t: int) -> Any:
        return Blocks(self.size + t).at(data, t)


def test_refusals(whole):
    with pytest.raises(InputError, match="cannot replace the held-out set"):
        whole.sketched(Odd())
    with pytest.raises(InputTypeError, match="coreset:1000"):
        whole.sketched(1000)
    with pytest.raises(InputTypeError, match="coreset:1000"):
        UOGD(sketch=1000)
    with pytest.raises(InputError, match="no sketch is called"):
        UOGD(sketch="blocks-1000")
    small = whole.sketched("coreset:150")
    with pytest.raises(InputError, match="replaced already"):
        small.sketched("herding:20")
    with pytest.raises(InputError, match="replaced already"):
        ATLAS(sketch="blocks:50").adapt(small, ATLAS().start(small), small.read(BATCHES[0]))


def test_names_and_objects_are_the_same_recipe(whole):
    batch = whole.read(BATCHES[0])
    states = [
        learner.adapt(whole, learner.start(whole), batch)
        for learner in (ATLAS(sketch="coreset:150"), ATLAS(sketch=Coreset(150)))
    ]
    assert state_bytes(states[0]) == state_bytes(states[1])


def test_threads_are_chosen_by_what_a_round_reads(whole):
    state = ATLAS().start(whole)
    full = ATLAS().cost(whole, state)
    assert ATLAS(sketch="blocks:150").cost(whole, state) * 20 == full
    assert ATLAS().cost(whole.sketched("coreset:150"), state) * 20 == full


class Untouchable(np.ndarray):
    """An array that nobody may read."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a round read the whole held-out set")

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a round read the whole held-out set")


@pytest.mark.parametrize("kind", [UOGD, ATLAS, AtlasAda])
def test_a_round_does_not_touch_the_hold_out(kind):
    source = build_source(MODEL, *HOLD, sketch="coreset:150")
    learner = kind(horizon=50)
    state = learner.adapt(source, learner.start(source), source.read(BATCHES[0]))
    for name in ("proba", "labels"):
        object.__setattr__(source, name, getattr(source, name).view(Untouchable))
    batch = source.read(BATCHES[1])
    learner.predict_proba(source, learner.adapt(source, state, batch), batch)
    with pytest.raises(AssertionError, match="whole held-out set"):
        np.bincount(source.labels)


def test_the_guard_says_that_it_needs_the_rows():
    with pytest.raises(SourceError, match="the guard needs every row"):
        LabelShiftClassifier(MODEL, "uogd", guard=True, sketch="coreset:150").fit(*HOLD)
    LabelShiftClassifier(MODEL, "uogd", guard=True, sketch="blocks:150").fit(*HOLD)
