"""A table through a source: right, whole, and the same after any stop."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift import Fleet, PriorshiftWarning, load
from priorshift.errors import FileFormatError, InputError
from priorshift.files.adapting import Batching, Run, adapt_table
from priorshift.files.tables import Table


def run_of(tables, out, **more):
    settings = {"batching": Batching(50), "drop": ("id", "ts", "y"), **more}
    return Run(str(tables.stream), str(out), **settings)


def probabilities(path):
    frame = polars.read_csv(path)
    return frame.select("p_ape", "p_bee", "p_cat").to_numpy(), frame


def test_it_is_what_python_says(tables, tmp_path):
    """Probabilities, labels and class prior are those of adapt_predict_proba, batch by batch."""
    clf = load(tables.source)
    done = adapt_table(clf, run_of(tables, tmp_path / "out.csv"))
    assert done == (600, 12, 0)
    found, frame = probabilities(tmp_path / "out.csv")
    again = load(tables.source)
    for batch in range(12):
        rows = slice(50 * batch, 50 * batch + 50)
        X = pd.DataFrame(tables.P[rows], columns=["p_ape", "p_bee", "p_cat"])
        proba = again.adapt_predict_proba(X)
        np.testing.assert_allclose(found[rows], proba, rtol=1e-8)
        assert frame["label"][rows].to_list() == again.classes_[proba.argmax(axis=1)].tolist()
        priors = frame.select("prior_ape", "prior_bee", "prior_cat")[rows].to_numpy()
        np.testing.assert_allclose(priors, np.tile(again.prior_, (50, 1)), rtol=1e-8)
    assert frame["batch"].to_list() == np.repeat(range(12), 50).tolist()
    right = frame["label"].to_numpy() == tables.y
    alone = np.array(["ape", "bee", "cat"])[tables.P.argmax(axis=1)] == tables.y
    assert right[300:].mean() > alone[300:].mean()


def test_labels_that_are_known_help(tables, tmp_path):
    blind, seeing = load(tables.source), load(tables.source)
    adapt_table(blind, run_of(tables, tmp_path / "a.csv"))
    adapt_table(seeing, run_of(tables, tmp_path / "b.csv", label="y", drop=("id", "ts")))
    again = load(tables.source)
    frame = pd.read_csv(tables.stream)
    for first in range(0, 600, 50):
        part = frame[first : first + 50]
        again.adapt(part[["p_ape", "p_bee", "p_cat"]], part["y"])
    np.testing.assert_allclose(seeing.prior_, again.prior_)
    assert np.abs(seeing.prior_ - blind.prior_).max() > 0


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_kept_columns_and_formats(tables, tmp_path, ending):
    """What a cell holds comes back: commas, quotes and line breaks too."""
    rows = list(csv.reader(tables.stream.open()))
    rows[1][0] = 'a "quoted",\nbroken % cell'
    source = tmp_path / "in.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    out = tmp_path / f"out.{ending}"
    run = Run(str(source), str(out), Batching(50), keep=("id", "y"))
    adapt_table(load(tables.source), run)
    frame = getattr(polars, f"read_{ending}")(out)
    assert frame["id"].to_list() == [row[0] for row in rows[1:]]
    assert frame["y"].to_list() == tables.y.tolist()
    assert frame.columns[:4] == ["id", "y", "batch", "label"]
    assert frame["p_ape"].dtype == polars.Float64
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.csv", f"out.{ending}"])


def test_formats_in_agree(tables, tmp_path):
    frame = polars.read_csv(tables.stream)
    expected = tmp_path / "expected.csv"
    adapt_table(load(tables.source), run_of(tables, expected))
    for ending in ("ndjson", "parquet"):
        path, out = tmp_path / f"in.{ending}", tmp_path / f"{ending}.csv"
        getattr(frame, f"write_{ending}")(path)
        adapt_table(load(tables.source), Run(str(path), str(out), Batching(50)))
        assert out.read_bytes() == expected.read_bytes()


def test_windows_of_time(tables, tmp_path):
    """A minute a row: windows of an hour have 60 rows, whatever the number of batches before."""
    run = run_of(tables, tmp_path / "out.csv", batching=Batching(window=3600.0, time="ts"))
    assert adapt_table(load(tables.source), run).batches == 10
    _, frame = probabilities(tmp_path / "out.csv")
    assert frame["batch"].to_list() == np.repeat(range(10), 60).tolist()


def test_rows_that_come_newest_first_are_told(tables, tmp_path):
    path = tmp_path / "turned.csv"
    polars.read_csv(tables.stream).reverse().write_csv(path)
    run = Run(str(path), str(tmp_path / "out.csv"), Batching(window=3600.0, time="ts"))
    # 600 rows, a minute each: the last of 10 hours has 60 rows, and line 62 is the first before it.
    with pytest.raises(InputError, match=r"turned.csv line 62: is older .* sort the rows by ts"):
        adapt_table(load(tables.source), run)
    assert not (tmp_path / "out.csv").exists()


def test_rows_of_two_days_newest_first_are_told_too():
    rows = [["90000"], ["80000"], ["70000"]]  # of the first day there are two rows, not most
    rows = [["100000"], ["99000"], *rows]
    table = Table("t", ["ts"], iter(rows), lambda: None)
    with pytest.raises(InputError, match="t row 4: is older"):
        list(Batching(window=86400.0, time="ts").split(table, 0))


def test_a_few_late_rows_are_no_other_order():
    rows = [["10"], ["70"], ["50"], ["80"], ["130"], ["60"], ["190"]]
    table = Table("t", ["ts"], iter(rows), lambda: None)
    batches = list(Batching(window=60.0, time="ts").split(table, 0))
    assert [len(batch) for batch in batches] == [1, 3, 2, 1]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 20))
def test_every_row_is_in_one_batch_and_in_order(times, window):
    rows = [[str(time)] for time in times]
    table = Table("t", ["ts"], iter(rows), lambda: None)
    found = Batching(window=float(window), time="ts").split(table, 0)
    steps = np.diff(times)
    late = np.array(times) // window < np.maximum.accumulate(times) // window
    if late.any() and ((steps < 0).sum() > (steps > 0).sum() or 2 * late.sum() > len(times)):
        with pytest.raises(InputError, match=f"t row {late.argmax() + 1}: is older"):
            list(found)
        return
    batches = list(found)
    assert [row for batch in batches for row in batch] == rows
    firsts = [int(batch[0][0]) // window for batch in batches]
    assert firsts == sorted(set(firsts))  # later windows only
    for batch, first in zip(batches, firsts, strict=True):
        assert all(int(row[0]) // window <= first for row in batch)


class Stopped(Exception):
    pass


def stopping_after(chunks):
    left = [chunks]

    def tell(rows, share):
        left[0] -= 1
        if left[0] < 0:
            raise Stopped

    return tell


@pytest.fixture(scope="module")
def undisturbed(tables, tmp_path_factory):
    found = {}
    for ending in ("csv", "ndjson", "parquet"):
        out = tmp_path_factory.mktemp("whole") / f"out.{ending}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("priorshift.files.adapting._AT_ONCE", 100)
            adapt_table(load(tables.source), run_of(tables, out, state=str(out) + ".state"))
        found[ending] = out.read_bytes()
    return found


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
@settings(max_examples=6, deadline=None)
@given(stops=st.lists(st.integers(0, 5), min_size=1, max_size=3), often=st.booleans())
def test_stopped_anywhere_the_bytes_are_the_same(
    tables, tmp_path_factory, undisturbed, ending, stops, often
):
    """Rows are written before the record of them, so that a stop finds more than it says."""
    folder = tmp_path_factory.mktemp("stopped")
    run = run_of(tables, folder / f"out.{ending}", state=str(folder / "state"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("priorshift.files.adapting._AT_ONCE", 100)
        patch.setattr("priorshift.files.adapting._SURE", 1.0 if often else 1e-9)
        for chunks in stops:
            try:
                adapt_table(load(tables.source), run, stopping_after(chunks))
            except Stopped:
                continue
        done = adapt_table(load(tables.source), run)
    assert done.rows + done.resumed == 600
    assert (folder / f"out.{ending}").read_bytes() == undisturbed[ending]


def test_a_run_that_is_over_goes_on_with_new_rows_and_new_files(tables, tmp_path):
    lines = tables.stream.read_text().splitlines(keepends=True)
    grown, out, state = tmp_path / "in.csv", tmp_path / "out.csv", str(tmp_path / "state")
    run = Run(str(grown), str(out), Batching(50), state=state)
    grown.write_text("".join(lines[:301]))
    assert adapt_table(load(tables.source), run) == (300, 6, 0)
    assert adapt_table(load(tables.source), run) == (0, 0, 300)
    grown.write_text("".join(lines[:501]))
    assert adapt_table(load(tables.source), run) == (200, 4, 300)
    rest = tmp_path / "rest.csv"
    rest.write_text("".join([lines[0], *lines[501:]]))
    written = out.read_bytes()
    with pytest.raises(
        InputError, match=r"out\.csv holds what became of .*in\.csv, .*another --out"
    ):
        adapt_table(load(tables.source), replace(run, input=str(rest)))
    assert out.read_bytes() == written
    other = Run(str(rest), str(tmp_path / "rest-out.csv"), Batching(50), state=state)
    # Moved away it is not there to be replaced, nor is the beginning of a run that failed.
    out.rename(tmp_path / "first.csv")
    spoilt = tmp_path / "spoilt.csv"
    spoilt.write_text(lines[0] + lines[501].replace(",0.", ",oops", 1))
    for _ in range(2):
        with pytest.raises(InputError, match="oops"):
            adapt_table(load(tables.source), replace(run, input=str(spoilt)))
    (tmp_path / "first.csv").rename(out)
    assert adapt_table(load(tables.source), other) == (100, 2, 0)
    whole = tmp_path / "whole.csv"
    adapt_table(load(tables.source), run_of(tables, whole))
    parts = [p.read_text().splitlines(keepends=True) for p in (out, tmp_path / "rest-out.csv")]
    found, expected = (csv.reader(text) for text in (parts[0] + parts[1][1:], whole.open()))
    for ours, theirs in zip(found, expected, strict=True):
        if ours[0] != "batch":
            ours, theirs = (np.array([float(c) for c in (r[0], *r[2:])]) for r in (ours, theirs))
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_state_file_of_something_else_is_refused(tables, tmp_path):
    state, out = str(tmp_path / "state"), tmp_path / "out.csv"
    run = run_of(tables, out, state=state)
    with pytest.raises(Stopped):
        adapt_table(load(tables.source), run, stopping_after(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("priorshift.files.adapting._AT_ONCE", 100)
        with pytest.raises(Stopped):
            adapt_table(load(tables.source), run, stopping_after(3))
    before = out.read_bytes(), (tmp_path / "state").read_bytes()

    def refused(says, run):
        with pytest.raises((InputError, FileFormatError), match=says):
            adapt_table(load(tables.source), run)
        assert (out.read_bytes(), (tmp_path / "state").read_bytes()) == before

    refused(
        "a run with --batch 50, this one has 60",
        run_of(tables, out, state=state, batching=Batching(60)),
    )
    refused("has not come to its end", run_of(tables, tmp_path / "other.csv", state=state))
    changed = tmp_path / "changed.csv"
    changed.write_text("x")
    refused("not a priorshift file", run_of(tables, out, state=str(changed)))
    refused("no state file", run_of(tables, out, state=str(tables.source)))
    original = tables.stream.read_text()
    try:
        tables.stream.write_text(original.replace("0.", "0.0", 40))
        tables.stream.write_text("\n".join(original.splitlines()[:1] + original.splitlines()[2:]))
        refused("is not what it was: its row", run)
        tables.stream.write_text(original)
        (tmp_path / "kept").write_bytes(before[0])
        out.write_bytes(before[0][:10])
        with pytest.raises(InputError, match="has 10 bytes, the state file says"):
            adapt_table(load(tables.source), run)
        out.write_bytes(before[0])
    finally:
        tables.stream.write_text(original)
    adapt_table(load(tables.source), run)


@pytest.mark.parametrize("old", [b"of yesterday", None])
@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_a_bad_row_leaves_the_output_of_yesterday(tables, tmp_path, ending, old):
    lines = tables.stream.read_text().splitlines()
    cells = lines[130].split(",")
    for bad, says in (("2.5", "line 131: class"), ("x", "line 131, column 'p_ape': holds 'x'")):
        cells[2] = bad
        path, out = tmp_path / "in.csv", tmp_path / f"out.{ending}"
        path.write_text("\n".join([*lines[:130], ",".join(cells), *lines[131:]]))
        if old is not None:
            out.write_bytes(old)
        says += ".*; nothing was written to .*" + ("out" if old is None else "stays")
        run = Run(str(path), str(out), Batching(50))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorshiftWarning)
            with pytest.raises(InputError, match=says):
                adapt_table(load(tables.source), run)
        left = {one.name: one.read_bytes() for one in tmp_path.iterdir() if one != path}
        assert left == ({} if old is None else {out.name: old})


def test_with_a_state_rows_are_written_as_they_come(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("priorshift.files.adapting._AT_ONCE", 50)
    lines = tables.stream.read_text().splitlines()
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("\n".join([*lines[:130], "1,2"]))
    run = Run(str(path), str(out), Batching(50), state=str(tmp_path / "state"))
    with pytest.raises(FileFormatError, match=r"131: has 2 cells, the first line names 6 columns$"):
        adapt_table(load(tables.source), run)
    assert out.read_text().count("\n") == 101


def test_an_output_keeps_its_rights_and_links(tables, tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with pytest.warns(PriorshiftWarning, match="this run replaces it"):
        adapt_table(load(tables.source), run_of(tables, link))
    assert link.is_symlink()
    assert real.read_text().startswith("batch,label")
    assert real.stat().st_mode & 0o777 == 0o640
    adapt_table(load(tables.source), run_of(tables, tmp_path / "new.csv"))
    (tmp_path / "plain").touch()
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_ndjson_has_a_value_for_each_name(tables, tmp_path):
    adapt_table(load(tables.source), run_of(tables, tmp_path / "out.ndjson", keep=("ts",)))
    first = json.loads((tmp_path / "out.ndjson").open().readline())
    assert list(first) == [
        "ts",
        "batch",
        "label",
        *(f"{p}_{c}" for p in ("p", "prior") for c in ("ape", "bee", "cat")),
    ]
    assert first["ts"] == "2026-03-01T00:00:00"


def test_streams_of_a_key_adapt_by_themselves(tables, tmp_path):
    """The rows of a key in a batch are one call of a fleet, and priors are those of the stream."""
    frame = pd.read_csv(tables.stream)
    frame["shop"] = np.where(np.arange(len(frame)) % 3 == 0, "north", "south")
    frame.to_csv(tmp_path / "in.csv", index=False)
    run = Run(
        str(tmp_path / "in.csv"),
        str(tmp_path / "out.csv"),
        Batching(50),
        key="shop",
        keep=("shop",),
        drop=("id", "ts", "y"),
    )
    clf = load(tables.source)
    assert adapt_table(clf, run) == (600, 12, 0)
    found, out = probabilities(tmp_path / "out.csv")
    priors = out.select("prior_ape", "prior_bee", "prior_cat").to_numpy()
    fleet = Fleet(load(tables.source))
    for first in range(0, 600, 50):
        part, rows = frame[first : first + 50], slice(first, first + 50)
        shops = part["shop"].to_list()
        proba = fleet.adapt_predict_proba(shops, part[["p_ape", "p_bee", "p_cat"]])
        np.testing.assert_allclose(found[rows], proba, rtol=1e-8)
        np.testing.assert_allclose(priors[rows], fleet.priors(shops), rtol=1e-8)
    assert clf.n_rounds_ == 0  # the classifier's own stream is none of them
    with pytest.raises(InputError, match="--key goes without --state"):
        adapt_table(clf, replace(run, state=str(tmp_path / "state")))
    with pytest.raises(InputError, match="--key"):
        adapt_table(clf, replace(run, key="no such column"))


def test_an_output_that_is_replaced_is_told(tables, tmp_path):
    out, state = tmp_path / "out.csv", str(tmp_path / "state")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt_table(load(tables.source), run_of(tables, out, state=state))
        adapt_table(load(tables.source), run_of(tables, out, state=state))  # it goes on, or is done
    whole = out.read_bytes()
    with pytest.warns(PriorshiftWarning, match=rf"with {len(whole):,} bytes, and this run"):
        adapt_table(load(tables.source), run_of(tables, out, batching=Batching(100)))
    assert out.read_bytes() != whole
    out = tmp_path / "out.parquet"
    adapt_table(load(tables.source), run_of(tables, out))
    with pytest.warns(PriorshiftWarning, match="this run replaces it"):
        adapt_table(load(tables.source), run_of(tables, out))


@pytest.mark.parametrize("empty", ["", "  "])
def test_a_key_that_is_empty_is_refused(tables, tmp_path, empty):
    frame = pd.read_csv(tables.stream)
    frame["shop"] = ["north"] * 70 + [empty] + ["south"] * (len(frame) - 71)
    frame.to_csv(tmp_path / "in.csv", index=False)
    run = Run(str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), Batching(50), key="shop")
    with pytest.raises(InputError, match=r"in.csv line 72, column 'shop': says no stream"):
        adapt_table(load(tables.source), run)
