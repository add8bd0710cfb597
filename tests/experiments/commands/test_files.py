"""``priorshift fit`` and ``priorshift adapt`` as processes: refusals, pipes, kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

COMMAND = [sys.executable, "-m", "priorshift"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """hold.csv, a stream of 60,000 rows, and a source."""
    from priorshift.cli import main

    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)

    def write(name, rows, share):
        y = (rng.random(rows) < share).astype(int)
        p = 1 / (1 + np.exp(-(2.0 * rng.normal(size=rows) + 3.0 * y - 1.5)))
        lines = [f"{1 - one:.6f},{one:.6f},{label}\n" for one, label in zip(p, y, strict=True)]
        (folder / name).write_text("p_0,p_1,y\n" + "".join(lines))

    write("hold.csv", 500, 0.5)
    write("stream.csv", 30_000, 0.1)
    words = [
        "--label",
        "y",
        "--proba-columns",
        "p_*",
        "--learner",
        "em",
        "--safety",
        "off",
        "--quiet",
    ]
    source = ["-o", f"{folder}/source.priorshift"]
    assert main(["fit", "--hold", f"{folder}/hold.csv", *words, *source]) == 0
    return folder


def adapt_words(files, out, *more):
    source = ["adapt", "--source", str(files / "source.priorshift")]
    return [*source, "--in", str(files / "stream.csv"), "--out", str(out), *more]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_and_resumed_the_bytes_are_the_same(files, tmp_path, environment, call):
    whole, out, state = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "state"
    assert call(*adapt_words(files, whole, "--quiet")).status == 0
    words = [*COMMAND, *adapt_words(files, out, "--state", state, "--quiet")]
    kills = 0
    for _ in range(2):
        before = state.read_bytes() if state.exists() else None
        process = subprocess.Popen([str(word) for word in words], env=environment)
        while process.poll() is None:
            now = state.read_bytes() if state.exists() else None
            if now != before:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        kills += process.wait() == -signal.SIGKILL
    assert kills > 0
    assert out.read_bytes() != whole.read_bytes()  # it was killed on the way
    answer = call(*adapt_words(files, out, "--state", state))
    assert answer.status == 0
    assert "of before" in answer.err
    assert out.read_bytes() == whole.read_bytes()


def test_a_pipe_answers_while_it_is_open(files, environment):
    words = ["adapt", "--source", files / "source.priorshift", "--in", "-", "--out", "-"]
    process = subprocess.Popen(
        [*COMMAND, *map(str, words), "--batch", "2"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for batch in range(3):
        for p in (0.2, 0.3):
            process.stdin.write(json.dumps({"p_1": p, "p_0": 1 - p}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [answer["batch"] for answer in answers] == [batch, batch]
        assert answers[0]["p_1"] < answers[1]["p_1"]
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


def test_it_tells_how_far_it_is_and_what_came_of_it(files, tmp_path, call):
    answer = call(*adapt_words(files, tmp_path / "out.csv", "--batch", "5000"))
    assert (answer.status, answer.out) == (0, "")
    assert "rows (" in answer.err
    assert "30,000 rows in 6 batches; class prior now 0 " in answer.err
    quiet = call(*adapt_words(files, tmp_path / "out.csv", "--batch", "5000", "--quiet"))
    assert quiet.err == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["adapt", "--in", "a.csv", "--out", "b.csv"], "--source"),
        (["adapt", "--source", "S", "--in", "none.csv", "--out", "o.csv"], "no such file"),
        (["adapt", "--source", "none", "--in", "I", "--out", "o.csv"], "none: no such file"),
        (["adapt", "--source", "I", "--in", "I", "--out", "o.csv"], "not a priorshift file"),
        (["adapt", "--source", "S", "--in", "I", "--out", "I"], "the same file"),
        ("adapt --source S --in I --out S --out-format csv", "--source and --out are the same"),
        ("adapt --source S --in I --out o.csv --state I", "--in and --state are the same"),
        ("adapt --source S --in I --out o.csv --state o.csv", "--out and --state are the same"),
        (["fit", "--hold", "I", "-o", "I"], "--hold and --output are the same"),
        (
            ["fit", "--hold", "h.csv", "--model", "S", "-o", "S"],
            "--model and --output are the same",
        ),
        (["report", "--hold", "I", "--stream", "s.csv", "-o", "I"], "--hold and --output are the"),
        (["report", "--source", "S", "--stream", "I", "-o", "I"], "--stream and --output are the"),
        (["report", "--source", "S", "--stream", "I", "-o", "S"], "--source and --output are the"),
        ("report --source S --stream I -o r.html --prior a=1", "--prior goes with --hold"),
        (
            "fit --hold I --label y --proba-columns p_* -o s --prior 0=0.5,1",
            "every label its share",
        ),
        (
            "fit --hold I --label y --proba-columns p_* -o s --prior 0=1,0=1",
            "every label its share",
        ),
        ("fit --hold I --label y --proba-columns p_* -o s --prior 0=1,1=1", "add up to 1"),
        (["adapt", "--source", "S", "--in", "I", "--out", "/no/such/o.csv"], "/no/such"),
        (["adapt", "--source", "S", "--in", "I", "--out", "o.xls"], "what kind of table"),
        (["adapt", "--source", "S", "--in", "I", "--out", "o.csv", "--batch", "0"], "--batch"),
        (["adapt", "--source", "S", "--in", "I", "--out", "o.csv", "--window", "1h"], "--time"),
        (
            ["adapt", "--source", "S", "--in", "I", "--out", "o.csv", "--window", "soon"],
            "30s, 10min, 1h",
        ),
        (
            "adapt --source S --in I --out o.csv --window 1h --time y --batch 5",
            "not both",
        ),
        (["adapt", "--source", "S", "--in", "I", "--out", "o.csv", "--keep", "z"], "column 'z'"),
        (["adapt", "--source", "S", "--in", "I", "--out", "-", "--out-format", "parquet"], "pipe"),
        (["fit", "--hold", "I", "-o", "/no/such/s.priorshift"], "/no/such"),
        (["fit", "--hold", "I", "--label", "y", "-o", "s.priorshift"], "--proba-columns"),
        (["fit", "--hold", "I", "--label", "y", "--model", "m.pkl", "-o", "s"], "pickles"),
        (["fit", "--hold", "I", "--label", "y", "--learner", "me", "-o", "s"], "no learner"),
    ],
)
def test_refusals_are_one_line(files, tmp_path, monkeypatch, call, words, says):
    monkeypatch.chdir(tmp_path)
    places = {"S": files / "source.priorshift", "I": files / "stream.csv"}
    words = words.split() if isinstance(words, str) else words
    answer = call(*(places.get(word, word) for word in words))
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("priorshift: error: ")
    assert says in answer.err
    assert list(tmp_path.iterdir()) == []


def test_no_input_is_overwritten_however_it_is_spelled(files, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    hold = tmp_path / "hold.csv"
    hold.write_bytes(before := (files / "hold.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(hold)
    (tmp_path / "hard.csv").hardlink_to(hold)
    for name in ("./hold.csv", hold, "link.csv", "hard.csv"):
        words = ["--label", "y", "--proba-columns", "p_*", "-o", name]
        for call_of in (["fit"], ["report", "--stream", "s.csv"]):
            answer = call(*call_of, "--hold", "hold.csv", *words)
            assert answer.status == 2
            assert f"--hold and --output are the same file, {name}; give two" in answer.err
    assert hold.read_bytes() == before


def test_a_source_that_is_replaced_is_told_and_kept_until_then(files, tmp_path, call):
    out = tmp_path / "s.priorshift"
    words = ["--label", "y", "--proba-columns", "p_*", "--learner", "em", "--safety", "off"]
    words = ["fit", *words, "-o", out, "--hold"]
    assert "replaces" not in call(*words, files / "hold.csv").err
    before = out.read_bytes()
    bad = tmp_path / "bad.csv"
    bad.write_text("p_0,p_1,y\n0.5,0.5,0\n0.5,x,1\n")
    assert call(*words, bad).status == 2
    assert out.read_bytes() == before
    answer = call(*words, files / "stream.csv")
    assert f"{out}: was there already, with {len(before):,} bytes, and this run" in answer.err
    assert out.read_bytes() != before


def test_fit_says_which_label_a_score_is_for(tmp_path, call):
    rows = "".join(f"{i / 100},{'yes' if i > 40 else 'no'}\n" for i in range(1, 100))
    (tmp_path / "h.csv").write_text("score,y\n" + rows)
    words = ["fit", "--hold", tmp_path / "h.csv", "--label", "y", "--proba-columns", "score"]
    answer = call(*words, "--learner", "fth", "-o", tmp_path / "s.priorshift")
    assert "2 classes (no, yes; score is the probability of yes), 99 held-out" in answer.err


@pytest.mark.skipif(os.name == "nt", reason="there is no /dev/stdout")
def test_a_device_is_written_as_it_is(files, tmp_path, environment):
    words = [*COMMAND, *map(str, adapt_words(files, "/dev/stdout", "--out-format", "csv"))]
    with (tmp_path / "out.csv").open("wb") as file:
        assert subprocess.run([*words, "--quiet"], env=environment, stdout=file).returncode == 0
    piped = subprocess.run([*words, "--quiet"], env=environment, stdout=subprocess.PIPE)
    assert (tmp_path / "out.csv").read_bytes() == piped.stdout
    assert piped.stdout.count(b"\n") == 30_001
