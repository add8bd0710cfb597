"""The documents hold what they promise."""

from __future__ import annotations

import contextlib
import re
import runpy
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from priorshift.datasets import digits_split
from priorshift.errors import PriorshiftWarning

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"@[A-Z0-9]+@", text)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    recipes = set(re.findall(r"^`(\S+\.py)`:$", text, re.MULTILINE))  # files that are to be written
    for name in set(re.findall(r"`((?:\w+/)+\w+\.py)`", text)) - recipes:
        places = (ROOT / name, ROOT / "src" / "priorshift" / name)
        nested = (ROOT / "src" / "priorshift" / "experiments" / name,)
        assert any(place.exists() for place in places + nested), name


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "follow_a_stream.py"), run_name="__main__")
    alone, adapted = (float(x) for x in re.findall(r"([\d.]+) %", capsys.readouterr().out))
    assert adapted < alone


def test_the_page_on_data_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code as it stands, with a stand-in for torch: no framework is needed to test it."""

    class Tensor(np.ndarray):
        def numpy(self) -> np.ndarray:
            return np.asarray(self)

    stand_in = types.ModuleType("torch")
    stand_in.float32 = np.float32
    stand_in.no_grad = contextlib.nullcontext
    stand_in.as_tensor = lambda X, dtype: np.asarray(X, dtype).view(Tensor)
    stand_in.softmax = lambda rows, dim: softmax(rows, axis=dim).view(Tensor)
    monkeypatch.setitem(sys.modules, "torch", stand_in)

    split = digits_split()
    weights = np.random.default_rng(0).normal(size=(64, 40)) / 8

    def body(X: np.ndarray) -> np.ndarray:
        return np.maximum(X @ weights, 0).view(Tensor)

    head = LogisticRegression(max_iter=500).fit(body(split.X_train), split.y_train)
    names = {
        "body": body,
        "last": lambda rows: head.decision_function(rows).view(Tensor),
        "classes": head.classes_,
        "X_hold": split.X_holdout,
        "y_hold": split.y_holdout,
    }
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "priorshift.deep" not in block:
            exec(block, names)
    assert names["data"].X0.shape == (600, 20)
    assert (len(names["stream"]), len(names["faster"])) == (59, 30)
    assert names["result"].variation == names["stream"].variation
    assert names["rows"].shape == (599, 64)
    clf = names["clf"]
    alone = np.mean(head.predict(body(split.X_pool)) == split.y_pool)
    assert np.mean(clf.predict(split.X_pool) == split.y_pool) > alone - 0.05
    np.testing.assert_allclose(
        clf.source_.read(split.X_pool[:5]).features[:, :40], body(split.X_pool[:5]), rtol=1e-4
    )


def test_the_page_on_data_runs_with_torch() -> None:
    pytest.importorskip("torch")
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (block,) = (block for block in blocks if "priorshift.deep" in block)
    split = digits_split()
    names = {"digits": split}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorshiftWarning)
        exec(block, names)
    assert names["features"].shape == (len(split.X_pool), 32)
    assert np.mean(names["proba"].argmax(axis=1) != split.y_pool) < 0.12
    assert names["clf"].n_rounds_ == 1
