"""The runner: what is done is kept at once, never done again, and the same in any process."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from priorshift._threads import usable_cores
from priorshift.cli.main import build_parser
from priorshift.errors import InputError
from priorshift.experiments import runner as module
from priorshift.experiments.description import Data, StreamRun
from priorshift.experiments.perform import Prepared
from priorshift.experiments.planning import Row, make_plan, row_label
from priorshift.experiments.progress import Estimate, Progress, Status
from priorshift.experiments.runner import Runner, TaskError, start_method
from priorshift.experiments.store import Store

WORDS = "run --rounds 60 --batch-size 20 --learner fix,uogd,atlas --shift lin,ber --seeds 2"


@dataclass(frozen=True)
class Square:
    """A task that squares a number, and leaves a mark that it was done."""

    number: int
    marks: Path = field(compare=False)
    alike: str = "square"
    group: str = "numbers"
    kernels: str = "none"
    total_rounds: int = 0
    after: Store | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"square of {self.number}"

    def settings(self) -> dict[str, Any]:
        return {"kind": "square", "number": self.number}

    def guess(self, prepared: Any = None) -> float:
        return 1.0

    def prepare(self, tasks: Any) -> str:
        return "prepared"

    def perform(self, prepared: Any, progress: Callable[[int], None]) -> dict[str, Any]:
        assert prepared == "prepared"
        with (self.marks / str(self.number)).open("a") as file:
            file.write("x")
        if self.number < 0:
            # Not before another has reported: workers are ended at the first failure.
            deadline = time.monotonic() + 30
            while self.after is not None and not len(self.after) and time.monotonic() < deadline:
                time.sleep(0.01)
            raise ValueError("negative")
        return {"square": self.number**2}


@dataclass(frozen=True)
class Failing:
    """A task that breaks, or takes its process with it."""

    number: int
    error: type[BaseException] | None = ValueError
    alike: str = "failing"
    group: str = "failing"
    kernels: str = "none"
    total_rounds: int = 10

    @property
    def label(self) -> str:
        return f"lin failing, seed {self.number}"

    def settings(self) -> dict[str, Any]:
        return {"kind": "failing", "number": self.number}

    def guess(self, prepared: Any = None) -> float:
        return 1.0

    def prepare(self, tasks: Any) -> None:
        return None

    def perform(self, prepared: Any, progress: Callable[[int], None]) -> dict[str, Any]:
        if self.error is None:
            os._exit(3)
        raise self.error("broken")


def times_done(folder: Path) -> dict[str, int]:
    return {path.name: len(path.read_text()) for path in folder.iterdir()}


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def plan() -> tuple[Prepared, list[Row]]:
    return make_plan(build_parser().parse_args(WORDS.split()))


def run_all(plan: tuple[Prepared, list[Row]], jobs: int, **settings: Any) -> dict[Any, Any]:
    prepared, rows = plan
    tasks = [run for row in rows for run in row]
    return Runner(jobs=jobs, **settings).results(tasks, prepared={prepared.data: prepared})


def without_clock(found: dict[Any, Any]) -> dict[Any, Any]:
    return {task: {**record, "seconds": 0.0} for task, record in found.items()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_kept_and_found_again(tmp_path, marks, jobs):
    store = Store(tmp_path / "a.db")
    tasks = [Square(n, marks) for n in (3, 4, 3)]
    found = Runner(store, jobs).results(tasks)
    assert {task.number: result["square"] for task, result in found.items()} == {3: 9, 4: 16}
    assert times_done(marks) == {"3": 1, "4": 1}
    more = [*tasks, Square(5, marks)]
    assert Runner(store, jobs).results(more)[more[-1]] == {"square": 25}
    assert times_done(marks) == {"3": 1, "4": 1, "5": 1}
    assert len(store) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_ready_results_are_told_first_and_only_new_ones_measured(tmp_path, marks, jobs):
    store = Store(tmp_path / "a.db")
    Runner(store, 1).results([Square(2, marks)])
    told: list[Any] = []
    Runner(store, jobs).results([Square(n, marks) for n in (1, 2, 3)], told.append)
    assert [(done.task.number, done.ready) for done in told[:1]] == [(2, True)]
    assert {(done.task.number, done.ready) for done in told[1:]} == {(1, False), (3, False)}
    assert all(done.record == {"square": done.task.number**2} for done in told)
    assert times_done(marks) == {"1": 1, "2": 1, "3": 1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_names_its_task_and_loses_nothing(tmp_path, marks, jobs):
    store = Store(tmp_path / "a.db")
    tasks = [Square(2, marks), Square(-1, marks, after=store)]
    with pytest.raises(InputError, match=r"^square of -1: negative"):
        Runner(store, jobs).results(tasks)
    assert Runner(store, 1).results(tasks[:1])[tasks[0]] == {"square": 4}
    assert times_done(marks)["2"] == 1


def test_a_bug_in_a_task_is_named_and_keeps_its_traceback():
    with pytest.raises(TaskError, match="lin failing, seed 0: KeyError") as caught:
        Runner(jobs=1).results([Failing(0, KeyError)])
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(MemoryError, match="lin failing, seed 0: broken"):
        Runner(jobs=1).results([Failing(0, MemoryError)])


def test_a_worker_that_dies_is_named():
    with pytest.raises(BrokenProcessPool, match=r"lin failing, seed \d: a worker process died"):
        Runner(jobs=2).results([Failing(0, None), Failing(1, None)])


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_way_to_start_gives_the_same_bits(plan, method, monkeypatch):
    if method == "fork" and sys.platform != "linux":
        pytest.skip("only Linux forks")
    monkeypatch.setattr(module, "start_method", lambda: method)
    assert without_clock(run_all(plan, 1)) == without_clock(run_all(plan, 2))


def test_a_process_with_threads_is_not_forked():
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(start_method()))
    thread.start()
    thread.join()
    assert found == ["spawn"]


def begun_in(plan, monkeypatch, jobs: int, cores: int = 4) -> tuple[int, list[str]]:
    """The number of processes and the order of rows that a run would have."""
    found: list[tuple[int, list[str]]] = []
    prepared, rows = plan

    def note(tasks, shared, jobs, board):
        found.append((jobs, [row_label([task]) for task in tasks]))
        yield from ((task, {"error": 1.0}) for task in tasks)

    monkeypatch.setattr(module, "usable_cores", lambda: cores)
    monkeypatch.setattr(module, "_in_workers", note)
    monkeypatch.setattr(module, "_here", note)
    firsts = [row[0] for row in rows]
    Runner(jobs=jobs).results(firsts, prepared={prepared.data: prepared})
    return found[0]


def test_the_longest_runs_begin_first(plan, monkeypatch):
    _, order = begun_in(plan, monkeypatch, 2)
    assert order == ["lin atlas", "ber atlas", "lin uogd", "ber uogd", "lin fix", "ber fix"]


def test_here_runs_are_done_in_the_order_of_the_table(plan, monkeypatch):
    _, order = begun_in(plan, monkeypatch, 1)
    assert order == [row_label(row) for row in plan[1]]


def test_by_default_every_core_is_used_where_it_is_worth_it(plan, monkeypatch):
    assert begun_in(plan, monkeypatch, 0)[0] == 1  # a short run
    monkeypatch.setattr(module, "_SHORT_RUN", 0)
    assert begun_in(plan, monkeypatch, 0)[0] == 4
    assert begun_in(plan, monkeypatch, 0, cores=1)[0] == 1
    assert begun_in(plan, monkeypatch, 0, cores=64)[0] == 6  # no more than tasks
    assert begun_in(plan, monkeypatch, 3)[0] == 3
    assert build_parser().parse_args(["run"]).jobs == 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
def test_cores_that_are_not_ours_do_not_count():
    ours = os.sched_getaffinity(0)
    assert usable_cores() == len(ours)
    os.sched_setaffinity(0, {min(ours)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, ours)


class Notes(Progress):
    """A progress that remembers all that it could have shown."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.seen: list[Status] = []

    def show(self, read: Callable[[], Status]) -> None:
        self.seen.append(read())


