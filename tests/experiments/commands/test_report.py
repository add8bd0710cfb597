"""``priorshift report``: what it says to type next, and rows from a pipe."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from priorshift import load
from stream_files import CLASSES, draw, write_csv

NAMES = [f"p_{c}" for c in CLASSES]
SETTINGS = ["--learner", "em", "--safety", "off"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Held-out rows and a stream with an id and times, in the working directory."""
    rng = np.random.default_rng(0)
    (P0, y0), (P, y) = draw(rng, 400, [0.4, 0.3, 0.3]), draw(rng, 300, [0.05, 0.15, 0.8])
    ids, times = [f"r{i}" for i in range(300)], [f"{600 * i}" for i in range(300)]
    labels0, labels = (np.array(CLASSES)[which].tolist() for which in (y0, y))
    write_csv(tmp_path / "hold.csv", ["id", *NAMES, "y"], [range(400), *P0.T.tolist(), labels0])
    columns = [ids, *P.T.tolist(), times, labels]
    write_csv(tmp_path / "a stream.csv", ["id", *NAMES, "ts", "y"], columns)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def next_commands(page):
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", page.read_text("utf-8"), re.DOTALL)
    return html.unescape(code).splitlines()


def run_as_printed(call, page):
    for line in next_commands(page):
        answer = call(*shlex.split(line)[1:])
        assert answer.status == 0, (line, answer.err)


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_what_to_type_next_runs_as_printed(folder, call):
    import skops.io

    held = rows_of(folder / "hold.csv")
    X = np.array([[float(row[name]) for name in NAMES] for row in held])
    model = LogisticRegression().fit(X, [row["y"] for row in held])  # it knows no names of columns
    skops.io.dump(model, folder / "my model.skops")
    words = ["--model", "my model.skops", "--trust", "--hold", "hold.csv", "--label", "y"]
    words += ["--stream", "a stream.csv", "--drop", "id", "--window", "1d", "--time", "ts"]
    assert call("report", *words, *SETTINGS, "-o", "r.html").status == 0
    run_as_printed(call, folder / "r.html")
    source = load(folder / "source.priorshift")
    assert (source.learner_.name, source.safety) == ("em", "off")
    adapted = rows_of(folder / "adapted-a stream.csv")
    assert [row["batch"] for row in adapted] == [str(i // 144) for i in range(300)]  # days
    stream = np.array([[float(r[n]) for n in NAMES] for r in rows_of(folder / "a stream.csv")])
    differ = sum(model.predict(stream) != [row["label"] for row in adapted])
    assert f"<b>{differ:,} rows</b>" in (folder / "r.html").read_text("utf-8")


def test_what_to_type_next_with_a_source(folder, call):
    words = ["--hold", "hold.csv", "--label", "y", "--proba-columns", "p_*", *SETTINGS]
    assert call("fit", *words, "-o", "s 1.priorshift").status == 0
    (folder / "a stream.csv").rename("log.txt")
    words = ["--source", "s 1.priorshift", "--stream", "log.txt", "--in-format", "csv"]
    assert call("report", *words, "--keep", "id", "--batch", 70, "-o", "r.html").status == 0
    (line,) = next_commands(folder / "r.html")
    assert line.startswith("priorshift adapt --source 's 1.priorshift' --in log.txt --out ")
    run_as_printed(call, folder / "r.html")
    assert rows_of(folder / "adapted-log.csv")[-1]["id"] == "r299"
    assert rows_of(folder / "adapted-log.csv")[-1]["batch"] == "4"


@pytest.mark.parametrize("names", [[], ["y"]])
def test_labels_of_a_pipe_measure_too(folder, call, monkeypatch, names):
    """With a held-out file the stream need not have its column of labels."""
    keep = [*NAMES, *names]
    rows = [{name: row[name] for name in keep} for row in rows_of(folder / "a stream.csv")]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    words = ["--hold", "hold.csv", "--label", "y", "--proba-columns", "p_*", *SETTINGS]
    answer = call("report", *words, "--stream", "-", "-o", "r.html")
    assert answer.status == 0
    assert ("Measured on 300 labelled rows" in answer.err) is bool(names)
    assert ("Estimated without labels" in answer.err) is not bool(names)
    assert next_commands(folder / "r.html")[1].endswith("--in - --out -")


def test_a_label_that_only_the_stream_can_have_has_to_be_there(folder, call):
    words = ["--hold", "hold.csv", "--label", "y", "--proba-columns", "p_*", *SETTINGS]
    assert call("fit", *words, "-o", "s.priorshift").status == 0
    words = ["--source", "s.priorshift", "--stream", "a stream.csv", "--label", "truth"]
    answer = call("report", *words, "-o", "r.html", "--quiet")
    assert answer.status == 2
    assert "a stream.csv: has no column 'truth' (label)" in answer.err


def test_a_class_prior_that_is_given_goes_into_what_to_type_next(folder, call):
    words = ["--hold", "hold.csv", "--label", "y", "--proba-columns", "p_*", *SETTINGS]
    words += ["--prior", "ape=0.1,bee=0.2,cat=0.7"]
    assert call("report", *words, "--stream", "a stream.csv", "-o", "r.html").status == 0
    assert " --prior ape=0.1,bee=0.2,cat=0.7 " in next_commands(folder / "r.html")[0]
    run_as_printed(call, folder / "r.html")
    np.testing.assert_allclose(load("source.priorshift").source_.prior, [0.1, 0.2, 0.7])
