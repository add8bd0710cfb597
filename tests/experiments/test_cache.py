"""Keys: different runs have different ones, equal runs the same, whatever they are called."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorshift
from priorshift.experiments import cache as module
from priorshift.experiments.cache import code_digest, key_of
from priorshift.experiments.description import Data, StreamRun
from priorshift.experiments.reproduce.regret import RegretRun
from priorshift.experiments.store import canonical

RUN = StreamRun(Data("digits", "digits"), "atlas", "predict-first", 10, 100, 0, shift="squ")
DATA = {
    "dataset": ["synthetic"],
    "rows": [300, 301],
    "components": [16, 17],
    "network": [16, 17],
    "order": ["sorted", "shl"],
    "problem": ["shl"],
}
RUNS = {
    "learner": ["uogd", "fth"],
    "protocol": ["adapt-first"],
    "batch_size": [11],
    "rounds": [99],
    "seed": [1],
    "shift": ["lin", None],
    "hint": ["fwd", "okm"],
    "period": [7, 8],
    "sketch": ["blocks:1000", "blocks:999"],
    "safety": ["on"],
    "step": [0, 1],
    "every": [1, 2],
    "near": [0, 500],
    "meta_rate": ["self-confident"],
    "track": [("curve",), ("weights",), ("curve", "weights")],
    "preset": ["theory", "anytime"],
    "window": [7, 8],
    "gradient_bound": [1.0, 2.0, "estimate"],
    "loss_bound": [1.0, 2.0, "estimate"],
    "loss": ["hinge"],
    "calibration": ["none", "matrix"],
    "mu1": [(0.5, 0.5), (0.25, 0.75)],
    "mu2": [(0.5, 0.5), (0.25, 0.75)],
    "shift_settings": [(("period", 10),), (("period", 11),)],
    "prior_form": ["raw", "simplex"],
    "hint_settings": [(("rate", 0.1),), (("rate", 0.2),)],
    "gap_limit": [0.1, 0.2],
    "hedge": ["incremental", "cumulative"],
    "solver": ["exact", "paper"],
    "largest_step": [1.0, 2.0, "scaled"],
    "priors": [((0.5, 0.5),), ((0.25, 0.75),)],
}


def key(run) -> str:
    return canonical(key_of(run))


def test_every_setting_of_a_run_is_in_its_key():
    assert {*RUNS, "data"} == {field.name for field in fields(StreamRun)}
    assert {*DATA, "name", "paper"} == {field.name for field in fields(Data)}
    others = [replace(RUN, **{name: value}) for name, some in RUNS.items() for value in some]
    others += [
        replace(RUN, data=replace(RUN.data, **{name: value}))
        for name, some in DATA.items()
        for value in some
    ]
    keys = [key(run) for run in (RUN, *others, RegretRun.of({"kind": "lemma1", "seed": 0}))]
    assert len(set(keys)) == len(keys)


def test_what_data_are_called_changes_no_key():
    assert key(replace(RUN, data=replace(RUN.data, name="other"))) == key(RUN)
    assert key(replace(RUN, data=replace(RUN.data, paper="fashion"))) == key(RUN)


def test_the_content_of_a_file_counts_and_its_place_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))

    def of(dataset: str) -> str:
        return key(replace(RUN, data=Data("mine", dataset)))

    a, b, named = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "mine.npz"
    np.savez(a, X0=np.ones(3))
    np.savez_compressed(b, X0=np.ones(3))
    np.savez(named, X0=np.ones(3))
    assert of(str(a)) == of(str(b))
    assert of(str(a)) != of("mine")  # a named file is read in another way
    first = of(str(a))
    np.savez(a, X0=np.full(3, 2.0))
    assert of(str(a)) != first
    np.savez(a, X1=np.ones(3))
    assert of(str(a)) != first


def test_a_file_that_is_missing_or_broken_is_refused_by_name(tmp_path):
    for content in (None, b"hello"):
        path = tmp_path / "a.npz"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises((ValueError, OSError), match=r"a\.npz"):
            key(replace(RUN, data=Data("mine", str(path))))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1))
def test_numbers_to_the_last_bit(a, b):
    same = np.float64(a).tobytes() == np.float64(b).tobytes()
    keys = [key(replace(RUN, gradient_bound=value)) for value in (a, b)]
    assert (keys[0] == keys[1]) is same


def test_code_that_makes_numbers_counts_and_code_that_shows_them_does_not(tmp_path, monkeypatch):
    for room in ("learners", "cli", "experiments"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text("1")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "experiments" / "cache.py"))

    def current() -> str:
        code_digest.cache_clear()
        return code_digest()

    try:
        first = current()
        (tmp_path / "cli" / "a.py").write_text("2")
        (tmp_path / "experiments" / "progress.py").write_text("2")
        assert current() == first
        (tmp_path / "experiments" / "perform.py").write_text("2")
        assert current() != first
        first = current()
        (tmp_path / "learners" / "a.py").write_text("2")
        assert current() != first
        second = current()
        (tmp_path / "learners" / "a.py").rename(tmp_path / "learners" / "b.py")
        assert current() not in (first, second)
    finally:
        code_digest.cache_clear()


def reached_from(waiting: list[str]) -> set[str]:
    """Follow all imports within the package."""
    root = Path(priorshift.__file__).parent
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        file = root.joinpath(*name.split("."))
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        if name in reached or not file.exists():
            continue
        reached.add(name)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "priorshift":
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("priorshift."):
                inner = str(node.module).removeprefix("priorshift.")
                waiting += [inner, *(f"{inner}.{alias.name}" for alias in node.names)]
    return reached


def test_evaluation_never_enters_what_the_digest_leaves_out():
    """What a result could depend on is in the digest: follow all imports from where results are."""
    root = Path(priorshift.__file__).parent
    reached = reached_from(
        [
            f"{room}.{path.stem}"
            for room in ("datasets", "simulation")
            for path in (root / room).glob("*.py")
        ]
    )
    assert {"learners.trackers.tracker", "risk.kernel", "source"} <= reached
    rooms = {name.split(".")[0] for name in reached}
    assert not rooms & module._OUTSIDE


def test_experiments_that_make_numbers_are_in_the_digest():
    root = Path(priorshift.__file__).parent
    assert all((root / name).is_file() for name in module._MAKERS)
    makers = {name.removesuffix(".py").replace("/", ".") for name in module._MAKERS}
    # These read what was measured: the first line of a warning, the summary of all regrets.
    readers = reached_from(["cli", "cli.messages", "experiments.reproduce.regret_summary"])
    packages = {"experiments", "experiments.reproduce", "experiments.convert"}
    found = {name for name in reached_from(sorted(makers)) if name.split(".")[0] in module._OUTSIDE}
    assert found <= makers | readers | packages
