"""The store: what went in comes out, whatever happens to the process or to the file."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import priorshift
from priorshift.errors import FileFormatError, InputError
from priorshift.experiments import store as module
from priorshift.experiments.store import Store, canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a surrogate pair is no text that a file could hold.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=6,
)


def filled(path: Path, number: int = 50) -> Store:
    store = Store(path)
    for i in range(number):
        assert store.add({"seed": i, "learner": "atlas"}, {"error": i / 7, "note": "x" * 20})
    return store


def test_results_come_back_to_the_last_bit_and_in_order(tmp_path):
    filled(tmp_path / "a.db")
    store = Store(tmp_path / "a.db")
    assert len(store) == 50
    assert [settings["seed"] for settings, _ in store] == list(range(50))
    assert store.find({"learner": "atlas", "seed": 3}) == {"error": 3 / 7, "note": "x" * 20}
    assert store.find({"learner": "atlas", "seed": 50}) is None
    assert store.find({"learner": "atlas", "seed": 3.0}) is None
    assert os.listdir(tmp_path) == ["a.db"]


def test_the_first_result_stays(tmp_path):
    store = Store(tmp_path / "a.db")
    assert store.add({"a": 1}, 1)
    assert not store.add({"a": 1}, 2)
    assert store.find({"a": 1}) == 1
    assert len(store) == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=st.dictionaries(st.text("abc"), VALUES), result=VALUES)
def test_whatever_json_can_say(tmp_path, config, result):
    store = Store(tmp_path / "a.db")
    store.add({**config, "number": len(store)}, result)
    assert list(store)[-1][1] == result
    # As text: True is not 1, and -0.0 is not 0.0.
    assert canonical(store.find({**config, "number": len(store) - 1})) == canonical(result)


def test_what_json_cannot_say_is_refused_and_nothing_is_kept(tmp_path):
    store = Store(tmp_path / "a.db")
    with pytest.raises(ValueError, match="JSON"):
        store.add({"a": 1}, float("nan"))
    assert len(store) == 0


def test_names_that_mean_something_in_addresses(tmp_path):
    path = tmp_path / "50% of #1? ü.db"
    Store(path).add({"a": 1}, 1)
    assert Store(path).find({"a": 1}) == 1
    assert os.listdir(tmp_path) == [path.name]


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "a.db").touch()
    assert len(Store(tmp_path / "a.db")) == 0


def test_other_files_are_refused_and_left_alone(tmp_path):
    (tmp_path / "text.db").write_text("hello, this is no database at all")
    with sqlite3.connect(tmp_path / "other.db") as base:
        base.execute("CREATE TABLE other (a)")
    base.close()
    filled(tmp_path / "newer.db", 1)
    with sqlite3.connect(tmp_path / "newer.db") as base:
        base.execute("PRAGMA user_version = 2")
    base.close()
    for name, says in {"text": "damaged", "other": "another program", "newer": "update"}.items():
        path = tmp_path / f"{name}.db"
        before = path.read_bytes()
        with pytest.raises(FileFormatError, match=f"{name}.db: .*{says}"):
            Store(path)
        assert path.read_bytes() == before


def test_no_folder_or_a_folder(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "a.db"):
        with pytest.raises(InputError, match="cannot be used as a store"):
            Store(path)


def test_a_store_that_is_taken_away_is_missed(tmp_path):
    store = filled(tmp_path / "a.db", 1)
    (tmp_path / "a.db").unlink()
    with pytest.raises(InputError, match="cannot be used"):
        store.add({"a": 1}, 1)
    assert os.listdir(tmp_path) == []


def test_a_locked_store_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    store = filled(tmp_path / "a.db", 1)
    base = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="locked"):
        store.add({"a": 1}, 1)
    base.execute("ROLLBACK")
    base.close()
    assert store.add({"a": 1}, 1)


def test_a_cut_file_is_refused(tmp_path):
    filled(tmp_path / "whole.db")
    whole = (tmp_path / "whole.db").read_bytes()
    for size in (1, 50, 99, 100, 1000, 4096, 8192, len(whole) - 4096, len(whole) - 1):
        cut = tmp_path / "cut.db"
        cut.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match="left as it is"):
            list(Store(cut))
        assert cut.read_bytes() == whole[:size]


def test_an_altered_file_never_gives_other_numbers(tmp_path):
    store = filled(tmp_path / "a.db")
    whole = bytearray((tmp_path / "a.db").read_bytes())
    good = list(store)
    rng, refused = random.Random(0), 0
    for _ in range(150):
        place = rng.randrange(len(whole))
        altered = whole.copy()
        altered[place] ^= 1 << rng.randrange(8)
        (tmp_path / "b.db").write_bytes(altered)
        try:
            found = list(Store(tmp_path / "b.db"))
        except (FileFormatError, InputError):
            refused += 1
        else:
            assert found == good, place
    assert refused > 50


def test_a_result_under_another_name_is_refused(tmp_path):
    store = filled(tmp_path / "a.db", 2)
    with sqlite3.connect(tmp_path / "a.db") as base:
        keys = [key for (key,) in base.execute("SELECT key FROM results ORDER BY number")]
        base.execute("DELETE FROM results WHERE key = ?", [keys[0]])
        base.execute("UPDATE results SET key = ?", [keys[0]])
    base.close()
    with pytest.raises(FileFormatError, match="another's name"):
        store.find({"seed": 0, "learner": "atlas"})


WRITER = """
import sys
from priorshift.experiments.store import Store
path, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = Store(path)
for i in range(number):
    store.add({"writer": name, "i": i}, {"by": name})
    store.add({"shared": i}, {"by": name})
    print(i, flush=True)
"""


def writer(path: Path, name: str, number: int) -> subprocess.Popen[str]:
    root = str(Path(priorshift.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_several_processes_may_write_at_once(tmp_path):
    path = tmp_path / "a.db"
    processes = [writer(path, name, 25) for name in "abc"]
    for process in processes:  # all meet at a file that is not there yet
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert (process.returncode, len(out.split())) == (0, 25)
    store = Store(path)
    assert len(store) == 3 * 25 + 25
    for i in range(25):
        assert store.find({"shared": i})["by"] in "abc"
        for name in "abc":
            assert store.find({"writer": name, "i": i}) == {"by": name}


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_killed_writer_loses_nothing_that_it_had_said(tmp_path):
    path = tmp_path / "a.db"
    for name in "ab":
        process = writer(path, name, 10**6)
        process.stdin.write("\n")
        process.stdin.flush()
        for _ in range(20):
            said = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        store = Store(path)
        assert said >= 19
        for i in range(said + 1):
            assert store.find({"writer": name, "i": i}) == {"by": name}
        assert len(list(store)) == len(store)
        assert store.add({"after": name}, 1)
