"""Every model of the closed list comes back from a file, and answers to the last bit as before."""

from __future__ import annotations

import warnings
from datetime import timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
)
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from priorshift import FileFormatError, LabelShiftClassifier, PriorshiftWarning, load
from priorshift.saving.archive import read, write
from priorshift.saving.estimators import NotListedError, Reader, Writer
from priorshift.saving.listed import CLASSES, listed_class
from priorshift.saving.values import Parts

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 150)
X = np.abs(RNG.normal(size=(150, 4)) + 1.5 * np.eye(4)[Y])
X_MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
NAMES = np.array(["ash", "oak", "elm"])[Y]
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "kind": pd.Categorical(np.array(["p", "q", "r"])[(Y + RNG.integers(0, 2, 150)) % 3]),
        "place": np.array(["here", "there", "nowhere"])[RNG.integers(0, 3, 150)],
        "count": RNG.integers(0, 9, 150),
    }
)
WORDS = np.array(["tree", "leaf", "root", "bark", "wood", "sap"])
TEXT = [" ".join(RNG.choice(WORDS, 6)) + " " + WORDS[y] for y in Y]
DICTS = [
    {"word": WORDS[RNG.integers(6)], "size": float(x), "y": int(y)}
    for x, y in zip(X[:, 0], Y, strict=True)
]


def after(model: Any) -> Any:
    """A pipeline that ends in a logistic regression."""
    return make_pipeline(model, LogisticRegression())


MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "logistic-cv": LogisticRegressionCV(Cs=2, cv=2),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "sgd-huber": SGDClassifier(loss="modified_huber", random_state=np.random.RandomState(0)),
    "sgd-hinge": SGDClassifier(random_state=0),
    "perceptron": Perceptron(),
    "ridge": RidgeClassifier(),
    "gaussian-nb": GaussianNB(),
    "multinomial-nb": MultinomialNB(),
    "bernoulli-nb": BernoulliNB(binarize=1.0),
    "complement-nb": ComplementNB(),
    "categorical-nb": make_pipeline(KBinsDiscretizer(3, encode="ordinal"), CategoricalNB()),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "knn": KNeighborsClassifier(),
    "knn-ball": KNeighborsClassifier(algorithm="ball_tree", metric="manhattan", weights="distance"),
    "knn-brute": KNeighborsClassifier(algorithm="brute"),
    "centroid": NearestCentroid(),
    "svc": SVC(),
    "svc-linear": SVC(kernel="linear", random_state=0),
    "nu-svc": NuSVC(),
    "linear-svc": LinearSVC(),
    "tree": DecisionTreeClassifier(random_state=0),
    "extra-tree": ExtraTreeClassifier(random_state=0),
    "few-leaves": DecisionTreeClassifier(max_leaf_nodes=6, random_state=0),
    "forest": RandomForestClassifier(7, random_state=0),
    "extra-trees": ExtraTreesClassifier(7, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=4, random_state=0),
    "boosting-sampled": GradientBoostingClassifier(n_estimators=4, subsample=0.5, init="zero"),
    "histogram": HistGradientBoostingClassifier(max_iter=4),
    "histogram-stopped": HistGradientBoostingClassifier(max_iter=4, early_stopping=True),
    "mlp": MLPClassifier((5,), max_iter=4, random_state=0),
    "mlp-sgd": MLPClassifier((5, 4), solver="sgd", max_iter=4, random_state=0),
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=2),
    "calibrated-isotonic": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
    "calibrated-folds": CalibratedClassifierCV(GaussianNB(), cv=StratifiedKFold(3)),
    "calibrated-frozen": CalibratedClassifierCV(FrozenEstimator(GaussianNB().fit(X, NAMES))),
    "bagging": BaggingClassifier(n_estimators=3, random_state=0),
    "ada-boost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
    "stacking": StackingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier())], cv=2),
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "dummy": DummyClassifier(),
    "grid": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    "frozen": FrozenEstimator(RandomForestClassifier(3, random_state=0).fit(X, NAMES)),
    "standard": after(StandardScaler()),
    "min-max": after(MinMaxScaler()),
    "max-abs": after(MaxAbsScaler()),
    "robust": after(RobustScaler()),
    "normalizer": after(Normalizer()),
    "power": after(PowerTransformer()),
    "quantile": after(QuantileTransformer(n_quantiles=10)),
    "polynomial": after(PolynomialFeatures()),
    "binarizer": after(Binarizer(threshold=1.0)),
    "bins": after(KBinsDiscretizer(3)),
    "function": after(FunctionTransformer(np.log1p)),
    "absolute": after(FunctionTransformer(np.abs)),
    "identity": after(FunctionTransformer()),
    "pca": after(PCA(2)),
    "svd": after(TruncatedSVD(2, random_state=0)),
    "k-best": after(SelectKBest(k=2)),
    "percentile": after(SelectPercentile(chi2, percentile=50)),
    "variance": after(VarianceThreshold()),
    "union": after(FeatureUnion([("pca", PCA(1)), ("scaled", StandardScaler()), ("no", "drop")])),
    "remembered": Pipeline(
        [("s", StandardScaler()), ("m", GaussianNB())], memory=None, verbose=False
    ),
    "left out": make_pipeline("passthrough", PCA(2), GaussianNB()),
}
ROWS: dict[str, Any] = dict.fromkeys(MODELS, X)


