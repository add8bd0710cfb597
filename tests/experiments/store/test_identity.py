"""Settings in words: different things have different words, whatever they are made of."""

from __future__ import annotations

import ast
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorshift
from priorshift.errors import InputTypeError
from priorshift.experiments.store import code_digest, describe, digest
from priorshift.experiments.store import identity as module
from priorshift.learners import ATLAS, FTFWH, UOGD, AtlasAda
from priorshift.learners.linear.hints import Periodic
from priorshift.risk import Blocks
from priorshift.simulation.shifts import Bernoulli, Linear, Square

DIFFERENT = [
    None,
    0,
    1,
    0.0,
    True,
    "1",
    [],
    [1],
    [[1]],
    float("inf"),
    np.array([1.0]),
    np.array([1]),
    np.array([[1]]),
    np.array([1], dtype=np.int32),
    np.array(["a"]),
    np.array(["b"]),
    np.array(1.0),
    np.empty((0, 2)),
    np.empty((0, 3)),
    Linear(),
    Square(),
    Square(period=41),
    Bernoulli(),
    ATLAS(),
    ATLAS(preset="theory"),
    ATLAS(horizon=9_999),
    ATLAS(sketch=Blocks(1000)),
    ATLAS(sketch=Blocks(999)),
    ATLAS(sketch=Blocks(1000, seed=1)),
    UOGD(),
    UOGD(step=0.1),
    FTFWH(window=7),
    AtlasAda(hint="fwd"),
    AtlasAda(hint="okm"),
    AtlasAda(hint=Periodic(period=7)),
]


def test_different_things_have_different_digests():
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)


def test_equal_things_have_equal_digests_however_they_lie_in_memory():
    table = np.arange(6.0).reshape(2, 3)
    assert digest(table) == digest(np.asfortranarray(table)) == digest(table[::-1][::-1])
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(np.float64(1)) == digest(1.0)
    for value in DIFFERENT:
        json.dumps(describe(value), allow_nan=False)


def test_what_cannot_be_described_is_refused():
    for value in (object(), {1: 2}, np.array([None]), Square, lambda: None):
        with pytest.raises(InputTypeError, match="told from others"):
            describe(value)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_to_the_last_bit(a, b):
    same = np.float64(a).tobytes() == np.float64(b).tobytes()
    assert (digest(a) == digest(b)) is same


def test_a_setting_that_is_not_a_field_of_init_does_not_count():
    @dataclasses.dataclass
    class Thing:
        a: int
        cache: int = dataclasses.field(init=False, default=0)

    used = Thing(1)
    used.cache = 5
    assert digest(used) == digest(Thing(1))


def test_code_that_makes_numbers_counts_and_code_that_shows_them_does_not(tmp_path, monkeypatch):
    for room in ("learners", "cli", "store"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text("1")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "experiments" / "store" / "identity.py"))

    def current() -> str:
        code_digest.cache_clear()
        return code_digest()

    try:
        first = current()
        (tmp_path / "cli" / "a.py").write_text("2")
        assert current() == first
        (tmp_path / "learners" / "a.py").write_text("2")
        assert current() != first
        second = current()
        (tmp_path / "learners" / "a.py").rename(tmp_path / "learners" / "b.py")
        assert current() not in (first, second)
    finally:
        code_digest.cache_clear()


def test_evaluation_never_enters_the_rooms_that_the_digest_leaves_out():
    """What a result could depend on is in the digest: follow all imports from where results are."""
    root = Path(priorshift.__file__).parent
    waiting = [
        f"{room}.{path.stem}"
        for room in ("datasets", "simulation")
        for path in (root / room).glob("*.py")
    ]
    reached = set()
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
    assert {"learners.trackers.tracker", "risk.kernel", "source"} <= reached
    rooms = {name.split(".")[0] for name in reached}
    assert not rooms & module._OUTER_ROOMS
