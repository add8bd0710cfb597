"""How far a run over a file has come: what ``priorshift adapt --state FILE`` keeps.

The output is on the disk before the record says so, and the record is replaced as a whole. A run
that was killed at any moment therefore finds a record, and an output that is at least as long as
the record says: it cuts the output back, and goes on with the next row.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from priorshift.errors import FileFormatError, InputError
from priorshift.files.tables import PIPE, Row
from priorshift.saving import refusing, stream_from_bytes, stream_to_bytes
from priorshift.saving.archive import read, write
from priorshift.stream import Deployment, Stream

_KIND = "adapt"


class Record(NamedTuple):
    """How far a run has come.

    Attributes
    ----------
    settings : dict
        What would make other output of the same rows: batches, columns, formats.
    input, output : str
        Where rows come from and go to.
    rows, batches : int
        How many are done, of this input.
    size : int
        Bytes of the output that belong to them.
    last : str
        A digest of the last of these rows.
    ended : bool
        Whether the input was read to its end.

    Examples
    --------
    >>> Record({"batch": 100}, "in.csv", "out.csv").rows
    0
    """

    settings: dict[str, Any]
    input: str
    output: str
    rows: int = 0
    batches: int = 0
    size: int = 0
    last: str = ""
    ended: bool = False


def digest(row: Row) -> str:
    """Return a few characters that another row would not have.

    Examples
    --------
    >>> digest(["1", "2"]) == digest(["1", "2"]), digest(["1", "2"]) == digest(["12", ""])
    (True, False)
    """
    return blake2b(repr(list(row)).encode(errors="replace"), digest_size=12).hexdigest()


def write_record(path: str, record: Record, deployment: Deployment, stream: Stream) -> None:
    """Replace the record, and what the stream has learned with it.

    Examples
    --------
    >>> import tempfile
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [[0.9, 0.1], [0.2, 0.8]], [0, 1]
    >>> here = LabelShiftClassifier.from_probabilities(P, y, learner="fth").deployment_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_record(f"{folder}/state", Record({}, "a", "b", rows=7), here, here.start())
    ...     read_record(f"{folder}/state", here)[0].rows
    7
    """
    data = np.frombuffer(stream_to_bytes(deployment, stream), dtype=np.uint8)
    write(path, {"kind": _KIND, "record": record._asdict()}, {"stream": data})


def read_record(path: str, deployment: Deployment) -> tuple[Record, Stream] | None:
    """Return what ``write_record`` wrote, or None where there is nothing yet.

    Examples
    --------
    >>> read_record("no-such-file.state", None) is None
    True
    """
    if not os.path.exists(path):
        return None
    with refusing(path):
        manifest, blocks = read(Path(path))
        if manifest.get("kind") != _KIND:
            raise FileFormatError("is no state file of priorshift adapt")
        record = Record(**manifest["record"])
        fits = all(type(getattr(record, name)) is int for name in ("rows", "batches", "size"))
        if not fits or min(record.rows, record.batches, record.size) < 0:
            raise FileFormatError("counts something else than rows")
        return record, stream_from_bytes(deployment, blocks["stream"].tobytes())


def _holds(record: Record) -> bool:
    """Whether its output still is where it was put: a shorter file is another's beginning."""
    if not os.path.exists(record.output):
        return False
    whole = record.settings.get("output_format") == "parquet"  # its bytes are not those of the rows
    return whole or os.path.getsize(record.output) >= max(record.size, 1)


def going_on(found: Record, wanted: Record) -> Record:
    """Return where a run begins that finds a record: after its rows, or with a new input.

    Examples
    --------
    >>> old = Record({"batch": 100}, "monday.csv", "a.csv", rows=7, ended=True)
    >>> going_on(old, Record({"batch": 100}, "monday.csv", "a.csv")).rows
    7
    >>> going_on(old, Record({"batch": 100}, "tuesday.csv", "b.csv")).rows
    0
    """
    for name, value in wanted.settings.items():
        if found.settings.get(name) != value:
            option = {"rows": "batch"}.get(name, name).replace("_", "-")
            raise InputError(
                f"the state file is of a run with --{option} {found.settings.get(name)}, this one "
                f"has {value}: give the same, or another --state"
            )
    same = (found.input, found.output) == (wanted.input, wanted.output)
    if same and not (found.ended and found.input == PIPE):
        return found
    if not found.ended:
        raise InputError(
            f"the state file is of a run from {found.input} to {found.output} that has not come to "
            "its end: give the same files to finish it, or another --state"
        )
    if wanted.output == found.output != PIPE and _holds(found):
        raise InputError(
            f"{found.output} holds what became of {found.input}, and would be replaced: give "
            "another --out, or move it away"
        )
    return wanted._replace(batches=found.batches)
