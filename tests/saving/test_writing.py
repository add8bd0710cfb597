"""Writing a file: whole or not at all, with the right mode, and only where a file can be."""

from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift import FileFormatError, InputError, LabelShiftClassifier, load
from priorshift.learners import FIX, FTH, AtlasAda
from priorshift.saving import Saved, load_parts, save_parts
from priorshift.saving import archive as archive_module
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel
from saved_files import bits, saved

posix = pytest.mark.skipif(os.name == "nt", reason="links, rights and pipes as POSIX has them")


@pytest.fixture
def fresh(source: Source) -> Saved:
    return saved(source, FIX(), FIX().start(source), {})


@pytest.mark.parametrize("culprit", ["json.dumps", "os.fsync", "os.replace", "os.chmod"])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    source: Source, path: Path, culprit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 1}))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no more room")

    with monkeypatch.context() as patch:
        patch.setattr(culprit, fail)
        with pytest.raises(RuntimeError, match="no more room"):
            save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 2}))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    save_parts(path, saved(source, FTH(), FTH().start(source), {"turn": 3}))
    assert load_parts(path).extra == {"turn": 3}
    assert os.listdir(path.parent) == [path.name]


@posix
def test_a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode(
    fresh: Saved, path: Path
) -> None:
    for mode in (0o600, 0o640, 0o644, 0o600):
        if mode != 0o600:
            path.chmod(mode)
        save_parts(path, fresh)
        assert stat.S_IMODE(path.stat().st_mode) == (mode if mode != 0o600 else 0o600)
        if mode == 0o644:
            path.unlink()


@posix
def test_a_link_stays_a_link(fresh: Saved, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o664)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_parts(tmp_path / "link", fresh)
    assert (tmp_path / "link").is_symlink()
    assert load_parts(tmp_path / "real").stream.state.t == 0
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o664


@posix
def test_pipes_and_devices_are_refused(fresh: Saved, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for odd in (pipe, Path("/dev/null"), Path("/dev/zero")):
        kind = stat.S_IFMT(odd.stat().st_mode)
        with pytest.raises(InputError, match="is a pipe or a device"):
            save_parts(odd, fresh)
        with pytest.raises(FileFormatError, match="is a pipe or a device"):
            load_parts(odd)  # and does not wait for a writer
        assert stat.S_IFMT(odd.stat().st_mode) == kind
    assert os.listdir(tmp_path) == ["pipe"]


@posix
def test_a_pipe_without_a_path_is_refused(fresh: Saved) -> None:
    ends = os.pipe()
    try:
        with pytest.raises(InputError, match=r"^/dev/fd/\d+: is a pipe or a device"):
            save_parts(f"/dev/fd/{ends[1]}", fresh)  # as /dev/stdout before a pipe
    finally:
        for end in ends:
            os.close(end)


@posix
def test_file_and_folder_are_synced_before_and_after_the_exchange(
    fresh: Saved, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        order.append("folder" if folder else "file")
        sync(descriptor)

    def replaced(*paths: Any) -> None:
        order.append("replace")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    save_parts(path, fresh)
    assert order == ["file", "replace", "folder"]


@posix
def test_what_a_killed_save_left_behind_is_cleared(fresh: Saved, path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "import numpy as np\n"
        "from priorshift.saving.archive import write\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"write({str(path)!r}, {{}}, {{'a': np.arange(3)}})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    left = os.listdir(path.parent)
    assert len(left) == 1
    assert left != [path.name]
    others = [".priorshift-0123abcd-1-00000000.tmp", "notes.tmp"]
    running = f"{archive_module._prefix(path)}{os.getppid()}-00000000.tmp"
    for name in (*others, running):
        (path.parent / name).write_bytes(b"")
    save_parts(path, fresh)
    assert sorted(os.listdir(path.parent)) == sorted([path.name, *others, running])


def test_where_no_file_can_be_written(fresh: Saved, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder: give the path of a file"):
        save_parts(tmp_path, fresh)
    with pytest.raises(InputError, match=r"there is no folder .*make it first"):
        save_parts(tmp_path / "none" / "file", fresh)


def test_a_name_of_any_length(fresh: Saved, tmp_path: Path) -> None:
    save_parts(tmp_path / ("x" * 250), fresh)
    assert load_parts(tmp_path / ("x" * 250)).stream.state.t == 0


def test_no_pickle_on_the_way(source: Source, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("pickle was called")

    learner = AtlasAda(steps=(0.1,))
    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", fail)
    save_parts(path, saved(source, learner, learner.start(source), {}))
    assert bits(load_parts(path).stream.state) == bits(learner.start(source))
    monkeypatch.undo()
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(path.read_bytes())


# Numbers at the edge of what a file can keep.


@pytest.mark.parametrize(
    "random_state",
    [None, np.random.RandomState(0), np.int64(5), 7],
    ids=["None", "state", "5", "7"],
)
def test_whatever_random_state_fits_can_be_saved(random_state: Any, path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    clf = LabelShiftClassifier(learner="fth", random_state=random_state)
    clf.fit(rng.normal(size=(80, 2)) + y[:, None], y).save(path)
    again = load(path)
    whole = isinstance(random_state, int | np.integer)
    assert again.random_state == (random_state if whole else None)
    assert again.prior_.tobytes() == clf.prior_.tobytes()


@pytest.mark.parametrize("unit", ["D", "ns", "s"])
def test_labels_that_are_days_come_back(unit: str, path: Path) -> None:
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype=f"M8[{unit}]")
    P = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    source = build_source(ProbabilityModel(classes=days), P, days[P.argmax(axis=1)])
    save_parts(path, saved(source, FTH(), FTH().start(source), {}))
    again = load_parts(path).deployment.source
    assert again.classes.dtype == days.dtype
    assert (again.classes == days).all()
    assert again.read(P[:5]).proba.tobytes() == source.read(P[:5]).proba.tobytes()


def test_labels_that_are_days_through_the_classifier(path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]")
    X = rng.normal(size=(80, 2)) + 3 * y[:, None]
    clf = LabelShiftClassifier(learner="fth").fit(X, days[y]).adapt(X[:9])
    clf.save(path)
    again = load(path)
    assert again.predict(X).dtype == days.dtype
    assert (again.predict(X) == clf.predict(X)).all()
