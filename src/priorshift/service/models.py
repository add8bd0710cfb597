"""The sources that are served: how rows become a batch, and what is answered."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from priorshift._rows import frame_library
from priorshift._validation import json_labels, known_classes, plain_labels
from priorshift.classifier import LabelShiftClassifier, load
from priorshift.errors import InputError
from priorshift.files.columns import known_names, refused_by
from priorshift.files.tables import listed
from priorshift.monitoring.history import NO_TIME, as_seconds
from priorshift.river import row_kind
from priorshift.saving import deployment_digest
from priorshift.saving.stream_bytes import digest_of
from priorshift.service.cells import (
    check_width,
    rows_of,
    said_of_rows,
    text_in_numbers,
    wrong_row,
)
from priorshift.service.problems import Problem
from priorshift.service.schemas import Label
from priorshift.source import Batch
from priorshift.source.model import ProbabilityModel
from priorshift.stream import Deployment, Stream
from priorshift.typing import AnyArray, FloatArray

_SPEC = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?:@([A-Za-z0-9._-]{1,32}))?=)?(.+)")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_HEAD = struct.Struct("<IIq")
_WARM = 200  # rows of a batch that nobody has sent


class Answer(NamedTuple):
    """What a batch is answered with, whatever form it takes on the way out."""

    version: int
    proba: FloatArray
    prior: FloatArray

    def to_bytes(self) -> bytes:
        """The same as flat bytes: what the database keeps."""
        head = _HEAD.pack(*self.proba.shape, self.version)
        return head + self.proba.tobytes() + self.prior.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Back again, to the last bit.

        Examples
        --------
        >>> answer = Answer(3, np.array([[0.25, 0.75]]), np.array([0.5, 0.5]))
        >>> Answer.from_bytes(answer.to_bytes())
        Answer(version=3, proba=array([[0.25, 0.75]]), prior=array([0.5, 0.5]))
        """
        rows, classes, version = _HEAD.unpack_from(data)
        numbers = np.frombuffer(data, dtype=np.float64, offset=_HEAD.size)
        return cls(version, numbers[: rows * classes].reshape(rows, classes), numbers[-classes:])


class Input(NamedTuple):
    """A batch that was read, and a digest of what was sent."""

    batch: Batch
    digest: bytes
    time: float = NO_TIME


