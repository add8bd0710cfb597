"""Class priors of drifting streams: EM on each batch, on a window of ten, and our default."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
from quapy.method.aggregative import EMQ

from benchmarks.peers.problems import names, problem
from benchmarks.peers.tables import Column, show
from priorshift.learners import Auto
from priorshift.priors import ForeignEstimator
from priorshift.simulation.protocols import absolute_error
from priorshift.simulation.shifts import shift_by_name
from priorshift.source import Batch
from priorshift.stream import Deployment

_TITLE = """\
Class prior of a stream while it drifts from equal classes to the first one ("lin") or swings
("sin"), {name}, {rounds} batches, {seeds} seeds; AE against the prior of the batch that was read
last, mean over the batches of a seed. "window": the last ten batches together.
"""


def table(quick: bool) -> list[str]:
    """Measure every problem, and return the losses."""
    rounds, seeds = (12, 2) if quick else (200, 5)
    losses = []
    for name in ["digits"] if quick else names():
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        source, population = problem(name)
        K = source.n_classes
        ends = np.full(K, 1 / K), np.eye(K)[0]
        for shift in ("lin", "sin"):
            for rows in (10, 100):
                for seed in range(seeds):
                    priors = shift_by_name(shift).priors(*ends, rounds, seed)
                    for method, error in _stream(source, population, priors, rows, seed).items():
                        found[f"{shift}, {rows} rows"][method].append(error)
        columns = [Column(each, values) for each, values in found.items()]
        title = _TITLE.format(name=name, rounds=rounds, seeds=seeds)
        lost = show(title, columns, dict.fromkeys(found, "prior_ (auto)"))
        losses += [f"drift, {name}: {loss}" for loss in lost]
    return losses


def _stream(source, population, priors, rows, seed) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    deployment, em = Deployment(source, Auto()), ForeignEstimator(EMQ())
    stream, window = deployment.start(), deque(maxlen=10)
    errors: dict[str, list[float]] = defaultdict(list)
    for prior in priors:
        y = rng.choice(len(prior), rows, p=prior)
        batch = source.read(population.draw(y, rng))
        window.append(batch)
        stream, _ = deployment.step(stream, batch)
        together = Batch(
            np.concatenate([one.proba for one in window]),
            np.concatenate([one.features for one in window]),
        )
        errors["prior_ (auto)"].append(absolute_error(prior, deployment.prior(stream)))
        errors["QuaPy: EMQ, batch"].append(absolute_error(prior, em.raw(source, batch)))
        errors["QuaPy: EMQ, window"].append(absolute_error(prior, em.raw(source, together)))
    return {method: float(np.mean(values)) for method, values in errors.items()}
