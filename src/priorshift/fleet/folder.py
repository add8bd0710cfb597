"""A fleet on the disk: a folder with the classifier, the records, the names and the journal.

``fleet.json`` says which generation of files counts. A save writes the files of a new one, then
replaces ``fleet.json``, and only then removes the old ones: there is always one whole fleet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from priorshift.errors import FileFormatError, InputError
from priorshift.fleet.ids import Key, Names
from priorshift.fleet.log import entries, entry
from priorshift.fleet.mapped import lock, write_records
from priorshift.fleet.memory import Live
from priorshift.saving.archive import replacing
from priorshift.typing import FloatArray

_FORMAT = 3
_MAIN = "fleet.json"


class Files(NamedTuple):
    """The files of one generation."""

    model: Path
    records: Path
    names: Path
    journal: Path

    @classmethod
    def of(cls, folder: Path, generation: int) -> Files:
        """Their paths."""
        return cls(
            folder / f"model-{generation}.priorshift",
            *(folder / f"{kind}-{generation}" for kind in ("records", "names", "journal")),
        )


def is_fleet(path: str | os.PathLike[str]) -> bool:
    """Whether there is a fleet in a folder.

    Examples
    --------
    >>> is_fleet("no-such-folder")
    False
    """
    return os.path.isfile(os.path.join(os.fsdecode(path), _MAIN))


def read_main(folder: Path) -> tuple[Files, dict[str, Any]]:
    """The files that count, and the fleet's settings."""
    try:
        main = json.loads((folder / _MAIN).read_text(encoding="utf-8"))
        if main["format"] != _FORMAT:
            raise FileFormatError(
                f"{folder}: has format {main['format']}, this priorshift reads {_FORMAT}: "
                "load it with the version that saved it"
            )
        settings = main["settings"]
        generation = int(main["generation"])
        known = {"forget_after", "shared_prior"}
        if not isinstance(settings, dict) or set(settings) - {"together"} != known:
            raise TypeError("its settings are others")
    except FileFormatError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{folder}: holds no fleet that can be read ({error})") from error
    return Files.of(folder, generation), settings


def write_fleet(
    path: str | os.PathLike[str],
    save_model: Any,
    digest: bytes,
    width: int,
    names: Names,
    calls: int,
    chunks: Iterator[FloatArray],
    settings: dict[str, Any],
    more: FloatArray,
) -> Files:
    """Write a fleet to a folder; one that is there stays until the new one is whole.

    ``chunks`` yields the records of all streams, in the order of ``names.keys()``: slots are dealt
    out anew. ``more`` (M, W) are records after them, of no stream.
    """
    folder = Path(path)
    if folder.is_file():
        raise InputError(f"{folder}: is a file: a fleet is saved to a folder")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from error
    before = None
    if is_fleet(folder):
        before = read_main(folder)[0]
        _check_free(before.journal)
    elif any(folder.iterdir()):
        raise InputError(f"{folder}: is not empty, and holds no fleet: give another folder")
    generation = 1 + max(_generations(folder), default=0)
    files = Files.of(folder, generation)
    save_model(files.model)
    keys: list[Key] = names.keys()
    log = entry(list(range(len(keys))), keys) if keys else b""
    with files.names.open("xb") as file:
        file.write(log)
        file.flush()
        os.fsync(file.fileno())
    live = Live(calls, len(keys) + len(more), len(log))
    write_records(files.records, width, digest, live, chain(chunks, [more]))
    files.journal.touch(mode=0o600)
    main = {"format": _FORMAT, "generation": generation, "settings": settings}
    with replacing(folder / _MAIN) as file:
        file.write(json.dumps(main).encode())
    if before is not None:
        for old in before:
            with suppress(OSError):
                old.unlink()
    return files


def _check_free(journal: Path) -> None:
    """Refuse to replace a fleet that is mapped: its calls would go to files that are removed."""
    descriptor = os.open(journal, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(descriptor)
    except FileFormatError:
        raise InputError(
            f"{journal.parent}: is mapped, and has every call already: save to another folder"
        ) from None
    finally:
        os.close(descriptor)


def _generations(folder: Path) -> Iterator[int]:
    """Those that have left any file, also of saves that were not finished."""
    for path in folder.iterdir():
        _, _, number = path.stem.rpartition("-")
        if number.isdigit():
            yield int(number)


def read_names(data: bytes) -> Names:
    """The names that a log tells of."""
    names = Names()
    for slots, keys in entries(data):
        if keys is None:
            names.drop(slots)
        else:
            names.restore(slots, keys)
    return names