def also(name: str, model: Any, rows: Any) -> None:
    MODELS[name], ROWS[name] = model, rows


also("imputer", after(SimpleImputer(add_indicator=True)), X_MISSING)
also("knn-imputer", after(KNNImputer()), X_MISSING)
also("histogram-missing", HistGradientBoostingClassifier(max_iter=3), X_MISSING)
also("forest-missing", RandomForestClassifier(3, random_state=0), X_MISSING)
also(
    "columns",
    after(
        ColumnTransformer(
            [
                ("hot", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
                ("few", OneHotEncoder(min_frequency=60, drop="first"), ["place"]),
                ("number", StandardScaler(), make_column_selector(dtype_include=np.number)),
            ],
            remainder="drop",
        )
    ),
    FRAME,
)
also(
    "ordinal",
    make_pipeline(
        ColumnTransformer(
            [("o", OrdinalEncoder(dtype=np.float32), ["kind", "place"])],
            remainder="passthrough",
            sparse_threshold=0,
        ),
        DecisionTreeClassifier(random_state=0),
    ),
    FRAME,
)
also(
    "histogram-frame",
    HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype"),
    FRAME.drop(columns="place"),
)
also(
    "histogram-codes",
    HistGradientBoostingClassifier(max_iter=4, categorical_features=[1]),
    np.c_[X[:, :1], Y % 2],
)
also("pandas-out", after(StandardScaler().set_output(transform="pandas")), FRAME[["size", "count"]])
for name, vectorizer in {
    "tfidf": TfidfVectorizer(ngram_range=(1, 2)),
    "count": CountVectorizer(stop_words="english", min_df=2),
    "count-set": CountVectorizer(stop_words=["sap"], vocabulary=["leaf", "tree", "root"]),
    "hashing": HashingVectorizer(n_features=32),
    "tfidf-steps": make_pipeline(CountVectorizer(), TfidfTransformer()),
    "text-union": make_union(TfidfVectorizer(), CountVectorizer(analyzer="char_wb")),
}.items():
    also(name, after(vectorizer), TEXT)
also("text-bayes", make_pipeline(CountVectorizer(), MultinomialNB()), TEXT)
also("dicts", after(DictVectorizer()), DICTS)
also("sparse", LogisticRegression(), sparse.csr_matrix(X))
also("sparse-array", LogisticRegression(), sparse.csr_array(X))
also("sparse-svc", SVC(), sparse.csr_matrix(X))
also("sparse-knn", KNeighborsClassifier(), sparse.csr_matrix(X))
also("sparse-forest", RandomForestClassifier(3, random_state=0), sparse.csr_matrix(X))


def fitted(name: str, y: Any = NAMES) -> Any:
    model = MODELS[name]
    if isinstance(model, FrozenEstimator):
        return model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(ROWS[name], y)


def answers(model: Any, rows: Any) -> list[bytes]:
    found = [model.predict(rows)]
    for method in ("predict_proba", "decision_function", "predict_log_proba"):
        if hasattr(model, method):
            found.append(getattr(model, method)(rows))
    return [np.asarray(array).tobytes() for array in found if array.dtype != object] + [
        array.tolist() for array in found if array.dtype == object
    ]


def through_a_file(model: Any, path: Path) -> Any:
    parts = Parts()
    encoded = Writer(parts, "model").encode(model)
    write(path, {"model": encoded}, parts.arrays)
    manifest, blocks = read(path)
    return Reader(Parts(blocks)).decode(manifest["model"])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_as_before(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    again = through_a_file(model, tmp_path / "file")
    assert type(again) is type(model)
    assert answers(again, ROWS[name]) == answers(model, ROWS[name])


@pytest.mark.parametrize(
    "name", ["boosting", "histogram", "svc", "sgd", "mlp", "calibrated", "forest"]
)
def test_two_classes(name: str, tmp_path: Path) -> None:
    model = fitted(name, NAMES == "ash")
    again = through_a_file(model, tmp_path / "file")
    assert answers(again, ROWS[name]) == answers(model, ROWS[name])
    fitted(name)


def test_every_listed_estimator_is_tried() -> None:
    tried = {"RidgeClassifierCV", "KFold", "_TemperatureScaling", "ExtraTreeRegressor"}

    def visit(encoded: Any) -> None:
        if isinstance(encoded, dict):
            tried.add(str(encoded.get("class")))
            encoded = list(encoded.values())
        if isinstance(encoded, list):
            for part in encoded:
                visit(part)

    for name in MODELS:
        visit(Writer(Parts(), "model").encode(fitted(name)))
    missing = {name for names in CLASSES.values() for name in names} - tried
    assert missing <= {"_ConstantPredictor", "Bunch", "_TemperatureScaling"}, missing


@pytest.mark.parametrize("module", CLASSES)
def test_every_listed_class_exists(module: str) -> None:
    for name in CLASSES[module]:
        if name != "_TemperatureScaling":  # of scikit-learn 1.8 and later
            assert listed_class(name).__name__ == name


class Own(BaseEstimator):  # type: ignore[misc]
    """An estimator of the user's own."""

    def fit(self, X: Any, y: Any = None) -> Own:
        return self

    def transform(self, X: Any) -> Any:
        return X


class Logistic(LogisticRegression):  # type: ignore[misc]
    """One that is derived from a listed class."""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (make_pipeline(Own(), LogisticRegression()), r"Pipeline.steps holds \S+:Own"),
        (Logistic(), r"holds \S+:Logistic"),
        (FunctionTransformer(lambda X: X), r"FunctionTransformer.func holds \S+:<lambda>"),
        (FunctionTransformer(partial(np.power, 2)), "FunctionTransformer.func holds functools"),
        (TfidfVectorizer(tokenizer=str.split), "TfidfVectorizer.tokenizer holds"),
        (KNeighborsClassifier(metric=np.dot), "KNeighborsClassifier.metric holds"),
        (LogisticRegression(C=np.ma.masked_array([1.0])), "LogisticRegression.C holds numpy.ma"),
    ],
)
def test_what_is_not_listed_is_named(model: Any, reason: str) -> None:
    with pytest.raises(NotListedError, match=reason):
        Writer(Parts(), "model").encode(model)


