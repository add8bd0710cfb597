"""From the options of ``priorshift run`` to runs, and from their records to JSON."""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from priorshift._validation import check_priors, plain_labels
from priorshift.datasets import Dataset
from priorshift.datasets.offline import paper_settings
from priorshift.errors import InputError, PriorshiftWarning
from priorshift.experiments.description import Data, StreamRun
from priorshift.experiments.perform import Prepared, calibration_of
from priorshift.experiments.report import Record
from priorshift.files.columns import naming, number_table
from priorshift.files.tables import open_table
from priorshift.learners import LEARNERS, as_learner
from priorshift.risk import SKETCHES
from priorshift.simulation.scores import Scores
from priorshift.simulation.shifts import SHIFTS, shift_by_name
from priorshift.typing import FloatArray

_HINT = "okm"
_SHIFTS = ("lin", "squ", "sin", "ber")
_ROUNDS, _SEEDS = 1000, 5

Row = list[StreamRun]
"""One learner with one hint under one shift: a run for each seed."""


def make_plan(options: argparse.Namespace) -> tuple[Prepared, list[Row]]:
    """Check everything, run the offline stage, and list the runs.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> options = build_parser().parse_args(["run", "--learner", "fix,atlas-ada", "--shift", "squ"])
    >>> prepared, rows = make_plan(options)
    >>> [row_label(row) for row in rows], len(rows[0])
    (['squ fix', 'squ atlas-ada okm'], 5)
    """
    if any((options.order, options.time, options.priors)):
        return _make_replay(options)
    shifts = _shifts(options)
    _warn_of_unused(options)
    prepared = Prepared(Data(options.data, options.data))
    mu1, mu2 = (
        None if text is None else tuple(class_prior(text, prepared.dataset, option).tolist())
        for option, text in (("--mu1", options.mu1), ("--mu2", options.mu2))
    )
    firsts = [
        replace(run, shift=shift, mu1=mu1, mu2=mu2, **settings)
        for shift, settings in shifts.items()
        for run in _each(options, prepared)
    ]
    return prepared, _with_seeds(options, prepared, firsts, options.seeds or _SEEDS)


def _with_seeds(
    options: argparse.Namespace, prepared: Prepared, firsts: list[StreamRun], seeds: int
) -> list[Row]:
    with _named(options.data):
        prepared.add(firsts)
    return [[replace(run, seed=seed) for seed in range(seeds)] for run in firsts]


def _make_replay(options: argparse.Namespace) -> tuple[Prepared, list[Row]]:
    """Rows in their order, or class priors that the user gives, in the place of shifts."""
    given = [name for name in ("order", "time", "priors") if getattr(options, name)]
    others = [name for name in ("shift", "mu1", "mu2", "probability") if getattr(options, name)]
    if len(given) > 1:
        raise InputError(f"give one of --{', --'.join(given)}")
    if others:
        raise InputError(f"--{others[0]} means nothing with --{given[0]}; leave one of them out")
    _warn_of_unused(options)
    if options.priors:
        return _make_given(options)
    if options.seeds:
        message = f"--seeds means nothing with --{given[0]}: rows are replayed, not drawn"
        warnings.warn(message, PriorshiftWarning, stacklevel=2)
    order = options.order or f"time:{options.time}"
    prepared = Prepared(Data(options.data, options.data, order=order))
    assert prepared.ordered is not None
    whole = len(prepared.ordered.y) // options.batch_size
    rounds = min(whole, options.rounds or whole)
    if rounds == 0:
        raise InputError(
            f"{options.data}: has {len(prepared.ordered.y)} online rows, fewer than a batch of "
            f"{options.batch_size}; give a smaller --batch-size"
        )
    runs = [replace(run, rounds=rounds) for run in _each(options, prepared)]
    return prepared, _with_seeds(options, prepared, runs, 1)


def _make_given(options: argparse.Namespace) -> tuple[Prepared, list[Row]]:
    prepared = Prepared(Data(options.data, options.data))
    table = given_priors(options.priors, prepared.dataset)[: options.rounds]
    priors = tuple(map(tuple, table.tolist()))
    runs = [replace(run, rounds=len(priors), priors=priors) for run in _each(options, prepared)]
    return prepared, _with_seeds(options, prepared, runs, options.seeds or _SEEDS)


def _each(options: argparse.Namespace, prepared: Prepared) -> Iterator[StreamRun]:
    for learner in options.learner:
        for hint in _hints(options) if learner == "atlas-ada" else [None]:
            yield _run(options, prepared, learner, hint)


