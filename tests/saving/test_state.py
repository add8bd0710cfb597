"""The file format: exact round trips, and a clear refusal of everything that is not whole."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.learners import (
    ATLAS,
    FIX,
    FTFWH,
    FTH,
    LEARNERS,
    ROGD,
    UOGD,
    AtlasAda,
    Learner,
    as_learner,
)
from priorshift.learners.linear.hints import HINTS, Hint, LastPrior, OnlineKMeans, Periodic, Window
from priorshift.priors import BBSE, MLLS, RLLS
from priorshift.risk import ImplicitSolver, SmoothedHinge
from priorshift.saving import Saved, load_parts, save_parts
from priorshift.saving.estimators import is_scientific
from priorshift.saving.values import Parts
from priorshift.source import Source, build_source
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities
from priorshift.stream import Deployment, Stream

SHORT = 40
NUMBERS = np.arange(3)
NAMES = np.array(["cat", "dog", "emu"])
CENTRES = np.array([[0.0, 0.0, 1.0, 0.0], [1.5, 0.0, 0.0, 0.5], [0.0, 1.5, -0.5, 0.0]])


def draw(n: int, seed: int, mix: Any = (1, 1, 1)) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=np.divide(mix, np.sum(mix)))
    return CENTRES[y] + rng.normal(scale=0.7, size=(n, 4)), y


def make_source(model: Any = None, labels: Any = NUMBERS, **options: Any) -> Source:
    X, y = draw(150, seed=1)
    model = LogisticRegression() if model is None else model
    return build_source(model.fit(X, labels[y]), *_hold_out(labels), **options)


def _hold_out(labels: Any) -> tuple[Any, Any]:
    X, y = draw(120, seed=2)
    return X, labels[y]


@pytest.fixture(scope="module")
def source() -> Source:
    return make_source()


BATCHES = [draw(25, seed=10 + t, mix=(1 + t, 2, 6 - t))[0] for t in range(6)]


def saved(source: Source, learner: Any, state: Any, extra: dict[str, Any]) -> Saved:
    return Saved(Deployment(source, learner), Stream(state), extra)


def bits(value: Any) -> Any:
    """Everything about a state that could change: types, dtypes, shapes, axis order, bits."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value), *map(bits, value))
    if isinstance(value, np.ndarray):
        # strides of an axis of length 1 mean nothing
        order = [s for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        return value.dtype, value.shape, order, value.tobytes()
    return type(value), value.hex() if isinstance(value, float) else value


def run(source: Source, learner: Any, state: Any, batches: list[Any]) -> tuple[Any, list[bytes]]:
    outputs = []
    for X in batches:
        batch = source.read(X)
        state = learner.adapt(source, state, batch)
        outputs.append(learner.predict_proba(source, state, batch).tobytes())
        outputs.append(np.asarray(learner.prior(source, state)).tobytes())
    return state, outputs


def check_round_trip(source: Source, learner: Any, path: Path, /, **given: Any) -> Saved:
    """Stop after three rounds, go on with what the file gives, and compare with not stopping."""
    middle, _ = run(source, learner, learner.start(source), BATCHES[:3])
    save_parts(path, saved(source, learner, middle, {"n": 4, "names": ["a", "b"], "none": None}))
    again = load_parts(path, **given)
    assert again.extra == {"n": 4, "names": ["a", "b"], "none": None}
    assert bits(again.stream.state) == bits(middle)
    end, seen = run(source, learner, middle, BATCHES[3:])
    end_again, seen_again = run(
        again.deployment.source, again.deployment.learner, again.stream.state, BATCHES[3:]
    )
    assert seen_again == seen
    assert bits(end_again) == bits(end)
    assert bits(end) != bits(middle)
    return again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.priorshift"


# Round trips.


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_every_learner_goes_on_as_if_it_had_never_stopped(name: str, loss: str, path: Path) -> None:
    learner = as_learner(name, horizon=SHORT)
    again = check_round_trip(make_source(loss=loss, labels=NAMES), learner, path)
    assert again.deployment.learner == learner
    assert again.deployment.source.loss.name == loss
    assert again.deployment.source.classes.tolist() == NAMES.tolist()
    assert again.deployment.source.classes.dtype == NAMES.dtype


@pytest.mark.parametrize("order", ["adapt-first", "predict-first"])
@pytest.mark.parametrize(
    "hint", [*HINTS, Window(2), Periodic(2, rate=0.5), OnlineKMeans(2), Hint()]
)
def test_every_hint(source: Source, hint: Any, order: str, path: Path) -> None:
    learner = AtlasAda(hint=hint, order=order, steps=(0.05, 0.5))
    assert check_round_trip(source, learner, path).deployment.learner == learner


@pytest.mark.parametrize(
    "estimator",
    ["bbse", "bbse-soft", "rlls", "rlls-soft", "mlls", BBSE(True), RLLS(alpha=0.1), MLLS(tol=1e-6)],
)
@pytest.mark.parametrize("form", ["raw", "clipped", "simplex"])
def test_every_prior_estimator(source: Source, estimator: Any, form: str, path: Path) -> None:
    learner = UOGD(estimator=estimator, prior_form=form, horizon=SHORT)
    assert check_round_trip(source, learner, path).deployment.learner == learner


@pytest.mark.parametrize(
    "learner",
    [
        ATLAS(steps=(0.1, 0.2), meta_rate=0.5, gradient_bound=1e300),
        ATLAS(preset="theory", horizon=SHORT),
        AtlasAda(
            steps=(0.1, 0.3),
            meta_rate="self-confident",
            hint=Periodic(3),
            solver=ImplicitSolver(1e-3, 7, 0.05),
            estimator=RLLS(soft=True),
        ),
        ROGD(gradient="smoothed", step=0.1 + 0.2, floor=1e-3),
        FTFWH(window=2),
        UOGD(step=1),
        UOGD(step=np.float32(0.1)),  # type: ignore[arg-type]
    ],
    ids=lambda learner: learner.name,
)
def test_settings_keep_their_types(source: Source, learner: Any, path: Path) -> None:
    again = check_round_trip(source, learner, path).deployment.learner
    assert again == learner
    assert {k: type(v) for k, v in vars(again).items()} == {
        k: type(v) for k, v in vars(learner).items()
    }


def test_a_pool_given_as_an_array(source: Source, path: Path) -> None:
    steps = np.array([0.1, 0.2])
    again = check_round_trip(source, ATLAS(steps=steps), path).deployment.learner  # type: ignore[arg-type]
    assert bits(again.steps) == bits(steps)
    assert load_parts(path, learner=ATLAS(steps=steps.copy())).deployment  # type: ignore[arg-type]
    with pytest.raises(FileFormatError, match=r"learner\.steps"):
        load_parts(path, learner=ATLAS(steps=steps * 2))  # type: ignore[arg-type]


def test_all_of_the_source_comes_back(path: Path) -> None:
    X, y = draw(90, seed=3)
    source = build_source(
        LogisticRegression(),
        X,
        y,
        intercept=False,
        diameter=1.25,
        cv=3,
        prior=np.array([0.2, 0.3, 0.5]),
    )
    source = replace(source, proba=np.asfortranarray(source.proba), honest=False)
    save_parts(path, saved(source, FIX(), FIX().start(source), {}))
    again = load_parts(path).deployment.source
    for name in ("prior", "proba", "labels", "head", "classes", "confusion", "soft_confusion"):
        assert bits(getattr(again, name)) == bits(getattr(source, name)), name
    assert bits(again.risk.XT) == bits(source.risk.XT)
    assert bits(again.risk.offsets) == bits(source.risk.offsets)
    for name in ("diameter", "n_features", "honest", "loss", "gradient_bound", "loss_bound"):
        assert getattr(again, name) == getattr(source, name), name
    assert again.features == source.features
    assert type(again.diameter) is float


def test_axes_keep_their_order_in_memory() -> None:
    parts = Parts()
    array = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
        turned = array.transpose(axes)
        tag = json.loads(json.dumps(parts.encode(turned, "a")))
        stored = io.BytesIO(parts.members()["arrays.npz"])
        parts.arrays = dict(np.load(stored, allow_pickle=False))
        assert bits(parts.decode(tag)) == bits(turned)


def test_odd_numbers_keep_their_bits() -> None:
    parts = Parts()
    for value in (
        0.1 + 0.2,
        -0.0,
        5e-324,
        float("inf"),
        float("-inf"),
        2**80,
        True,
        np.float32(0.1),
    ):
        again = parts.decode(json.loads(json.dumps(parts.encode(value, "x"), allow_nan=False)))
        assert type(again) is type(value)
        assert bits(again) == bits(value)
    assert np.isnan(parts.decode(parts.encode(float("nan"), "x")))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 0, 7], dtype=np.int16),
        np.array([0.5, 1.5, 2.5]),
        np.array(["é", "ß\N{SNOWMAN}", "z"]),
        np.array(["a", "b" * 30, "c"], dtype=object),
        np.array([b"x", b"y", b"z"]),
    ],
    ids=["int16", "float", "unicode", "object", "bytes"],
)
def test_labels_keep_their_type(labels: Any, path: Path) -> None:
    X, y = _hold_out(labels)
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))
    source = build_source(ProbabilityModel(classes=np.unique(labels)), P, y)
    save_parts(path, saved(source, FIX(), FIX().start(source), {}))
    again = load_parts(path).deployment.source.classes
    assert again.dtype == source.classes.dtype
    assert again.tolist() == source.classes.tolist()


