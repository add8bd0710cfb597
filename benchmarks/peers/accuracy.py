"""Accuracy without labels: NannyML's CBPE, and ours, of the model as it is and adapted."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict

os.environ.setdefault("NML_DISABLE_USAGE_LOGGING", "1")  # read at the import

import nannyml
import numpy as np
import pandas as pd

from benchmarks.peers.problems import names, problem
from benchmarks.peers.tables import Column, show
from priorshift import insight
from priorshift.learners import Auto
from priorshift.simulation.shifts import shift_by_name
from priorshift.source import Source
from priorshift.stream import Deployment
from priorshift.typing import FloatArray

_TITLE = """\
Accuracy without labels, {name}: mean distance, in points, of the estimate from the accuracy that
labels show, over {chunks} chunks of {rows} rows while the class prior swings ("sin"); of the model
as it is, and of predictions adapted by `auto` (which CBPE is given as they are). CBPE and
`accuracy_of` read the chunk's own predictions, `accuracy` knows its class prior alone.
"""


def table(quick: bool) -> list[str]:
    """Measure every problem, and return the losses."""
    chunks, sizes = (6, (50,)) if quick else (40, (100, 500))
    losses = []
    for name in ["digits"] if quick else names():
        source, population = problem(name)
        for rows in sizes:
            found = _errors(source, population, chunks, rows)
            columns = [Column(each, values, 2) for each, values in found.items()]
            title = _TITLE.format(name=name, chunks=chunks, rows=rows)
            lost = show(title, columns, dict.fromkeys(found, "accuracy_of"))
            losses += [f"accuracy, {name}, {rows} rows: {loss}" for loss in lost]
    return losses


def _errors(source: Source, population, chunks: int, rows: int):
    K, rng = source.n_classes, np.random.default_rng(4)
    priors = shift_by_name("sin").priors(np.full(K, 1 / K), np.eye(K)[0], chunks, 0)
    deployment = Deployment(source, Auto())
    stream, truth = deployment.start(), defaultdict(list)
    ours: dict[str, list[list[float]]] = defaultdict(list)
    read: dict[str, list[FloatArray]] = defaultdict(list)
    for prior in priors:
        y = rng.choice(K, rows, p=prior)
        batch = source.read(population.draw(y, rng))
        stream, outcome = deployment.step(stream, batch, predict=True)
        found = insight.performance(deployment, stream, 0.9)
        for kind, proba, report in (
            ("as it is", batch.f0_proba, found.unadapted),
            ("adapted", outcome.proba, found),
        ):
            truth[kind].append((proba.argmax(axis=1) == y).mean())
            ours[kind].append([report.accuracy.value, report.accuracy_of(proba).value])
            read[kind].append(proba)
    result = {}
    for kind in truth:
        real = np.array(truth[kind])
        theirs = _cbpe(source, np.concatenate(read[kind]), rows)
        known, read_too = 100 * np.abs(np.array(ours[kind]).T - real)
        result[kind] = {
            "accuracy": known,
            "accuracy_of": read_too,
            "NannyML: CBPE": 100 * np.abs(theirs - real),
        }
    return result


def _cbpe(source: Source, proba: FloatArray, rows: int) -> FloatArray:
    """NannyML's estimate of the accuracy of every chunk; its reference is the held-out set."""
    columns = {str(k): f"p{k}" for k in range(source.n_classes)}

    def frame(P: FloatArray) -> pd.DataFrame:
        table = pd.DataFrame(P, columns=list(columns.values()))
        return table.assign(y_pred=P.argmax(axis=1).astype(str))

    shuffled = np.random.default_rng(5).permutation(len(source.labels))
    reference = frame(source.f0_proba[shuffled]).assign(y=source.labels[shuffled].astype(str))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cbpe = nannyml.CBPE(
            metrics=["accuracy"],
            y_pred_proba=columns,
            y_pred="y_pred",
            y_true="y",
            problem_type="classification_multiclass",
            chunk_size=rows,
        )
        found = cbpe.fit(reference).estimate(frame(proba))
    table = found.filter(period="analysis").to_df()
    return table["accuracy"]["value"].to_numpy(dtype=np.float64)