def test_an_attribute_that_hides_a_method_is_not_written() -> None:
    model = LogisticRegression()
    model.predict = 3
    with pytest.raises(NotListedError, match=r"sets LogisticRegression.predict, which is no"):
        Writer(Parts(), "model").encode(model)


# Models that a file only refers to are known again by their answers.


class Threshold:
    """A model of the user's own, for any kind of rows."""

    classes_ = np.array(["ash", "elm", "oak"])

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def predict_proba(self, rows: Any) -> Any:
        scores = np.array([[len(str(row)) % 7, 3.0, self.shift] for row in self._rows(rows)])
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    def _rows(self, rows: Any) -> Any:
        if isinstance(rows, pl.DataFrame):
            return rows.rows()
        if isinstance(rows, pd.DataFrame):
            return rows.astype(str).to_numpy().tolist()
        return rows.toarray().tolist() if sparse.issparse(rows) else np.asarray(rows).tolist()


DAYS = (np.datetime64("2020-10-24", "h") + np.arange(150)).astype("M8[us]")
KINDS = {
    "array": X,
    "frame": FRAME,
    "sparse": sparse.csr_matrix(X),
    "float32": X.astype(np.float32),
    "missing": X_MISSING,
    "text": TEXT,
    "dicts": DICTS,
    "images": RNG.random((150, 2, 3)),
    "series": pd.Series(TEXT, name="text"),
    "days": pd.DataFrame(
        {
            "size": X[:, 0],
            "day": pd.Series(DAYS).dt.tz_localize("UTC").dt.tz_convert("Europe/Paris"),
            "fixed": pd.Series(DAYS).dt.tz_localize("+01:00"),
        }
    ),
    "polars frame": pl.DataFrame(
        {
            "size": pl.Series(X[:, 0], dtype=pl.Float32),
            "count": pl.Series([None, *range(149)], dtype=pl.UInt8),
            "word": TEXT,
            "kind": pl.Series(NAMES.tolist(), dtype=pl.Categorical),
            "tree": pl.Series(NAMES.tolist(), dtype=pl.Enum(["oak", "elm", "ash", "fir"])),
            "large": X[:, 1] > 1,
            "date": pl.Series(DAYS).dt.date(),
            "hour": pl.Series(DAYS).dt.time(),
            "day": pl.Series(DAYS).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
            "naive": pl.Series(DAYS).cast(pl.Datetime("ms")),
            "since": pl.Series(DAYS - DAYS[0]).cast(pl.Duration("ns")),
            "none": pl.Series([None] * 150),
        }
    ),
    "polars series": pl.Series("text", TEXT),
}