def test_labels_that_no_file_can_keep(source: Source, path: Path) -> None:
    odd = np.array([(1,), "b", None, 3][:3], dtype=object)
    model = replace(source.model, classes=odd)
    with pytest.raises(InputError, match=r"source/classes holds tuple objects.*numbers or strings"):
        save_parts(path, saved(replace(source, model=model), FIX(), FIX().start(source), {}))
    assert not path.exists()


# Models and feature maps.


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(FunctionTransformer(np.exp), PCA(2), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=3),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        LinearSVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learn_models(model: Any, path: Path) -> None:
    check_round_trip(make_source(model, labels=NAMES), FTH(), path)


def test_probability_model(path: Path) -> None:
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(3), size=60)
    model = ProbabilityModel(classes=["a", "b", "c"])
    source = build_source(
        model, P, NAMES_ABC[P.argmax(axis=1)], features=log_probabilities, intercept=False
    )
    learner = UOGD(horizon=SHORT)
    save_parts(path, saved(source, learner, learner.start(source), {}))
    again = load_parts(path)
    assert again.deployment.source.features.map is log_probabilities
    assert again.deployment.source.model.estimator.classes == ["a", "b", "c"]
    batch, batch_again = source.read(P[:9]), again.deployment.source.read(P[:9])
    assert [a.tobytes() for a in batch[:2]] == [a.tobytes() for a in batch_again[:2]]
    with ZipFile(path) as archive:
        assert archive.namelist() == ["manifest.json", "stream.bin", "arrays.npz"]