@pytest.mark.parametrize("jobs", [1, 2])
def test_rounds_of_running_tasks_are_told(plan, jobs):
    notes = Notes()
    prepared, rows = plan
    # Long enough that the parent looks while it runs.
    tasks = [replace(row[0], rounds=4000) for row in rows if row[0].learner == "atlas"]
    Runner(jobs=jobs, progress=notes).results(tasks, prepared={prepared.data: prepared})
    counts = {
        (one.label, one.rounds) for status in notes.seen for one in status.running if one.rounds
    }
    assert {label for label, _ in counts} == {task.label for task in tasks}
    assert all(0 < rounds <= 4000 for _, rounds in counts)
    assert notes.seen[-1].done == len(tasks)


def test_statuses_count_up_and_end_with_nothing_left(tmp_path, marks):
    notes = Notes()
    Runner(Store(tmp_path / "a.db"), 1).results([Square(1, marks)])
    Runner(Store(tmp_path / "a.db"), 1, notes).results([Square(n, marks) for n in (1, 2, 3)])
    told = notes.seen
    assert all(one.ready == 1 and one.total == 3 for one in told)
    assert all(a.done <= b.done for a, b in itertools.pairwise(told))
    assert told[-1].done == 2
    assert told[-1].left == 0.0


def test_an_estimate_learns_from_what_is_alike_and_from_all(marks):
    a, b = Square(1, marks), Square(2, marks, alike="other")
    estimate = Estimate(workers=2)
    assert estimate.left([a, a, b, b]) == 2.0
    estimate.learn(a, 3.0)
    assert estimate.of(a) == 3.0
    assert estimate.of(b) == 3.0  # guesses were three times too low
    estimate.learn(a, 5.0)
    assert estimate.of(a) == 4.0
    assert estimate.left([a]) == 4.0  # one task does not get faster by a second worker


def test_warnings_of_the_offline_stage_are_gathered(monkeypatch):
    import warnings

    def warn(self, dataset, loss):
        warnings.warn("few rows\nof class 3", UserWarning, stacklevel=1)
        return fit(self, dataset, loss)

    fit = Data.fit
    monkeypatch.setattr(Data, "fit", warn)
    runner = Runner(jobs=1)
    runner.results([StreamRun(Data("d", "digits"), "fix", "predict-first", 5, 5, 0, shift="lin")])
    assert runner.warnings == ["digits: few rows"]
