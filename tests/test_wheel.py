"""What is in the wheel, and that the tests run on what is installed."""

from __future__ import annotations

import importlib.metadata
import os
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import priorshift

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        return set(wheel.namelist())


def test_every_file_of_the_library_is_in_it(names: set[str]) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "priorshift").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    # Not only Python: settings, templates, styles and the mark that the library is typed.
    assert {name for name in files if not name.endswith(".py")} >= {"priorshift/py.typed"}
    assert files - names == set()


def test_nothing_else_is_in_it(names: set[str]) -> None:
    folders = {name.split("/")[0] for name in names}
    version = importlib.metadata.version("priorshift")
    assert folders == {"priorshift", f"priorshift-{version}.dist-info"}
    assert not [name for name in names if name.endswith((".pyc", ".npz"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_right_library_is_tested() -> None:
    """The source tree, or under ``make wheel`` what was installed from the wheel."""
    from_the_tree = Path(priorshift.__file__).is_relative_to(ROOT / "src")
    assert from_the_tree == ("PRIORSHIFT_INSTALLED" not in os.environ)