NAMES_ABC = np.array(["a", "b", "c"])


def test_linear_model(path: Path) -> None:
    coef = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    source = build_source(LinearModel(coef, np.arange(3)), *_hold_out(NUMBERS))
    again = check_round_trip(source, ATLAS(steps=(0.1,)), path)
    assert bits(again.deployment.source.model.estimator.coef) == bits(coef)


def test_transformer_as_features(path: Path) -> None:
    pca = PCA(2).fit(draw(50, seed=6)[0])
    again = check_round_trip(make_source(features=pca), UOGD(horizon=SHORT), path)
    assert type(again.deployment.source.features.map) is PCA


class Nearest:
    """A model of the user's own, with weights that no file holds."""

    def __init__(self, centres: Any) -> None:
        self.centres = centres

    def predict(self, X: Any) -> Any:
        return ((np.asarray(X)[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)


class Foreign(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any = None) -> Foreign:
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X) * 2

    def __sklearn_is_fitted__(self) -> bool:
        return True


def squares(X: Any) -> Any:
    return np.square(X)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorshiftWarning")
def test_a_model_of_the_users_own_is_stored_by_name(path: Path) -> None:
    model = Nearest(CENTRES)
    source = build_source(model, *_hold_out(NUMBERS))
    again = check_round_trip(source, FTH(), path, estimator=model)
    assert again.deployment.source.model.estimator is model
    with pytest.raises(FileFormatError, match=r"estimator, \S+:Nearest.*estimator=\.\.\."):
        load_parts(path)
    with pytest.raises(FileFormatError, match=r"estimator= is sklearn.*saved with \S+:Nearest"):
        load_parts(path, estimator=LogisticRegression())


def test_saving_says_what_is_only_referred_to(path: Path) -> None:
    source = build_source(Nearest(CENTRES), *_hold_out(NUMBERS))
    with pytest.warns(PriorshiftWarning, match=r"only refers to estimator .*Nearest"):
        save_parts(path, saved(source, FIX(), FIX().start(source), {}))


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorshiftWarning")
@pytest.mark.parametrize("step", [Foreign(), FunctionTransformer(squares)])
def test_a_pipeline_with_a_foreign_step_is_stored_by_name(step: Any, path: Path) -> None:
    model = make_pipeline(step, LogisticRegression())
    source = make_source(model)
    check_round_trip(source, FTH(), path, estimator=model)
    with pytest.raises(FileFormatError, match=r"sklearn\.pipeline:Pipeline.*estimator="):
        load_parts(path)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorshiftWarning")
@pytest.mark.parametrize("features", [squares, np.square, Foreign()])
def test_features_of_the_users_own_are_stored_by_name(features: Any, path: Path) -> None:
    source = make_source(features=features)
    check_round_trip(source, UOGD(horizon=SHORT), path, features=features)
    with pytest.raises(FileFormatError, match=r"only refers to its features.*features="):
        load_parts(path)
    with pytest.raises(FileFormatError, match="features= is"):
        load_parts(path, features=log_probabilities)


def test_an_object_that_the_file_holds_may_be_given_too(source: Source, path: Path) -> None:
    model = source.model.estimator
    check_round_trip(source, FTH(), path, estimator=model, learner=FTH())
    assert load_parts(path, estimator=model).deployment.source.model.estimator is model
    with pytest.raises(FileFormatError, match="saved with None"):
        load_parts(path, features=squares)


# Learners and hints of the user's own.


@dataclass(frozen=True)
class Half(Hint):
    share: float = 0.5

    def update(self, source: Any, state: Any, batch: Any, estimate: Any) -> Any:
        return LastPrior(state.last * (1 - self.share) + estimate * self.share)


class CountState(NamedTuple):
    t: int
    total: Any
    inner: Any


@dataclass(frozen=True)
class Count(Learner):
    table: Any = field(default_factory=lambda: {"a": 1})
    name: ClassVar[str] = "count"
    protocol: ClassVar[str] = "predict-first"
    first: Any = 0.0

    def start(self, source: Source) -> CountState:
        return CountState(0, self.first, LastPrior(np.zeros(3, np.int8)))

    def predict_proba(self, source: Source, state: CountState, batch: Any) -> Any:
        return batch.proba

    def adapt(self, source: Source, state: CountState, batch: Any) -> CountState:
        inner = LastPrior(state.inner.last + np.int8(1))
        return CountState(state.t + 1, state.total + float(batch.proba.sum()), inner)

    def prior(self, source: Source, state: CountState) -> Any:
        return source.prior


def test_a_custom_hint_comes_back_with_its_learner(source: Source, path: Path) -> None:
    learner = AtlasAda(hint=Half(0.25), steps=(0.1,))
    check_round_trip(source, learner, path, learner=AtlasAda(hint=Half(0.25), steps=(0.1,)))
    with pytest.raises(FileFormatError, match=r"only refers to \S+:Half.*learner=\.\.\."):
        load_parts(path)
    for other, where in (
        (AtlasAda(hint="okm", steps=(0.1,)), r"learner\.hint"),
        (AtlasAda(hint=Half(0.5), steps=(0.1,)), r"learner\.hint\.share"),
        (AtlasAda(hint=Half(0.25), steps=(0.1, 0.2)), r"learner\.steps"),
        (AtlasAda(hint=Half(0.25), steps=(0.1,), horizon=7), r"learner\.horizon"),
    ):
        with pytest.raises(FileFormatError, match=where):
            load_parts(path, learner=other)


def test_a_custom_learner(source: Source, path: Path) -> None:
    check_round_trip(source, Count(), path, learner=Count())
    with pytest.raises(FileFormatError, match=r"only refers to \S+:Count"):
        load_parts(path)
    with pytest.raises(FileFormatError, match=r"learner= is \S+:FTH, .* saved with \S+:Count"):
        load_parts(path, learner=FTH())


def test_an_error_in_the_users_own_learner_is_not_the_files(source: Source, path: Path) -> None:
    save_parts(path, saved(source, Count(), Count().start(source), {}))

    @dataclass(frozen=True)
    class Broken(Count):
        def start(self, source: Source) -> CountState:
            raise ZeroDivisionError

    Broken.__qualname__ = "Count"
    with pytest.raises(ZeroDivisionError):
        load_parts(path, learner=Broken())


@pytest.mark.parametrize(
    ("first", "now", "message"),
    [
        (0, 1.5, "state.total is a number, but the learner starts with a whole number"),
        (np.zeros(2), np.zeros(3), r"float64 with shape \(3,\), but .* shape \(2,\)"),
        (np.zeros(2), np.zeros(2, np.float32), "array of float32 .* array of float64"),
        (0.0, "much", "state.total is a str: a state is made of"),
        ("much", "much", "state.total is a str: a state is made of"),
        (None, {1: 2}, "not made like a fresh one: a state is made of"),
        (0.0, np.array([None, 1]), "an array of object .* starts with a number"),
    ],
)
def test_a_state_that_could_not_be_read_back_is_not_written(
    source: Source, first: Any, now: Any, message: str, path: Path
) -> None:
    learner = Count(first=first)
    state = learner.start(source)._replace(total=now)
    with pytest.raises(InputError, match=message):
        save_parts(path, saved(source, learner, state, {}))
    assert not path.exists()


def test_extra_must_be_for_json(source: Source, path: Path) -> None:
    for extra in ({"a": object()}, {"a": float("nan")}):
        with pytest.raises(InputError, match="extra cannot be saved"):
            save_parts(path, saved(source, FIX(), FIX().start(source), extra))


def test_a_loss_of_the_users_own_is_refused(source: Source, path: Path) -> None:
    with pytest.raises(InputError, match="smoothed-hinge"):
        save_parts(
            path, saved(replace(source, loss=SmoothedHinge()), FIX(), FIX().start(source), {})
        )


# Writing.


@pytest.mark.parametrize(
    "culprit", ["skops.io.dumps", "os.fsync", "os.replace", "zipfile.ZipFile.writestr"]
)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    source: Source, path: Path, culprit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 1}))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no more room")

    with monkeypatch.context() as patch:
        patch.setattr(culprit, fail)
        with pytest.raises(RuntimeError, match="no more room"):
            save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 2}))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 3}))
    assert load_parts(path).extra == {"turn": 3}
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="links and rights as POSIX has them")
def test_a_link_stays_a_link_and_rights_follow_the_umask(source: Source, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_parts(tmp_path / "link", saved(source, FIX(), FIX().start(source), {}))
    assert (tmp_path / "link").is_symlink()
    assert load_parts(tmp_path / "real").stream.state.t == 0
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_where_no_file_can_be_written(source: Source, tmp_path: Path) -> None:
    fresh = saved(source, FIX(), FIX().start(source), {})
    with pytest.raises(InputError, match="is a folder: give the path of a file"):
        save_parts(tmp_path, fresh)
    with pytest.raises(InputError, match=r"there is no folder .*make it first"):
        save_parts(tmp_path / "none" / "file", fresh)


def test_without_skops(source: Source, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = saved(source, FIX(), FIX().start(source), {})
    save_parts(path, fresh)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for act in (lambda: save_parts(path, fresh), lambda: load_parts(path)):
        with pytest.raises(InputError, match=r'pip install "priorshift\[save\]"'):
            act()
    assert load_parts(path, estimator=source.model.estimator).stream.state.t == 0


def test_no_pickle_on_the_way(source: Source, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("pickle was called")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", fail)
    check_round_trip(source, AtlasAda(steps=(0.1,)), path)
    monkeypatch.undo()
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(path.read_bytes())


# Reading what is not whole.


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file without a scikit-learn model."""
    P = np.random.default_rng(7).dirichlet(np.ones(2), size=8)
    source = build_source(ProbabilityModel(classes=[0, 1]), P, P.argmax(axis=1))
    path = tmp_path_factory.mktemp("whole") / "small.priorshift"
    save_parts(path, saved(source, FTFWH(window=2), FTFWH(window=2).start(source), {"a": 1}))
    return path


@pytest.fixture(scope="module")
def with_model(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "model.priorshift"
    save_parts(path, saved(source, FTH(), FTH().start(source), {}))
    return path


def everything(found: Saved) -> Any:
    source = found.deployment.source
    arrays = [source.prior, source.proba, source.labels, source.risk.XT, source.risk.offsets]
    rest = (found.deployment.learner, found.extra, source.diameter, source.classes.tolist())
    return bits(found.stream.state), list(map(bits, [*arrays, source.head])), rest


def check_refused_or_same(data: bytes, path: Path, expected: Any) -> bool:
    path.write_bytes(data)
    refusal = ""
    try:
        again = load_parts(path)
    except FileFormatError as error:
        refusal = str(error)
    if not refusal:
        assert everything(again) == expected
        return False
    assert refusal.startswith(f"{path}: ")
    assert "\n" not in refusal
    return True


def test_a_file_cut_anywhere_is_refused(whole: Path, path: Path) -> None:
    data = whole.read_bytes()
    lengths = {*range(60), *range(0, len(data), 37), *range(len(data) - 350, len(data))}
    for length in sorted(lengths):
        assert check_refused_or_same(data[:length], path, None), length


def test_a_flipped_byte_is_refused_or_means_nothing(whole: Path, path: Path) -> None:
    data, expected = whole.read_bytes(), everything(load_parts(whole))
    rng = np.random.default_rng(8)
    tail = range(len(data) - 350, len(data))  # the directory of the archive, and its comment
    sample = rng.choice(len(data), size=500, replace=False)
    kept = []
    for offset in [*range(60), *tail, *sample.tolist()]:
        for mask in (0xFF, 1 << int(rng.integers(8))):
            altered = bytearray(data)
            altered[offset] ^= mask
            if not check_refused_or_same(bytes(altered), path, expected):
                kept.append(offset)
    with ZipFile(whole) as archive:
        starts = [(m.header_offset + 30 + len(m.filename), m.file_size) for m in archive.infolist()]
    assert not [o for o in kept if any(a <= o < a + n for a, n in starts)]
    assert not [o for o in kept if o >= len(data) - 71]  # the comment: the manifest's checksum


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_at_all(whole: Path, choice: st.DataObject) -> None:
    data, expected = whole.read_bytes(), everything(load_parts(whole))
    a = choice.draw(st.integers(0, len(data)), label="from")
    b = choice.draw(st.integers(a, min(len(data), a + 40)), label="to")
    middle = choice.draw(st.binary(max_size=40), label="instead")
    check_refused_or_same(data[:a] + middle + data[b:], whole.with_name("damaged"), expected)


def test_flips_in_a_file_with_a_model(with_model: Path, path: Path) -> None:
    data, expected = with_model.read_bytes(), everything(load_parts(with_model))
    rng = np.random.default_rng(9)
    start = data.index(b"estimator.skops")
    for offset in rng.integers(start, len(data), size=60).tolist():
        altered = bytearray(data)
        altered[offset] ^= 1 << int(rng.integers(8))
        check_refused_or_same(bytes(altered), path, expected)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"hello", pickle.dumps([1, 2]), b"PK\x05\x06" + bytes(18)]
)
def test_what_is_not_a_priorshift_file(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"not a priorshift file .*: use another copy"):
        load_parts(path)


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as missing:
        load_parts(tmp_path / "none")
    assert str(missing.value) == f"{tmp_path / 'none'}: no such file"
    with pytest.raises(FileFormatError, match="is a folder: give the path of a file"):
        load_parts(tmp_path)


# Files that were forged: every checksum is right.


def forge(
    origin: Path,
    path: Path,
    change: Callable[[dict[str, Any], dict[str, bytes]], Any],
    compression: int = ZIP_STORED,
) -> None:
    with ZipFile(origin) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    text = change(manifest, members)
    manifest["members"] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in members.items()
    }
    text = json.dumps(manifest).encode() if text is None else text
    with ZipFile(path, "w", compression) as archive:
        archive.comment = b"sha256:" + hashlib.sha256(text).hexdigest().encode()
        for name, data in {"manifest.json": text, **members}.items():
            archive.writestr(name, data)


def edit_arrays(members: dict[str, bytes], **changes: Any) -> None:
    arrays = dict(np.load(io.BytesIO(members["arrays.npz"])))
    arrays.update({name.replace("__", "/"): value for name, value in changes.items()})
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    members["arrays.npz"] = buffer.getvalue()


def test_the_forger_of_these_tests_knows_the_format(whole: Path, path: Path) -> None:
    forge(whole, path, lambda manifest, members: None)
    assert everything(load_parts(path)) == everything(load_parts(whole))


FORGERIES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "newer": (lambda m, _: m.update(version=4), "format version 4, .* reads up to 3: update"),
    "older": (
        lambda m, _: m.update(version=1, made_with={"priorshift": "0.1.0"}),
        r"saved by priorshift 0\.1\.0 in file format 1, .*: load it with priorshift 0\.1\.0",
    ),
    "no writer": (lambda m, _: m.update(version=1, made_with=3), "file format 1"),
    "no version": (lambda m, _: m.update(version="1"), "has no format version"),
    "other format": (lambda m, _: m.update(format="model"), "is not a priorshift file"),
    "no format": (lambda m, _: m.pop("format"), "is not a priorshift file"),
    "no stream": (lambda m, f: f.pop("stream.bin"), "KeyError: 'stream.bin'"),
    "no arrays": (lambda m, f: f.pop("arrays.npz"), "arrays.npz"),
    "unknown class": (lambda m, _: m["learner"].update(object="learner/x"), "update priorshift"),
    "not a learner": (
        lambda m, _: m.update(learner={"object": "hint/fwd"}),
        "place of the learner",
    ),
    "bad setting": (lambda m, _: m["learner"]["fields"].update(window=0), "window is 0"),
    "new setting": (lambda m, _: m["learner"]["fields"].update(colour=1), "colour"),
    "more rounds": (lambda m, _: m["learner"]["fields"].update(window=3), "other settings"),
    "a cut stream": (lambda m, f: f.update({"stream.bin": f["stream.bin"][:-1]}), "cut short"),
    "no bytes": (lambda m, f: f.update({"stream.bin": b""}), "cut short"),
    "no such array": (lambda m, _: m["source"].update(proba={"array": "x"}), "KeyError: 'x'"),
    "unknown tag": (lambda m, _: m["source"].update(proba={"code": "x"}), "cannot be read"),
    "unknown loss": (lambda m, _: m["source"].update(loss="x"), "no loss is called 'x'"),
    "dtype": (lambda m, f: edit_arrays(f, source__prior=np.zeros(2, "f4")), "float32"),
    "other source": (
        lambda m, f: edit_arrays(f, source__proba=np.full((8, 2), 0.5)),
        "another source",
    ),
    "shape": (lambda m, f: edit_arrays(f, source__head=np.zeros((2, 9), "f4")), r"source\.head"),
    "rows": (lambda m, f: edit_arrays(f, source__proba=np.zeros((3, 2))), r"source\.proba"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str, whole: Path, path: Path) -> None:
    change, message = FORGERIES[name]

    def apply(manifest: Any, members: Any) -> None:
        change(manifest, members)

    forge(whole, path, apply)
    with pytest.raises(FileFormatError, match=message) as refusal:
        load_parts(path)
    assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"format": "prior', "JSONDecodeError"),
        (b"[1, 2]", "is not a priorshift file"),
        (b"\xff\xfe\xfd", "UnicodeDecodeError"),
        (b"[" * 100_000, "RecursionError"),
    ],
)
def test_a_manifest_that_is_no_manifest(text: bytes, message: str, whole: Path, path: Path) -> None:
    forge(whole, path, lambda manifest, members: text)
    with pytest.raises(FileFormatError, match=message):
        load_parts(path)


def test_members_that_the_manifest_does_not_know(whole: Path, path: Path) -> None:
    path.write_bytes(whole.read_bytes())
    with ZipFile(path, "a") as archive:
        archive.writestr("more.txt", "x")
    with pytest.raises(FileFormatError, match="too many"):
        load_parts(path)


@pytest.mark.parametrize("name", ["manifest.json", "arrays.npz"])
def test_a_member_packed_again_with_another_tool(name: str, whole: Path, path: Path) -> None:
    with ZipFile(whole) as old, ZipFile(path, "w") as new:  # so that the zip's own sums are right
        new.comment = old.comment
        for member in old.namelist():
            data = bytearray(old.read(member))
            data[len(data) // 2] ^= member == name
            new.writestr(member, bytes(data))
    with pytest.raises(FileFormatError, match=rf"its (manifest|member {name}) was altered"):
        load_parts(path)


def test_a_bomb_is_refused_before_it_is_opened(whole: Path, path: Path) -> None:
    forge(whole, path, lambda m, f: None, ZIP_DEFLATED)
    with pytest.raises(FileFormatError, match="is compressed"):
        load_parts(path)

    def pack(manifest: Any, members: dict[str, bytes]) -> None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, zeros=np.zeros(10**6))
        members["arrays.npz"] = buffer.getvalue()

    forge(whole, path, pack)
    with pytest.raises(FileFormatError, match="is compressed"):
        load_parts(path)


class Payload:
    """Unpickling this makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("dressed", [True, False])
def test_a_pickle_in_the_arrays_is_never_run(
    dressed: bool, whole: Path, path: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"

    def plant(manifest: Any, members: dict[str, bytes]) -> None:
        if dressed:
            edit_arrays(members, source__prior=np.array([Payload(trap)], dtype=object))
            return
        buffer = io.BytesIO(members["arrays.npz"])
        with ZipFile(buffer, "a") as archive:
            archive.writestr("state/more.npy", pickle.dumps(Payload(trap)))
        members["arrays.npz"] = buffer.getvalue()

    forge(whole, path, plant)
    with pytest.raises(FileFormatError, match="allow_pickle=False" if dressed else "not an array"):
        load_parts(path)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Payload(trap)))
    assert trap.exists()  # the trap itself works


@pytest.mark.parametrize(
    "function", [squares, os.getcwd], ids=["the user's own", "the standard library's"]
)
def test_foreign_code_in_a_model_is_named_and_refused(
    function: Any, with_model: Path, path: Path
) -> None:
    skops = pytest.importorskip("skops.io")

    def plant(manifest: Any, members: dict[str, bytes]) -> None:
        model = make_pipeline(FunctionTransformer(function), LogisticRegression())
        members["estimator.skops"] = skops.dumps(model)

    forge(with_model, path, plant)
    with pytest.raises(FileFormatError, match=rf"holds the type \S*{function.__name__}, which"):
        load_parts(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sklearn.tree._tree.Tree", True),
        ("sklearn.feature_selection._univariate_selection.f_classif", True),
        ("numpy.log1p", True),
        ("scipy.special.expit", True),
        ("sklearn.datasets._base.Path", False),  # only imported there
        ("sklearn.utils.fixes.platform", False),
        ("numpy.f2py.__main__.main", False),
        ("sklearn.no_such.Thing", False),
        ("sklearnish.Thing", False),
        ("builtins.eval", False),
        ("os.system", False),
        ("Thing", False),
    ],
)
def test_only_what_the_three_packages_define_is_trusted(name: str, expected: bool) -> None:
    assert is_scientific(name) is expected


def test_a_model_that_cannot_be_rebuilt(with_model: Path, path: Path) -> None:
    def plant(manifest: Any, members: dict[str, bytes]) -> None:
        buffer = io.BytesIO()
        with ZipFile(buffer, "w") as archive:
            archive.writestr("schema.json", json.dumps({"protocol": 999, "__loader__": "None"}))
        members["estimator.skops"] = buffer.getvalue()

    forge(with_model, path, plant)
    with pytest.raises(FileFormatError):
        load_parts(path)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorshiftWarning")
def test_a_module_named_in_a_file_is_not_imported(
    path: Path, tmp_path: Path, source: Source
) -> None:
    (tmp_path / "trapped_module.py").write_text("raise SystemExit('imported')\n")
    save_parts(path, saved(source, Count(), Count().start(source), {}))

    def rename(manifest: Any, members: Any) -> None:
        manifest["learner"]["reference"] = "trapped_module:Count"
        manifest["source"]["features"] = {"reference": "trapped_module:f"}

    forge(path, tmp_path / "forged", rename)
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from priorshift.errors import FileFormatError\n"
        "from priorshift.saving import load_parts\n"
        "from priorshift.source.model import log_probabilities as f; f.__qualname__ = 'f'\n"
        "for given in ({}, {'features': f}):\n"
        "    try:\n"
        "        load_parts('forged', **given)\n"
        "    except FileFormatError as error:\n"
        "        print(error)\n"
        "print('trapped_module' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert "features, trapped_module:f" in lines[0]
    assert "only refers to trapped_module:Count" in lines[1]
    assert lines[2] == "False"
