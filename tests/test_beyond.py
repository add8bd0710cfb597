"""The tables of what goes beyond the paper: they run, and their helpers count right."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.beyond import order, real, sharpened
from benchmarks.beyond.__main__ import TABLES, main
from benchmarks.beyond.runs import Measurer, Problem, share
from benchmarks.beyond.verdicts import above, below, counted

from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.experiments.description import StreamRun
from priorshift.experiments.perform import prepare
from priorshift.experiments.store import Store

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("letter", sorted(set(TABLES) - {"b"}))
def test_every_table_is_printed_and_judged(letter, capsys):
    assert main(["--quick", "--jobs", "1", "--learner", "em", "--only", letter]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"({letter}) ")
    if letter != "g":
        assert re.search(r": target .*, measured .*: (true|FALSE)", printed) or "no cell" in printed
    assert max(map(len, printed.splitlines())) < 130


def test_without_the_slow_learner_its_columns_are_empty(capsys):
    assert main(["--quick", "--light", "--jobs", "1", "--learner", "em", "--only", "b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split() for line in lines if " lin " in line or " squ " in line]
    assert len(cells) == 2
    assert all(row[-2:] == ["-", "-"] for row in cells)


def test_a_table_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "a,z"])
    assert "'z'" in capsys.readouterr().err


def test_what_the_store_has_needs_no_f(tmp_path: Path):
    problem = Problem("digits", "digits")
    run = StreamRun(problem, "fth", "adapt-first", 5, 20, 0, shift="squ")
    store = Store(tmp_path / "results.db")
    first = Measurer("fth", 1, store, quick=True).measure({"squ": run}, seeds=2)
    assert len(store) == 2

    def refuse(data):
        raise AssertionError("f was made again")

    unmade = replace(run, data=replace(problem, build=refuse))
    again = Measurer("fth", 1, store, quick=True).measure({"squ": unmade}, seeds=2)
    assert again == first
    with pytest.raises(AssertionError, match="made again"):
        Measurer("fth", 1, store, quick=True).measure({"squ": replace(unmade, rounds=21)})


def test_problems_that_share_f_make_it_once():
    made = []

    def build(data):
        made.append(data.name)
        return offline_stage(data)

    measurer = Measurer("em", 1, None, quick=True)
    problem = Problem("digits", "digits", build=build)
    for size in (1, 5):
        measurer.measure({0: StreamRun(problem, "em", "adapt-first", size, 10, 0, shift="lin")})
    assert made == ["digits"]


def test_verdicts():
    assert counted("c", [True, False]) == "c: target >= 2/2, measured 1/2: FALSE"
    assert counted("c", [True, False], needed=1).endswith("true")
    assert below("c", 0.1, 0.1).endswith("true")
    assert above("c", 94.9, 95).endswith("FALSE")
    assert above("c", float("nan"), 95).endswith("FALSE")
    assert share(error=6.0, fix=10.0, floor=5.0) == pytest.approx(80)


def test_a_tiny_gap_has_no_share():
    class Found:
        fix, true_mix, share = 5.0, 4.6, 50.0

    assert np.isnan(real._share(Found()))
    Found.true_mix = 4.4
    assert real._share(Found()) == 50.0
    assert np.isnan(real._share(None))


def test_a_recorded_problem_is_read_in_its_order():
    recorded = order.recorded("digits", "digits", order.sorted_digits, 20, most=60)
    run = replace(recorded.run("fix", "predict-first"), seed=5)
    prepared = prepare([run])
    data, y = prepared.dataset, np.sort(prepared.dataset.y1)
    stream = prepared.stream(run)
    assert len(stream) == 3
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in stream]), y[:60])
    rows = np.concatenate([X for X, _ in stream])
    np.testing.assert_array_equal(rows, data.population.draw(y[:60], np.random.default_rng(5)))


def test_sharpened_logits_are_three_times_as_large():
    source = sharpened.plain(load_dataset("digits"))
    sharp = sharpened.sharp(load_dataset("digits"))
    rows = load_dataset("digits").X1[:50]
    fine, bold = (one.read(rows).proba for one in (source, sharp))
    np.testing.assert_array_equal(fine.argmax(axis=1), bold.argmax(axis=1))
    ratio = np.log(bold[:, 0] / bold[:, 1]) / np.log(fine[:, 0] / fine[:, 1])
    np.testing.assert_allclose(ratio, 3, rtol=1e-6)
    np.testing.assert_array_equal(sharp.labels, source.labels)
    ratio = np.log(sharp.proba[:, 2] / sharp.proba[:, 3])
    np.testing.assert_allclose(
        ratio, 3 * np.log(source.proba[:, 2] / source.proba[:, 3]), rtol=1e-6
    )
