"""Reading what is not whole, or was forged: refused in one line, and nothing of it is run."""

from __future__ import annotations

import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import sklearn
from benchmarks import forged_files
from benchmarks.forging import KINDS, pack, summed, unpack
from benchmarks.forging import forge as forge_at_random
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from priorshift import FileFormatError, InputError, load
from priorshift.learners import ATLAS, FTFWH, FTH
from priorshift.saving import load_parts, save_parts, stream_from_bytes, stream_to_bytes
from priorshift.saving.archive import VERSION
from priorshift.saving.estimators import Reader, Writer
from priorshift.saving.values import Parts
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel
from priorshift.stream import Deployment, Stream
from saved_files import everything, forge, saved


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


# Damage.


def check_refused(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as refusal:
        load_parts(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def test_a_file_cut_anywhere_is_refused(whole: Path, path: Path) -> None:
    data = whole.read_bytes()
    for length in sorted(
        {*range(120), *range(0, len(data), 37), *range(len(data) - 90, len(data))}
    ):
        check_refused(data[:length], path)
    check_refused(data + b"\0", path)


def test_every_flipped_bit_is_refused(whole: Path, with_model: Path, path: Path) -> None:
    rng = np.random.default_rng(8)
    for origin in (whole, with_model):
        data = origin.read_bytes()
        sample = rng.choice(len(data), size=300, replace=False).tolist()
        for offset in [*range(112), *sample]:  # the head, and what its sums are of
            altered = bytearray(data)
            altered[offset] ^= 1 << int(rng.integers(8))
            check_refused(bytes(altered), path)


@settings(max_examples=150)
@given(st.data())
def test_any_damage_at_all(whole: Path, choice: st.DataObject) -> None:
    data = whole.read_bytes()
    a = choice.draw(st.integers(0, len(data)), label="from")
    b = choice.draw(st.integers(a, min(len(data), a + 40)), label="to")
    middle = choice.draw(st.binary(max_size=40), label="instead")
    damaged = data[:a] + middle + data[b:]
    if damaged != data:
        check_refused(damaged, whole.with_name("damaged"))


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", pickle.dumps([1, 2]), bytes(200)])
def test_what_is_not_a_priorshift_file(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"is not a priorshift file: give one"):
        load_parts(path)


def test_files_of_before_are_refused_with_a_sentence(path: Path) -> None:
    with ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"format": "priorshift", "version": 3}')
    with pytest.raises(
        FileFormatError, match=r"by an older priorshift, in file format 3 or before"
    ):
        load_parts(path)


def test_other_archives_are_no_files_of_before(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, P=np.eye(2), y=np.arange(2))
    with pytest.raises(FileFormatError, match=r"is not a priorshift file: give one that"):
        load_parts(path)


def test_the_document_names_the_version() -> None:
    document = Path(__file__).parents[2] / "docs" / "saving.md"
    (version, before) = re.findall(
        r"The version is (\d+)\. Files of format (\d+) and before", document.read_text()
    )[0]
    assert (int(version), int(before)) == (VERSION, VERSION - 1)


@pytest.mark.parametrize(("version", "age"), [(7, "a newer"), (2**31, "a newer"), (5, "an older")])
def test_other_formats_are_refused(version: int, age: str, whole: Path, path: Path) -> None:
    data = whole.read_bytes()
    path.write_bytes(data[:12] + version.to_bytes(4, "little") + data[16:])
    message = rf"has file format {version}, of {age} priorshift; this version reads format 6"
    with pytest.raises(FileFormatError, match=message):
        load_parts(path)


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as missing:
        load_parts(tmp_path / "none")
    assert str(missing.value) == f"{tmp_path / 'none'}: no such file"
    with pytest.raises(FileFormatError, match="is a folder: give the path of a file"):
        load_parts(tmp_path)


# Files that were forged: every sum is right.


def test_the_forger_of_these_tests_knows_the_format(whole: Path, path: Path) -> None:
    forge(whole, path, lambda manifest, blocks: None)
    assert path.read_bytes() == whole.read_bytes()
    assert everything(load_parts(path)) == everything(load_parts(whole))
    manifest, data = unpack(whole.read_bytes())
    assert pack(manifest, data) == whole.read_bytes()
    size = manifest["blocks"][0][2][0]
    assert summed(data[: size - 16])[:size] == data[:size]  # a stream, the first block


def put(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, blocks: blocks.update({name: value})


def set_number(name: str, place: Any, value: Any) -> Callable[[Any, Any], None]:
    def change(manifest: Any, blocks: Any) -> None:
        blocks[name] = blocks[name].copy()
        blocks[name][place] = value

    return change


FORGERIES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no stream": (lambda m, b: b.pop("stream"), "holds no stream"),
    "not bytes": (put("stream", np.zeros(3)), "holds no stream"),
    "no bytes": (put("stream", np.zeros(0, np.uint8)), "cut short"),
    "unknown class": (lambda m, _: m["learner"].update(object="learner/x"), "update priorshift"),
    "not a learner": (lambda m, _: m.update(learner={"object": "hint/fwd"}), "of the learner"),
    "no learner": (lambda m, _: m.update(learner=None), "damaged"),
    "bad setting": (lambda m, _: m["learner"]["fields"].update(window=0), "window is 0"),
    "new setting": (lambda m, _: m["learner"]["fields"].update(colour=1), "colour"),
    "other setting": (lambda m, _: m["learner"]["fields"].update(window=3), "other settings"),
    "huge window": (lambda m, _: m["learner"]["fields"].update(window=10**9), "does not fit its"),
    "not an estimator": (
        lambda m, _: m["learner"]["fields"].update(
            estimator={"object": "guard/guard", "fields": {}}
        ),
        "guard/guard in a place where it cannot be",
    ),
    "a foreign estimator": (
        lambda m, _: m["learner"]["fields"].update(
            estimator={"object": "prior/foreign", "fields": {"quantifier": 3}}
        ),
        "prior/foreign in a place",
    ),
    "not a guard": (
        lambda m, _: m.update(guard={"object": "learner/fth", "fields": {}}),
        "something else in the place of the guard",
    ),
    "no such array": (lambda m, _: m["source"].update(proba={"array": "x"}), "does not hold"),
    "twice": (
        lambda m, _: m["source"].update(proba={"array": "source/prior"}),
        "the array 'source/prior' twice",
    ),
    "unknown tag": (lambda m, _: m["source"].update(proba={"code": "x"}), "cannot be read"),
    "more than a tag": (
        lambda m, _: m["source"]["proba"].update(code="x"),
        r"cannot be read \(array, code\)",
    ),
    "axes": (lambda m, _: m["source"]["proba"].update(axes=[0, 0]), "with the axes"),
    "unknown loss": (lambda m, _: m["source"].update(loss="x"), "no loss is called 'x'"),
    "not honest": (lambda m, _: m["source"].update(honest="yes"), "source.honest is 'yes'"),
    "diameter": (lambda m, _: m["source"].update(diameter={"float": "nan"}), "diameter is nan"),
    "a number": (lambda m, _: m["source"].update(prior=0.5), "source.prior is no array"),
    "dtype": (put("source/prior", np.zeros(2, "f4")), "float32"),
    "shape": (put("source/head", np.zeros((2, 9), "f4")), r"source\.head"),
    "rows": (put("source/proba", np.zeros((3, 2))), r"source\.proba"),
    "other source": (put("source/proba", np.full((8, 2), 0.5)), "another source"),
    "NaN": (set_number("source/proba", 0, np.nan), "an array with NaN"),
    "infinite": (set_number("source/head", 0, np.inf), "source.head .* not finite"),
    "no probabilities": (set_number("source/proba", 0, 2.0), "source.proba holds no probab"),
    "no prior": (set_number("source/prior", 0, -1.0), "source.prior holds no probab"),
    "labels": (set_number("source/labels", -1, 2), "source.labels are not the classes"),
    "unsorted": (set_number("source/labels", 0, 1), "source.labels are not the classes"),
    "last offset": (set_number("source/offsets", -1, 10**6), "are not where the classes begin"),
    "first offset": (set_number("source/offsets", 0, -5), "are not where the classes begin"),
    "one class": (put("source/classes", np.array([1])), "two classes or more"),
    "on alarm": (lambda m, _: m.update(on_alarm="rm"), "on_alarm"),
    "memory": (lambda m, _: m.update(label_memory=-1), "label_memory"),
    "no source": (lambda m, _: m.pop("source"), "KeyError: 'source'"),
    "extra": (lambda m, _: m.update(extra=[1]), "in the place of extra"),
    "no version": (lambda m, _: m.update(made_with={"sklearn": "x"}), "with scikit-learn 'x'"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str, whole: Path, path: Path) -> None:
    change, message = FORGERIES[name]
    forge(whole, path, lambda manifest, blocks: [change(manifest, blocks), None][1])
    with pytest.raises(FileFormatError, match=message) as refusal:
        load_parts(path)
    assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"format": "prior', "JSONDecodeError"),
        (b"[1, 2]", "is no manifest"),
        (b"\xff\xfe\xfd", "UnicodeDecodeError"),
        (b'{"a": NaN}', "holds NaN, which is no number of JSON"),
        (b'{"a": 1, "a": 2}', "says one thing twice"),
        (b"[" * 100_000, "RecursionError"),
        (b'{"a": ' + b"9" * 5000 + b"}", "ValueError"),
        ('{"a": 1}'.encode("utf-32"), "UnicodeDecodeError"),
    ],
)
def test_a_manifest_that_is_no_manifest(text: bytes, message: str, path: Path) -> None:
    path.write_bytes(pack(text, b""))
    with pytest.raises(FileFormatError, match=message):
        load_parts(path)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (["x", "|O", [1]], r"of type '\|O', which no file holds"),
        (["x", "|V8", [1]], "which no file holds"),
        (["x", "<f16", [1]], "which no file holds"),
        (["x", "[('a', '<f8')]", [1]], "which no file holds"),
        (["x", "<f8", [2**62]], "has the shape"),
        (["x", "<f8", [-1]], "has the shape"),
        (["x", "<f8", [0, 2**40]], "has the shape"),
        (["x", "<f8", [1] * 40], "has the shape"),
        (["x", "<f8", [2.0]], "has the shape"),
        (["x", "<U99999999", [10]], "is larger than the file"),
        (["x", "<f8", [1]], "do not add up to its data"),
        (["source/head", "<f8", [0]], "do not add up to its data"),
        ([3, "<f8", [1]], "cannot be read"),
        (["x", "<f8"], "ValueError"),
        ("x", "ValueError"),
    ],
)
def test_blocks_are_checked_before_they_are_read(
    block: Any, message: str, whole: Path, path: Path
) -> None:
    manifest, data = unpack(whole.read_bytes())
    manifest["blocks"].append(block)
    path.write_bytes(pack(manifest, data))
    with pytest.raises(FileFormatError, match=message):
        load_parts(path)


