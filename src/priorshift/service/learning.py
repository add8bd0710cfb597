"""What a batch does to a stream, once for each batch id."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from priorshift.service.engine import NEW, Group, News
from priorshift.service.models import Answer, Input, Model
from priorshift.service.problems import Problem
from priorshift.service.store import BatchRow


class Plan(NamedTuple):
    """An answer, and what has to be written for it."""

    answer: Answer
    write: Callable[[], None]


def learn(
    group: Group, id: str, batch_id: str, given: Input, model: Model, follow: bool = False
) -> Plan:
    """Learn from a batch and predict it; once for each batch id.

    Nothing is written yet, so that several streams can be changed together or not at all.
    """
    start = time.perf_counter()
    tip = group.find(id) or group.begin(id, model)
    if tip.model is not model:
        message = f"the stream {id!r} has just been made, with another model: send it again"
        raise Problem("version_conflict", message)
    known = None
    if tip.row.number != NEW:
        known = group.connection.find_batch(tip.row.number, batch_id)
    if known is not None:
        return Plan(_again(known, given.digest, batch_id), lambda: None)
    deployment = tip.model.deployment
    key = batch_id if follow else None
    stream, outcome = deployment.step(
        tip.stream, given.batch, key=key, predict=True, time=given.time
    )
    proba = np.ascontiguousarray(outcome.proba, dtype=np.float64)
    prior = np.ascontiguousarray(outcome.prior, dtype=np.float64)
    answer = Answer(tip.row.version + 1, proba, prior)
    row = BatchRow(answer.version, given.digest, answer.to_bytes())
    news = News(id, len(proba), time.perf_counter() - start, outcome.alarm)

    def write() -> None:
        after = group.replace(tip, stream, step=True)
        group.connection.add_batch(after.row.number, batch_id, row)
        group.news.append(news)

    return Plan(answer, write)


def written(plans: dict[str, Plan]) -> dict[str, Answer]:
    """Write all of them, and return their answers."""
    for plan in plans.values():
        plan.write()
    return {id: plan.answer for id, plan in plans.items()}


def _again(known: BatchRow, digest: bytes, batch_id: str) -> Answer:
    """The answer to a batch that was learned before."""
    if known.digest != digest:
        raise Problem(
            "batch_conflict",
            f"the batch id {batch_id!r} was used for another batch: give this one another id",
        )
    if known.answer is None:
        raise Problem(
            "answer_expired",
            f"the batch {batch_id!r} was learned, as version {known.version}; its answer is kept "
            "no longer",
        )
    return Answer.from_bytes(known.answer)
