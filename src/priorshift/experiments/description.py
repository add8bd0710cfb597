"""What a run is: its data, its stream, its learner and what is tracked, in plain values."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from priorshift.datasets import Dataset, OrderedData, load_dataset, reduced, shl_order
from priorshift.datasets.files import BUILT_IN, named_file
from priorshift.datasets.offline import offline_stage
from priorshift.datasets.ordered import SHL_CLASSES, file_order, timed_order
from priorshift.learners import LEARNERS, AtlasAda
from priorshift.source import Source

if TYPE_CHECKING:
    from priorshift.experiments.perform import Prepared

BUNDLED = tuple(BUILT_IN)
"""Data sets that every installation has."""


class Task(Protocol):
    """What the runner asks of its work; tasks are hashable, and equal if their results are."""

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        ...

    @property
    def alike(self) -> str:
        """Tasks that are alike take about as long."""
        ...

    @property
    def group(self) -> Hashable:
        """Tasks of one group share what ``prepare`` makes."""
        ...

    @property
    def kernels(self) -> str:
        """Compiled kernels that it calls: "none", "explicit" or "implicit" steps."""
        ...

    @property
    def total_rounds(self) -> int:
        """Rounds that ``perform`` counts up to; 0 where it does not count."""
        ...

    def settings(self) -> dict[str, Any]:
        """Everything that its result depends on but the code, for JSON."""
        ...

    def guess(self, prepared: Any = None) -> float:
        """Seconds that it may take."""
        ...

    def prepare(self, tasks: Sequence[Any]) -> Any:
        """Make what all tasks of its group share; they are handed over."""
        ...

    def perform(self, prepared: Any, progress: Callable[[int], None]) -> dict[str, Any]:
        """Do it, and return plain values for JSON."""
        ...


@dataclass(frozen=True)
class Data:
    """A data set, how much of it is used, and in which order its labels come.

    ``name`` is what tables call it, ``dataset`` what ``load_dataset`` reads. ``rows`` are offline
    rows; features are ``components`` principal components, or the ``network`` units of a hidden
    layer trained on rows of its own. ``order`` is "shl", SHL's labels as they came, "sorted", a
    pool's labels class by class, "file", a pool's rows as they are in their file, or "time:NAME",
    by the array of that name; None: a shift says how the class prior moves. ``problem`` names
    the paper's constants for it, ``paper`` the data set of its tables to compare with where that
    has another name.

    Examples
    --------
    >>> Data("digits", "digits", components=16).load().X0.shape[1]
    16
    """

    name: str
    dataset: str
    rows: int | None = None
    components: int | None = None
    network: int | None = None
    order: str | None = None
    problem: str | None = None
    paper: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether its file can be read."""
        return self.dataset in BUNDLED or self._path().exists()

    def settings(self) -> dict[str, Any]:
        """Everything that results depend on: the content of a file, not its name or place."""
        found = asdict(self)
        del found["name"], found["paper"]
        if self._is_file():
            found["dataset"] = "FILE.npz"
        bundled = self.dataset in BUNDLED
        found["content"] = None if bundled else content_digest(self._path())
        return found

    def load(self) -> Dataset | OrderedData:
        """Read the data set, as much of it as the fields say."""
        if self.order == "shl":
            return shl_order(SHL_CLASSES)
        if self.order is not None and self.order.startswith("time:") and not self._is_file():
            return timed_order(self.dataset)
        data = load_dataset(self.dataset)
        if self.network is not None:
            from priorshift.experiments.convert.network import network_features

            data = network_features(data, self.network, rows=self.rows)
        elif self.rows is not None or self.components is not None:
            data = reduced(data, rows=self.rows, components=self.components)
        if self.order is None:
            return data
        if self.order == "sorted":
            return OrderedData(data, np.sort(data.y1))
        return file_order(self.dataset, data, self.order.removeprefix("time:"))

    def fit(self, dataset: Dataset, loss: str) -> Source:
        """Run the offline stage."""
        return offline_stage(dataset, loss, problem=self.problem)

    def _is_file(self) -> bool:
        return self.dataset.lower().endswith(".npz")

    def _path(self) -> Path:
        return Path(self.dataset) if self._is_file() else named_file(self.dataset)


def content_digest(path: Path) -> str:
    """SHA-256 of the arrays in a file of data, however they are compressed."""
    try:
        about = path.stat()
        return _content_digest(path, (about.st_ino, about.st_size, about.st_mtime_ns))
    except (OSError, zipfile.BadZipFile):
        load_dataset(str(path))  # which says what is wrong with it
        raise


