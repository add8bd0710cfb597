"""The history: what is kept when it is thinned, and that it never outgrows its places."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorshift.errors import InputError, InputTypeError
from priorshift.monitoring.history import (
    FIELDS,
    NO_TIME,
    History,
    Record,
    as_seconds,
    most_records,
    thinned,
)


def lived(batches, places, K=2, rows=lambda t: 10):
    history = History.start(K)
    for t in range(1, batches + 1):
        record = Record(60.0 * t, t, 1, rows(t), t % 3, 50.0, 0.5, 0.1, -1.0, -2.0, t // 100)
        share = (t % 10) / 10
        history = history.with_record(
            record, np.array([share, 1 - share]), np.array([0.4, 0.6]), places
        )
    return history


@settings(max_examples=25, deadline=None)
@given(batches=st.integers(1, 400), places=st.integers(4, 40))
def test_nothing_is_lost_but_detail(batches, places) -> None:
    def rows(t):
        return 1 + t % 7

    history = lived(batches, places, rows=rows)
    every = np.array([rows(t) for t in range(1, batches + 1)])
    assert len(history.records) <= places
    assert history.field("batches").sum() == batches
    assert history.field("rows").sum() == every.sum()
    assert history.field("labels").sum() == sum(t % 3 for t in range(1, batches + 1))
    assert history.field("round")[-1] == batches
    assert (np.diff(history.field("round")) == history.field("batches")[1:]).all()
    shares = np.array([(t % 10) / 10 for t in range(1, batches + 1)])
    mean = history.field("rows") @ history.priors[:, 0] / every.sum()
    assert mean == pytest.approx(every @ shares / every.sum())
    history.check(places)


def test_the_last_batches_have_records_of_their_own_and_old_ones_share() -> None:
    history = lived(20_000, 512)
    covered, age = history.field("batches"), 20_000 - history.field("round") + 1
    assert (covered[-20:] == 1).all()
    assert (covered[age > 500] <= 0.1 * age[age > 500]).all()
    assert history.records.nbytes < 512 * 8 * (len(FIELDS) + 4)


def test_last() -> None:
    history = lived(10, 100)
    assert history.last(3).field("round").tolist() == [8, 9, 10]
    assert len(history.last(99).records) == 10
    rows = np.cumsum(history.field("rows")[::-1])
    for wanted in (0.5, 12.0, 25.0, 31.0, 1e9):
        found = history.last_rows(wanted).field("rows").sum()
        assert abs(found - wanted) == np.abs(rows - wanted).min()


def test_late_labels_go_to_their_batch() -> None:
    history = lived(30, 100)
    before = history.field("labels").copy()
    after = history.with_labels(17, 5).field("labels")
    assert after[16] == before[16] + 5
    assert np.delete(after - before, 16).tolist() == [0.0] * 29
    assert (history.field("labels") == before).all()  # a pure step
    merged = lived(300, 16)
    assert merged.with_labels(40, 5).field("labels").sum() == merged.field("labels").sum() + 5
    assert merged.with_labels(10**6, 5).field("labels").sum() == merged.field("labels").sum()


def test_many_classes_have_fewer_places() -> None:
    assert most_records(512, 10) == 512
    assert most_records(512, 5000) * 8 * (len(FIELDS) + 10_000) <= 2**20
    assert most_records(1, 2) == 4


def test_merging_keeps_the_more_serious_guard_and_the_regime_of_more_rows() -> None:
    records = np.zeros((4, len(FIELDS) + 2))
    records[:, 1], records[:, 2], records[:, 3] = [1, 2, 3, 4], 1, [30, 10, 1, 1]
    records[:, FIELDS.index("guard")] = [0.9, 0.1, 0, 0]
    records[:, FIELDS.index("regime")] = [5, 7, 7, 7]
    merged = thinned(records)
    assert len(merged) == 3
    assert merged[0, FIELDS.index("guard")] == 0.9
    assert merged[0, FIELDS.index("regime")] == 5


@pytest.mark.parametrize(
    ("given_", "seconds"),
    [
        (None, NO_TIME),
        (12, 12.0),
        (np.float32(1.5), 1.5),
        (datetime(2001, 9, 9, 1, 46, 40), 1e9),
        (datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC), 1e9),
        (datetime(2001, 9, 9, 3, 46, 40, tzinfo=timezone(timedelta(hours=2))), 1e9),
        (np.datetime64("2001-09-09T01:46:40"), 1e9),
        (pd.Timestamp("2001-09-09T01:46:40Z"), 1e9),
        ("2001-09-09 01:46:40", 1e9),
        ("2001-09-09T03:46:40+02:00", 1e9),
    ],
)
def test_times(given_, seconds) -> None:
    assert as_seconds(given_) == seconds


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        (np.nan, InputError),
        (np.inf, InputError),
        (pd.NaT, InputError),
        (np.datetime64("NaT"), InputError),
        ("monday", InputError),
        (True, InputTypeError),
        (1j, InputTypeError),
    ],
)
def test_no_times(given_, error) -> None:
    with pytest.raises(error, match="timestamp is"):
        as_seconds(given_)


def test_two_that_go_on_from_one_history_do_not_see_each_other() -> None:
    """Records share a table, of which a row is taken once."""
    first = history_of(5)
    before = first.records.copy()
    one, other = (with_rows(first, rows) for rows in (7, 9))
    again = with_rows(one, 11)
    assert (first.records == before).all()
    assert one.field("rows").tolist()[-1] == 7
    assert other.field("rows").tolist()[-1] == 9
    assert again.field("rows").tolist()[-2:] == [7, 11]
    assert np.shares_memory(again.records, first.records)
    assert not np.shares_memory(other.records, first.records)
    last = with_rows(first.last(2), 13)
    assert last.field("rows").tolist()[-1] == 13
    assert (first.records == before).all()


def with_rows(history, rows):
    t = len(history.records) + 1
    record = Record(float(t), t, 1, rows, 0, 1.0, 0.5, 0.0, 0.0, 0.0, -1)
    return history.with_record(record, np.array([0.5, 0.5]), np.array([0.4, 0.6]), 512)


def history_of(number):
    history = History.start(2)
    for _ in range(number):
        history = with_rows(history, 1)
    return history
