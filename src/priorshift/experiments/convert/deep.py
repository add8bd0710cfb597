"""A data set of a convolutional network's last layer, trained on rows of its own by PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from priorshift._validation import check_integer
from priorshift.datasets.dataset import Dataset
from priorshift.deep import Image, fine_tune, import_torch, last_layer
from priorshift.errors import InputError
from priorshift.experiments.convert.network import own_rows, standardised
from priorshift.typing import AnyArray

_CHANNELS = (16, 32)
_KERNEL = 3


def network_arrays(
    dataset: Dataset,
    *,
    module: Any = None,
    image: Image | None = None,
    hidden: int = 32,
    train: int = 20_000,
    epochs: int = 6,
    seed: int = 0,
    threads: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, AnyArray]:
    """Return the arrays of a data set file: a network's features and probabilities.

    As in the paper's experiments, where networks were fine-tuned on data of their own and gave the
    features: the rows that the network is trained on are in neither the offline set nor the online
    pool that is returned.

    Parameters
    ----------
    dataset : Dataset
        Images as rows of pixels, and a pool.
    module : torch.nn.Module, optional
        A network of your own that ends in ``nn.Linear`` with an output for each class, in the
        order of ``dataset.classes``; a copy is fine-tuned. By default a small convolutional one.
    image : (height, width, channels), optional
        By default images are square and grey.
    hidden : int
        Units of the small network's last hidden layer: the columns of X0 and X1.
    train : int
        Offline rows for the network; at most half of them are taken.
    epochs, seed, threads, progress
        As for :func:`priorshift.deep.fine_tune`; the seed also fixes the choice of rows.

    Returns
    -------
    dict of ndarray
        ``X0, X1``: features, standardised by the offline rows; ``P0, P1``: probabilities, both in
        single precision; ``y0, y1``: labels.

    Examples
    --------
    >>> import torch
    >>> from priorshift.datasets import load_dataset
    >>> arrays = network_arrays(load_dataset("digits"), hidden=8, train=500, epochs=1)
    >>> {name: array.shape for name, array in arrays.items()}
    {'X0': (698, 8), 'P0': (698, 10), 'y0': (698,), 'X1': (599, 8), 'P1': (599, 10), 'y1': (599,)}
    """
    shape = _image(dataset, image)
    own, others = own_rows(dataset, train, seed)
    if module is None:
        module = convolutional_network(shape, dataset.n_classes, hidden=hidden, seed=seed)
    settings: dict[str, Any] = {"image": shape, "threads": threads}
    tuned = fine_tune(
        module,
        dataset.X0[own],
        dataset.y0[own],
        epochs=epochs,
        seed=seed,
        progress=progress,
        **settings,
    )
    offline, online = (last_layer(tuned, X, **settings) for X in (dataset.X0[others], dataset.X1))
    if offline.proba.shape[1] != dataset.n_classes:
        raise InputError(
            f"module has {offline.proba.shape[1]} outputs, {dataset.name} has "
            f"{dataset.n_classes} classes; give one output for each"
        )
    X0, X1 = standardised(offline.features, online.features)
    return {
        "X0": X0.astype(np.float32),
        "P0": offline.proba.astype(np.float32),
        "y0": dataset.classes[dataset.y0[others]],
        "X1": X1.astype(np.float32),
        "P1": online.proba.astype(np.float32),
        "y1": dataset.classes[dataset.y1],
    }


def convolutional_network(image: Image, classes: int, *, hidden: int = 32, seed: int = 0) -> Any:
    """Return a small network for images, not trained yet.

    Two convolutions with batch norm, each followed by pooling, a hidden layer, and the last layer.

    Parameters
    ----------
    image : (height, width, channels)
    classes, hidden : int
        Outputs; units of the hidden layer.
    seed : int
        Fixes its first weights.

    Examples
    --------
    >>> import torch
    >>> convolutional_network((8, 8, 1), classes=10)[-1]
    Linear(in_features=32, out_features=10, bias=True)
    """
    torch = import_torch()
    check_integer(hidden, "hidden", least=1)
    height, width, channels = image
    factor = 2 ** len(_CHANNELS)
    if min(height, width) < factor:
        raise InputError(f"an image of {height}x{width} is too small; give {factor}x{factor}")
    nn, layers = torch.nn, []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(check_integer(seed, "seed", least=0))
        for before, after in zip((channels, *_CHANNELS), _CHANNELS, strict=False):
            convolution = nn.Conv2d(before, after, _KERNEL, padding=_KERNEL // 2, bias=False)
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
        flat = (height // factor) * (width // factor) * _CHANNELS[-1]
        head = [nn.Flatten(), nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, classes)]
        return nn.Sequential(*layers, *head)


def _image(dataset: Dataset, image: Image | None) -> Image:
    """The shape that is given, or square and grey; refuse what cannot be pixels."""
    if dataset.probabilities or not len(dataset.X1) or dataset.X0.min() < 0:
        raise InputError(
            f"{dataset.name} holds no images (pixels are not negative); a convolutional network "
            "needs images, and a pool of them"
        )
    columns = dataset.X0.shape[1]
    side = math.isqrt(columns)
    if image is None and side**2 != columns:
        raise InputError(
            f"{dataset.name} has rows of {columns} numbers, which are no square grey images; "
            "say their shape (--image HxWxC)"
        )
    return (side, side, 1) if image is None else image
