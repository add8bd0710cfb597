"""Rows of anything: counted, taken, looked at."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from priorshift._rows import as_rows, column_names, is_frame, n_rows, take_rows
from priorshift.errors import InputError, InputTypeError

TABLE = np.arange(12.0).reshape(4, 3)
KINDS = {
    "array": TABLE,
    "image": TABLE.reshape(4, 3, 1, 1),
    "csr": sparse.csr_matrix(TABLE),
    "coo": sparse.coo_matrix(TABLE),
    "pandas": pd.DataFrame(TABLE, columns=list("abc"), index=[9, 8, 7, 6]),
    "polars": pl.DataFrame(TABLE),
    "series": pd.Series(list("wxyz"), index=[9, 8, 7, 6]),
    "texts": list("wxyz"),
    "objects": np.array([{"a": 1}, {"b": 2}, {}, {"a": 3}], dtype=object),
    "dicts": [{"a": 1}, {"b": 2}, {}, {"a": 3}],
}


def listed(X):
    """The rows as plain values."""
    X = X.toarray() if sparse.issparse(X) else X
    return np.asarray(X).tolist() if not isinstance(X, list) else X


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted_and_taken(kind):
    X = KINDS[kind]
    assert n_rows(X) == n_rows(as_rows(X)) == 4
    some = take_rows(X, np.array([3, 0, 0]))
    assert listed(some) == [listed(X)[i] for i in (3, 0, 0)]
    assert type(some) is type(X) or sparse.issparse(some)
    assert column_names(X) == (list(X.columns) if is_frame(X) else None)


@given(st.lists(st.integers(0, 3), max_size=9))
def test_taking_is_indexing(rows):
    chosen = np.array(rows, dtype=np.intp)
    for X in KINDS.values():
        assert listed(take_rows(X, chosen)) == [listed(X)[i] for i in rows] or not rows


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_are_refused_in_the_same_words(kind):
    with pytest.raises(InputError, match=r"X is empty \(0 sample\(s\).*: skip empty batches"):
        as_rows(KINDS[kind][:0] if kind != "coo" else sparse.coo_matrix((0, 3)))


def test_what_goes_on_as_it_is():
    for kind in ("array", "image", "csr", "pandas", "polars", "series", "texts", "objects"):
        assert as_rows(KINDS[kind]) is KINDS[kind]
    ragged = [[1.0], [1.0, 2.0]]
    assert as_rows(ragged) is ragged
    assert as_rows([[1, 2], [3, 4]]).dtype.kind == "i"
    assert as_rows([[10**400, 1]]) == [[10**400, 1]]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ("one text", "X is one str"),
        ({"a": [1.0]}, "X is one dict"),
        (3.0, "cannot be counted"),
        ({"a", "b"}, "taken in order"),
        ((x for x in [1.0]), "X is generator"),
    ],
)
def test_what_has_no_rows(X, words):
    with pytest.raises(InputTypeError, match=words):
        as_rows(X)


def test_one_value_is_no_row():
    with pytest.raises(InputError, match="one value"):
        as_rows(np.array(3.0))


def test_a_masked_value_is_refused_and_an_empty_mask_is_none():
    X = np.ma.masked_array(TABLE, mask=TABLE == 7.0)
    with pytest.raises(InputError, match="X has a masked value in row 2, column 1"):
        as_rows(X)
    with pytest.raises(InputError, match="X has a masked value in row 2, column 1"):
        as_rows(list(X))
    plain = as_rows(np.ma.masked_array(TABLE))
    assert type(plain) is np.ndarray
    np.testing.assert_array_equal(plain, TABLE)


def test_nat_is_no_number():
    X = np.array([["2020-01-01"], ["NaT"]], dtype="datetime64[D]")
    with pytest.raises(InputError, match="X has NaT in row 1, column 0"):
        as_rows(X)
    assert as_rows(X[:1]).dtype.kind == "M"
