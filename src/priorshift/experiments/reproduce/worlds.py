"""Data sets and sources of the experiments, made once in a process."""

from __future__ import annotations

from functools import cache

import numpy as np

from priorshift.datasets import Dataset, load_dataset
from priorshift.datasets.files import data_folder
from priorshift.datasets.offline import offline_stage
from priorshift.datasets.ordered import SHL_CLASSES, OrderedData, shl_order
from priorshift.datasets.reduce import reduced
from priorshift.experiments.convert.network import network_features
from priorshift.experiments.reproduce.plan import StreamRun, World
from priorshift.simulation.recorded import RecordedStream
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import Stream
from priorshift.source import Source

# Labels on either side of a round whose mix stands for the round's, unless a run says otherwise.
_NEAR = 500
BUNDLED = ("synthetic", "digits")
"""Data that every installation has."""


def is_here(world: World) -> bool:
    """Say whether the data of a world can be loaded.

    Examples
    --------
    >>> is_here(World("synthetic", "synthetic"))
    True
    """
    return world.data in BUNDLED or (data_folder() / f"{world.data}.npz").exists()


@cache
def ordered(world: World) -> OrderedData:
    """Load a world whose labels come in an order of their own.

    Examples
    --------
    >>> found = ordered(World("digits", "digits", components=16, order="sorted"))
    >>> bool((np.diff(found.y) >= 0).all())
    True
    """
    if world.order == "shl":
        return shl_order(SHL_CLASSES)
    data = _sized(load_dataset(world.data), world)
    return OrderedData(data, np.sort(data.y1))


@cache
def dataset(world: World) -> Dataset:
    """Load a world's data set, as large as the world says.

    Examples
    --------
    >>> dataset(World("digits", "digits", components=16)).X0.shape[1]
    16
    """
    if world.order is not None:
        return ordered(world).dataset
    return _sized(load_dataset(world.data), world)


def _sized(data: Dataset, world: World) -> Dataset:
    if world.network is not None:
        return network_features(data, world.network, rows=world.rows)
    if world.rows is None and world.components is None:
        return data
    return reduced(data, rows=world.rows, components=world.components)


@cache
def source(world: World, calibration: str = "none") -> Source:
    """Run the offline stage of a world, and calibrate f0 by the calibration of that name.

    Examples
    --------
    >>> source(World("digits", "digits", components=16)).n_classes
    10
    """
    if calibration != "none":
        return source(world).calibrated(calibration)
    return offline_stage(dataset(world), problem=world.problem)


def stream(run: StreamRun) -> Stream | RecordedStream:
    """The stream that a run goes through.

    Examples
    --------
    >>> world = World("synthetic", "synthetic")
    >>> run = StreamRun(world, "fix", "predict-first", 10, 50, 0, shift="squ")
    >>> len(stream(run))
    50
    """
    if run.world.order is not None:
        return ordered(run.world).stream(
            run.batch_size,
            seed=run.seed,
            every=run.every or 1,
            near=_NEAR if run.near is None else run.near,
            rounds=run.rounds,
        )
    data = dataset(run.world)
    assert run.shift is not None, "a world without an order of its own needs a shift"
    priors = shift_by_name(run.shift).priors(
        data.mu1, data.mu2, run.rounds, np.random.default_rng(run.seed)
    )
    return Stream(data.world, priors, run.batch_size, run.seed)
