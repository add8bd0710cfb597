"""One file that holds a source, a learner and a state, without pickle and to the last bit.

The file is a zip archive, nothing in it compressed:

* ``manifest.json``: the format's name and version, all settings, and the size and SHA-256 of every
  other member. The SHA-256 of the manifest itself is the archive's comment;
* ``arrays.npz``: every array, under names such as ``source/proba`` and ``state/hint/ring``;
* ``estimator.skops``, ``features.skops``: scikit-learn objects, in the format of skops.

Reading it runs no code of the file: priorshift's own objects are named in a fixed list,
scikit-learn's go through skops with types of scikit-learn, NumPy and SciPy only, and of everything
else there is but a name, for which the caller brings the object. The checksums find damage; they do
not prove who wrote a file, and a forged decision tree can still crash scikit-learn. So load only
models that come from people you trust.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import json
import math
import numbers
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.hints import HINTS, Hint
from priorshift.learners import LEARNERS, Learner
from priorshift.model import LinearModel, Model, ProbabilityModel, log_probabilities
from priorshift.priors import BBSE, MLLS, RLLS
from priorshift.risk import ImplicitSolver, RiskData, loss_by_name
from priorshift.source import FeatureMap, Source
from priorshift.typing import AnyArray

FORMAT = "priorshift"
VERSION = 1

_MANIFEST, _ARRAYS = "manifest.json", "arrays.npz"
_SAVE_AGAIN = "use another copy of it, or save it again"

# Every class that a file can name: one goes into a file and comes out of it by this list only.
_OWN: dict[str, Any] = {
    **{f"learner/{name}": kind for name, kind in LEARNERS.items()},
    **{f"hint/{name}": kind for name, kind in HINTS.items()},
    "hint/custom": Hint,
    "prior/bbse": BBSE,
    "prior/rlls": RLLS,
    "prior/mlls": MLLS,
    "solver/implicit": ImplicitSolver,
    "model/linear": LinearModel,
    "model/probability": ProbabilityModel,
}
_OWN_NAMES = {kind: name for name, kind in _OWN.items()}
_FUNCTIONS = {"log_probabilities": log_probabilities}
_PACKAGES = ("sklearn", "numpy", "scipy")
_LEAVES = "a state is made of arrays, numbers and named tuples of them"


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

    Examples
    --------
    >>> Saved._fields
    ('source', 'learner', 'state', 'extra')
    """

    source: Source
    learner: Learner
    state: Any
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
    parts = _Parts()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "made_with": _versions(),
        "source": _encode_source(saved.source, parts),
        "learner": parts.encode(saved.learner, "learner"),
        "state": parts.encode(saved.state, "state"),
        "extra": saved.extra,
    }
    _rehearse(saved, manifest["state"], parts)
    _write(path, manifest, parts.members())
    for role in ("estimator", "features"):
        encoded = manifest["source"][role]
        if isinstance(encoded, dict) and "reference" in encoded:
            message = (
                f"{os.fspath(path)} only refers to {role} ({encoded['reference']}) and does not "
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
        manifest, parts = _read(Path(path))
    if any(
        f"{role}.skops" in parts.files and given is None
        for role, given in (("estimator", estimator), ("features", features))
    ):
        _skops()
    with _refusing(name):
        source = _decode_source(manifest["source"], parts, estimator, features)
        recipe = _decode_learner(manifest["learner"], parts, learner)
        template = recipe.start(source) if learner is None else None
    if learner is not None:  # an error in the user's own code is not the file's
        template = learner.start(source)
    with _refusing(name):
        state = _rebuild(template, manifest["state"], parts, "state")
        return Saved(source, recipe, state, dict(manifest["extra"]))


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
        message = f"{path}: damaged, or not a priorshift file ({reason}): {_SAVE_AGAIN}"
        raise FileFormatError(message) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _versions() -> dict[str, str]:
    from priorshift import __version__  # late: the package imports this module

    return {"priorshift": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__}


# Values to JSON and arrays, and back.


class _Parts:
    """What goes beside the manifest: arrays by name, and other members; and the way in and out."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self.files: dict[str, bytes] = {}

    def members(self) -> dict[str, bytes]:
        buffer = io.BytesIO()
        np.savez(buffer, **self.arrays)  # type: ignore[arg-type]
        return {_ARRAYS: buffer.getvalue(), **self.files}

    def encode(self, value: Any, where: str) -> Any:
        """Return ``value`` for JSON; a dict with one tag where JSON has no word for it."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_array(value, where)
        if _is_record(value):
            return {"record": self._encode_fields(value._asdict(), where)}
        if type(value) in (tuple, list):
            items = [self.encode(item, f"{where}/{i}") for i, item in enumerate(value)]
            return {type(value).__name__: items}
        if type(value) in _OWN_NAMES:
            fields = self._encode_fields(_settings(value), where)
            return {"object": _OWN_NAMES[type(value)], "fields": fields}
        if value is log_probabilities:
            return {"function": "log_probabilities"}
        plain = (bool, int, float, str, type(None))
        settings = {k: v for k, v in _settings(value).items() if type(v) in plain}
        return {"reference": _full_name(value), "fields": self._encode_fields(settings, where)}

    def _encode_fields(self, fields: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{where}/{name}") for name, value in fields.items()}

    def _encode_array(self, value: Any, where: str) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype.kind == "O" and array.ndim == 1:
            odd = [type(item).__name__ for item in array if not isinstance(item, str)]
            if not odd:
                return {"strings": [str(item) for item in array]}
            raise InputError(
                f"{where} holds {odd[0]} objects, which no file can keep: use labels that are "
                "numbers or strings"
            )
        if array.dtype.kind not in "biufcUSMm":
            raise InputError(
                f"{where} is an array of {array.dtype}, which no file can keep: use numbers or "
                "strings"
            )
        if isinstance(value, np.generic):
            self.arrays[where] = array
            return {"scalar": where}
        # The order of the axes in memory decides the order of sums, and so the last bits.
        axes = list(range(array.ndim))
        if not array.flags.c_contiguous:
            axes.sort(key=lambda axis: -abs(array.strides[axis]))
        self.arrays[where] = np.asarray(array.transpose(axes), order="C")
        in_order = axes == list(range(array.ndim))
        return {"array": where} if in_order else {"array": where, "axes": axes}

    def decode(self, value: Any) -> Any:
        """Return what ``encode`` was given."""
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = self.arrays[value["array"]]
            return array.transpose(np.argsort(value["axes"])) if "axes" in value else array
        if "scalar" in value:
            return self.arrays[value["scalar"]][()]
        if "strings" in value:
            return np.array([str(item) for item in value["strings"]], dtype=object)
        if "float" in value:
            return float(value["float"])
        if "tuple" in value or "list" in value:
            kind = tuple if "tuple" in value else list
            return kind(self.decode(item) for item in value[kind.__name__])
        if "function" in value:
            return _known(_FUNCTIONS, value["function"])
        if "object" in value:
            fields = {name: self.decode(field) for name, field in value["fields"].items()}
            return _known(_OWN, value["object"])(**fields)
        raise FileFormatError(f"holds an entry that cannot be read ({', '.join(value)})")


def _known(known: dict[str, Any], name: str) -> Any:
    if name not in known:
        raise FileFormatError(
            f"names {name!r}, which this version of priorshift does not have: update priorshift"
        )
    return known[name]


def _is_record(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _settings(value: Any) -> dict[str, Any]:
    """The settings that an object was made with."""
    if isinstance(value, LinearModel | ProbabilityModel):
        return dict(value.get_params(deep=False))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return {}
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _full_name(value: Any) -> str:
    """``module:qualname`` of a function or class, or of the class of an object."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"


# The source.


def _encode_source(source: Source, parts: _Parts) -> dict[str, Any]:
    if loss_by_name(source.loss.name) != source.loss:
        raise InputError(f"the loss {source.loss!r} cannot be saved: use 'softmax' or 'hinge'")
    fields = {
        "classes": source.classes,
        "prior": source.prior,
        "proba": source.proba,
        "labels": source.labels,
        "XT": source.risk.XT,
        "offsets": source.risk.offsets,
        "head": source.head,
        "diameter": source.diameter,
        "n_features": source.n_features,
        "honest": source.honest,
        "loss": source.loss.name,
        "intercept": source.features.intercept,
    }
    encoded = {name: parts.encode(value, f"source/{name}") for name, value in fields.items()}
    encoded["estimator"] = _encode_object(source.model.estimator, "estimator", parts)
    encoded["features"] = _encode_object(source.features.map, "features", parts)
    return encoded


def _decode_source(encoded: Any, parts: _Parts, estimator: Any, features: Any) -> Source:
    model = _decode_object(encoded["estimator"], "estimator", parts, estimator)
    feature_map = _decode_object(encoded["features"], "features", parts, features)
    plain = {
        name: parts.decode(value)
        for name, value in encoded.items()
        if name not in ("estimator", "features")
    }
    source = Source(
        model=Model(model, plain.pop("classes")),
        features=FeatureMap(feature_map, plain.pop("intercept")),
        loss=loss_by_name(plain.pop("loss")),
        risk=RiskData(plain.pop("XT"), plain.pop("offsets")),
        **plain,
    )
    _check_source(source)
    return source


def _check_source(source: Source) -> None:
    """Refuse arrays that do not fit each other."""
    d, n = source.risk.XT.shape
    K = len(source.classes)
    needed: list[tuple[str, AnyArray, type[Any], tuple[int, ...]]] = [
        ("prior", source.prior, np.float64, (K,)),
        ("proba", source.proba, np.float64, (n, K)),
        ("labels", source.labels, np.intp, (n,)),
        ("risk.XT", source.risk.XT, np.float32, (d, n)),
        ("risk.offsets", source.risk.offsets, np.intp, (K + 1,)),
        ("head", source.head, np.float32, (K, d)),
    ]
    for name, array, dtype, shape in needed:
        wanted = _kind(np.broadcast_to(dtype(0), shape))
        if _kind(array) != wanted:
            raise FileFormatError(f"source.{name} is {_kind(array)}, {wanted} is needed")


def _encode_object(value: Any, role: str, parts: _Parts) -> Any:
    """Keep a model or a feature map: by skops, as priorshift's own, or by its name."""
    if isinstance(value, BaseEstimator) and type(value).__module__.startswith("sklearn."):
        data = _to_skops(value)
        if data is not None:
            parts.files[f"{role}.skops"] = data
            return {"skops": f"{role}.skops", "type": _full_name(value)}
    elif value is None or type(value) in _OWN_NAMES or value is log_probabilities:
        return parts.encode(value, f"source/{role}")
    return {"reference": _full_name(value)}


def _decode_object(encoded: Any, role: str, parts: _Parts, given: Any) -> Any:
    if given is not None:
        _check_type(encoded, role, given)
        return given
    if isinstance(encoded, dict) and "reference" in encoded:
        raise FileFormatError(
            f"only refers to its {role}, {encoded['reference']}, and does not hold it: "
            f"pass that object, load(path, {role}=...)"
        )
    if isinstance(encoded, dict) and "skops" in encoded:
        return _from_skops(parts.files[encoded["skops"]], role)
    return parts.decode(encoded)


def _check_type(encoded: Any, role: str, given: Any) -> None:
    """Refuse another type; its module may differ, as code moves from file to file."""
    saved, own = _saved_name(encoded), _full_name(given)
    if saved.rpartition(":")[2] != own.rpartition(":")[2]:
        raise FileFormatError(
            f"{role}= is {own}, but the file was saved with {saved}: pass that one"
        )


def _saved_name(encoded: Any) -> str:
    """``module:qualname`` of an encoded object."""
    if not isinstance(encoded, dict):
        return str(encoded)
    if "object" in encoded:
        return _full_name(_known(_OWN, encoded["object"]))
    if "function" in encoded:
        return _full_name(_known(_FUNCTIONS, encoded["function"]))
    return str(encoded.get("reference", encoded.get("type")))


# scikit-learn's objects, through skops.


def _skops() -> Any:
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        raise InputError(
            "skops is needed to save or load a scikit-learn model and is not installed: "
            'pip install "priorshift[save]"'
        ) from error


def _to_skops(value: Any) -> bytes | None:
    """Return the object in skops' format, or None where loading it would be refused."""
    skops = _skops()
    try:
        data: bytes = skops.dumps(value, compression=ZIP_STORED)
    except TypeError:  # how skops refuses an object, for one a foreign step of a pipeline
        return None
    return data if all(map(_is_scientific, skops.get_untrusted_types(data=data))) else None


def _from_skops(data: bytes, role: str) -> Any:
    skops = _skops()
    with ZipFile(io.BytesIO(data)) as archive:
        _check_stored(archive, len(data))
    names = skops.get_untrusted_types(data=data)
    for name in names:
        if not _is_scientific(name):
            raise FileFormatError(
                f"its {role} holds the type {name}, which is not loaded from files: make the "
                f"object yourself and pass it, load(path, {role}=...)"
            )
    try:
        return skops.loads(data, trusted=names)
    except Exception as error:  # another version of scikit-learn may fail in any way
        raise FileFormatError(
            f"its {role} cannot be rebuilt with scikit-learn {sklearn.__version__} "
            f"({type(error).__name__}: {error}): use the version it was saved with, or pass the "
            f"object, load(path, {role}=...)"
        ) from error


def _is_scientific(name: str) -> bool:
    """Say whether ``name`` is defined by scikit-learn, NumPy or SciPy, and not only imported there.

    A module of theirs may hold a function of the standard library under its own name; that must not
    come in with them. Nor are their scripts and tests run.
    """
    module, _, attribute = name.rpartition(".")
    steps = module.split(".")
    if steps[0] not in _PACKAGES or {"__main__", "conftest", "tests"} & set(steps):
        return False
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception:  # no such module or name here
        return False
    home = getattr(found, "__module__", None) or type(found).__module__
    return home.split(".")[0] in _PACKAGES


# The learner and its state.


def _decode_learner(encoded: Any, parts: _Parts, given: Any) -> Learner:
    if given is not None:
        _check_learner(encoded, parts, given)
        return given  # type: ignore[no-any-return]
    missing = _first_reference(encoded)
    if missing is not None:
        raise FileFormatError(
            f"only refers to {missing}, and does not hold it: make the whole learner again and "
            "pass it, load(path, learner=...)"
        )
    if not str(encoded["object"]).startswith("learner/"):
        raise FileFormatError(f"holds {encoded['object']} in the place of the learner")
    return parts.decode(encoded)  # type: ignore[no-any-return]


def _first_reference(encoded: Any) -> str | None:
    if isinstance(encoded, dict):
        if "reference" in encoded:
            return str(encoded["reference"])
        encoded = list(encoded.values())
    if not isinstance(encoded, list):
        return None
    return next(filter(None, map(_first_reference, encoded)), None)


def _check_learner(encoded: Any, parts: _Parts, given: Any) -> None:
    """Refuse a learner of another type or with other settings: it would not go on as before."""
    _check_type(encoded, "learner", given)
    fresh = _Parts()
    other = _difference(fresh.encode(given, "learner"), encoded, "learner")
    for name, array in fresh.arrays.items():
        if other is None and array.tobytes() != parts.arrays[name].tobytes():
            other = name.replace("/", ".")
    if other is not None:
        raise FileFormatError(
            f"{other} is not what it was when the file was saved: pass a learner with the same "
            "settings"
        )


def _difference(given: Any, saved: Any, where: str) -> str | None:
    """Where two encoded objects differ first, the modules of references aside."""
    if isinstance(given, dict) and isinstance(saved, dict) and list(given) == list(saved):
        for key in given:
            pair = (given[key], saved[key])
            if key == "reference":
                pair = (pair[0].rpartition(":")[2], pair[1].rpartition(":")[2])
            inner = where if key in ("fields", "object", "reference") else f"{where}.{key}"
            found = _difference(*pair, inner)
            if found is not None:
                return found
        return None
    return None if type(given) is type(saved) and given == saved else where


def _rehearse(saved: Saved, encoded: Any, parts: _Parts) -> None:
    """Refuse to write what could not be read back, while the user can still do something."""
    try:
        json.dumps(saved.extra, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"extra cannot be saved, it is not for JSON: {error}") from None
    try:
        _check_source(saved.source)
        _rebuild(saved.learner.start(saved.source), encoded, parts, "state")
    except FileFormatError as error:
        raise InputError(f"this cannot be saved: {error}") from None


def _rebuild(template: Any, encoded: Any, parts: _Parts, where: str) -> Any:
    """Put the saved leaves into a fresh state, whose types are the learner's and not the file's."""
    if _is_record(template):
        record = encoded.get("record") if isinstance(encoded, dict) else None
        names = list(template._fields)
        if not isinstance(record, dict) or list(record) != names:
            kind = f"{type(template).__name__} ({', '.join(names)})"
            raise FileFormatError(f"{where} does not have the fields of {kind}")
        return template._make(
            _rebuild(getattr(template, name), record[name], parts, f"{where}.{name}")
            for name in names
        )
    if isinstance(encoded, dict) and "reference" in encoded:
        raise FileFormatError(f"{where} is a {encoded['reference']}: {_LEAVES}")
    value = parts.decode(encoded)
    needed, found = _kind(template), _kind(value)
    if found is None or needed is None:
        raise FileFormatError(f"{where} is a {type(value).__name__}: {_LEAVES}")
    if found != needed and (found, needed) != ("a whole number", "a number"):
        raise FileFormatError(
            f"{where} is {found}, but the learner starts with {needed}: a state keeps its types "
            "and shapes"
        )
    return value


def _kind(value: Any) -> str | None:
    """What a leaf of a state is, in words that are equal for leaves that can be exchanged."""
    if value is None:
        return "nothing"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "a truth value"
    if isinstance(value, numbers.Integral):
        return "a whole number"
    if isinstance(value, numbers.Real):
        return "a number"
    return None


# The archive.


def _comment(manifest: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(manifest).hexdigest().encode()


def _write(
    path: str | os.PathLike[str], manifest: dict[str, Any], members: dict[str, bytes]
) -> None:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{os.fspath(path)}: is a folder: give the path of a file")
    if not target.parent.is_dir():
        raise InputError(f"{os.fspath(path)}: there is no folder {target.parent}: make it first")
    sums = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in members.items()
    }
    text = json.dumps({**manifest, "members": sums}, allow_nan=False, indent=1).encode()
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


def _read(path: Path) -> tuple[dict[str, Any], _Parts]:
    """Return the manifest and the checked members."""
    if path.is_dir():
        raise FileFormatError("is a folder: give the path of a file")
    if not path.exists():
        raise FileFormatError("no such file")
    with ZipFile(path) as archive:
        _check_stored(archive, path.stat().st_size)
        text = archive.read(_MANIFEST)
        if archive.comment != _comment(text):
            raise FileFormatError(f"its manifest was altered: {_SAVE_AGAIN}")
        manifest = json.loads(text)
        _check_format(manifest)
        sums = manifest["members"]
        if sorted(archive.namelist()) != sorted([_MANIFEST, *sums]):
            raise FileFormatError(f"members are missing, or there are too many: {_SAVE_AGAIN}")
        parts = _Parts()
        for name, about in sums.items():
            data = archive.read(name)
            if len(data) != about["size"] or hashlib.sha256(data).hexdigest() != about["sha256"]:
                raise FileFormatError(f"its member {name} was altered: {_SAVE_AGAIN}")
            parts.files[name] = data
    parts.arrays = _read_arrays(parts.files.pop(_ARRAYS))
    return manifest, parts


def _check_stored(archive: ZipFile, size: int) -> None:
    """Refuse an archive that says it holds more than the file does: it could fill the memory."""
    members = archive.infolist()
    if any(m.compress_type != ZIP_STORED or m.file_size != m.compress_size for m in members):
        raise FileFormatError(f"it is compressed, which priorshift's files are not: {_SAVE_AGAIN}")
    if sum(m.file_size for m in members) > size:
        raise FileFormatError(f"its members are larger than the file: {_SAVE_AGAIN}")


def _check_format(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FileFormatError("is not a priorshift file: give one that priorshift saved")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"has no format version: {_SAVE_AGAIN}")
    if version > VERSION:
        raise FileFormatError(
            f"has format version {version}, this priorshift reads up to {VERSION}: update it"
        )


def _read_arrays(data: bytes) -> dict[str, AnyArray]:
    with ZipFile(io.BytesIO(data)) as archive:
        _check_stored(archive, len(data))
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"its array {name} is not an array: {_SAVE_AGAIN}")
    return arrays
