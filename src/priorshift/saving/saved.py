"""Saving and loading as a whole, and every refusal of a file in one line."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn

from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.learners import Learner
from priorshift.learners.trackers.late import Remembered, check_key
from priorshift.monitoring.guard import Guard, GuardState
from priorshift.saving.archive import SAVE_AGAIN, read, write
from priorshift.saving.estimators import import_skops
from priorshift.saving.leaves import rebuild
from priorshift.saving.names import reference
from priorshift.saving.recipes import decode_learner
from priorshift.saving.sources import check_source, decode_source, encode_source
from priorshift.saving.values import Parts
from priorshift.source import Source


class Saved(NamedTuple):
    """What one file holds.

    Attributes
    ----------
    source : Source
        The offline stage.
    learner : Learner
        The recipe.
    state : NamedTuple
        What the learner has learned of the stream.
    extra : dict
        Anything else that JSON can hold.
    guard, guard_state : Guard and GuardState, optional
        The stream's guard and what it has counted.
    memory : tuple of Remembered
        Batches whose labels may still come.

    Examples
    --------
    >>> Saved._fields
    ('source', 'learner', 'state', 'extra', 'guard', 'guard_state', 'memory')
    """

    source: Source
    learner: Learner
    state: Any
    extra: dict[str, Any]
    guard: Guard | None = None
    guard_state: GuardState | None = None
    memory: tuple[Remembered, ...] = ()


def save_parts(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write ``saved`` to one file; an old file stays as it is until the new one is whole.

    A model, a features callable, a learner or a hint that is neither priorshift's nor one that
    skops can keep is only referred to by its name. Keep the object, and give it to ``load_parts``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from priorshift.learners import FTH
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0, 1])
    >>> saved = Saved(source, FTH(), FTH().start(source), {"note": "fresh"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parts(f"{folder}/stream.priorshift", saved)
    ...     again = load_parts(f"{folder}/stream.priorshift")
    >>> again.learner == FTH(), again.extra, again.source.proba.tolist()
    (True, {'note': 'fresh'}, [[0.9, 0.1], [0.2, 0.8]])
    """
    parts = Parts()
    manifest = {
        "made_with": _versions(),
        "source": encode_source(saved.source, parts),
        "learner": parts.encode(saved.learner, "learner"),
        "state": parts.encode(saved.state, "state"),
        "extra": saved.extra,
    }
    if saved.guard is not None:
        manifest["guard"] = parts.encode(saved.guard, "guard")
        manifest["guard_state"] = parts.encode(saved.guard_state, "guard_state")
    if saved.memory:
        manifest["memory"] = parts.encode(list(saved.memory), "memory")
    _rehearse(saved, manifest["state"], parts)
    write(path, manifest, parts.members())
    for role in ("estimator", "features"):
        missing = reference(manifest["source"][role])
        if missing is not None:
            message = (
                f"{os.fspath(path)} only refers to {role} ({missing}) and does not "
                f"hold it: keep that object, and load with {role}="
            )
            warnings.warn(message, PriorshiftWarning, stacklevel=3)


def load_parts(
    path: str | os.PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    learner: Any = None,
) -> Saved:
    """Read what ``save_parts`` wrote; a file that is not whole is refused.

    Parameters
    ----------
    path : path
        The file.
    estimator, features, learner : object, optional
        The objects that the file only refers to. One that the file does hold may be given too, and
        takes the place of the file's; its type, and a learner's settings, must be the saved ones.

    Examples
    --------
    >>> load_parts("no-such-file.priorshift")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: no-such-file.priorshift: no such file
    """
    name = os.fspath(path)
    with _refusing(name):
        manifest, members = read(Path(path))
        parts = Parts.of(members)
    if any(
        f"{role}.skops" in parts.files and given is None
        for role, given in (("estimator", estimator), ("features", features))
    ):
        import_skops()  # that it is not installed is not the file's fault
    with _refusing(name):
        source = decode_source(manifest["source"], parts, estimator, features)
        recipe = decode_learner(manifest["learner"], parts, learner)
        template = recipe.start(source) if learner is None else None
    if learner is not None:  # an error in the user's own code is not the file's
        template = learner.start(source)
    with _refusing(name):
        state = rebuild(template, manifest["state"], parts, "state")
        guard, counted = _decode_guard(manifest, parts, source)
        memory = _decode_memory(manifest, parts, source)
        return Saved(source, recipe, state, dict(manifest["extra"]), guard, counted, memory)


def _decode_guard(
    manifest: dict[str, Any], parts: Parts, source: Source
) -> tuple[Guard | None, GuardState | None]:
    """The guard of a file and its state; files without one are older, or had none."""
    if manifest.get("guard") is None:
        return None, None
    guard = parts.decode(manifest["guard"])
    if not isinstance(guard, Guard):
        raise FileFormatError("holds something else in the place of the guard")
    return guard, rebuild(guard.start(source), manifest["guard_state"], parts, "guard_state")


def _decode_memory(
    manifest: dict[str, Any], parts: Parts, source: Source
) -> tuple[Remembered, ...]:
    """The batches of a file whose labels may still come; their sizes are their own."""
    found = []
    for encoded in manifest.get("memory", {"list": []})["list"]:
        fields = {name: parts.decode(encoded["record"][name]) for name in Remembered._fields}
        record = Remembered(**fields)
        rows = (len(record.known),)
        if record.proba.shape != (*rows, source.n_classes) or record.features.shape[:1] != rows:
            raise FileFormatError("the batches that it remembers do not fit its source")
        for known in (record.first, record.known):
            if known.shape != rows or not ((known >= -1) & (known < source.n_classes)).all():
                raise FileFormatError("the batches that it remembers have labels of no class")
        found.append(record._replace(key=check_key(record.key), round=int(record.round)))
    return tuple(found)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign file provokes into one line that names the file."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {_one_line(error)}") from error.__cause__
    except OSError as error:
        reason = error.strerror or _one_line(error)
        raise FileFormatError(f"{path}: cannot be read ({reason}): check its rights") from error
    except Exception as error:  # zip, JSON, NumPy and settings each fail in many ways
        reason = f"{type(error).__name__}: {_one_line(error)}"
        message = f"{path}: damaged, or not a priorshift file ({reason}): {SAVE_AGAIN}"
        raise FileFormatError(message) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _versions() -> dict[str, str]:
    from priorshift import __version__  # late: the package imports this module

    return {"priorshift": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__}


def _rehearse(saved: Saved, encoded: Any, parts: Parts) -> None:
    """Refuse to write what could not be read back, while the user can still do something."""
    try:
        json.dumps(saved.extra, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"extra cannot be saved, it is not for JSON: {error}") from None
    try:
        check_source(saved.source)
        rebuild(saved.learner.start(saved.source), encoded, parts, "state")
    except FileFormatError as error:
        raise InputError(f"this cannot be saved: {error}") from None