def test_settings_of_the_classifier_are_of_their_kind(tmp_path: Path) -> None:
    from priorshift import LabelShiftClassifier

    X = np.array([[-1.0], [-0.8], [0.8], [1.0]])
    LabelShiftClassifier(learner="uogd", cv=2).fit(X, [0, 0, 1, 1]).save(tmp_path / "good")
    for name, value in (
        ("cv", "5"),
        ("random_state", 0.5),
        ("diameter", [1.0]),
        ("n_features_in", 2),
        ("feature_names_in", [1]),
        ("feature_names_in", ["a", "b"]),
        ("calibration", {"object": "learner/fth", "fields": {}}),
        ("sketch", 7),
    ):

        def change(manifest: Any, blocks: Any, name: str = name, value: Any = value) -> None:
            manifest["extra"][name] = value

        forge(tmp_path / "good", tmp_path / "forged", change)
        with pytest.raises(FileFormatError, match=r"^\S*forged: "):
            load(tmp_path / "forged")


# Held-out rows that are frames.


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        ("frame", ["a", [1], "Period", None], "a column of type 'Period'"),
        ("frame", ["a", [1] * 17, "int64", None], "a column that is none"),
        ("frame", ["a", "text", "object", None], "a column that is none"),
        ("frame", ["a", [1], "datetime64[ns, dateutil//etc/passwd]", None], "a column of type"),
        ("frame", ["a", [1], "datetime64[ns, ../../passwd]", None], "a column of type"),
        ("frame", ["a", ["x"], "datetime64[ns, Nowhere/Atall]", None], "Error"),
        ("frame", ["a", [1]], "ValueError"),
        ("series", [[], [1], "int64", None], "TypeError"),
        ("polars frame", ["a", [1], "DataFrame", []], "a column of type 'DataFrame'"),
        ("polars frame", ["a", [1], "Object", []], "a column of type 'Object'"),
        ("polars frame", ["a", [1] * 17, "Int64", []], "a column that is none"),
        ("polars frame", ["a", [300], "UInt8", []], "Error"),
        ("polars frame", ["a", ["x"], "Int64", []], "TypeError"),
        ("polars frame", ["a", [[1]], "Int64", []], "TypeError"),
        ("polars frame", [3, [1], "Int64", []], "TypeError"),
        ("polars frame", ["a", [1], "Int64", [1]], "a column of type 'Int64'"),
        ("polars frame", ["a", [1], "Datetime", ["years", None]], "ValueError"),
        ("polars frame", ["a", [1], "Datetime", ["us", "Nowhere/Atall"]], "ComputeError"),
        ("polars frame", ["a", [2**63 - 1], "Datetime", ["ms", "UTC"]], "a date that is none"),
        ("polars frame", ["a", [None, 2**31 - 1], "Date", []], "a date that is none"),
        ("polars series", ["a", ["x"], "Enum", [["y"]]], "Error"),
        ("polars series", ["a", ["\ud800"], "String", []], "UnicodeEncodeError"),
        ("pyarrow table", ["a", [1], "Int64", []], "an entry that cannot be read"),
    ],
)
def test_frames_that_are_none(
    kind: str, column: Any, message: str, with_model: Path, path: Path
) -> None:
    def change(manifest: Any, blocks: Any) -> None:
        manifest["source"]["sample"]["rows"] = {kind: Writer(Parts(), "x").encode([column])}

    forge(with_model, path, change)
    with pytest.raises(FileFormatError, match=message) as refusal:
        load_parts(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def test_a_series_is_one_column(with_model: Path, path: Path) -> None:
    for columns in ([], [["a", [1], "Int64", []]] * 2):

        def change(manifest: Any, blocks: Any, columns: Any = columns) -> None:
            rows = {"polars series": Writer(Parts(), "x").encode(columns)}
            manifest["source"]["sample"]["rows"] = rows

        forge(with_model, path, change)
        with pytest.raises(FileFormatError, match="ValueError"):
            load_parts(path)


# States.


@pytest.fixture(scope="module")
def deployment(source: Source) -> Deployment:
    return Deployment(source, ATLAS(horizon=None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"losses": lambda a: a * np.nan}, "state.losses holds NaN"),
        ({"W": lambda a: np.concatenate([a, a])}, "a pool has arrays of"),
        ({"steps": lambda a: np.concatenate([a, a])}, "a pool has arrays of"),
        ({"t": lambda t: -1}, "state.t is -1"),
    ],
)
def test_states_that_fit_no_learner(change: Any, message: str, deployment: Deployment) -> None:
    stream = deployment.start()
    new = {name: act(getattr(stream.state, name)) for name, act in change.items()}
    data = stream_to_bytes(deployment, stream._replace(state=stream.state._replace(**new)))
    with pytest.raises(FileFormatError, match=message):
        stream_from_bytes(deployment, data)