@dataclass(frozen=True, eq=False)
class Model:
    """A source under a name and a version.

    Examples
    --------
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier.from_probabilities(P, y, learner="fth")
    >>> model = Model("returns", "1", clf)
    >>> model.key, model.takes, model.read(probabilities=[[0.5, 0.5]]).batch.proba.tolist()
    ('returns@1', 'probabilities', [[0.5, 0.5]])
    """

    name: str
    version: str
    classifier: LabelShiftClassifier
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", deployment_digest(self.deployment))

    @property
    def key(self) -> str:
        """Name and version in one word."""
        return f"{self.name}@{self.version}"

    @property
    def deployment(self) -> Deployment:
        """Source, learner and guard."""
        found: Deployment = self.classifier.deployment_
        return found

    @property
    def begun(self) -> Stream:
        """Where a new stream begins: what the file's own stream had learned, if anything."""
        found: Stream = self.classifier.stream_
        return found

    @cached_property
    def classes(self) -> list[Label]:
        """Labels of the classes, as JSON has them."""
        return [plain(label) for label in self.deployment.source.classes]

    @cached_property
    def _places(self) -> dict[tuple[bool, Label], int]:
        return {(isinstance(label, str), label): k for k, label in enumerate(self.classes)}

    @cached_property
    def takes(self) -> str:
        """What this source reads: "probabilities" or "rows"."""
        model = self.deployment.source.model.estimator
        given = isinstance(model, ProbabilityModel) and not model.logits
        return "probabilities" if given else "rows"

    @cached_property
    def _numeric(self) -> bool:
        return row_kind(self.classifier) == "array"

    @cached_property
    def _column_classes(self) -> list[Label] | None:
        """The classes in the order of the columns, where these are probabilities."""
        if self.takes == "rows":
            return None
        return [*map(plain, self.deployment.source.model.estimator.classes)]

    @cached_property
    def columns(self) -> list[Any] | None:
        """Names of the columns: those of a frame, of probabilities the classes; None: none."""
        own = known_names(self.classifier)
        return self._column_classes if own is None else own

    @property
    def reads_single(self) -> bool:
        """Whether a row is one value, as a text is, and no list of cells."""
        return row_kind(self.classifier) == "rows"

    @cached_property
    def datatype(self) -> str:
        """What tensors of rows hold: numbers, or text that is read as cells of a file are."""
        if self._numeric:
            return "FP64"
        sample = self.deployment.source.sample
        return "FP64" if np.asarray(sample).dtype.kind in "iuf" else "BYTES"

    def labels(self, proba: FloatArray) -> list[Label]:
        """The most probable class of each row."""
        return [*map(self.classes.__getitem__, proba.argmax(axis=1).tolist())]

    def warm_up(self) -> None:
        """Play a stream that nobody keeps: what its first batches have to load or to compile.

        That is a tenth of a second as a rule, and up to a minute where nothing has been compiled
        on the machine so far. Rows are those of the held-out set.
        """
        deployment = self.deployment
        held = deployment.source.held_out
        if not held.features.shape[1] and len(deployment.source.risk.XT):
            return  # a sketch has replaced the rows
        if deployment.source.calibration is not None:
            deployment.source.calibration(held.f0_proba[:_WARM])
        rows = np.random.default_rng(0).permutation(len(held.proba))
        mixed, alike = np.resize(rows, _WARM), np.resize(rows[:1], _WARM)
        stream = deployment.start()
        # Blocks of all rows alike are looked at more closely.
        for part in (mixed[:1], mixed, mixed, alike, alike, alike):
            stream, _ = deployment.step(stream, held.rows(part), predict=True)
        deployment.prior(stream)

    def read(
        self,
        rows: Any = None,
        probabilities: Any = None,
        labels: list[Label] | None = None,
        timestamp: float | str | None = None,
        columns: list[str] | None = None,
        typed: bool = False,
    ) -> Input:
        """What a request holds as a batch that is to be learned."""
        batch, X = self.batch(rows, probabilities, labels, columns, typed)
        digest = sha256()
        sent = X if isinstance(X, np.ndarray) or columns is None else [columns, X]
        if typed and sent is not X:
            sent = [*sent, typed]
        for part in (sent, labels, timestamp):
            digest.update(_as_bytes(part))
        return Input(batch, digest.digest()[:16], as_seconds(timestamp))

    def batch(
        self,
        rows: Any = None,
        probabilities: Any = None,
        labels: list[Label] | None = None,
        columns: list[str] | None = None,
        typed: bool = False,
    ) -> tuple[Batch, Any]:
        """Turn rows into a batch, or refuse them; also return the array, or the rows as sent."""
        if (rows is None) == (probabilities is None):
            raise Problem("bad_request", "give one of rows and probabilities")
        if probabilities is not None and self.takes == "rows":
            raise Problem(
                "invalid_input",
                f"the source {self.key} has a model of its own: send rows, not probabilities",
            )
        given = rows if probabilities is None else probabilities
        if isinstance(given, np.ndarray) and not self._numeric:
            given = given.tolist()  # a tensor, and the model has no array
        if labels is not None:
            labels = self._known_labels(labels, len(given))
        try:
            if columns is not None:
                X = rows_of(self.classifier, columns, given, self._column_classes, typed)
            else:
                X = self._array(given) if self._numeric else self._objects(given)
            return self.classifier._read(X, labels), X if isinstance(X, np.ndarray) else given
        except refused_by(row_kind(self.classifier)) as error:  # by frames, or by the model
            message = None
            if columns is None and not self._numeric:
                message = text_in_numbers(given, self.columns, self.deployment.source.sample)
            message = message or said_of_rows(error, given, columns or self.columns)
            raise Problem("invalid_input", message) from error

    def known(self, labels: list[Label], rows: int) -> AnyArray:
        """Class indices of labels that came late, -1 where there is none."""
        given = self._known_labels(labels, rows)
        return known_classes(given, rows, self.deployment.source.classes)

    def _known_labels(self, labels: list[Label], rows: int) -> list[Any]:
        if len(labels) != rows:
            message = f"there are {len(labels)} labels for {rows} rows: null for unknown"
            raise Problem("invalid_input", message)
        return [None if label is None else self._known_label(label) for label in labels]

    def _known_label(self, label: Label) -> Any:
        """The class of that label: 1 and 1.0 are one number to JSON, 1 and "1" are not."""
        (known,) = json_labels([label], self.deployment.source.classes)
        place = self._places.get((isinstance(label, str), known))
        if place is None:
            known = listed(self.classes)
            raise InputError(f"labels holds {label!r}, which is none of the classes {known}")
        return self.deployment.source.classes[place]

    def _array(self, given: Any) -> FloatArray:
        """Rows of numbers; null is a missing value."""
        try:
            found = _packed(given) if type(given) is list else None
            found = np.asarray(given) if found is None else found
            if found.dtype.kind == "O" and not any(isinstance(x, str | list) for x in found.flat):
                found = found.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            found = np.empty(0, dtype=object)
        width = self.classifier.__dict__.get("n_features_in_")
        wrong = width is not None and found.ndim == 2 and found.shape[1] != width
        wrong |= width is not None and found.ndim < 2 and len(given) > 0
        if wrong or found.dtype.kind not in "biuf":
            raise Problem("invalid_input", f"{wrong_row(given, width)}; {self.key} reads numbers")
        return found.astype(np.float64, copy=False)

    def _objects(self, given: Any) -> Any:
        if self.reads_single or self.columns is None:
            return given
        check_width(given, self.columns)
        library = frame_library(row_kind(self.classifier))
        cells = zip(*given, strict=True) if given else [()] * len(self.columns)
        return library.DataFrame(dict(zip(self.columns, map(list, cells), strict=True)))


