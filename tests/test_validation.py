from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from priorshift._rows import is_frame
from priorshift._validation import (
    as_labels,
    as_matrix,
    as_numbers,
    as_probabilities,
    class_indices,
)
from priorshift.errors import InputError, InputTypeError, PriorshiftError


@settings(max_examples=40)
@given(arrays(np.float64, (3, 2), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_matrices_are_finite_or_refused(X):
    if np.isfinite(X).all():
        np.testing.assert_array_equal(as_matrix(X), X)
    else:
        first = np.argwhere(~np.isfinite(X))[0]
        with pytest.raises(InputError, match=f"row {first[0]}, column {first[1]}"):
            as_matrix(X)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint64, bool, object])
def test_numbers_of_any_kind(kind):
    found = as_matrix(np.array([[0, 1], [1, 0]], dtype=kind))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.zeros(3), "1 dimension"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        (np.array(3.0), "0 dimension"),
        (np.zeros((0, 2)), "empty"),
        (np.zeros((2, 3)), "3 columns.*2"),
        ([["a", "b"]], "text"),
        ([[1.0, 2.0], [1.0]], "ragged|length"),
        (np.array([[1j, 0]]), "[Cc]omplex"),
        ([[1.0, float("nan")]], "NaN in row 0, column 1"),
        ([[float("inf"), 1.0]], "inf.*row 0, column 0"),
        (np.array([[1.0, "x"]], dtype=object), "numbers"),
    ],
)
def test_bad_matrices_say_what_is_wrong(X, says):
    with pytest.raises(InputError, match=says):
        as_matrix(X, 2)


@pytest.mark.parametrize("X", [None, {"a": 1}, 3.0, "ab", [[object(), 1]]])
def test_wrong_types(X):
    with pytest.raises(InputTypeError):
        as_matrix(X, 2)


def test_sparse_matrices_are_read():
    np.testing.assert_array_equal(as_matrix(sparse.csr_matrix(np.eye(2)), 2), np.eye(2))
    with pytest.raises(InputError, match=r"2 columns.*3"):
        as_matrix(sparse.csr_matrix(np.eye(2)), 3)


def test_the_name_of_the_argument_is_said():
    with pytest.raises(InputError, match="rows of mine"):
        as_matrix([[float("nan")]], where="rows of mine")


def test_labels():
    assert as_labels([[1], [2]], 2).tolist() == [1, 2]
    for wrong, says in (
        (None, "None"),
        ([1, 2, 3], "3 labels for 2"),
        ([[1, 2], [3, 4]], "shape"),
        ([1.0, float("nan")], "no label in row 1"),
        ([1.0, float("inf")], "infinity"),
        (5, "shape"),
    ):
        with pytest.raises(PriorshiftError, match=says):
            as_labels(wrong, 2)


@settings(max_examples=40)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20))
def test_class_indices_by_looking_up(labels):
    classes = np.array([-4, -1, 0, 3])
    table = {-4: 0, -1: 1, 0: 2, 3: 3}
    if set(labels) <= set(table):
        assert class_indices(np.array(labels), classes).tolist() == [table[y] for y in labels]
    else:
        with pytest.raises(InputError, match="does not know"):
            class_indices(np.array(labels), classes)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(np.array([0, 1]), np.array(["a", "b"])), (np.array(["a", "b"]), np.array([0, 1]))],
)
def test_labels_of_another_kind_are_refused(labels, classes):
    with pytest.raises((ValueError, TypeError)):
        class_indices(labels, classes)


@settings(max_examples=40)
@given(arrays(np.float64, (2, 3), elements=st.floats(0, 1)))
def test_probabilities_add_up_or_are_refused(P):
    sums = P.sum(axis=1)
    rounded = (np.abs(P - P.round(2)) < 1e-6).all() and (np.abs(sums - 1) <= 0.015).all()
    if (np.abs(sums - 1) <= 1e-3).all() or rounded:
        np.testing.assert_allclose(as_probabilities(P, "P").sum(axis=1), 1, atol=1e-12)
    else:
        with pytest.raises(InputError, match="row"):
            as_probabilities(P, "P")


@pytest.mark.parametrize("row", [[0.5, 0.511], [0.5, 0.48], [1.001, -0.001], [np.nan, 1.0]])
def test_a_row_a_little_off_is_refused(row):
    with pytest.raises(InputError, match="row 1"):
        as_probabilities(np.array([[0.5, 0.5], row]), "P")


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        ([[0.33, 0.33, 0.32], [0.5, 0.3, 0.2]], "rounded, divide each row by its sum"),
        ([[0.3, 0.3, 0.3], [0.5, 0.3, 0.2]], "rounded to one digit, give two or more"),
        ([[50.0, 30.0, 20.0], [33.0, 33.0, 33.0]], "percent, divide by 100"),
        ([[-2.0, 1.0, 0.5], [3.0, 0.0, 0.1]], "logits, which from_logits takes"),
    ],
)
def test_what_no_probabilities_look_like_is_said(rows, advice):
    with pytest.raises(InputError, match=f"add up to 1: these look .*{advice}"):
        as_probabilities(np.array(rows), "P")


@pytest.mark.parametrize("classes", [3, 5, 20])
@pytest.mark.parametrize("digits", [2, 3, 4])
def test_rounded_rows_are_divided_by_their_sums(classes, digits):
    P = np.random.default_rng(classes).dirichlet(np.ones(classes), 50).round(digits)
    exact = P / P.sum(axis=1, keepdims=True)
    told = bool(np.abs(P.sum(axis=1) - 1).max() > 1e-3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_allclose(as_probabilities(P, "P"), exact, rtol=1e-12)
    assert [f"rounded to {digits} digits" in str(one.message) for one in caught] == [True] * told
    assert told or digits > 2


@pytest.mark.parametrize(
    "row", [[0.33, 0.33, 0.32], [0.333, 0.333, 0.331], [0.4, 0.5, 0.0], [0.3333, 0.3333, 0.33]]
)
def test_sums_that_rounding_does_not_explain_are_refused(row):
    with pytest.raises(InputError, match="row 0"):
        as_probabilities(np.array([row]), "P")


@pytest.mark.parametrize("row", [[0.5, 0.5005], [1.0, -1e-9]])
def test_rounding_is_repaired(row):
    found = as_probabilities(np.array([row]), "P")
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-15)


def test_frames_are_known(blobs):
    pandas = pytest.importorskip("pandas")
    assert is_frame(pandas.DataFrame(blobs.X))
    assert not is_frame(blobs.X)
    assert not is_frame(blobs.X.tolist())


@pytest.mark.parametrize("first", [pd.NA, None])
def test_a_missing_number_of_pandas_is_nan(first):
    frame = pd.DataFrame({"a": pd.array([first, 2], dtype="Int64"), "b": [0.5, 1.5]})
    np.testing.assert_array_equal(as_numbers(frame), [[np.nan, 0.5], [2.0, 1.5]])
    with pytest.raises(InputError, match="text"):
        as_numbers(np.array([[first, "two"]], dtype=object))