def test_what_does_not_belong_to_the_pool_cannot_grow(deployment: Deployment) -> None:
    state = deployment.start().state
    longer = state._replace(estimate=np.ones(9))
    with pytest.raises(InputError, match="a state keeps its types and shapes"):
        stream_to_bytes(deployment, Stream(longer))


def test_a_state_with_nan_is_neither_saved_nor_loaded(source: Source, path: Path) -> None:
    state = FTH().start(source)
    broken = state._replace(mean=state.mean * np.nan)
    with pytest.raises(InputError, match=r"this cannot be saved: .*state\.mean holds NaN"):
        save_parts(path, saved(source, FTH(), broken, {}))
    assert not path.exists()


def test_a_state_that_gives_no_class_prior(source: Source, path: Path) -> None:
    state = FTH().start(source)
    broken = saved(source, FTH(), state._replace(t=1, mean=state.mean * np.inf), {})
    with pytest.raises(InputError, match=r"this cannot be saved: .* not finite"):
        save_parts(path, broken)
    save_parts(path, saved(source, FTH(), state, {}))
    data = stream_to_bytes(broken.deployment, broken.stream)
    forge(path, path, put("stream", np.frombuffer(data, np.uint8)))
    with pytest.raises(FileFormatError, match=r"no class prior|not finite"):
        load_parts(path)


