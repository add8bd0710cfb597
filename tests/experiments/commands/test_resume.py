"""`priorshift run --store`: a run that was stopped goes on where it was, with the same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from priorshift.experiments import cache, perform
from priorshift.experiments.store import Store
from priorshift.risk.compiled import available

SHORT = ("run", "--rounds", 40, "--batch-size", 20, "--seeds", 2, "--shift", "lin,ber")
CLOCK = ("seconds", "rounds_per_second")


def without_clock(records):
    return [{k: v for k, v in record.items() if k not in CLOCK} for record in records]


def test_a_second_run_measures_nothing_and_says_the_same(call, tmp_path, monkeypatch):
    words = (*SHORT, "--learner", "fth,uogd", "--store", tmp_path / "a.db")
    first = call(*words, "--json", tmp_path / "1.json")
    assert "priorshift: 0 of 8 results found ready in " in first.err
    monkeypatch.setattr(perform, "perform", None)  # cannot be called
    second = call(*words, "--json", tmp_path / "2.json")
    assert second.status == 0
    assert second.out == first.out
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    lines = second.err.splitlines()
    assert lines[0] == f"priorshift: 8 of 8 results found ready in {tmp_path / 'a.db'}"
    assert len(lines) == 5
    assert all(line.endswith(", found ready") for line in lines[1:])
    assert call(*words, "--quiet").err == ""


def test_a_store_changes_no_number(call, tmp_path):
    words = (*SHORT, "--learner", "fix,uogd", "--json", "-")
    plain = call(*words).records
    kept_ones = call(*words, "--store", tmp_path / "a.db").records
    assert without_clock(plain) == without_clock(kept_ones)


def test_more_seeds_and_learners_extend_what_is_there(call, tmp_path):
    words = (*SHORT, "--store", tmp_path / "a.db", "--json", "-")
    call(*words, "--learner", "fth")
    more = call(*words, "--learner", "uogd,fth", "--seeds", 3)
    assert "4 of 12 results found ready" in more.err
    plain = call(*SHORT, "--learner", "uogd,fth", "--seeds", 3, "--json", "-")
    assert without_clock(more.records) == without_clock(plain.records)
    assert len(Store(tmp_path / "a.db")) == 12


def test_what_is_finished_before_a_failure_is_kept(call, tmp_path, monkeypatch):
    measure, calls = perform.perform, []

    def tire(*words: object) -> object:
        calls.append(words)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return measure(*words)

    monkeypatch.setattr(perform, "perform", tire)
    words = (*SHORT, "--learner", "fth,uogd", "--store", tmp_path / "a.db")
    assert call(*words, "--jobs", 1).status == 130
    monkeypatch.setattr(perform, "perform", measure)
    assert "3 of 8 results found ready" in call(*words).err


def test_warnings_of_a_kept_result_are_said_again(call, tmp_path, monkeypatch):
    measure = perform.perform
    monkeypatch.setattr(
        perform, "perform", lambda *words: {**measure(*words), "warnings": ["few rows"]}
    )
    words = (*SHORT, "--learner", "fth", "--store", tmp_path / "a.db")
    assert call(*words).err.count("few rows") == 1
    monkeypatch.setattr(perform, "perform", None)
    assert call(*words).err.count("few rows") == 1


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_killed_run_goes_on(environment, call, tmp_path):
    store, spare = tmp_path / "a.db", tmp_path / "spare"
    spare.mkdir()
    words = ("run", "--rounds", 300, "--seeds", 2, "--learner", "fix,atlas", "--json", "-")
    process = subprocess.Popen(
        [sys.executable, "-m", "priorshift", *map(str, words), "--store", store, "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "TMPDIR": str(spare)},
    )
    assert "0 of 16 results found ready" in process.stderr.readline()
    assert " % error" in process.stderr.readline()  # the first job is done
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=30)  # ends with the last process that holds the pipe
    assert (process.returncode, out) == (-signal.SIGKILL, "")
    if sys.platform == "linux":
        assert os.listdir(spare) == []  # nothing is left lying about
    ready = len(Store(store))
    assert 2 <= ready < 16
    again = call(*words, "--store", store)
    assert f"{ready} of 16 results found ready" in again.err
    assert without_clock(again.records) == without_clock(call(*words, "--jobs", 1).records)


def test_a_damaged_store_is_refused_and_left_as_it_is(call, tmp_path):
    path = tmp_path / "a.db"
    words = (*SHORT, "--learner", "fix", "--store", path)
    call(*words)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"hello", b"\0" * 5000):
        path.write_bytes(content)
        answer = call(*words)
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
        assert answer.err.startswith(f"priorshift: error: {path}: is no store of results")
        assert path.read_bytes() == content


def test_places_that_cannot_hold_a_store(call, tmp_path):
    for path in ("", tmp_path, tmp_path / "none" / "a.db"):
        answer = call(*SHORT, "--store", path)
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
        assert "--store" in answer.err
    same = call(*SHORT, "--store", tmp_path / "a", "--json", tmp_path / "." / "a")
    assert same.status == 2
    assert "same file" in same.err
    assert os.listdir(tmp_path) == []


def test_another_version_has_other_results(call, tmp_path, monkeypatch):
    words = (*SHORT, "--learner", "fth", "--store", tmp_path / "a.db")
    call(*words)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "__version__", "0.0.1")
        assert "0 of 4" in call(*words).err
    with monkeypatch.context() as patch:
        patch.setattr(cache, "available", lambda: not available())
        assert "0 of 4" in call(*words).err
    with monkeypatch.context() as patch:
        patch.setattr(cache, "code_digest", lambda: "other code")
        assert "0 of 4" in call(*words).err
    assert "4 of 4" in call(*words).err


def test_settings_are_readable_in_the_store(call, tmp_path):
    call(*SHORT, "--learner", "uogd", "--sketch", "blocks:9", "--store", tmp_path / "a.db")
    found, result = next(iter(Store(tmp_path / "a.db")))
    run = found["run"]
    assert (run["seed"], run["shift"], run["protocol"]) == (0, "lin", "predict-first")
    assert (run["learner"], run["sketch"], run["data"]["dataset"]) == (
        "uogd",
        "blocks:9",
        "synthetic",
    )
    assert json.dumps(result["error"])