def encoded_rows(rows: Any) -> tuple[Any, Parts]:
    from priorshift.saving.sample import _encode_rows

    parts = Parts()
    return _encode_rows(rows, Writer(parts, "sample")), parts


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_come_back(kind: str) -> None:
    from priorshift.saving.sample import _decode_rows
    from priorshift.source.source import _sample

    rows = _sample(KINDS[kind], np.arange(150))
    encoded, parts = encoded_rows(rows)
    again = _decode_rows(encoded, Parts(parts.arrays))
    assert type(again) is type(rows)
    if isinstance(rows, pd.DataFrame):
        pd.testing.assert_frame_equal(again, rows.reset_index(drop=True))
    elif isinstance(rows, pd.Series):
        pd.testing.assert_series_equal(again, rows.reset_index(drop=True))
    elif isinstance(rows, pl.DataFrame):
        polars.testing.assert_frame_equal(again, rows)
    elif isinstance(rows, pl.Series):
        polars.testing.assert_series_equal(again, rows)
    elif kind == "sparse":
        assert (again != rows).nnz == 0
    else:
        np.testing.assert_array_equal(again, rows)
    assert len(rows if kind != "sparse" else rows.toarray()) == 16


def test_frames_with_odd_columns() -> None:
    frame = pd.DataFrame(
        {
            "word": pd.Series(["a", None, "c"], dtype="string"),
            "whole": pd.Series([1, None, 3], dtype="Int64"),
            "day": pd.to_datetime(["2020-01-01", "2021-01-01", None]),
            "object": pd.Series(["x", None, "y"], dtype=object),
            "real": [0.5, np.nan, 1.0],
            "order": pd.Categorical([2, 1, None], categories=[1, 2, 3], ordered=True),
        }
    )
    from priorshift.saving.sample import _decode_rows

    encoded, parts = encoded_rows(frame)
    pd.testing.assert_frame_equal(_decode_rows(encoded, Parts(parts.arrays)), frame)