# Models.


def plant(entry: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, _: manifest["source"]["estimator"].update(holds=entry)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"class": "subprocess.Popen", "state": {}}, "names the class 'subprocess.Popen'"),
        ({"class": "Memory", "state": {}}, "names the class 'Memory'"),
        ({"class": "LogisticRegression", "state": {"predict": 1}}, "LogisticRegression.predict"),
        ({"class": "LogisticRegression", "state": {"__class__": 1}}, "no attribute of a fitted"),
        ({"class": "CountVectorizer", "state": {"input": "filename"}}, "CountVectorizer.input to"),
        ({"class": "Pipeline", "state": {"memory": "folder"}}, "Pipeline.memory to 'folder'"),
        ({"function": "runstring"}, "names the function 'runstring'"),
        ({"function": "numpy.testing.runstring"}, "names the function"),
        ({"compiled": "CyHalfBinomialLoss"}, "holds a CyHalfBinomialLoss"),
        ({"type": "os.system"}, "cannot be read"),
        ({"dtype": "os.system"}, "of type 'os.system'"),
        ({"check_array": {"dict": [["dtype", None], ["input_name", "x"]]}}, "cannot be read"),
        ({"objects": [2**40], "items": []}, "has the shape"),
        ({"number": ["|O", 1]}, "which no file holds"),
        ({"sparse": "dia_matrix", "shape": [1, 1], "arrays": []}, "cannot be read"),
        ([1, 2], "holds a list where a value should be"),
        ({"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}, "cannot be"),
    ],
)
def test_what_is_not_listed_is_refused(
    entry: Any, message: str, with_model: Path, path: Path
) -> None:
    forge(with_model, path, plant(entry))
    with pytest.raises(FileFormatError, match=rf"its estimator cannot be rebuilt: .*{message}"):
        load_parts(path)


