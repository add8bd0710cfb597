"""Which tests may be skipped, and why; a test that is skipped for any other reason fails.

``python tests/skips.py`` says what this machine lacks, in one line each, with what to do about it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest


class Excuse(NamedTuple):
    """A reason to skip a test, as a pattern, where the machine gives that reason."""

    pattern: str
    holds: bool
    advice: str = ""


@functools.cache
def can_mount() -> bool:
    """Whether a process may have a small disk of its own, which nobody else sees."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/"]
    return bool(shutil.which("unshare")) and subprocess.run(words).returncode == 0


@functools.cache
def loads_lightgbm() -> bool:
    """Whether LightGBM finds the library that it computes with."""
    try:
        importlib.import_module("lightgbm")
    except (ImportError, OSError):
        return False
    return True


def excuses(environment=os.environ) -> list[Excuse]:
    """Every reason that a test may have to be skipped, and whether it holds here."""
    browser = all(map(shutil.which, ("chromium", "chromedriver")))
    folders = (environment.get("PRIORSHIFT_DATA") or "nowhere").split(os.pathsep)
    windows = os.name == "nt"
    return [
        Excuse(
            "there is no (chromium|chromedriver) here",
            # The automatic check sets this where it found a browser or installed one.
            not browser and environment.get("PRIORSHIFT_BROWSER") != "required",
            "no page is looked at: apt-get install chromium chromium-driver",
        ),
        Excuse(
            "no pdflatex on this machine",
            shutil.which("pdflatex") is None,
            "LaTeX tables are not compiled: apt-get install texlive-latex-recommended",
        ),
        Excuse(
            "PRIORSHIFT_DATA does not name a folder with the real data",
            not all(
                any(Path(folder, f"{name}.npz").exists() for folder in folders)
                for name in ("pendigits", "shl2019")
            ),
            "real data are not read: set PRIORSHIFT_DATA to a folder with NAME.npz files",
        ),
        Excuse(
            "could not import 'torch'",
            importlib.util.find_spec("torch") is None,
            "networks of PyTorch are not tested: make deep",
        ),
        Excuse(
            "could not import 'mlflow'",
            importlib.util.find_spec("mlflow") is None,
            "models of MLflow are not tested: pip install mlflow-skinny",
        ),
        Excuse(
            "could not import 'lightgbm'",
            not loads_lightgbm(),
            "models of LightGBM are not tested: apt-get install libgomp1",
        ),
        Excuse(
            "there is no curl here",
            shutil.which("curl") is None,
            "the tutorial of the service is not run: apt-get install curl",
        ),
        Excuse(
            "there is no PostgreSQL here",
            not (shutil.which("pg_ctl") or list(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))),
            "the service is tested on SQLite alone: apt-get install postgresql",
        ),
        Excuse(
            "no disk can be made here",
            not can_mount(),
            "the service is not tested on a full disk: that takes Linux and user namespaces",
        ),
        Excuse(
            "could not import 'tritonclient",
            importlib.util.find_spec("tritonclient") is None,
            "clients of Triton are not tested: pip install 'tritonclient[http]'",
        ),
        Excuse(
            "PRIORSHIFT_AXE does not name axe.min.js",
            not os.path.isfile(environment.get("PRIORSHIFT_AXE", "")),
            "accessibility is not tested: npm install axe-core, set PRIORSHIFT_AXE to axe.min.js",
        ),
        Excuse(r"[\w-]+\.npz is not in the data folder", True),
        Excuse("root may write all", getattr(os, "geteuid", lambda: 0)() == 0),
        Excuse("signals of Unix|terminals of Unix|links and rights as POSIX", windows),
        Excuse("Windows has no SIGKILL", windows),
        Excuse("only Linux forks", sys.platform != "linux"),
        Excuse("cores cannot be taken away here", not hasattr(os, "sched_setaffinity")),
        Excuse(
            "PRIORSHIFT_COMPILED=0 turns",
            environment.get("PRIORSHIFT_COMPILED") == "0",
        ),
    ]


def is_expected(reason: str) -> bool:
    """Whether a test may be skipped on this machine for ``reason``."""
    return any(excuse.holds and re.search(excuse.pattern, reason) for excuse in excuses())


def _refuse(report) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not is_expected(reason):
        report.outcome = "failed"
        report.longrepr = (
            f"{reason}\nThis is no reason to skip a test here: install what is missing with "
            "`pip install -e '.[test]'`, or add the reason to tests/skips.py."
        )


def pytest_runtest_setup(item):
    """Skip examples of the library that import what is in no extra of the tests."""
    examples = item.dtest.examples if isinstance(item, pytest.DoctestItem) else ()
    for package in ("torch", "mlflow"):
        if any(line.source == f"import {package}\n" for line in examples):
            pytest.importorskip(package)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail a test that skips itself without a good reason."""
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fail a file of tests that skips itself without a good reason."""
    report = yield
    _refuse(report)
    return report


if __name__ == "__main__":
    for excuse in excuses():
        if excuse.holds and excuse.advice:
            print(excuse.advice)
