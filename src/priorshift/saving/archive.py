"""The archive: a manifest and named bytes in one zip file, with checksums, all or nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from priorshift.errors import FileFormatError, InputError

FORMAT = "priorshift"
VERSION = 3
SAVE_AGAIN = "use another copy of it, or save it again"

_MANIFEST = "manifest.json"


def write(
    path: str | os.PathLike[str], manifest: dict[str, Any], members: dict[str, bytes]
) -> None:
    """Write one file; under ``path`` there is the old one until the new one is whole.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/file", {"extra": {}}, {"notes.txt": b"hello"})
    ...     manifest, members = read(Path(folder) / "file")
    >>> list(manifest), members
    (['format', 'version', 'extra', 'members'], {'notes.txt': b'hello'})
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{os.fspath(path)}: is a folder: give the path of a file")
    if not target.parent.is_dir():
        raise InputError(f"{os.fspath(path)}: there is no folder {target.parent}: make it first")
    sums = {name: {"size": len(data), "sha256": _sha256(data)} for name, data in members.items()}
    whole = {"format": FORMAT, "version": VERSION, **manifest, "members": sums}
    text = json.dumps(whole, allow_nan=False, indent=1).encode()
    temporary = target.with_name(f".priorshift-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            with ZipFile(file, "w", ZIP_STORED) as archive:
                archive.comment = _comment(text)
                for name, data in {_MANIFEST: text, **members}.items():
                    archive.writestr(ZipInfo(name), data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the checked members.

    Examples
    --------
    >>> read(Path("no-such-file.priorshift"))
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no such file
    """
    if path.is_dir():
        raise FileFormatError("is a folder: give the path of a file")
    if not path.exists():
        raise FileFormatError("no such file")
    with ZipFile(path) as archive:
        _check_sizes(archive, path.stat().st_size)
        text = archive.read(_MANIFEST)
        if archive.comment != _comment(text):
            raise FileFormatError(f"its manifest was altered: {SAVE_AGAIN}")
        manifest = json.loads(text)
        _check_format(manifest)
        sums = manifest["members"]
        if sorted(archive.namelist()) != sorted([_MANIFEST, *sums]):
            raise FileFormatError(f"members are missing, or there are too many: {SAVE_AGAIN}")
        members = {}
        for name, about in sums.items():
            data = archive.read(name)
            if len(data) != about["size"] or _sha256(data) != about["sha256"]:
                raise FileFormatError(f"its member {name} was altered: {SAVE_AGAIN}")
            members[name] = data
    return manifest, members


def check_stored(data: bytes) -> None:
    """Refuse a member that is itself an archive and would grow when it is opened.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> with ZipFile(buffer, "w", compression=8) as archive:
    ...     archive.writestr("zeros", bytes(1000))
    >>> check_stored(buffer.getvalue())
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: it is compressed, which priorshift's files are not: \
use another copy of it, or save it again
    """
    with ZipFile(io.BytesIO(data)) as archive:
        _check_sizes(archive, len(data))


def _check_sizes(archive: ZipFile, size: int) -> None:
    """Refuse an archive that says it holds more than the file does: it could fill the memory."""
    members = archive.infolist()
    if any(m.compress_type != ZIP_STORED or m.file_size != m.compress_size for m in members):
        raise FileFormatError(f"it is compressed, which priorshift's files are not: {SAVE_AGAIN}")
    if sum(m.file_size for m in members) > size:
        raise FileFormatError(f"its members are larger than the file: {SAVE_AGAIN}")


def _check_format(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FileFormatError("is not a priorshift file: give one that priorshift saved")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"has no format version: {SAVE_AGAIN}")
    if version < VERSION:
        made_with = manifest.get("made_with")
        writer = made_with.get("priorshift") if isinstance(made_with, dict) else "0.1"
        raise FileFormatError(
            f"was saved by priorshift {writer} in file format {version}, this version reads "
            f"format {VERSION}: load it with priorshift {writer}, or fit and save it again"
        )
    if version > VERSION:
        raise FileFormatError(
            f"has format version {version}, this priorshift reads up to {VERSION}: update it"
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _comment(manifest: bytes) -> bytes:
    return f"sha256:{_sha256(manifest)}".encode()