def held_out(rows: Any) -> Any:
    return Threshold(), rows, NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_the_wrong_model_is_refused(kind: str, tmp_path: Path) -> None:
    clf = LabelShiftClassifier(Threshold(), "fix").fit(KINDS[kind], NAMES)
    with pytest.warns(PriorshiftWarning, match=r"only refers to estimator .* estimator=$"):
        clf.save(tmp_path / "file")
    again = load(tmp_path / "file", estimator=Threshold())
    rows = KINDS[kind]
    assert again.predict_proba(rows).tobytes() == clf.predict_proba(rows).tobytes()
    assert load(tmp_path / "file", estimator=Threshold(1e-5)).n_rounds_ == 0
    with pytest.raises(FileFormatError, match=r"estimator= answers otherwise .* 16 held-out rows"):
        load(tmp_path / "file", estimator=Threshold(2.0))
    with pytest.warns(PriorshiftWarning, match="only refers to estimator"):
        again.save(tmp_path / "twice")  # the rows were loaded, too
    with pytest.raises(FileFormatError, match="answers otherwise"):
        load(tmp_path / "twice", estimator=Threshold(2.0))


def test_the_wrong_scikit_learn_model_is_refused_too(tmp_path: Path) -> None:
    right = LogisticRegression().fit(X, NAMES)
    wrong = LogisticRegression(C=1e-4).fit(X, NAMES)
    other = LogisticRegression().fit(X[:, :2], NAMES)
    LabelShiftClassifier(right, "fth").fit(X, NAMES).save(tmp_path / "file")
    assert load(tmp_path / "file", estimator=right).n_rounds_ == 0
    with pytest.raises(FileFormatError, match="answers otherwise than it did when saved"):
        load(tmp_path / "file", estimator=wrong)
    with pytest.raises(FileFormatError, match="cannot read the 16 held-out rows"):
        load(tmp_path / "file", estimator=other)


def plus(X: Any) -> Any:
    return np.asarray(X) + plus.by  # type: ignore[attr-defined]


plus.by = 0.0  # type: ignore[attr-defined]


def test_the_wrong_features_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticRegression().fit(X, NAMES)
    clf = LabelShiftClassifier(model, "uogd", features=plus).fit(X, NAMES)
    with pytest.warns(PriorshiftWarning, match="only refers to features"):
        clf.save(tmp_path / "file")
    assert load(tmp_path / "file", features=plus).n_rounds_ == 0
    monkeypatch.setattr(plus, "by", 1.0)
    with pytest.raises(FileFormatError, match="features= answers otherwise"):
        load(tmp_path / "file", features=plus)


class Dice(Threshold):
    """A model that answers otherwise each time."""

    def predict_proba(self, rows: Any) -> Any:
        return np.random.default_rng().dirichlet(np.ones(3), len(rows))


class Lookup(Threshold):
    """A model that reads what no file keeps, the index of a series."""

    def predict_proba(self, rows: Any) -> Any:
        return super().predict_proba(rows.index)


SHORT = pd.Series(TEXT, index=10 ** (np.arange(150) % 9))


@pytest.mark.parametrize(
    ("model", "rows", "reason"),
    [
        (Dice(), X, "asked again with the same values, it answers otherwise"),
        (Lookup(), SHORT, "asked again with the same values, it answers otherwise"),
        (Threshold(), pl.DataFrame({"a": X.tolist()}), "the rows are DataFrame: .* type 'List'"),
        (Threshold(), pd.DataFrame({"a": DAYS}).astype("period[D]"), "holds a column of type 'per"),
        (
            Threshold(),
            pd.DataFrame({"a": pd.Series(DAYS).dt.tz_localize("dateutil/UTC")}),
            "tzfile",
        ),
        (
            Threshold(),
            pd.DataFrame({"a": pd.Series(DAYS).dt.tz_localize(timezone(timedelta(0), "X"))}),
            "the rows are DataFrame",
        ),
    ],
    ids=["dice", "index", "lists", "periods", "dateutil", "unknown zone"],
)
def test_where_no_answers_can_be_kept_the_warning_says_so(
    model: Any, rows: Any, reason: str, tmp_path: Path
) -> None:
    clf = LabelShiftClassifier(model, "fix").fit(rows, NAMES)
    with pytest.warns(PriorshiftWarning, match=f"not its answers: .*{reason}"):
        clf.save(tmp_path / "file")
    assert load(tmp_path / "file", estimator=type(model)(2.0)).n_rounds_ == 0
