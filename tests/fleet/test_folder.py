"""Fleets on the disk: whole, or refused; killed at any time, and still whole."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import ExitStack, closing, suppress

import numpy as np
import pytest

from checks import state_bytes
from priorshift import Fleet, load
from priorshift.errors import FileFormatError, InputError
from priorshift.fleet import mapped as module
from priorshift.fleet.log import entries, entry
from priorshift.fleet.mapped import check_sums

pytestmark = pytest.mark.filterwarnings("error")
NAMES = [*range(10), *(f"shop {i}" for i in range(10)), 2**80, -3]


def calls(rows, first, last, streams=NAMES):
    """Ragged calls, always the same."""
    for t in range(first, last):
        rng = np.random.default_rng(t)
        n = int(rng.integers(1, 25))
        ids = [streams[i] for i in rng.integers(0, len(streams), n)]
        yield ids, rows[rng.integers(0, len(rows), n)]


def everything(fleet):
    return {key: state_bytes(fleet.stream(key).state) for key in fleet.ids}


@pytest.fixture
def lived(default, rows):
    fleet = Fleet(default, n_jobs=1)
    for ids, X in calls(rows, 0, 8):
        fleet.adapt(ids, X)
    return fleet


def test_saved_in_memory_or_mapped_it_goes_on_to_the_last_bit(lived, rows, tmp_path):
    lived.forget([3])
    lived.save(tmp_path / "fleet")
    lived.save(tmp_path / "fleet")  # in the place of the first
    assert len(list((tmp_path / "fleet").iterdir())) == 5
    inside, outside = load(tmp_path / "fleet"), load(tmp_path / "fleet", mapped=True)
    assert everything(inside) == everything(outside) == everything(lived)
    words = f"{len(lived)} streams, {len(lived.classes_)} classes"
    assert repr(lived) == repr(inside)
    assert f"{words}, in memory" in repr(inside)
    assert f"{words}, mapped" in repr(outside)
    assert "learner='auto', safety='on'" in repr(outside)
    for number, (ids, X) in enumerate(calls(rows, 8, 20)):
        expected = lived.adapt_predict_proba(ids, X)
        assert (inside.adapt_predict_proba(ids, X) == expected).all()
        assert (outside.adapt_predict_proba(ids, X) == expected).all()
        if number == 5:
            for fleet in (lived, inside, outside):
                fleet.forget(["shop 1", 2**80])
    assert outside.summary().rounds == lived.summary().rounds
    outside.close()
    again = load(tmp_path / "fleet", mapped=True)
    assert everything(again) == everything(lived)
    again.save(tmp_path / "copy")
    assert everything(load(tmp_path / "copy")) == everything(lived)
    again.close()


def test_a_call_of_more_streams_than_fit_into_memory(default, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST", 7)
    Fleet(default).save(tmp_path / "fleet")
    fleet, twin = load(tmp_path / "fleet", mapped=True), Fleet(default)
    rng = np.random.default_rng(0)
    for _ in range(3):
        ids, X = rng.permutation(30), rng.dirichlet(np.ones(4), 30)
        assert (fleet.adapt_predict_proba(ids, X) == twin.adapt_predict_proba(ids, X)).all()
    fleet.close()


def test_one_process_at_a_time(lived, tmp_path):
    lived.save(tmp_path / "fleet")
    first = load(tmp_path / "fleet", mapped=True)
    with pytest.raises(FileFormatError, match="in use"):
        load(tmp_path / "fleet", mapped=True)
    first.close()
    load(tmp_path / "fleet", mapped=True).close()


def test_a_closed_fleet_says_so(lived, rows, tmp_path):
    lived.save(tmp_path / "fleet")
    fleet = load(tmp_path / "fleet", mapped=True)
    fleet.close()
    fleet.close()
    for call in (fleet.adapt, fleet.predict_proba):
        with pytest.raises(InputError, match="closed"):
            call([1], rows[:1])
    with pytest.raises(InputError, match="closed"):
        fleet.summary()


def look_at(folder, ids):
    with closing(load(folder, mapped=True)) as fleet:
        return fleet.priors(ids)


@pytest.mark.parametrize("kind", ["records", "names", "model"])
def test_an_altered_byte_is_found(lived, tmp_path, kind):
    """In the head, in the middle and at the end; of a record when it is read."""
    lived.save(tmp_path / "fleet")
    (path,) = (tmp_path / "fleet").glob(f"{kind}-*")
    whole = path.read_bytes()
    ids = list(lived.ids)
    for place in (4, 2050 % len(whole), len(whole) // 2, len(whole) - 3):
        if kind == "records" and 40 <= place < 2048:
            continue
        data = bytearray(whole)
        data[place] ^= 4
        path.write_bytes(data)
        with pytest.raises(FileFormatError):
            look_at(tmp_path / "fleet", ids)
        with pytest.raises(FileFormatError):
            load(tmp_path / "fleet")
    path.write_bytes(whole)
    assert everything(load(tmp_path / "fleet")) == everything(lived)


def test_a_file_cut_short_is_refused(lived, tmp_path):
    lived.save(tmp_path / "fleet")
    for kind in ("records", "names"):
        (path,) = (tmp_path / "fleet").glob(f"{kind}-*")
        whole = path.read_bytes()
        for size in (0, 10, len(whole) - 8):
            path.write_bytes(whole[:size])
            with pytest.raises(FileFormatError):
                load(tmp_path / "fleet")
        path.write_bytes(whole)


def test_records_of_another_model_are_refused(lived, make, tmp_path):
    lived.save(tmp_path / "one")
    Fleet(make("tracker")).save(tmp_path / "two")
    (theirs,) = (tmp_path / "one").glob("records-*")
    (ours,) = (tmp_path / "two").glob("records-*")
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(FileFormatError, match="another source or learner"):
        load(tmp_path / "two")


def test_where_fleets_can_be_saved(lived, tmp_path):
    (tmp_path / "file").write_text("hello")
    with pytest.raises(InputError, match="is a file"):
        lived.save(tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("hello")
    with pytest.raises(InputError, match="not empty"):
        lived.save(tmp_path / "full")
    with pytest.raises(InputError, match="no fleet"):
        load(tmp_path / "file", mapped=True)
    lived.save(tmp_path / "fleet")
    main = tmp_path / "fleet" / "fleet.json"
    for text in ("", "[]", json.dumps({"format": 1, "generation": 1, "settings": {}})):
        main.write_text(text)
        with pytest.raises(FileFormatError):
            load(tmp_path / "fleet")


class Killed(BaseException):
    pass


STEPS = ["_change", "_apply", "_set", "_chunks", "_give_back", "read"]


@pytest.mark.parametrize("most", [3, 1000])
@pytest.mark.parametrize("when", [*STEPS, "_write_from"])
def test_a_call_that_stops_anywhere_is_whole_or_never_was(
    default, rows, tmp_path, monkeypatch, when, most
):
    """The steps of a call stop one after the other; whoever opens the file finds it whole.

    Also of a call whose records do not fit into memory at once.
    """
    monkeypatch.setattr(module, "MOST", most)
    twin, owner = Fleet(default, n_jobs=1), module.Mapped if when in STEPS else module
    twin.save(tmp_path / "fleet")
    whole, method, lost = 0, getattr(owner, when), 0
    for number, (ids, X) in enumerate(calls(rows, 0, 14)):
        fleet = load(tmp_path / "fleet", mapped=True, n_jobs=1)
        seen = []

        def stop(*arguments, seen=seen, number=number):
            seen.append(arguments)
            if len(seen) > number % 7:
                raise Killed
            return method(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, when, stop)
            with suppress(Killed):
                fleet.adapt(ids, X)
        fleet.close()
        again = load(tmp_path / "fleet", mapped=True, n_jobs=1)
        done = again._store.live.calls
        assert done in (whole, whole + 1)
        if done > whole:
            twin.adapt(ids, X)
            assert again.lost == []
        elif again.lost:
            assert set(again.lost) == set(ids)
            lost += 1
        whole = done
        assert everything(again) == everything(twin)
        again.close()
    assert whole > 0
    assert lost > 0 or when in ("_change", "_apply", "_chunks")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_killed_in_the_middle_of_calls(default, tmp_path):
    """A child that learns without end is killed: what it leaves is the state after whole calls."""
    check_kills(default, tmp_path / "fleet", kills=4, streams=300)


def one_call(t, streams):
    rng = np.random.default_rng(t)
    return rng.permutation(streams), rng.dirichlet(np.ones(4), streams)


def check_kills(classifier, folder, kills, streams):
    twin = Fleet(classifier, n_jobs=1)
    twin.adapt(*one_call(0, streams))  # which also compiles, before there is a child
    twin.save(folder)
    done, rng = 1, np.random.default_rng(0)
    for killed in range(1, 5 * kills + 1):
        child = os.fork()
        if child == 0:
            try:
                fleet = load(folder, mapped=True, n_jobs=1)
                for t in range(done, 10**6):
                    fleet.adapt(*one_call(t, streams))
            finally:
                os._exit(1)
        time.sleep(0.05 + 0.2 * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        fleet = load(folder, mapped=True, n_jobs=1)
        for t in range(done, fleet._store.live.calls):
            twin.adapt(*one_call(t, streams))
        done = fleet._store.live.calls
        assert (fleet._store.read(np.arange(streams)) == twin._store.read(np.arange(streams))).all()
        assert set(fleet.lost) in (set(), set(range(streams)))
        fleet.close()
        if killed >= kills and done > kills:  # on a busy machine children come to nothing
            break
    assert done > kills


def test_check_sums_find_any_change_of_a_number():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 20))
    before = check_sums(rows)
    for row in range(50):
        changed = rows[row : row + 1].copy()
        bits = changed.view(np.uint64)
        bits[0, rng.integers(20)] ^= np.uint64(1) << np.uint64(rng.integers(64))
        assert check_sums(changed)[0] != before[row]
    assert (check_sums(np.zeros((1, 20))) != 0).all()


def test_the_log_of_names():
    data = entry([2, 0], ["a", "b"]) + entry([5], [7]) + entry([0], None) + entry([1], [2**70])
    assert list(entries(data)) == [
        ([2, 0], ["a", "b"]),
        ([5], [7]),
        ([0], None),
        ([1], [2**70]),
    ]
    for cut in (1, 20, len(data) - 1):
        with pytest.raises(FileFormatError):
            list(entries(data[:cut]))


def test_a_closed_fleet_writes_nowhere(lived, rows, tmp_path):
    lived.save(tmp_path / "fleet")
    fleet = load(tmp_path / "fleet", mapped=True)
    fleet.close()
    others = [tmp_path / f"other-{i}" for i in range(4)]
    with ExitStack() as stack:
        for path in others:  # the numbers of its files are used again
            stack.enter_context(path.open("w+b"))
        with pytest.raises(InputError, match="closed"):
            fleet.adapt(["a new one"], rows[:1])
    assert [path.stat().st_size for path in others] == [0, 0, 0, 0]


def test_a_mapped_fleet_is_not_replaced_under_its_feet(lived, rows, tmp_path):
    lived.save(tmp_path / "fleet")
    with closing(load(tmp_path / "fleet", mapped=True)) as fleet:
        for other in (fleet, lived):
            with pytest.raises(InputError, match="is mapped"):
                other.save(tmp_path / "fleet")
        fleet.adapt(["shop 1"], rows[:1])
        expected = everything(fleet)
    assert everything(load(tmp_path / "fleet")) == expected


def test_a_place_that_cannot_be_made_is_named(lived, tmp_path):
    with pytest.raises(InputError, match="No such file"):
        lived.save(tmp_path / "no" / "fleet")
