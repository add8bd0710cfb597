"""Intervals for the class prior of a batch: QuaPy's bootstrap and Bayesian ones, and ours."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np
from quapy.method.aggregative import EMQ
from quapy.method.confidence import AggregativeBootstrap, BayesianCC

from benchmarks.peers.problems import names, problem
from benchmarks.peers.tables import Column, show
from priorshift import batch_prior_interval
from priorshift.simulation.protocols import upp
from priorshift.source import Source
from priorshift.source.model import ProbabilityModel

LEVEL = 0.9
# Batches that BayesianCC is given: it takes seconds for each.
_FEW = 8
_TITLE = """\
90 % intervals for the class prior of a batch of {rows} rows, {name}, {number} class priors drawn
uniformly: "short of 90 %" is by how much fewer shares are inside, "width" the mean width, "ms" the
time of a batch. Only intervals that hold what they promise are compared by their width. BayesianCC
has the first {few} batches.
"""


def table(quick: bool) -> list[str]:
    """Measure every problem, and return the losses."""
    number, rows = (2, 50) if quick else (40, 100)
    losses = []
    for name in ["digits"] if quick else names():
        source, population = problem(name)
        methods = {
            "ours": lambda P, own=source: batch_prior_interval(own, P, LEVEL),
            "QuaPy: bootstrap of EMQ": _bootstrap(source, EMQ()),
            "QuaPy: BayesianCC": _bayesian(source),
        }
        slow = "QuaPy: BayesianCC"
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        rng = np.random.default_rng(2)
        for prior in upp(source.n_classes, number, rng=3):
            y = rng.choice(source.n_classes, rows, p=prior)
            P = source.read(population.draw(y, rng)).proba
            for method, interval in methods.items():
                if method == slow and len(found["ms"][slow]) == _FEW:
                    continue
                began = time.perf_counter()
                low, high = interval(P)
                found["ms"][method].append(1000 * (time.perf_counter() - began))
                inside = ((low <= prior) & (prior <= high)).mean()
                found["short of 90 %"][method].append(LEVEL - inside)
                found["width"][method].append(float((high - low).mean()))
        columns = [
            Column("short of 90 %", found["short of 90 %"], 3),
            Column("width", found["width"], 3),
            Column("ms", found["ms"], 1),
        ]
        answers = {"short of 90 %": "ours", "ms": "ours"}
        short = {method: np.mean(values) for method, values in found["short of 90 %"].items()}
        hold = [method for method in short if method != "ours" and short[method] < 0.03]
        if hold:
            answers["width"] = "ours"
        title = _TITLE.format(rows=rows, name=name, number=number, few=_FEW)
        lost = show(title, columns, answers, {"width": hold} if hold else None)
        losses += [f"intervals, {name}: {loss}" for loss in lost]
    return losses


def _bayesian(source: Source):
    model = ProbabilityModel(classes=list(range(source.n_classes)))
    quantifier = BayesianCC(model, fit_classifier=False, val_split=None, confidence_level=LEVEL)
    quantifier.fit(source.proba, np.asarray(source.labels))

    def interval(P):
        _, region = quantifier.predict_conf(P)
        return region.I_low, region.I_high

    return interval


def _bootstrap(source: Source, quantifier):
    quantifier.classifier = ProbabilityModel(classes=list(range(source.n_classes)))
    quantifier.fit_classifier, quantifier.val_split = False, None
    bootstrap = AggregativeBootstrap(
        quantifier, n_test_samples=200, confidence_level=LEVEL, random_state=0
    )
    bootstrap.fit(source.proba, np.asarray(source.labels))

    def interval(P):
        _, region = bootstrap.predict_conf(P)
        return region.I_low, region.I_high

    return interval
