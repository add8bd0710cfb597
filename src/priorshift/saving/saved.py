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
from priorshift.monitoring.guard import Guard
from priorshift.saving.archive import SAVE_AGAIN, read, write
from priorshift.saving.estimators import import_skops
from priorshift.saving.names import reference
from priorshift.saving.recipes import decode_learner
from priorshift.saving.sources import check_source, decode_source, encode_source
from priorshift.saving.stream_bytes import stream_from_bytes, stream_to_bytes
from priorshift.saving.values import Parts
from priorshift.stream import Deployment, Stream

_STREAM = "stream.bin"


class Saved(NamedTuple):
    """What one file holds.

    Attributes
    ----------
    deployment : Deployment
        Source, learner and guard.
    stream : Stream
        What one stream has learned.
    extra : dict
        Anything else that JSON can hold.

    Examples
    --------
    >>> Saved._fields
    ('deployment', 'stream', 'extra')
    """

    deployment: Deployment
    stream: Stream
    extra: dict[str, Any]


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
    >>> deployment = Deployment(source, FTH())
    >>> saved = Saved(deployment, deployment.start(), {"note": "fresh"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parts(f"{folder}/stream.priorshift", saved)
    ...     again = load_parts(f"{folder}/stream.priorshift")
    >>> again.deployment.learner == FTH(), again.extra, again.deployment.source.proba.tolist()
    (True, {'note': 'fresh'}, [[0.9, 0.1], [0.2, 0.8]])
    """
    deployment = saved.deployment
    data = _rehearsed(saved)
    parts = Parts()
    manifest = {
        "made_with": _versions(),
        "source": encode_source(deployment.source, parts),
        "learner": parts.encode(deployment.learner, "learner"),
        "guard": parts.encode(deployment.guard, "guard"),
        "on_alarm": deployment.on_alarm,
        "label_memory": deployment.label_memory,
        "extra": saved.extra,
    }
    write(path, manifest, {_STREAM: data, **parts.members()})
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
        data = parts.files.pop(_STREAM)
        source = decode_source(manifest["source"], parts, estimator, features)
        deployment = Deployment(
            source,
            decode_learner(manifest["learner"], parts, learner),
            _decode_guard(manifest["guard"], parts),
            manifest["on_alarm"],
            manifest["label_memory"],
        )
    if learner is not None:
        learner.start(source)  # an error in the user's own code is not the file's
    with _refusing(name):
        return Saved(deployment, stream_from_bytes(deployment, data), dict(manifest["extra"]))


def _decode_guard(encoded: Any, parts: Parts) -> Guard | None:
    guard = parts.decode(encoded)
    if guard is not None and not isinstance(guard, Guard):
        raise FileFormatError("holds something else in the place of the guard")
    return guard


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


def _rehearsed(saved: Saved) -> bytes:
    """The stream's bytes; what could not be read back is refused while there is time to mend it."""
    try:
        json.dumps(saved.extra, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"extra cannot be saved, it is not for JSON: {error}") from None
    try:
        check_source(saved.deployment.source)
        data = stream_to_bytes(saved.deployment, saved.stream)
        stream_from_bytes(saved.deployment, data)
    except (FileFormatError, InputError) as error:
        raise InputError(f"this cannot be saved: {error}") from None
    return data
