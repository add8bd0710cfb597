"""A test is skipped for a reason that is known and true, or it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import skips

HERE = Path(__file__).resolve().parent
SUITE = """
import pytest

def test_module(): pytest.importorskip("no_such_package")
@pytest.mark.skip(reason="not today")
def test_mark(): pass
@pytest.mark.xfail(reason="known")
def test_xfail(): assert False
@pytest.mark.skipif(True, reason="PRIORSHIFT_COMPILED=0 turns")
def test_excused(): pass
"""
CONFTEST = """
import skips

def pytest_configure(config): config.pluginmanager.register(skips)
"""


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("PRIORSHIFT_COMPILED", "0")
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--rootdir"]
    done = subprocess.run(
        [*command, folder, folder], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode != 0, done.stdout
    return done.stdout


def test_a_skip_without_an_excuse_fails(tmp_path, monkeypatch):
    (tmp_path / "test_some.py").write_text(SUITE)
    said = run(tmp_path, monkeypatch)
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in said
    assert "not today" in said
    assert "could not import 'no_such_package'" in said
    assert "pip install -e '.[test]'" in said


def test_a_file_that_skips_itself_fails(tmp_path, monkeypatch):
    text = "import pytest\npytest.importorskip('no_such_package')\ndef test_a(): pass\n"
    (tmp_path / "test_some.py").write_text(text)
    assert "1 error" in run(tmp_path, monkeypatch)


def test_an_excuse_must_hold_here(monkeypatch, tmp_path):
    browser = "Skipped: there is no chromium here: apt-get install chromium chromium-driver"
    monkeypatch.setattr(skips.shutil, "which", lambda program: None)
    monkeypatch.delenv("PRIORSHIFT_BROWSER", raising=False)
    assert skips.is_expected(browser)
    assert skips.is_expected("Skipped: no pdflatex on this machine")
    monkeypatch.setenv("PRIORSHIFT_BROWSER", "required")
    assert not skips.is_expected(browser)
    monkeypatch.setattr(skips.shutil, "which", lambda program: f"bin/{program}")
    assert not skips.is_expected("Skipped: no pdflatex on this machine")

    real = "PRIORSHIFT_DATA does not name a folder with the real data"
    monkeypatch.delenv("PRIORSHIFT_DATA", raising=False)
    assert skips.is_expected(real)
    for name in ("pendigits", "shl2019"):
        (tmp_path / f"{name}.npz").touch()
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    assert not skips.is_expected(real)
    assert not skips.is_expected("could not import 'numba': No module named 'numba'")


def test_what_is_missing_is_said_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(skips.shutil, "which", lambda program: None)
    advice = [e.advice for e in skips.excuses({"PRIORSHIFT_DATA": str(tmp_path)}) if e.advice]
    assert len(advice) == 11
    assert all("\n" not in line for line in advice)
    assert advice[0].endswith("apt-get install chromium chromium-driver")
