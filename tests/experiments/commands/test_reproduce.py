"""``priorshift reproduce``: what it writes, what it refuses, and that killing it loses nothing."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from priorshift.cli import main
from priorshift.experiments.report.grid_formats import GRID_FORMATS
from priorshift.experiments.store import Store

QUICK = ["reproduce", "table1", "--quick", "--seeds", "2", "--jobs", "2", "--quiet"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of an undisturbed run."""
    out = tmp_path_factory.mktemp("whole")
    assert main([*QUICK, "--out", str(out)]) == 0
    return out


def results(folder: Path) -> list[tuple[object, object]]:
    """Everything in a store but the seconds, which no two runs share."""
    store = Store(folder / "results.db")
    return sorted(((key, {**record, "seconds": 0}) for key, record in store), key=repr)


def test_every_artefact_is_written(whole):
    names = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert names == {
        *(f"tables/table1.{ending}" for ending in GRID_FORMATS),
        *("report.html", "results.md", "results.db"),
    }
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert "quick run" in page
    assert "ATLAS" in page


def test_a_second_run_measures_nothing_and_writes_the_same_tables(whole, tmp_path, capsys):
    before = (whole / "tables" / "table1.csv").read_bytes()
    stored = list(Store(whole / "results.db"))
    assert main([*QUICK, "--out", str(whole)]) == 0
    assert (whole / "tables" / "table1.csv").read_bytes() == before
    assert list(Store(whole / "results.db")) == stored  # the seconds of each as well


def stored_in(path: Path) -> int:
    """How many results a store has, as long as nobody is making it this moment."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as base:
            return int(base.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


def killed_at(folder: Path, number: int) -> None:
    """Start the command in a process of its own and kill it with that many results kept."""
    command = [sys.executable, "-m", "priorshift", *QUICK, "--out", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while stored_in(folder / "results.db") < number and process.poll() is None:
            assert time.monotonic() < deadline, "no progress"
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() in (-signal.SIGKILL, 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_three_times_the_store_ends_as_that_of_an_undisturbed_run(whole, tmp_path):
    total = len(results(whole))
    # Early: on a busy machine results are quicker than who watches them.
    moments = sorted(random.Random(7).sample(range(1, total // 4), 3))
    for number in moments:
        killed_at(tmp_path, number)
        assert number <= stored_in(tmp_path / "results.db") < total
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert results(tmp_path) == results(whole)


def test_an_unknown_experiment_is_refused_in_one_line(capsys, tmp_path):
    assert main(["reproduce", "table9", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "table9" in error
    assert len(error.splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert main(["reproduce", "fig-shifts", "--quick", "--out", str(tmp_path / "file")]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_table_is_printed_with_the_place_of_the_report(capsys, tmp_path):
    assert main(["reproduce", "fig-shifts", "--quick", "--out", str(tmp_path)]) == 0
    assert str(tmp_path / "report.html") in capsys.readouterr().out


def test_without_real_data_the_digits_stand_in(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    out = tmp_path / "out"
    words = ["reproduce", "table4", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    assert main(words) == 0
    assert "left out for want of data" in capsys.readouterr().err
    assert "digits" in (out / "tables" / "table4.csv").read_text().lower()
