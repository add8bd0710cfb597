"""Every refusal: status 2, one line on standard error that says what and where, no traceback."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

SHORT = ("run", "--rounds", "20", "--seeds", "1", "--learner", "fth", "--shift", "squ", "--quiet")


def refused(call, *words: object) -> str:
    answer = call(*words)
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("priorshift: error: ")
    return answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "COMMAND"),
        (["walk"], "walk"),
        (["run", "--learner", "oracle"], "no learner is called 'oracle'"),
        (["run", "--learner", "fix,,atlas"], "no learner is called ''"),
        (["run", "--learner", ""], "no learner is called ''"),
        (["run", "--hint", "ball"], "no hint is called 'ball'"),
        (["run", "--shift", "up"], "no shift is called 'up'"),
        (["run", "--preset", "mine"], "--preset"),
        (["run", "--protocol", "never"], "--protocol"),
        (["run", "--loss", "zero"], "--loss"),
        (["run", "--rounds", "0"], "--rounds"),
        (["run", "--rounds", "-5"], "--rounds"),
        (["run", "--rounds", "ten"], "--rounds"),
        (["run", "--rounds", "1e3"], "--rounds"),
        (["run", "--rounds", "9" * 30], "at most"),
        (["run", "--rounds", "9" * 5000], "--rounds"),
        (["run", "--batch-size", "0"], "--batch-size"),
        (["run", "--jobs", "-1"], "--jobs"),
        (["run", "--seeds", "0"], "--seeds"),
        (["run", "--sketch", "blobs:10"], "no sketch is called 'blobs'"),
        (["run", "--sketch", ""], "no sketch is called ''"),
        (["run", "--sketch", "blocks"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:0"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:-5"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:1e3"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:²"], "as in blocks:1000"),
        (["run", "--sketch", "blocks:" + "9" * 5000], "as in blocks:1000"),
        (["run", "--store"], "--store"),
        (["run", "--window", "0"], "--window"),
        (["run", "--period", "1"], "--period"),
        (["run", "--probability", "2", "--shift", "ber"], "probability"),
        (["run", "--probability", "nan", "--shift", "ber"], "probability"),
        (["run", "--probability", "x"], "--probability"),
        (["run", "--period", "10", "--shift", "lin"], "--period means nothing"),
        (["run", "--round", "10"], "--round"),
        (["run", "--unknown"], "--unknown"),
        (["run", "--json"], "--json"),
        (["run", "--data", "no_such_data"], "no_such_data"),
        (["run", "--data", ""], "name of a data set"),
        (["run", "--data", "no/such/file.npz"], "no/such/file.npz"),
        (["run", "--data", "a/b"], "a/b"),
        (["run", "--mu2", "0.5,0.6,0"], "--mu2 sums to 1.1"),
        (["run", "--mu2", "0.5,0.5"], "--mu2 has 2 shares"),
        (["run", "--mu2", "2,-1,0"], "--mu2"),
        (["run", "--mu2", "nan,1,0"], "--mu2"),
        (["run", "--mu2", "a,b,c"], "--mu2"),
        (["run", "--mu1", "5"], "--mu1 is '5', which is no class"),
        (["run", "--mu2", "zebra"], "zebra"),
        (["run", "--json", "/no/such/folder/x.json"], "/no/such/folder"),
        (["run", "--json", ""], "--json"),
        (["demo", "--out", "/no/such/folder/x.png"], "/no/such/folder"),
        (["demo", "--out", "x.txt"], ".png"),
        (["demo", "--rounds", "5"], "--rounds"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--learner", "fix"], "no learner is called 'fix'"),
    ],
)
def test_bad_words_are_refused_in_one_line(call, words, says):
    assert says in refused(call, *words)


def test_a_json_path_that_is_a_folder_or_under_a_file(call, tmp_path):
    assert "folder" in refused(call, *SHORT, "--json", tmp_path)
    (tmp_path / "file").write_text("")
    assert "--json" in refused(call, *SHORT, "--json", tmp_path / "file" / "x.json")
    assert "--json" in refused(call, *SHORT, "--json", tmp_path / ("x" * 300))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_json_path_in_a_closed_folder(call, tmp_path):
    tmp_path.chmod(0o500)
    assert "--json" in refused(call, *SHORT, "--json", tmp_path / "x.json")


def broken_files(folder: Path, good: Path) -> dict[str, Path]:
    whole = good.read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "text.npz").write_text("hello")
    (folder / "empty.npz").write_bytes(b"")
    (folder / "pickle.npz").write_bytes(pickle.dumps({"X0": 1}))
    y = np.array([0, 1] * 4)
    X = np.arange(16.0).reshape(8, 2)
    np.savez(folder / "objects.npz", X0=X.astype(object), y0=y, X1=X, y1=y)
    np.savez(folder / "missing.npz", X0=X, y0=y)
    np.savez(folder / "nan.npz", X0=X * np.nan, y0=y, X1=X, y1=y)
    np.savez(folder / "short.npz", X0=X, y0=y[:-1], X1=X, y1=y)
    np.savez(folder / "one.npz", X0=X, y0=0 * y, X1=X, y1=0 * y)
    np.savez(folder / "strange.npz", X0=X, y0=y, X1=X, y1=y + 1)
    np.savez(folder / "rare.npz", X0=X, y0=np.array([0] * 7 + [1]), X1=X, y1=y)
    np.savez(folder / "constant.npz", X0=0 * X, y0=y, X1=X, y1=y)
    P = np.tile([0.5, 0.6], (8, 1))
    np.savez(folder / "shares.npz", P0=P, y0=y, P1=P, y1=y)
    (folder / "folder.npz").mkdir()
    return {path.stem: path for path in folder.glob("*.npz")}


def test_broken_files_are_refused_in_one_line(call, tmp_path, feature_file):
    files = broken_files(tmp_path, feature_file)
    assert len(files) == 14
    for name, path in files.items():
        message = refused(call, *SHORT, "--data", path)
        # These two are read well, but no held-out set or confusion matrix can come of them.
        assert name in ("rare", "constant") or str(path) in message


def test_a_bad_run_writes_no_file(call, tmp_path, feature_file):
    path = tmp_path / "result.json"
    refused(call, *SHORT, "--data", feature_file, "--mu2", "zebra", "--json", path)
    assert os.listdir(tmp_path) == []


def test_no_traceback_from_the_real_process(environment):
    words = [sys.executable, "-m", "priorshift", "run", "--data", "none.npz", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "none.npz" in done.stderr


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (KeyboardInterrupt(), 130, "priorshift: interrupted\n"),
        (MemoryError("16 GiB"), 2, "priorshift: error: not enough memory (16 GiB); "),
        (BrokenProcessPool("gone"), 1, "priorshift: error: gone\n"),
        (OSError(28, "No space left"), 2, "priorshift: error: [Errno 28] No space left\n"),
        (ValueError("two\nlines"), 2, "priorshift: error: two lines\n"),
    ],
)
def test_what_stops_a_run_is_said_in_one_line(call, monkeypatch, error, status, says):
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr("priorshift.experiments.commands.run.make_plan", stop)
    answer = call(*SHORT)
    assert (answer.status, answer.out) == (status, "")
    assert answer.err.startswith(says)
    assert answer.err.count("\n") == 1
