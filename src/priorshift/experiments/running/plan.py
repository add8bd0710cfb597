"""From the options of ``priorshift run`` to jobs, and from what they measured to records."""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from threadpoolctl import threadpool_limits

from priorshift.calibration import as_calibration
from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.offline import offline_stage, paper_settings
from priorshift.errors import InputError, PriorshiftWarning
from priorshift.experiments.report import Record
from priorshift.experiments.running.class_mix import class_mix
from priorshift.experiments.running.jobs import Bench, Job, Measure
from priorshift.experiments.running.kept import data_digest
from priorshift.experiments.running.sketches import parse_sketch, uses_sketch
from priorshift.learners import LEARNERS, as_learner
from priorshift.learners.linear.hints import Hint, Periodic
from priorshift.simulation.shifts import SHIFTS, Mixture, shift_by_name

_HINT = "okm"


def make_plan(options: argparse.Namespace) -> tuple[Bench, list[Job]]:
    """Check everything, run the offline stage, and list the jobs.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> options = build_parser().parse_args(["run", "--learner", "fix,atlas-ada", "--shift", "squ"])
    >>> bench, jobs = make_plan(options)
    >>> [job.label for job in jobs], bench.batch_size
    (['squ fix', 'squ atlas-ada okm'], 100)
    """
    shifts = _shifts(options)
    _warn_of_unused(options)
    dataset = load_dataset(options.data)
    mu1 = dataset.mu1 if options.mu1 is None else class_mix(options.mu1, dataset, "--mu1")
    mu2 = dataset.mu2 if options.mu2 is None else class_mix(options.mu2, dataset, "--mu2")
    jobs = [
        _job(options, dataset, name, shift, learner, hint)
        for name, shift in shifts.items()
        for learner in options.learner
        for hint in (_hints(options) if learner == "atlas-ada" else [None])
    ]
    with threadpool_limits(limits=1), _named(options.data):  # its bits depend on the machine alone
        source = offline_stage(dataset, options.loss)
        recipes = dict.fromkeys(job.calibration for job in jobs)
        calibrated = {recipe: source.calibrated(recipe) for recipe in recipes}
        bench = Bench(
            world=dataset.world,
            source=source,
            mu1=mu1,
            mu2=mu2,
            rounds=options.rounds,
            batch_size=options.batch_size,
            data=None if options.store is None else data_digest(dataset),
            calibrated=calibrated,
        )
        for job in jobs:
            if hasattr(job.learner, "check"):
                # Refuse now what would fail in the first round.
                job.learner.check(bench.source_for(job))
    return bench, jobs


def _hints(options: argparse.Namespace) -> list[str]:
    return [_HINT] if options.hint is None else options.hint


def _warn_of_unused(options: argparse.Namespace) -> None:
    """Say which options change nothing: the user may have meant another learner."""
    users = {
        "hint": ["atlas-ada"],
        "window": [name for name, kind in LEARNERS.items() if _has(kind, "window")],
        "sketch": list(filter(uses_sketch, LEARNERS)),
    }
    for option, learners in users.items():
        if getattr(options, option) is not None and not set(learners) & set(options.learner):
            warnings.warn(
                f"--{option} is for {', '.join(learners)}; it means nothing to "
                f"{', '.join(options.learner)}",
                PriorshiftWarning,
                stacklevel=2,
            )


def _sketched(options: argparse.Namespace, learner: str) -> bool:
    return options.sketch is not None and uses_sketch(learner)


def _has(kind: Any, setting: str) -> bool:
    return any(field.name == setting for field in fields(kind))


@contextmanager
def _named(data: str) -> Iterator[None]:
    """Put the name of the data before what the offline stage refuses."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{data}: {error}") from error


def _shifts(options: argparse.Namespace) -> dict[str, Mixture]:
    given = {"period": options.period, "probability": options.probability}
    chosen = {name: value for name, value in given.items() if value is not None}
    takes = {name: {field.name for field in fields(SHIFTS[name])} for name in options.shift}
    for option in chosen:
        used = any(option in known for known in takes.values())
        if not used and not (option == "period" and "peri" in _hints(options)):
            raise InputError(
                f"--{option} means nothing to the shift {', '.join(options.shift)}; leave it out"
            )
    return {
        name: shift_by_name(name, **{k: v for k, v in chosen.items() if k in takes[name]})
        for name in options.shift
    }


def _job(
    options: argparse.Namespace,
    dataset: Dataset,
    shift_name: str,
    shift: Mixture,
    name: str,
    hint: str | None,
) -> Job:
    chosen: str | Hint | None = hint
    if hint == "peri" and options.period is not None:
        chosen = Periodic(period=options.period)
    settings: dict[str, Any] = {
        "preset": options.preset,
        "horizon": options.rounds,
        "hint": chosen,
        "order": options.protocol,
        "window": options.window,
        "sketch": parse_sketch(options.sketch) if _sketched(options, name) else None,
        **paper_settings(dataset, options.preset),
    }
    learner = as_learner(name, **settings)
    protocol = options.protocol or learner.protocol
    calibration = as_calibration(options.calibration or learner.calibration)
    return Job(shift_name, shift, name, hint, learner, protocol, calibration)


def make_record(options: argparse.Namespace, job: Job, row: Sequence[Measure]) -> Record:
    """Sum up the seeds of a job.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> from priorshift.learners import FIX
    >>> options = build_parser().parse_args(["run", "--rounds", "100"])
    >>> job = Job("lin", shift_by_name("lin"), "fix", None, FIX(), "predict-first")
    >>> row = [Measure(e, e, 2.0, 2.0, 0.1, 3.0, 1.0) for e in (5.0, 7.0)]
    >>> record = make_record(options, job, row)
    >>> record["error_mean"], round(record["error_std"], 3), record["rounds_per_second"]
    (6.0, 1.414, 100.0)
    """
    errors = [one.error for one in row]
    seconds = sum(one.seconds for one in row)
    return Record(
        learner=job.learner_name,
        hint=job.hint,
        preset=options.preset,
        protocol=job.protocol,
        calibration=job.calibration.name,
        calibration_map=row[0].calibration_map,
        data=options.data,
        shift=job.shift_name,
        rounds=options.rounds,
        batch_size=options.batch_size,
        sketch=options.sketch if _sketched(options, job.learner_name) else None,
        errors=errors,
        error_mean=statistics.fmean(errors),
        error_std=statistics.stdev(errors) if len(errors) > 1 else 0.0,
        oracle_error=statistics.fmean(one.oracle_error for one in row),
        calibrated_oracle_error=statistics.fmean(one.calibrated_oracle_error for one in row),
        fix_error=statistics.fmean(one.fix_error for one in row),
        prior_error=statistics.fmean(one.prior_error for one in row),
        variation=statistics.fmean(one.variation for one in row),
        seconds=seconds,
        rounds_per_second=len(row) * options.rounds / max(seconds, 1e-9),
    )


def is_papers(options: argparse.Namespace) -> bool:
    """Tell whether a run is the paper's in all but its number of rounds and seeds.

    Examples
    --------
    >>> from priorshift.cli.main import build_parser
    >>> parse = build_parser().parse_args
    >>> is_papers(parse(["run"])), is_papers(parse(["run", "--preset", "theory"]))
    (True, False)
    """
    own_values = ("mu1", "mu2", "period", "probability", "window", "sketch")
    own = all(options.protocol in (None, as_learner(name).protocol) for name in options.learner)
    return (
        options.data == "synthetic"
        and options.preset == "paper"
        and options.loss == "softmax"
        and options.calibration in (None, "none")
        and own
        and all(getattr(options, name) is None for name in own_values)
    )
