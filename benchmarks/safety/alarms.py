"""Part alarms: how often the guard calls pure label shift something else, on real data.

The population of a stream is the rows that the model was not trained on: the held-out set and the
stream are both drawn from them with replacement, so that nothing but the class prior differs.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.beyond.verdicts import below, close, show
from benchmarks.guard import KINDS, priors
from benchmarks.safety import real
from benchmarks.safety.report import grouped
from benchmarks.safety.running import Options, collect
from benchmarks.safety.subject import alarmed, guarded, quiet
from priorshift.source.model import ProbabilityModel

FILES = (
    *("digits", "pendigits", "mnist", "fashion_mnist", "eurosat", "cifar10_patchfeat"),
    *("cifar10_resnet18_logits", "shl2019", "arxiv2025_stream"),
)
GUARDED_MODELS = ("logistic", "naive Bayes", "shallow forest")
STREAMS, ROUNDS, BATCH, HOLD = 200, 1000, 20, 1000
_TITLE = """\
Alarms in {streams} streams of {rounds:,} rounds of {batch} rows under pure label shift ({kinds}, in
turns), at most {hold:,} held-out rows. The network is that of cifar10_resnet18_logits.
"""


class Part(NamedTuple):
    """One stream."""

    number: int
    data: str
    model: str
    kind: str
    rounds: int
    safety: str

    def __str__(self) -> str:
        return f"alarms: {self.data}, {self.model}, {self.kind}"

    def run(self) -> list[dict[str, Any]]:
        """One record."""
        with quiet():
            data, rest, model = trained(self.data, self.model)
            rng = np.random.default_rng(self.number)
            hold = rng.choice(rest, min(HOLD, len(rest) // 3))
            classifier = guarded(model, self.safety).fit(data.X[hold], data.y[hold])
            known = [rest[data.y[rest] == label] for label in classifier.classes_]
            for mu in priors(self.kind, self.rounds, len(known), rng):
                counts = rng.multinomial(BATCH, mu)
                drawn = [rng.choice(rows, n) for rows, n in zip(known, counts, strict=True)]
                classifier.adapt(data.X[rng.permutation(np.concatenate(drawn))])
            report = classifier.guard_report_
        record = {"part": "alarms", **self._asdict(), "alarm": alarmed(classifier)}
        found = {"p_value": report.p_value, "round": report.round, "evidence": report.evidence}
        return [{**record, **found}]


@cache
def trained(name: str, model: str) -> tuple[real.Table, np.ndarray, Any]:
    """A data set, the rows that were not trained on, and a model of the other rows."""
    data = real.table(name)
    order = np.random.default_rng(1).permutation(len(data.X))
    if model == "network":
        return data, order, ProbabilityModel(np.unique(data.y))
    train, rest = np.split(order, [min(len(order) // 3, 2000)])
    return data, rest, real.MODELS[model]().fit(data.X[train], data.y[train])


def table(options: Options) -> None:
    """Run, print, judge."""
    here, missing = real.names(("digits",) if options.quick else FILES)
    streams, rounds = (3, 60) if options.quick else (STREAMS, ROUNDS)
    pairs = [
        (data, model)
        for data in here
        for model in (("network",) if data.endswith("_logits") else GUARDED_MODELS)
    ]
    every = zip(range(streams), itertools.cycle(pairs), strict=False)
    parts = [
        # The kind moves on with every turn through the pairs, so that each pair meets them all.
        Part(i, *pair, KINDS[(i + i // len(pairs)) % len(KINDS)], rounds, options.safety)
        for i, pair in every
    ]
    records = collect("alarms", parts, options)
    if not records:
        print("(alarms) no run\n")
        return
    title = _TITLE.format(
        streams=streams, rounds=rounds, batch=BATCH, hold=HOLD, kinds=", ".join(KINDS)
    )
    rows = [
        [*key, str(len(group)), str(sum(r["alarm"] for r in group)),
         f"{min(r['p_value'] for r in group):.3f}"]
        for key, group in grouped(records, ("data", "model")).items()
    ]  # fmt: skip
    show("alarms", title, ("data", "model", "streams", "alarms", "least p"), rows)
    if missing:
        print(f"  left out, not in the data folder: {', '.join(missing)}")
    alarms = [r for r in records if r["alarm"]]
    lines = [f"  {r['data']}, {r['model']}, {r['kind']}: {r['evidence']}" for r in alarms]
    share = 100 * len(alarms) / len(records)
    close([*lines, below(f"streams with an alarm, % of {len(records)}", share, 1.0)])
