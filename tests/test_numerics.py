"""Small computations on rows: right, and the same bits whatever other rows there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from priorshift._numerics import (
    one_hot,
    reweight,
    row_argmax,
    row_products,
    row_softmax,
    row_sums,
    stratified_folds,
    stretch_means,
    times_exp,
)
from priorshift._validation import check_number, check_rates, check_share
from priorshift.errors import InputError, InputTypeError

WIDTHS = [1, 2, 7, 8, 9, 31, 33, 100, 300]


def table(width, order="C"):
    return np.asarray(np.random.default_rng(width).normal(size=(60, width)), order=order)


def products(Z):
    return row_products(Z, table(Z.shape[1])[:5])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("compute", [row_sums, row_softmax, row_argmax, products])
def test_a_rows_bits_do_not_depend_on_other_rows(compute, width, order):
    Z = table(width, order)
    whole = compute(Z)
    for some in (1, 2, 15, 16, 17, 59):
        np.testing.assert_array_equal(compute(Z[:some]), whole[:some])
        np.testing.assert_array_equal(compute(Z[-some:]), whole[-some:])


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_agree_with_numpy_and_scipy(width):
    Z = table(width)
    np.testing.assert_allclose(row_sums(Z), Z.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(row_softmax(Z), softmax(Z, axis=1), atol=1e-14)
    np.testing.assert_array_equal(row_argmax(Z), Z.argmax(axis=1))
    np.testing.assert_allclose(row_products(Z, Z[:5]), Z @ Z[:5].T, atol=1e-12)


def test_importance_weights_and_logits_say_the_same():
    proba = row_softmax(table(4))
    weights = np.array([0.5, 2.0, 1.0, 0.1])
    logits = np.broadcast_to(np.log(weights), proba.shape)
    np.testing.assert_allclose(
        times_exp(proba, logits, 1e-12), reweight(proba, weights), atol=1e-14
    )


def test_rows_that_the_weights_say_nothing_of_stay():
    proba = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert reweight(proba, np.array([2.0, 0.0])).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_one_hot_rows():
    hot = one_hot(np.array([2, 0]), 3)
    assert hot.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert hot.dtype == np.float64


def test_no_fold_holds_all_of_a_class():
    labels = np.random.default_rng(0).integers(0, 4, 37)
    folds = stratified_folds(labels, 5, seed=1)
    for k in range(4):
        sizes = np.bincount(folds[labels == k], minlength=5)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("value", "closed", "good"),
    [
        (0, "", False),
        (0, "[", True),
        (1, "[", False),
        (1, "[]", True),
        (0.5, "", True),
        (np.float64(0.5), "", True),
        (float("nan"), "[]", False),
        ("0.5", "[]", False),
        (None, "[]", False),
    ],
)
def test_numbers_between_two_ends(value, closed, good):
    if good:
        check_number("alpha", value, 0, 1, closed)
    else:
        with pytest.raises(InputError, match=f"alpha is {value}: it must be"):
            check_number("alpha", value, 0, 1, closed)


def test_shares_and_rates():
    check_share("share", 0)
    check_rates((1.0, 0.5, 0.01))
    with pytest.raises(InputError, match="share is 1: it must be at least 0 and below 1"):
        check_share("share", 1)
    for rates in ((), (0.5, 0.5), (0.1, 0.2), (1.5,), (0.0,)):
        with pytest.raises(InputError, match="falling"):
            check_rates(rates)
    with pytest.raises(InputTypeError, match="tuple"):
        check_rates([1.0])


def test_stretches_keep_the_mean():
    values = np.random.default_rng(0).random(120)
    assert stretch_means(values, 60).mean() == pytest.approx(values.mean())
    assert stretch_means(values, 500).tolist() == values.tolist()