X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
Y = np.arange(40) % 2


def forged_model(model: Any, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Any:
    parts = Parts()
    encoded = Writer(parts, "m").encode(model)
    arrays = {name: array.copy() for name, array in parts.arrays.items()}
    change(encoded["state"], arrays)
    return Reader(Parts(arrays)).decode(encoded)


def in_tree(column: int, value: Any) -> Callable[[Any, Any], None]:
    def change(state: Any, arrays: Any) -> None:
        arrays[state["tree_"]["whole"]["array"]][0, column] = value

    return change


def in_array(name: str, value: Any) -> Callable[[Any, Any], None]:
    def change(state: Any, arrays: Any) -> None:
        arrays[state[name]["array"]] = value(arrays[state[name]["array"]])

    return change


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (DecisionTreeClassifier(), in_tree(0, 10**6), "with nodes of no tree"),
        (DecisionTreeClassifier(), in_tree(0, 0), "with nodes of no tree"),  # a way without end
        (DecisionTreeClassifier(), in_tree(2, 3), "asks for no feature"),
        (DecisionTreeClassifier(), lambda s, _: s.update(n_features_in_=9), "of other features"),
        (RandomForestClassifier(2), lambda s, _: s.update(n_features_in_=2), "of other features"),
        (SVC(), in_array("support_", lambda a: a[:-1]), "support vectors of another type or"),
        (SVC(), in_array("_n_support", lambda a: a + 1), "support vectors"),
        (SVC(), in_array("_intercept_", lambda a: np.zeros(0)), "thresholds"),
        (SVC(), lambda s, _: s.update(kernel="precomputed"), "the kernel 'precomputed'"),
        (SVC(), lambda s, _: s.update(_sparse=True), "of two minds"),
        (KNeighborsClassifier(), in_array("_y", lambda a: a + 5), "neighbours of no class"),
        (KNeighborsClassifier(), in_array("_fit_X", lambda a: a[:, :1]), "neighbours"),
        (KNeighborsClassifier(), lambda s, _: s.update(_tree=None), "no attribute of a fitted"),
        (OneHotEncoder(), lambda s, _: s.update(_n_features_outs={"list": [1, 1, 1]}), "categor"),
    ],
)
def test_what_compiled_code_reads_is_checked(model: Any, change: Any, message: str) -> None:
    model.fit(X.round() if isinstance(model, OneHotEncoder) else X, Y)
    forged_model(model, lambda *_: None)  # the way there and back is fine
    with pytest.raises(FileFormatError, match=message):
        forged_model(model, change)


def test_words_have_columns_of_their_own() -> None:
    model = CountVectorizer().fit(["one two", "two three"])

    def change(state: Any, arrays: Any) -> None:
        arrays[state["vocabulary_"]["numbers"]["array"]][0] = 99

    with pytest.raises(FileFormatError, match="a vocabulary whose columns are not"):
        forged_model(model, change)


