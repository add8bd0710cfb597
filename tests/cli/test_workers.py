"""Workers: how many, how they start, what they begin with, and that none of it changes a number."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass

import pytest

from priorshift.cli.main import build_parser
from priorshift.experiments import processes
from priorshift.experiments.running import pool, workers
from priorshift.experiments.running.jobs import Bench, Job, Measure
from priorshift.experiments.running.plan import make_plan
from priorshift.experiments.running.progress import Meter

WORDS = "run --rounds 60 --batch-size 20 --learner fix,uogd,atlas --shift lin,ber --store none.db"


@pytest.fixture(scope="module")
def plan() -> tuple[Bench, list[Job]]:
    return make_plan(build_parser().parse_args(WORDS.split()))


def without_clock(rows: list[list[Measure]]) -> list[list[Measure]]:
    return [[one._replace(seconds=0.0) for one in row] for row in rows]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_way_to_start_gives_the_same_bits(plan, method, monkeypatch):
    if method == "fork" and sys.platform != "linux":
        pytest.skip("only Linux forks")
    monkeypatch.setattr(pool, "start_method", lambda: method)
    alone = workers.run_jobs(*plan, 2)
    together = workers.run_jobs(*plan, 2, processes=2)
    assert without_clock(alone) == without_clock(together)


def test_a_process_with_threads_is_not_forked():
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(processes.start_method()))
    thread.start()
    thread.join()
    assert found == ["spawn"]


def begun_in(plan, monkeypatch, processes: int, cores: int = 4) -> tuple[int, list[str]]:
    """The number of processes and the order of jobs that a run would have."""
    found: list[tuple[int, list[str]]] = []
    bench, jobs = plan

    def note(_, jobs, tasks, processes, rows, progress) -> None:
        found.append((processes, [jobs[number].label for number, _ in tasks]))
        for number, seed in tasks:
            rows.put(number, seed, Measure(1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0))

    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    monkeypatch.setattr(workers, "_run_in_workers", note)
    monkeypatch.setattr(
        workers, "_run_here", lambda bench, jobs, tasks, *rest: note(bench, jobs, tasks, 1, *rest)
    )
    workers.run_jobs(bench, jobs, 1, processes=processes)
    return found[0]


def test_the_longest_jobs_begin_first(plan, monkeypatch):
    _, order = begun_in(plan, monkeypatch, 2)
    assert order == ["lin atlas", "ber atlas", "lin uogd", "ber uogd", "lin fix", "ber fix"]


def test_here_jobs_are_done_in_the_order_of_the_table(plan, monkeypatch):
    _, order = begun_in(plan, monkeypatch, 1)
    assert order == [job.label for job in plan[1]]


def test_by_default_every_core_is_used_where_it_is_worth_it(plan, monkeypatch):
    assert begun_in(plan, monkeypatch, 0)[0] == 1  # a short run
    monkeypatch.setattr(workers, "_SHORT_RUN", 0)
    assert begun_in(plan, monkeypatch, 0)[0] == 4
    assert begun_in(plan, monkeypatch, 0, cores=1)[0] == 1
    assert begun_in(plan, monkeypatch, 0, cores=64)[0] == 6  # no more than tasks
    assert begun_in(plan, monkeypatch, 3)[0] == 3
    assert build_parser().parse_args(["run"]).jobs == 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
def test_cores_that_are_not_ours_do_not_count():
    ours = os.sched_getaffinity(0)
    assert processes.usable_cores() == len(ours)
    os.sched_setaffinity(0, {min(ours)})
    try:
        assert processes.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, ours)


def test_ready_results_are_taken_and_only_new_ones_kept(plan):
    bench, jobs = plan
    whole = workers.run_jobs(bench, jobs, 2)
    ready = {(1, 0): whole[1][0]._replace(error=99.0), (2, 1): whole[2][1]}
    for how_many in (1, 2):
        kept: dict[tuple[int, int], Measure] = {}
        found = workers.run_jobs(
            bench,
            jobs,
            2,
            processes=how_many,
            ready=ready,
            keep=lambda number, seed, one, kept=kept: kept.update({(number, seed): one}),
        )
        assert found[1][0].error == 99.0
        assert len(kept) == 2 * len(jobs) - 2
        assert not set(kept) & set(ready)
        expected = without_clock(whole)
        expected[1][0] = ready[1, 0]._replace(seconds=0.0)
        assert without_clock(found) == expected


@dataclass
class Notes:
    """A progress that remembers the last thing it was told."""

    meters: list[Meter]

    def advance(self, meters):
        self.meters = list(meters)

    def finish(self, job, text):
        pass

    def clear(self):
        pass


@pytest.mark.parametrize("processes", [1, 2])
def test_all_rounds_of_all_jobs_are_told(plan, processes):
    notes = Notes([])
    bench, jobs = plan
    workers.run_jobs(bench, jobs, 2, processes=processes, progress=notes)
    assert [meter.rounds for meter in notes.meters] == [2 * bench.rounds] * len(jobs)
    assert all(meter.begun for meter in notes.meters)
