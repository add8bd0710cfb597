"""The runner: what is done is kept at once, never done again, and the same in any process."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from priorshift.errors import InputError
from priorshift.experiments.reproduce.estimate import Estimate
from priorshift.experiments.reproduce.plan import plan
from priorshift.experiments.reproduce.runner import Runner, Standing
from priorshift.experiments.reproduce.tasks import StreamTask
from priorshift.experiments.store import Store


@dataclass(frozen=True)
class Square:
    """A task that squares a number, and leaves a mark that it was done."""

    number: int
    marks: Path = field(compare=False)
    kin: str = "square"
    data: None = None
    after: Store | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"square of {self.number}"

    def settings(self) -> dict[str, Any]:
        return {"run": "square", "number": self.number}

    def guess(self) -> float:
        return 1.0

    def prepare(self) -> None:
        pass

    def do(self) -> dict[str, Any]:
        with (self.marks / str(self.number)).open("a") as file:
            file.write("x")
        if self.number < 0:
            # Not before another has reported: workers are ended at the first failure.
            deadline = time.monotonic() + 30
            while self.after is not None and not len(self.after) and time.monotonic() < deadline:
                time.sleep(0.01)
            raise ValueError("negative")
        return {"square": self.number**2}


def times_done(folder: Path) -> dict[str, int]:
    return {path.name: len(path.read_text()) for path in folder.iterdir()}


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


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
def test_a_failure_names_its_task_and_loses_nothing(tmp_path, marks, jobs):
    store = Store(tmp_path / "a.db")
    tasks = [Square(2, marks), Square(-1, marks, after=store)]
    with pytest.raises(InputError, match=r"square of -1: negative"):
        Runner(store, jobs).results(tasks)
    assert Runner(store, 1).results(tasks[:1])[tasks[0]] == {"square": 4}
    assert times_done(marks)["2"] == 1


def test_real_runs_do_not_depend_on_the_number_of_processes(tmp_path):
    runs = plan("table1", quick=True, seeds=1).runs["cell"]
    tasks = [StreamTask(run) for run in runs if run.learner in ("fth", "uogd", "tracker")][:6]
    stores = [Store(tmp_path / f"{jobs}.db") for jobs in (1, 2)]
    one, two = (Runner(store, jobs).results(tasks) for jobs, store in enumerate(stores, 1))
    assert one == two
    kept = [sorted(map(repr, store)) for store in stores]
    assert kept[0] == kept[1]


def test_standings_count_up_and_end_with_nothing_left(tmp_path, marks):
    told: list[Standing] = []
    Runner(Store(tmp_path / "a.db"), 1).results([Square(1, marks)])
    Runner(Store(tmp_path / "a.db"), 1, told.append).results([Square(n, marks) for n in (1, 2, 3)])
    assert all(one.ready == 1 and one.total == 3 for one in told)
    assert all(a.done <= b.done for a, b in itertools.pairwise(told))
    assert told[-1].done == 2
    assert told[-1].left == 0.0


def test_an_estimate_learns_from_kin_and_from_all(marks):
    a, b = Square(1, marks), Square(2, marks, kin="other")
    estimate = Estimate(workers=2)
    assert estimate.left([a, a, b, b]) == 2.0
    estimate.learn(a, 3.0)
    assert estimate.of(a) == 3.0
    assert estimate.of(b) == 3.0  # guesses were three times too low
    estimate.learn(a, 5.0)
    assert estimate.of(a) == 4.0
    assert estimate.left([a]) == 4.0  # one task does not get faster by a second worker
