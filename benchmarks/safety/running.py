"""Parts of work in several processes, their records in a file as soon as they are there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Protocol, TextIO


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    safety: str
    jobs: int
    quick: bool
    seeds: int | None
    cells: bool
    only: dict[str, tuple[Any, ...]]
    """Which values of each axis of the grid are wanted."""
    older: list[dict[str, Any]] | None
    """Records to compare with."""
    records: list[dict[str, Any]] | None
    """Records that were measured before: nothing is run."""
    out: TextIO | None


class Part(Protocol):
    """Something that can be run in another process."""

    def run(self) -> list[dict[str, Any]]:
        """Return records."""


def perform(part: Part) -> list[dict[str, Any]]:
    return part.run()


def finished(parts: Sequence[Part], jobs: int) -> Iterator[tuple[Part, list[dict[str, Any]]]]:
    """Yield parts with their records as they come."""
    if jobs == 1:
        yield from ((part, part.run()) for part in parts)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting: dict[Future[Any], Part] = {pool.submit(perform, part): part for part in parts}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def collect(name: str, parts: Sequence[Part], options: Options) -> list[dict[str, Any]]:
    """Run all parts; tell on standard error how far it is. Or find the records of that name."""
    if options.records is not None:
        return [record for record in options.records if record["part"] == name]
    records: list[dict[str, Any]] = []
    began = time.perf_counter()
    for count, (part, found) in enumerate(finished(parts, options.jobs), start=1):
        records += found
        if options.out is not None:
            options.out.writelines(json.dumps(record) + "\n" for record in found)
            options.out.flush()
        spent = time.perf_counter() - began
        left = spent / count * (len(parts) - count)
        print(
            f"{count}/{len(parts)} {part}: {spent:.0f} s, about {left:.0f} s to go",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return records
