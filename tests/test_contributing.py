"""The recipes of CONTRIBUTING.md, done as they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^`(src/\S+)`:\n\n```(python|diff)\n(.*?)```", re.MULTILINE | re.DOTALL)


def insert(text: str, change: str) -> str:
    """Put the lines marked + behind the line that stands before them."""
    before = None
    for line in change.splitlines():
        if line.startswith("+"):
            assert before is not None
            text = text.replace(before, f"{before}{line[1:]}\n", 1)
            before = f"{line[1:]}\n"
        else:
            before = f"{line[1:]}\n"
            # A name stands in __all__ with quotes, and without them in the registry.
            assert text.count(f"\n{before}") == 1, before
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """The package with all recipes followed, and the new files."""
    root = tmp_path_factory.mktemp("recipes")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", root / "src", ignore=ignored)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    new = []
    for place, kind, body in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        file = root / place
        if kind == "python":
            assert not file.exists()
            file.write_text(body, encoding="utf-8")
            new.append(file)
        else:
            file.write_text(insert(file.read_text("utf-8"), body), encoding="utf-8")
    assert len(new) == 4
    return root, new


def run(root: Path, *words: str) -> str:
    path = f"{root / 'src'}{os.pathsep}{root / 'tests'}"
    # A copy has no compiled kernels: a minute, for recipes that need none of them.
    environment = {**os.environ, "PYTHONPATH": path, "PRIORSHIFT_COMPILED": "0"}
    done = subprocess.run(
        [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_lint_and_types(tree: tuple[Path, list[Path]]) -> None:
    root, new = tree
    run(root, "-m", "ruff", "format", "--check", *map(str, new))
    run(root, "-m", "ruff", "check", "src")
    run(root, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"), "src")


def test_examples_and_the_contract(tree: tuple[Path, list[Path]]) -> None:
    """Their own examples, and the checks of every learner and hint that pick them up by name."""
    root, new = tree
    plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    run(root, *plain, *map(str, new))
    found = run(root, *plain, "tests/learners/test_contract.py", "-k", "uniform or half")
    assert re.search(r"\b[1-9]\d+ passed", found), found


def test_all_are_known_by_name_and_can_be_saved(tree: tuple[Path, list[Path]]) -> None:
    root, _ = tree
    code = """
import sys, numpy as np, priorshift
from priorshift import LabelShiftClassifier, AtlasAda, FTH, load
from priorshift.cli import main
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 300)
X = rng.normal(size=(300, 2)) + 2.0 * np.eye(3)[y][:, :2]
for number, settings in enumerate([
    {"learner": "uniform"},
    {"learner": "atlas-ada", "hint": "half"},
    {"learner": FTH(estimator="shrunk")},
    {"learner": "fth", "calibration": "softer"},
]):
    clf = LabelShiftClassifier(cv=2, **settings).fit(X, y)
    clf.adapt(X[:20])
    clf.save(f"file{number}")
    again = load(f"file{number}")
    assert again.adapt_predict_proba(X[:9]).tobytes() == clf.adapt_predict_proba(X[:9]).tobytes()
words = "run --data digits --rounds 5 --batch-size 20 --seeds 1 --jobs 1 --quiet --json out.json"
assert main([*words.split(), "--learner", "uniform,fth", "--calibration", "softer"]) == 0
assert main([*words.split(), "--learner", "atlas-ada", "--hint", "half"]) == 0
print(priorshift.__file__)
"""
    found = run(root, "-c", code).splitlines()[-1]
    assert found == str(root / "src" / "priorshift" / "__init__.py")
