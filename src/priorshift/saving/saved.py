"""Saving and loading as a whole, and every refusal of a file in one line."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn

from priorshift._validation import check_path
from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.monitoring.guard import Guard
from priorshift.saving.archive import SAVE_AGAIN, read, write
from priorshift.saving.names import OWN_NAMES, reference
from priorshift.saving.recipes import check_sizes, decode_learner
from priorshift.saving.sources import check_source, decode_source, encode_source
from priorshift.saving.stream_bytes import stream_from_bytes, stream_to_bytes
from priorshift.saving.values import Parts
from priorshift.stream import Deployment, Stream

STREAM = "stream"
_ROUNDING = 1e-6


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
    """

    deployment: Deployment
    stream: Stream
    extra: dict[str, Any]


def save_parts(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write ``saved`` to one file; an old file stays as it is until the new one is whole.

    A model, a features callable, a learner or a hint that is neither priorshift's nor in the closed
    list of scikit-learn's is only referred to by its name. Keep the object, and give it to
    ``load_parts``.

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
        "history": deployment.history,
        "extra": saved.extra,
    }
    stream = np.frombuffer(data, dtype=np.uint8)
    write(path, manifest, {STREAM: stream, **parts.arrays})
    for role in ("estimator", "features"):
        _tell(os.fsdecode(path), role, manifest["source"])


def _tell(path: str, role: str, encoded: dict[str, Any]) -> None:
    """Say what the file only refers to, and what `load` cannot check."""
    missing = reference(encoded[role])
    if missing is None:
        return
    why, unchecked = encoded[role]["reason"], encoded["sample"].get("reason")
    message = (
        f"{path} only refers to {role} ({missing}{': ' if why else ''}{why}) and does not hold it: "
        f"keep that object, and load with {role}="
    )
    if unchecked is not None:
        message += f" (load will check its type, not its answers: {unchecked})"
    warnings.warn(message, PriorshiftWarning, stacklevel=4)


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
    check_path(path)
    name = os.fsdecode(path)
    with refusing(name):
        manifest, blocks = read(Path(name))
        data = _stream_bytes(blocks.pop(STREAM, None))
        check_sizes([manifest["learner"], manifest["guard"]], len(data))
        deployment = decode_deployment(manifest, Parts(blocks), estimator, features, learner)
    if learner is not None:
        learner.start(deployment.source)  # an error in the user's own code is not the file's
    with refusing(name):
        extra = manifest["extra"]
        if not isinstance(extra, dict):
            raise FileFormatError("holds something else in the place of extra")
        stream = stream_from_bytes(deployment, data)
        _check_prior(deployment, stream)
        return Saved(deployment, stream, extra)


def _check_prior(deployment: Deployment, stream: Stream) -> None:
    """Refuse a state that fits by its sizes, and means nothing."""
    if type(deployment.learner) not in OWN_NAMES:
        return
    with np.errstate(all="ignore"):
        prior = np.asarray(deployment.prior(stream))
    fits = prior.shape == (deployment.source.n_classes,) and np.isfinite(prior).all()
    if not fits or prior.min() < -_ROUNDING or abs(prior.sum() - 1.0) > _ROUNDING:
        raise FileFormatError("its state gives no class prior")


def decode_deployment(
    manifest: dict[str, Any], parts: Parts, estimator: Any, features: Any, learner: Any
) -> Deployment:
    """Return source, learner and guard of a manifest."""
    encoded = manifest["source"]
    held = [
        role
        for role, given in (("estimator", estimator), ("features", features))
        if given is None and "holds" in (encoded[role] or {})
    ]
    other = _other_version(manifest["made_with"], held)
    return Deployment(
        decode_source(encoded, parts, estimator, features, other),
        decode_learner(manifest["learner"], parts, learner),
        _decode_guard(manifest["guard"], parts),
        manifest["on_alarm"],
        manifest["label_memory"],
        manifest.get("history", 0),  # files of before there was one
    )


def _other_version(made_with: Any, held: list[str]) -> str | None:
    """The version of scikit-learn that the file's models are of, where it is not this one.

    A newer one may have attributes that mean nothing here, and is refused. An older one is let
    through, to be asked for its answers.
    """
    found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})([.a-z].*)?", str(made_with["sklearn"]))
    if found is None:
        raise FileFormatError(f"was made with scikit-learn {made_with['sklearn']!r}")
    theirs = (int(found.group(1)), int(found.group(2)))
    ours = tuple(map(int, sklearn.__version__.split(".")[:2]))
    if held and theirs > ours:
        raise FileFormatError(
            f"its {held[0]} was saved with scikit-learn {found.group(0)}, this is "
            f"{sklearn.__version__}: update scikit-learn, or pass the object, "
            f"load(path, {held[0]}=...)"
        )
    return None if theirs == ours else found.group(0)


def _stream_bytes(block: Any) -> bytes:
    if block is None or block.dtype != np.uint8 or block.ndim != 1:
        raise FileFormatError(f"holds no stream: {SAVE_AGAIN}")
    return bytes(block.tobytes())


def _decode_guard(encoded: Any, parts: Parts) -> Guard | None:
    if encoded is not None and encoded.get("object") != "guard/guard":
        raise FileFormatError("holds something else in the place of the guard")
    guard: Guard | None = parts.decode(encoded, ("guard/",))
    return guard


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign file provokes into one line that names the file.

    Examples
    --------
    >>> with refusing("file.priorshift"):
    ...     {}["stream"]
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: file.priorshift: damaged, or not a priorshift file \
(KeyError: 'stream'): use another copy of it, or save it again
    """
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {_one_line(error)}") from error.__cause__
    except OSError as error:
        reason = error.strerror or _one_line(error)
        raise FileFormatError(f"{path}: cannot be read ({reason}): check its rights") from error
    except Exception as error:  # JSON, NumPy and settings each fail in many ways
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
        _check_prior(saved.deployment, saved.stream)
    except (FileFormatError, InputError) as error:
        raise InputError(f"this cannot be saved: {error}") from None
    return data
