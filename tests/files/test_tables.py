"""Rows of files."""

from __future__ import annotations

import gzip
import json

import polars
import pytest

from priorshift.errors import FileFormatError, InputError
from priorshift.files.tables import open_table


def whole(path, kind=None):
    with open_table(path, kind) as table:
        return table.names, [list(row) for row in table.rows], table.share()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n3,4\n", [["1", "2"], ["3", "4"]]),
        ("a;b\n1,5;2\n", [["1,5", "2"]]),
        ("a\tb\n1\t2\n\n3\t4", [["1", "2"], ["3", "4"]]),
        ('a,b\n"x, ""y""","two\nlines"\n', [['x, "y"', "two\nlines"]]),
        ("\ufeffa,b\n1,2\n", [["1", "2"]]),
        ('"a",b\n', []),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_csv(tmp_path, text, rows, packed):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert whole(path) == (["a", "b"], rows, 1.0)


def test_ndjson_reads_by_name(tmp_path):
    path = tmp_path / "t.ndjson"
    lines = [{"a": 1.5, "b": "x"}, {"b": None, "a": 2}, {"a": 3, "more": 1}]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert whole(path)[:2] == (["a", "b"], [[1.5, "x"], [2, None], [3, None]])


def test_parquet_in_slices(tmp_path, monkeypatch):
    monkeypatch.setattr("priorshift.files.tables._SLICE", 4)
    polars.DataFrame({"a": range(10), "b": list("abcdefghij")}).write_parquet(
        tmp_path / "t.parquet"
    )
    names, rows, share = whole(tmp_path / "t.parquet")
    assert (names, rows[9], len(rows), share) == (["a", "b"], [9, "j"], 10, 1.0)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3: has 3 cells, the first line names 2"),
        ("t.csv", b"a,a\n1,2\n", "two columns 'a'"),
        ("t.csv", b"a,b\n1,2\nKatze,M\xe4dchen\n", "t.csv line 3: is not in UTF-8; convert"),
        ("t.csv", b"a\xe4,b\n1,2\n", "t.csv line 1: is not in UTF-8; convert"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n\xe4,2", mtime=0),
            "t.csv.gz line 3: is not in UTF-8",
        ),
        ("t.ndjson", b'{"a": 1}\n{"a": "\xe4"}\n', "t.ndjson line 2: is not in UTF-8; convert"),
        ("t.csv.gz", b"a,b\n", "cannot be read as a table"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "cannot be read as a table"),
        ("t.ndjson", b"", "is empty"),
        ("t.ndjson", b'{"a": 1}\nno\n', "line 2: is not JSON"),
        ("t.ndjson", b"a,b\n1,2\n", "line 1: is not JSON .*; if it is CSV, give --in-format csv"),
        ("t.ndjson", b"[1, 2]\n", "line 1: is no JSON object"),
        ("t.parquet", b"PAR1 not", "cannot be read as Parquet"),
    ],
)
def test_what_is_broken_is_named(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileFormatError, match=says):
        whole(tmp_path / name)


def test_what_is_no_table(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        whole(tmp_path / "none.csv")
    with pytest.raises(InputError, match="what kind of table"):
        whole(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="from a pipe"):
        whole("-", "parquet")