def _packed(rows: list[Any]) -> FloatArray | None:
    """Lists of as many numbers each as an array, in half of NumPy's time; None for all else.

    Examples
    --------
    >>> _packed([[1, 0.5], [True, 2.0]]).tolist(), _packed([[1.0], [None]]), _packed(["12", "34"])
    ([[1.0, 0.5], [1.0, 2.0]], None, None)
    """
    try:
        (width,) = set(map(len, rows))
        found = np.empty((len(rows), width))
        struct.pack_into(f"{found.size}d", found.data, 0, *chain.from_iterable(rows))
    except (TypeError, ValueError, OverflowError, struct.error):
        return None
    return found


def _as_bytes(part: Any) -> bytes:
    if isinstance(part, np.ndarray):
        return f"{part.dtype.str}{part.shape}".encode() + part.tobytes()
    return msgspec.json.encode(part)


def plain(label: Any) -> Label:
    """A label as JSON has it.

    Examples
    --------
    >>> plain(np.int64(3)), plain(np.str_("yes"))
    (3, 'yes')
    """
    (value,) = plain_labels([label])
    return value if isinstance(value, str | int | float | bool) else str(value)


class Models:
    """All sources of a service; the version that was named last is the one of new streams.

    Examples
    --------
    >>> Models([])
    Traceback (most recent call last):
    ...
    priorshift.errors.InputError: there is no source to serve: give --source FILE
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise InputError("there is no source to serve: give --source FILE")
        self.by_key: dict[str, Model] = {}
        self.by_name: dict[str, Model] = {}
        for model in models:
            if model.key in self.by_key:
                raise InputError(f"two sources are called {model.key}: name them NAME@VERSION=FILE")
            self.by_key[model.key] = self.by_name[model.name] = model
        self.default = self.by_name[models[0].name]

    @classmethod
    def load(cls, specs: Sequence[str]) -> Models:
        """Read the files of ``[NAME[@VERSION]=]FILE``."""
        return cls([_load(spec) for spec in specs])

    def find(self, name: str | None, version: str | None = None) -> Model:
        """The model of that name, and of that version if one is given."""
        if name is None:
            return self.default
        found = self.by_name.get(name) if version is None else self.by_key.get(f"{name}@{version}")
        if found is None:
            which = name if version is None else f"{name}@{version}"
            raise Problem("not_found", f"there is no model {which!r}")
        return found

    def of_state(self, state: bytes) -> Model:
        """The model that the bytes of a stream belong to; the usual one where none is known."""
        digest = digest_of(state)
        models = (self.default, *self.by_key.values())
        return next((model for model in models if model.digest == digest), self.default)

    def of_stream(self, key: str) -> Model:
        """The model of a stream."""
        found = self.by_key.get(key)
        if found is None:
            raise Problem(
                "model_not_served",
                f"the stream belongs to the model {key}, which this service was not started with",
            )
        return found


def _load(spec: str) -> Model:
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise InputError(f"--source {spec!r}: write FILE, NAME=FILE or NAME@VERSION=FILE")
    name, version, path = found.groups()
    if name is None:
        stem = re.split(r"[/\\]", path)[-1].removesuffix(".priorshift")
        name = _NAME.sub("-", stem).strip("-._")[:64] or "model"
    return Model(name, version or "1", load(path))
