"""Prevalence of single batches: QuaPy and abstention, and ours."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from abstention.calibration import TempScaling
from abstention.label_shift import EMImbalanceAdapter
from quapy.method.aggregative import EMQ, KDEyML

from benchmarks.peers.problems import MANY_CLASSES, names, problem
from benchmarks.peers.tables import Column, show
from priorshift.learners import Auto
from priorshift.priors import MLLS, ForeignEstimator
from priorshift.simulation.protocols import absolute_error, relative_absolute_error, upp
from priorshift.source import Batch, Source
from priorshift.stream import Deployment
from priorshift.typing import FloatArray

Estimate = Callable[[Batch], FloatArray]
_TITLE = """\
Prevalence of single batches of {rows} rows, {name}, {number} class priors drawn uniformly (UPP),
each batch the first of its stream. AE and RAE against the shares of the rows that were drawn
("rows"), and against the class prior that they were drawn with ("prior"); ms: time of a batch. All
have the model's class probabilities and nothing else; QuaPy's read them as calibrated by ours on
the held-out set, "BCTS" calibrates by itself.
"""


def table(quick: bool) -> list[str]:
    """Measure every problem, and return the losses."""
    number, rows = (8, 50) if quick else (200, 100)
    losses = []
    for name in ["digits"] if quick else names():
        fewer = min(40, number) if name == MANY_CLASSES else number
        losses += [f"shares, {name}: {loss}" for loss in _one(name, fewer, rows)]
    return losses


def _one(name: str, number: int, rows: int) -> list[str]:
    source, population = problem(name)
    methods = _methods(source)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    rng = np.random.default_rng(1)
    warm = source.read(population.draw(rng.integers(0, source.n_classes, rows), rng))
    for estimate in methods.values():  # compiles, fits
        estimate(warm)
    for prior in upp(source.n_classes, number, rng=0):
        y = rng.choice(source.n_classes, rows, p=prior)
        drawn = np.bincount(y, minlength=source.n_classes) / rows
        batch = source.read(population.draw(y, rng))
        for method, estimate in methods.items():
            began = time.perf_counter()
            shares = estimate(batch)
            found["ms"][method].append(1000 * (time.perf_counter() - began))
            found["AE rows"][method].append(absolute_error(drawn, shares))
            found["RAE rows"][method].append(relative_absolute_error(drawn, shares, rows))
            found["AE prior"][method].append(absolute_error(prior, shares))
            found["RAE prior"][method].append(relative_absolute_error(prior, shares, rows))
    order = ("AE rows", "RAE rows", "AE prior", "RAE prior")
    columns = [Column(each, found[each]) for each in order] + [Column("ms", found["ms"], 2)]
    counted = dict.fromkeys(order[:2], "batch_shares (auto)")
    believed = dict.fromkeys(order[2:], "prior_ (auto)")
    title = _TITLE.format(rows=rows, name=name, number=number)
    return show(title, columns, {**counted, **believed})


def _methods(source: Source) -> dict[str, Estimate]:
    deployment = Deployment(source, Auto())
    foreign = {
        "QuaPy: EMQ": ForeignEstimator(EMQ()),
        "QuaPy: KDEy-ML": ForeignEstimator(KDEyML()),
    }

    def told(batch: Batch) -> FloatArray:
        return deployment.prior(deployment.step(deployment.start(), batch)[0])

    methods: dict[str, Estimate] = {
        "batch_shares (auto)": lambda batch: deployment.batch_shares(deployment.start(), batch),
        "prior_ (auto)": told,
        "mlls": lambda batch: MLLS().raw(source, batch),
    }
    for name, estimator in foreign.items():
        methods[name] = lambda batch, own=estimator: own.raw(source, batch)
    return {**methods, "abstention: BCTS, EM": _abstention(source)}


def _abstention(source: Source) -> Estimate:
    """EM with abstention's own calibration; it reads the logarithms of f0 as it is."""
    hot = np.eye(source.n_classes)[source.labels]
    logs = np.log(np.maximum(source.f0_proba, 1e-12))
    calibrated = TempScaling(bias_positions="all", verbose=False)(
        logs, hot, posterior_supplied=False
    )

    def estimate(batch: Batch) -> FloatArray:
        read = calibrated(np.log(np.maximum(batch.f0_proba, 1e-12)))
        adapt = EMImbalanceAdapter(verbose=False)(
            valid_labels=hot,
            tofit_initial_posterior_probs=read,
            valid_posterior_probs=calibrated(logs),
        )
        shares = np.asarray(adapt.multipliers) * hot.mean(axis=0)
        return np.asarray(shares / shares.sum())

    return estimate