@cache
def _content_digest(path: Path, version: tuple[int, ...]) -> str:
    found = hashlib.sha256()
    with zipfile.ZipFile(path) as file:
        for name in sorted(file.namelist()):
            found.update(f"{name}\n".encode())
            found.update(hashlib.sha256(file.read(name)).digest())
    return found.hexdigest()


@dataclass(frozen=True)
class StreamRun:
    """One learner through one stream.

    The learner has its name and its settings: ``preset``, ``hint`` (with its ``period``, or other
    ``hint_settings``), ``sketch``, ``window``, ``gradient_bound`` and ``loss_bound`` (numbers, or
    "estimate"), ``prior_form``, ``meta_rate``, ``gap_limit``, ``largest_step``, ``hedge``,
    ``solver``; ``step`` runs the step size of that number in its pool alone. ``calibration`` of f0
    is by default the learner's own. The stream is that of a ``shift`` with its settings between
    ``mu1`` and ``mu2``, or the order of the data: ``every`` takes each such label of it, and
    ``near`` labels on either side of a round stand for its class prior. ``safety`` is "on" for what
    users get: "auto" and the trackers then weigh that nothing has changed. ``priors`` are those of
    every round, in the place of a shift. ``track`` asks for "curve", "weights" or "scores" beside
    the error.

    Examples
    --------
    >>> data = Data("synthetic", "synthetic")
    >>> StreamRun(data, "atlas", "predict-first", 100, 50, 0, shift="squ").label
    'synthetic squ N=100 atlas, seed 0'
    """

    data: Data
    learner: str
    protocol: str
    batch_size: int
    rounds: int
    seed: int
    shift: str | None = None
    hint: str | None = None
    period: int | None = None
    sketch: str | None = None
    step: int | None = None
    every: int | None = None
    near: int | None = None
    meta_rate: str | None = None
    track: tuple[str, ...] = ()
    preset: str = "paper"
    window: int | None = None
    gradient_bound: float | str | None = None
    loss_bound: float | str | None = None
    loss: str = "softmax"
    calibration: str | None = None
    mu1: tuple[float, ...] | None = None
    mu2: tuple[float, ...] | None = None
    shift_settings: tuple[tuple[str, float], ...] = ()
    prior_form: str | None = None
    hint_settings: tuple[tuple[str, float], ...] = ()
    gap_limit: float | None = None
    hedge: str | None = None
    solver: str | None = None
    safety: str = "off"
    largest_step: float | str | None = None
    priors: tuple[tuple[float, ...], ...] | None = None

    @property
    def course(self) -> str:
        """What tables call the way in which the class prior moves."""
        if self.priors is not None:
            return "priors"
        return self.shift or (self.data.order or "").removeprefix("time:")

    @property
    def label(self) -> str:
        """Short name for progress and errors."""
        parts = (self.data.name, self.course, f"N={self.batch_size}", self.learner, self.hint)
        return f"{' '.join(filter(None, parts))}, seed {self.seed}"

    @property
    def alike(self) -> str:
        """The same learner on the same data, whatever the shift and the seed."""
        alone = "" if self.step is None else " alone"
        size = f"{self.sketch} {self.rounds} {self.batch_size}"
        return f"{self.data.name} {self.learner}{alone} {size}"

    @property
    def group(self) -> Data:
        """Runs on the same data share them, and f0."""
        return self.data

    @property
    def kernels(self) -> str:
        """Compiled kernels that the learner calls."""
        return kernels_of(self.learner)

    @property
    def total_rounds(self) -> int:
        """T, or what a shorter order has of it."""
        return self.rounds

    def settings(self) -> dict[str, Any]:
        """Everything that its result depends on but the code, for JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "data"}
        return {"kind": "stream", "data": self.data.settings(), **fields}

    def guess(self, prepared: Prepared | None = None) -> float:
        """Seconds that it may take; with the data at hand, a better guess."""
        from priorshift.experiments.perform import guess

        return guess(self, prepared)

    def prepare(self, tasks: Sequence[StreamRun]) -> Prepared:
        """Load the data, run the offline stage, calibrate f0 as the learners ask for."""
        from priorshift.experiments.perform import prepare

        return prepare(tasks)

    def perform(
        self, prepared: Prepared, progress: Callable[[int], None] | None = None
    ) -> dict[str, Any]:
        """Send the learner through the stream."""
        from priorshift.experiments.perform import perform

        return perform(self, prepared, progress)


def kernels_of(learner: str) -> str:
    """Which compiled kernels a learner calls: "none", "explicit" or "implicit" steps.

    Examples
    --------
    >>> kernels_of("fth"), kernels_of("atlas"), kernels_of("atlas-ada")
    ('none', 'explicit', 'implicit')
    """
    if not LEARNERS[learner].has_model:
        return "none"
    return "implicit" if issubclass(LEARNERS[learner], AtlasAda) else "explicit"