def test_sparse_matrices_are_checked() -> None:
    from scipy.sparse import csr_matrix

    model = LogisticRegression()
    model.coef_ = csr_matrix(X[:2])

    def change(state: Any, arrays: Any) -> None:
        arrays[state["coef_"]["arrays"][1]["array"]][0] = 10**6

    assert (forged_model(model, lambda *_: None).coef_ != model.coef_).nnz == 0
    with pytest.raises(ValueError, match="indices"):
        forged_model(model, change)


# The version of scikit-learn that a file was made with.


def made_with(version: str) -> Callable[[Any, Any], None]:
    return lambda manifest, _: manifest["made_with"].update(sklearn=version)


def test_a_model_of_a_newer_scikit_learn_is_refused(
    with_model: Path, path: Path, source: Source
) -> None:
    forge(with_model, path, made_with("99.1.0"))
    with pytest.raises(FileFormatError, match=r"saved with scikit-learn 99\.1\.0, this is .*: upd"):
        load_parts(path)
    assert load_parts(path, estimator=source.model.estimator).stream.state.t == 0


def test_a_model_of_an_older_scikit_learn_has_to_answer_as_it_did(
    with_model: Path, path: Path
) -> None:
    forge(with_model, path, made_with("1.0.2"))
    assert load_parts(path).stream.state.t == 0

    def change(manifest: Any, blocks: Any) -> None:
        made_with("1.0.2")(manifest, blocks)
        state = manifest["source"]["estimator"]["holds"]["state"]
        blocks[state["coef_"]["array"]] = -blocks[state["coef_"]["array"]]

    forge(with_model, path, change)
    with pytest.raises(FileFormatError, match=r"its estimator, of scikit-learn 1\.0\.2, answers"):
        load_parts(path)

    def lose(manifest: Any, blocks: Any) -> None:
        made_with("1.0.2")(manifest, blocks)
        manifest["source"]["estimator"]["holds"]["state"].pop("coef_")

    forge(with_model, path, lose)
    with pytest.raises(FileFormatError, match="cannot read the 16 held-out rows"):
        load_parts(path)


def test_the_same_version_is_not_asked(with_model: Path) -> None:
    manifest, _ = unpack(with_model.read_bytes())
    assert manifest["made_with"]["sklearn"] == sklearn.__version__


# Nothing of a file is run.


class Payload:
    """Unpickling this makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_is_never_run(whole: Path, path: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    data = pickle.dumps(Payload(trap))
    forge(whole, path, put("source/prior", np.frombuffer(data, np.uint8)))
    with pytest.raises(FileFormatError):
        load_parts(path)
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="is not a priorshift file"):
        load_parts(path)
    assert not trap.exists()
    pickle.loads(data)
    assert trap.exists()  # the trap itself works


def test_a_module_named_in_a_file_is_not_imported(
    with_model: Path, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "trapped_module.py").write_text("raise SystemExit('imported')\n")

    def rename(manifest: Any, blocks: Any) -> None:
        manifest["learner"] = {"reference": "trapped_module:Count", "fields": {}}
        manifest["source"]["features"] = {"reference": "trapped_module:f", "reason": ""}

    forge(with_model, tmp_path / "forged", rename)
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from priorshift.errors import FileFormatError\n"
        "from priorshift.saving import load_parts\n"
        "def f(X): return X\n"
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
    assert lines[-1] == "False"


NAMES = ["os.system", "builtins.eval", "numpy.testing.runstring", "sklearn.base.clone", "PCA"]


def test_some_hundred_forged_files(tmp_path: Path) -> None:
    """As ``python -m benchmarks.forged_files`` does with many more, watched from inside."""
    good = forged_files.good_files(tmp_path)
    outcomes = set()
    for number in range(300):
        rng = random.Random(number)
        data, _ = good[rng.randrange(len(good))]
        path = tmp_path / "forged"
        path.write_bytes(forge_at_random(data, KINDS[number % len(KINDS)], rng, NAMES, number))
        refusal = f"{path}: accepted"
        try:
            load(path)
        except FileFormatError as error:
            refusal = str(error)
        assert refusal.startswith(f"{path}: ")
        assert "\n" not in refusal
        outcomes.add(refusal.endswith("accepted"))
    assert outcomes == {True, False}


def test_the_command_that_forges_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert forged_files.main(["--count", "20", "--names", "300"]) == 0
    printed = capsys.readouterr().out
    assert "promises broken: 0" in printed
    assert "all                20 files" in printed
