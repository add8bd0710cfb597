"""The file format: exact round trips, and a clear refusal of everything that is not whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
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
from priorshift.saving.archive import read, write
from priorshift.saving.values import Parts
from priorshift.source import Source, build_source
from priorshift.source.model import LinearModel, ProbabilityModel, log_probabilities
from saved_files import CENTRES, NUMBERS, bits, draw, held_out, make_source, saved

SHORT = 40
NAMES = np.array(["cat", "dog", "emu"])


BATCHES = [draw(25, seed=10 + t, mix=(1 + t, 2, 6 - t))[0] for t in range(6)]


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
    for name in vars(learner):
        assert type(getattr(again, name)) is type(getattr(learner, name)), name


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


def test_axes_keep_their_order_in_memory(path: Path) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
        parts, turned = Parts(), array.transpose(axes)
        write(path, {"tag": parts.encode(turned, "a")}, parts.arrays)
        manifest, blocks = read(path)
        assert bits(Parts(blocks).decode(manifest["tag"])) == bits(turned)


def test_odd_numbers_keep_their_bits() -> None:
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
        parts = Parts()
        again = parts.decode(json.loads(json.dumps(parts.encode(value, "x"), allow_nan=False)))
        assert type(again) is type(value)
        assert bits(again) == bits(value)
    assert np.isnan(Parts().decode(Parts().encode(float("nan"), "x")))


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
    X, y = held_out(labels)
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


NAMES_ABC = np.array(["a", "b", "c"])


def test_linear_model(path: Path) -> None:
    coef = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    source = build_source(LinearModel(coef, np.arange(3)), *held_out(NUMBERS))
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
    source = build_source(model, *held_out(NUMBERS))
    again = check_round_trip(source, FTH(), path, estimator=model)
    assert again.deployment.source.model.estimator is model
    with pytest.raises(FileFormatError, match=r"estimator, \S+:Nearest.*estimator=\.\.\."):
        load_parts(path)
    with pytest.raises(FileFormatError, match=r"estimator= is sklearn.*saved with \S+:Nearest"):
        load_parts(path, estimator=LogisticRegression())


def test_saving_says_what_is_only_referred_to(path: Path) -> None:
    source = build_source(Nearest(CENTRES), *held_out(NUMBERS))
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
