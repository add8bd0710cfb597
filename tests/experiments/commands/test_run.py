"""`priorshift run`: what it prints, what it writes, and that it is the same every time."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys

import numpy as np
import pytest

from priorshift.cli.main import build_parser
from priorshift.experiments.perform import make_learner
from priorshift.experiments.planning import is_papers, make_plan, row_label
from priorshift.risk import SKETCHES, ImplicitSolver
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name

SHORT = ("run", "--rounds", 40, "--batch-size", 20, "--seeds", 2)
KEYS = {
    "learner": str,
    "hint": (str, type(None)),
    "preset": str,
    "protocol": str,
    "calibration": str,
    "calibration_map": str,
    "data": str,
    "shift": str,
    "rounds": int,
    "batch_size": int,
    "sketch": (str, type(None)),
    "errors": list,
    "error_mean": float,
    "error_std": float,
    "oracle_error": float,
    "calibrated_oracle_error": float,
    "fix_error": float,
    "prior_error": float,
    "variation": float,
    "seconds": float,
    "rounds_per_second": float,
    "final_weights": (dict, type(None)),
    "log_loss": float,
    "brier": float,
    "f1": float,
    "auc": float,
}


def test_json_on_standard_output_is_json_alone_and_complete(call):
    answer = call(*SHORT, "--learner", "fix,atlas", "--shift", "lin,squ", "--json", "-")
    assert answer.status == 0
    assert [(r["shift"], r["learner"]) for r in answer.records] == [
        ("lin", "fix"),
        ("lin", "atlas"),
        ("squ", "fix"),
        ("squ", "atlas"),
    ]
    for record in answer.records:
        assert list(record) == list(KEYS)
        for key, kind in KEYS.items():
            assert isinstance(record[key], kind), key
            assert not isinstance(record[key], float) or math.isfinite(record[key])
        assert len(record["errors"]) == 2
        assert all(isinstance(error, float) and 0 <= error <= 100 for error in record["errors"])
        assert record["error_mean"] == pytest.approx(np.mean(record["errors"]))
        assert record["error_std"] == pytest.approx(np.std(record["errors"], ddof=1))
        assert record["oracle_error"] < record["fix_error"]
        assert (record["data"], record["preset"]) == ("synthetic", "paper")
        assert (record["rounds"], record["batch_size"], record["hint"]) == (40, 20, None)
        assert record["protocol"] == "predict-first"
        assert record["rounds_per_second"] == pytest.approx(80 / record["seconds"])
    fixed = answer.records[0]
    assert fixed["error_mean"] == pytest.approx(fixed["fix_error"])


def test_hints_are_records_of_their_own_and_protocol_reaches_the_learner(call):
    words = (*SHORT, "--learner", "atlas-ada,uogd", "--hint", "fwd,okm", "--shift", "squ")
    own = call(*words, "--json", "-").records
    assert [(r["learner"], r["hint"], r["protocol"]) for r in own] == [
        ("atlas-ada", "fwd", "adapt-first"),
        ("atlas-ada", "okm", "adapt-first"),
        ("uogd", None, "predict-first"),
    ]
    options = build_parser().parse_args(
        ["run", "--learner", "atlas-ada", "--protocol", "predict-first", "--hint", "win"]
    )
    _, rows = make_plan(options)
    made = [(make_learner(row[0]), row[0].protocol) for row in rows]
    assert {(learner.order, protocol, learner.hint.name) for learner, protocol in made} == {
        ("predict-first", "predict-first", "win")
    }


def test_settings_reach_the_learners_and_shifts():
    words = "run --learner ftfwh,atlas-ada --hint peri --shift lin,squ,ber --rounds 77 --window 7"
    words += " --period 10 --probability 0.5 --preset theory --mu2 0.2,0.3,0.5 --mu1 1 --loss hinge"
    prepared, rows = make_plan(build_parser().parse_args(words.split()))
    runs = {row_label(row): row[0] for row in rows}
    learners = {label: make_learner(run) for label, run in runs.items()}
    assert learners["squ ftfwh"].window == 7
    assert learners["squ atlas-ada peri"].horizon == 77
    assert learners["squ atlas-ada peri"].preset == "theory"
    assert learners["squ atlas-ada peri"].hint.period == 10
    assert runs["squ ftfwh"].shift_settings == (("period", 10),)
    assert runs["ber ftfwh"].shift_settings == (("probability", 0.5),)
    assert runs["lin ftfwh"].shift_settings == ()
    assert {(run.mu1, run.mu2) for run in runs.values()} == {((0, 1, 0), (0.2, 0.3, 0.5))}
    assert prepared.source(runs["squ ftfwh"]).loss.name == "hinge"
    shift = shift_by_name("squ", period=10)
    expected = shift.priors([0, 1, 0], [0.2, 0.3, 0.5], 77, np.random.default_rng(0))
    np.testing.assert_array_equal(prepared.stream(runs["squ ftfwh"]).priors, expected)


def test_features_from_a_file(call, feature_file):
    answer = call(*SHORT, "--data", feature_file, "--mu2", "bee", "--shift", "squ", "--json", "-")
    assert answer.status == 0
    assert {record["data"] for record in answer.records} == {str(feature_file)}
    assert len(answer.records) == 7
    assert answer.records[0]["oracle_error"] < answer.records[0]["fix_error"]


def test_a_class_by_label_or_index(feature_file):
    for text, mix in (("cat", [0, 0, 1]), ("1", [0, 1, 0]), ("0.5,0,0.5", [0.5, 0, 0.5])):
        words = ["run", "--data", str(feature_file), "--mu2", text]
        _, rows = make_plan(build_parser().parse_args(words))
        assert list(rows[0][0].mu2) == mix


def test_a_label_goes_before_an_index(probability_file):
    options = build_parser().parse_args(["run", "--data", str(probability_file), "--mu2", "7"])
    assert make_plan(options)[1][0][0].mu2 == (0, 1)


def test_probabilities_from_a_file(call, probability_file):
    words = (*SHORT, "--learner", "fix,uogd,atlas-ada", "--shift", "squ", "--json", "-")
    answer = call(*words, "--data", probability_file)
    assert answer.status == 0
    assert len(answer.records) == 3
    assert all(0 <= record["error_mean"] <= 60 for record in answer.records)


def test_json_file_is_written_whole_and_the_table_printed(call, tmp_path):
    path = tmp_path / "result.json"
    path.write_text("old")
    answer = call(*SHORT, "--learner", "fix", "--shift", "lin", "--json", path)
    assert answer.status == 0
    assert json.loads(path.read_text())[0]["learner"] == "fix"
    assert answer.out.startswith("synthetic data, preset paper, 40 rounds of 20 rows, 2 seeds")
    assert os.listdir(tmp_path) == ["result.json"]


def test_json_to_a_device_leaves_the_device(call):
    answer = call(*SHORT, "--learner", "fix", "--shift", "lin", "--json", os.devnull)
    assert answer.status == 0
    assert not os.path.isfile(os.devnull)


def test_table_shows_the_paper_beside_ours_only_where_it_speaks_of_the_same(call):
    words = ("run", "--rounds", 40, "--seeds", 1, "--learner", "fix,atlas", "--shift", "squ")
    answer = call(*words)
    assert "(paper 4.27, " in answer.out
    assert "10,000 rounds" in answer.out
    assert "oracle" in answer.out
    assert "predict-first" in answer.out
    assert "paper 4" not in call(*words, "--mu2", "0").out


@pytest.mark.parametrize(
    "words",
    [
        ["--preset", "theory"],
        ["--data", "digits"],
        ["--mu1", "0"],
        ["--period", "50"],
        ["--loss", "hinge"],
        ["--protocol", "adapt-first"],
        ["--sketch", "blocks:500"],
        ["--gradient-bound", "estimate"],
        ["--loss-bound", "2"],
        ["--solver", "exact"],
    ],
)
def test_a_changed_run_is_not_the_papers(words):
    assert is_papers(build_parser().parse_args(["run"]))
    assert not is_papers(build_parser().parse_args(["run", *words]))


def test_progress_is_a_line_a_job_on_standard_error_and_quiet_silences_it(call):
    words = (*SHORT, "--learner", "fix,fth", "--shift", "lin", "--json", "-")
    lines = call(*words).err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["lin fix", "lin fth"]
    assert call(*words, "--quiet").err == ""


def test_a_sketch_reaches_the_learners_that_read_the_offline_set(call):
    words = (*SHORT, "--learner", "fth,rogd,uogd,atlas", "--shift", "squ")
    options = build_parser().parse_args([*map(str, words), "--sketch", "blocks:300"])
    _, rows = make_plan(options)
    learners = [make_learner(row[0]) for row in rows]
    assert [learner.sketch.size for learner in learners[2:]] == [300, 300]
    assert not any(hasattr(learner, "sketch") for learner in learners[:2])
    answer = call(*words, "--sketch", "blocks:0300", "--json", "-")
    assert [record["sketch"] for record in answer.records] == [
        None,
        None,
        "blocks:300",
        "blocks:300",
    ]
    plain = call(*words, "--json", "-").records
    assert {record["sketch"] for record in plain} == {None}
    changed = [
        a["prior_error"] != b["prior_error"] or a["errors"] != b["errors"]
        for a, b in zip(answer.records, plain, strict=True)
    ]
    assert changed[:2] == [False, False]
    assert any(changed[2:])
    title = call(*words, "--sketch", "blocks:300").out.splitlines()[0]
    assert "preset paper, sketch blocks:300, 40 rounds" in title


def test_settings_reach_the_learners_that_have_a_use_for_them():
    words = "run --learner rogd,uogd,atlas,atlas-ada --shift squ"
    words += " --gradient-bound estimate --loss-bound 2.5 --solver exact"
    _, rows = make_plan(build_parser().parse_args(words.split()))
    made = [make_learner(row[0]) for row in rows]
    assert [learner.gradient_bound for learner in made] == [1.0, *["estimate"] * 3]
    assert [learner.loss_bound for learner in made[2:]] == [2.5, 2.5]
    assert isinstance(made[3].implicit, ImplicitSolver)
    _, rows = make_plan(build_parser().parse_args(words.split()[:5]))
    assert make_learner(rows[2][0]).gradient_bound == 1.0
    assert make_learner(rows[2][0]).loss_bound is None


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "guess"])
def test_a_bound_is_a_number_above_zero_or_the_word(call, bad):
    answer = call(*SHORT, "--learner", "atlas", "--loss-bound", bad)
    assert answer.status == 2
    assert "give a number above 0, or estimate" in answer.err


def test_final_weights_are_those_of_the_last_state(call):
    words = (*SHORT, "--learner", "fix,uogd,atlas,atlas-ada", "--shift", "squ")
    records = call(*words, "--json", "-").records
    assert [record["final_weights"] is None for record in records] == [True, True, False, False]
    prepared, rows = make_plan(build_parser().parse_args([*map(str, words)]))
    row = rows[2]
    learner, source = make_learner(row[0]), prepared.source(row[0])
    states = [evaluate(learner, source, prepared.stream(run)).state for run in row]
    expected = np.mean([learner.weights(source, state) for state in states], axis=0)
    found = records[2]["final_weights"]
    np.testing.assert_allclose(found["weights"], expected, rtol=1e-9)
    np.testing.assert_allclose(found["steps"], states[0].steps)


def test_every_sketch_has_a_size_and_works(call):
    for name in SKETCHES:
        answer = call(*SHORT, "--learner", "uogd", "--sketch", f"{name}:50", "--json", "-")
        assert (answer.status, answer.records[0]["sketch"]) == (0, f"{name}:50")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "--hint fwd --learner fix,atlas",
            "--hint is for atlas-ada; it means nothing to fix, atlas",
        ),
        ("--window 5 --learner fth", "--window is for ftfwh; it means nothing to fth"),
        (
            "--sketch blocks:9 --learner fth",
            "--sketch is for uogd, atlas, atlas-ada, asap; it means",
        ),
        (
            "--gradient-bound 2 --learner rogd",
            "--gradient-bound is for uogd, atlas, atlas-ada, asap; it",
        ),
        ("--loss-bound estimate --learner uogd", "--loss-bound is for atlas, atlas-ada; it means"),
        ("--solver exact --learner uogd", "--solver is for atlas-ada; it means nothing to uogd"),
    ],
)
def test_an_option_that_no_learner_uses_is_said(call, words, says):
    answer = call(*SHORT, "--shift", "lin", *words.split())
    assert answer.status == 0
    assert answer.err.startswith(f"priorshift: warning: {says}")  # before the work
    used = call(*SHORT, "--shift", "lin", *words.split()[:2], "--learner", "ftfwh,atlas-ada")
    assert "warning: --" not in used.err


def test_no_option_no_warning(call):
    assert "warning" not in call(*SHORT, "--learner", "fix", "--shift", "lin").err


def test_a_single_seed_has_no_deviation(call):
    words = ("run", "--rounds", 30, "--learner", "fix", "--shift", "lin", "--seeds")
    assert "±" not in call(*words, 1).out
    assert "±" in call(*words, 2).out
    (record,) = call(*words, 1, "--json", "-").records
    assert (record["error_std"], len(record["errors"])) == (0.0, 1)


def test_seeds_are_counted_from_zero(call):
    words = ("run", "--rounds", 30, "--learner", "fth", "--shift", "ber", "--json", "-")
    one, three = (call(*words, "--seeds", seeds).records[0]["errors"] for seeds in (1, 3))
    assert three[:1] == one
    assert statistics.stdev(three) > 0


def test_module_and_pipe(environment):
    """The real process: JSON alone on standard output, and a reader that goes away."""
    words = [
        sys.executable,
        "-m",
        "priorshift",
        *map(str, SHORT),
        "--learner",
        "fix",
        "--json",
        "-",
    ]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert len(json.loads(done.stdout)) == 4
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in err
    assert "Exception" not in err


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_an_interrupt_ends_workers_too_with_one_line(environment):
    words = ("--rounds", "20000", "--learner", "fix,atlas-ada", "--shift", "lin", "--jobs", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "priorshift", "run", *words, "--seeds", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        # A shell's background job ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr.readline().startswith("lin fix: ")  # the workers are at work
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "priorshift: interrupted\n")
