"""Writing results: the packages that it needs, and files that are whole or not there at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from priorshift._extras import need as need
from priorshift.errors import InputError


def check_writable(path: str, option: str) -> None:
    """Refuse a path that could not be written, before hours of work are put into it.

    Examples
    --------
    >>> check_writable("/no/such/folder/result.json", "--json")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: --json /no/such/folder/result.json: cannot be written \
(there is no folder /no/such/folder); make it first, or choose another place
    """
    target = Path(path)
    try:
        if not path or target.is_dir():
            raise InputError(f"{option} {path!r}: is a folder; give the name of a file")
        if _is_special(target):
            return
        folder = target.resolve().parent
        if not folder.is_dir():
            raise _refusal(option, path, f"there is no folder {folder}")
        probe = _beside(target, "probe")
        probe.touch()
        probe.unlink()
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal(option, path, reason) from error


def check_apart(output: str | None, option: str, **inputs: str | None) -> None:
    """Refuse an output that is one of the inputs, or another output, however either is spelled.

    Examples
    --------
    >>> check_apart("./page.html", "--output", hold="hold.csv", stream="page.html")
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: --stream and --output are the same file, ./page.html; give two
    """
    for name, path in inputs.items():
        if output is not None and path is not None and _are_same(os.path.expanduser(path), output):
            raise InputError(f"--{name} and {option} are the same file, {output}; give two")


def _are_same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.isfile(path) and os.path.samefile(path, other)
    return "-" not in (path, other) and Path(path).resolve() == Path(other).resolve()


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file; an old one stays until the new one is whole."""
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    if _is_special(target):
        # A pipe or device has no old content to keep, and must not be replaced by a file.
        target.write_bytes(data)
        return
    part = _beside(target, "part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target.resolve())
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _beside(target: Path, ending: str) -> Path:
    """Name a file in the same folder, where a rename is one step; links are followed."""
    real = target.resolve()
    return real.with_name(f".{real.name[:100]}.{os.getpid()}.{ending}")


def _refusal(option: str, path: str, reason: str) -> InputError:
    first = "make it first, or " if reason.startswith("there is no folder") else ""
    return InputError(f"{option} {path}: cannot be written ({reason}); {first}choose another place")