def given_priors(path: str, dataset: Dataset) -> FloatArray:
    """Read the class prior of every round (T, K) from a table with a column for each class."""
    with open_table(path) as table:
        places = [table.place(str(label), "--priors") for label in plain_labels(dataset.classes)]
        rows = list(table.rows)
        if not rows:
            raise InputError(f"--priors {path}: has no rows; give one for each round")
        with naming(table, rows, 0, ()):
            return check_priors(number_table(rows, places, table, 0))


def row_label(row: Row) -> str:
    """Short name of a row, for progress."""
    return " ".join(filter(None, (row[0].course, row[0].learner, row[0].hint)))


def _hints(options: argparse.Namespace) -> list[str]:
    return [_HINT] if options.hint is None else options.hint


def _warn_of_unused(options: argparse.Namespace) -> None:
    """Say which options change nothing: the user may have meant another learner."""
    users = {
        "hint": ["atlas-ada"],
        "window": [name for name in LEARNERS if _has(name, "window")],
        "sketch": list(filter(uses_sketch, LEARNERS)),
        "gradient_bound": list(filter(uses_sketch, LEARNERS)),
        "loss_bound": [name for name in LEARNERS if _has(name, "loss_bound")],
        "solver": [name for name in LEARNERS if _has(name, "solver")],
    }
    for option, learners in users.items():
        if getattr(options, option) is not None and not set(learners) & set(options.learner):
            warnings.warn(
                f"--{option.replace('_', '-')} is for {', '.join(learners)}; it means nothing to "
                f"{', '.join(options.learner)}",
                PriorshiftWarning,
                stacklevel=2,
            )


def _has(learner: str, setting: str) -> bool:
    return any(field.name == setting for field in fields(LEARNERS[learner]))


def uses_sketch(learner: str) -> bool:
    """Tell whether a learner reads the held-out set every round, and so can read a sketch of it."""
    return _has(learner, "sketch")


@contextmanager
def _named(data: str) -> Iterator[None]:
    """Put the name of the data before what the offline stage refuses."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{data}: {error}") from error


def _shifts(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The shifts that were asked for, with those of the settings that each of them has."""
    options.shift = options.shift or list(_SHIFTS)
    given = {"period": options.period, "probability": options.probability}
    chosen = {name: value for name, value in given.items() if value is not None}
    takes = {name: {field.name for field in fields(SHIFTS[name])} for name in options.shift}
    for option in chosen:
        used = any(option in known for known in takes.values())
        if not used and not (option == "period" and "peri" in _hints(options)):
            raise InputError(
                f"--{option} means nothing to the shift {', '.join(options.shift)}; leave it out"
            )
    own = {name: {k: v for k, v in chosen.items() if k in takes[name]} for name in options.shift}
    for name, settings in own.items():
        shift_by_name(name, **settings)  # refuses what will not do
    return {name: {"shift_settings": tuple(settings.items())} for name, settings in own.items()}


def _run(
    options: argparse.Namespace, prepared: Prepared, learner: str, hint: str | None
) -> StreamRun:
    return StreamRun(
        data=prepared.data,
        learner=learner,
        protocol=options.protocol or as_learner(learner).protocol,
        batch_size=options.batch_size,
        rounds=options.rounds or _ROUNDS,
        seed=0,
        hint=hint,
        period=options.period if hint == "peri" else None,
        sketch=options.sketch if uses_sketch(learner) else None,
        preset=options.preset,
        window=options.window if _has(learner, "window") else None,
        loss=options.loss,
        calibration=options.calibration,
        safety=options.safety,
        track=("scores",),
        **{**paper_settings(prepared.dataset, options.preset), **_given(options, learner)},
    )


def _given(options: argparse.Namespace, learner: str) -> dict[str, Any]:
    """G, B and the solver where the user gives them, for the learners that have a use for them."""
    given = {
        "gradient_bound": options.gradient_bound if uses_sketch(learner) else None,
        "loss_bound": options.loss_bound if _has(learner, "loss_bound") else None,
        "solver": options.solver if _has(learner, "solver") else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def class_prior(text: str, dataset: Dataset, option: str) -> FloatArray:
    """Read a class prior: shares with commas between them, or one class that has it all.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> data = load_dataset("synthetic")
    >>> class_prior("0.5,0.25,0.25", data, "--mu2").tolist()
    [0.5, 0.25, 0.25]
    >>> class_prior("1", data, "--mu2").tolist()
    [0.0, 1.0, 0.0]
    """
    if "," not in text:
        return np.asarray(np.eye(dataset.n_classes)[_class_index(text.strip(), dataset, option)])
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{option} is {text!r}; give numbers with commas between them, or one class"
        ) from None
    if len(shares) != dataset.n_classes:
        raise InputError(
            f"{option} has {len(shares)} shares, the data have {dataset.n_classes} classes; "
            "give one share for each"
        )
    return check_priors(shares, option)


def _class_index(text: str, dataset: Dataset, option: str) -> int:
    labels = [
        label.decode(errors="replace") if isinstance(label, bytes) else str(label)
        for label in dataset.classes
    ]
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < dataset.n_classes:
        return int(text)
    shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    raise InputError(f"{option} is {text!r}, which is no class of the data; they are: {shown}")


def sketch_name(text: str) -> str:
    """Check what follows ``--sketch``, and return it in its one spelling.

    Examples
    --------
    >>> sketch_name("blocks:0500")
    'blocks:500'
    """
    name, _, size = text.partition(":")
    if name not in SKETCHES:
        raise argparse.ArgumentTypeError(
            f"no sketch is called {name!r}; give NAME:SIZE, with one of the names "
            f"{', '.join(SKETCHES)}"
        )
    # Longer numbers than any memory has rows are not worth converting.
    if not (size.isascii() and size.isdecimal() and len(size) < 16 and int(size) > 0):
        raise argparse.ArgumentTypeError(
            f"the size of the sketch {text!r} will not do; give a whole number of rows, 1 or more, "
            f"as in {name}:1000"
        )
    return f"{name}:{int(size)}"


def make_record(row: Row, found: Sequence[Mapping[str, Any]]) -> Record:
    """Sum up the seeds of a row."""
    run = row[0]
    errors = [one["error"] for one in found]
    seconds = sum(one["seconds"] for one in found)

    def mean(name: str) -> float:
        return statistics.fmean(one[name] for one in found)

    record = Record(
        learner=run.learner,
        hint=run.hint,
        preset=run.preset,
        protocol=run.protocol,
        calibration=calibration_of(run).name,
        calibration_map=found[0]["calibration_map"],
        data=run.data.name,
        shift=run.course,
        rounds=run.rounds,
        batch_size=run.batch_size,
        sketch=run.sketch,
        errors=errors,
        error_mean=statistics.fmean(errors),
        error_std=statistics.stdev(errors) if len(errors) > 1 else 0.0,
        oracle_error=mean("oracle_error"),
        calibrated_oracle_error=mean("calibrated_oracle_error"),
        fix_error=mean("fix_error"),
        prior_error=mean("prior_error"),
        variation=mean("variation"),
        seconds=seconds,
        rounds_per_second=len(found) * run.rounds / max(seconds, 1e-9),
        final_weights=_final_weights(found),
    )
    for name in Scores._fields:
        if name in found[0]:
            record[name] = mean(name)  # type: ignore[literal-required]
    return record


def _final_weights(found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]] | None:
    """Mean over the seeds of the meta weights after the last round, with the pool's step sizes."""
    if any("final_weights" not in one for one in found):
        return None
    weights = np.mean([one["final_weights"] for one in found], axis=0)
    return {"steps": list(found[0]["steps"]), "weights": weights.tolist()}


def summary(record: Record) -> str:
    """Say in one line what all seeds of a row gave."""
    count = len(record["errors"])
    return (
        f"{record['error_mean']:.2f} % error, {count} seed{'s' * (count > 1)}, "
        f"{record['seconds']:.1f} s, {record['rounds_per_second']:,.0f} rounds/s"
    )


def is_papers(options: argparse.Namespace) -> bool:
    """Tell whether a run is the paper's in all but its number of rounds and seeds."""
    own_values = (
        *("mu1", "mu2", "period", "probability", "window", "sketch"),
        *("order", "time", "priors"),
        *("gradient_bound", "loss_bound", "solver"),
    )
    own = all(options.protocol in (None, as_learner(name).protocol) for name in options.learner)
    return (
        options.data == "synthetic"
        and options.preset == "paper"
        and options.loss == "softmax"
        and options.calibration in (None, "none")
        and own
        and all(getattr(options, name) is None for name in own_values)
    )
