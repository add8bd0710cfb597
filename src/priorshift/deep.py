"""Networks of PyTorch: their last layer's features, their probabilities, a classifier of both.

PyTorch is needed by those who call this, and by nobody else: ``pip install '.[deep]'``.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priorshift._extras import way
from priorshift._numerics import row_softmax
from priorshift._validation import check_integer, check_positive
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, FloatArray, IntArray

__all__ = ["LastLayer", "TorchClassifier", "fine_tune", "import_torch", "last_layer"]

Image = tuple[int, int, int]
"""Height, width and channels of an image."""

_PIECE = 1_000  # rows that go through a network at once
_DECAY = 0.05


def import_torch() -> Any:
    """Return ``torch``, which is an extra.

    Examples
    --------
    >>> import torch
    >>> import_torch() is torch
    True
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError(
            f"PyTorch is needed for networks and is not installed: {way('deep')}"
        ) from error


class LastLayer(NamedTuple):
    """What a network says of rows: the input of its last layer, and its class probabilities.

    Attributes
    ----------
    features : ndarray, (n, d)
    proba : ndarray, (n, K)

    Examples
    --------
    >>> LastLayer._fields
    ('features', 'proba')
    """

    features: FloatArray
    proba: FloatArray


def last_layer(
    module: Any, X: ArrayLike, *, image: Image | None = None, threads: int | None = 1
) -> LastLayer:
    """Return the features that a network's last layer sees, and the network's probabilities.

    With the last layer's weights W and bias b, ``proba = softmax(features W' + b)``. The module
    comes back as it was given; nothing is learned.

    Parameters
    ----------
    module : torch.nn.Module
        A classifier whose output, the logits (n, K), is that of an ``nn.Linear``.
    X : array_like, (n, ...)
        Rows.
    image : (height, width, channels), optional
        Rows are images, one line of pixels after the other, the channels of a pixel side by side;
        the network gets them as (n, channels, height, width). By default it gets X as it is.
    threads : int or None
        Threads of PyTorch, whose number can change the last bits; None leaves it as it is.

    Raises
    ------
    InputError
        When the output is not that of a linear layer: a softmax after it is one too many.

    Examples
    --------
    >>> import torch
    >>> body = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    >>> found = last_layer(torch.nn.Sequential(body, torch.nn.Linear(3, 2)), np.eye(4))
    >>> found.features.shape, found.proba.shape
    ((4, 3), (4, 2))
    """
    torch = _torch_for(module)
    rows = _rows(X, image)
    features, logits = [], []
    with _threads(torch, threads), _evaluated(module), torch.no_grad(), _inputs(module) as inputs:
        for first in range(0, len(rows), _PIECE):
            output = module(_tensor(module, rows[first : first + _PIECE]))
            features.append(_array(_input_behind(output, inputs)))
            logits.append(_array(output))
    return LastLayer(np.concatenate(features), row_softmax(np.concatenate(logits)))


def fine_tune(
    module: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    epochs: int = 5,
    rate: float = 3e-3,
    batch_size: int = 128,
    seed: int = 0,
    image: Image | None = None,
    threads: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Return a copy of a network, trained on labelled rows.

    Minimises the cross-entropy by AdamW, with a rate that rises to ``rate`` and falls to nothing.
    Parameters without ``requires_grad`` stay as they are. These rows belong to the network: keep
    them out of the held-out set and of every stream.

    Parameters
    ----------
    module : torch.nn.Module
        As for :func:`last_layer`; it stays as it is.
    X : array_like, (n, ...)
    y : array_like, (n,)
        Class indices: which of the network's outputs is that row's, 0 to K - 1.
    epochs, batch_size : int
        Passes over the rows; rows in a step, at most.
    rate : float
        The highest learning rate.
    seed : int
        Fixes the order of the rows and what the network draws (dropout). On a CPU the same seed
        and the same ``threads`` give the same weights to the last bit.
    image, threads
        As for :func:`last_layer`.
    progress : callable, optional
        Called with the steps done and the steps in all.

    Examples
    --------
    >>> import torch
    >>> network, X = torch.nn.Linear(2, 2), np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> tuned = fine_tune(network, X, [0, 1], epochs=200, rate=0.1)
    >>> last_layer(tuned, X).proba.argmax(axis=1).tolist()
    [0, 1]
    """
    torch = _torch_for(module)
    check_integer(epochs, "epochs", least=1)
    check_integer(batch_size, "batch_size", least=1)
    check_integer(seed, "seed", least=0)
    check_positive("rate", rate)
    rows = _rows(X, image)
    labels = _indices(y, len(rows), last_layer(module, rows[:1]).proba.shape[1])
    tuned = copy.deepcopy(module)
    orders = _orders(len(rows), epochs, batch_size, np.random.default_rng(seed))
    with _threads(torch, threads), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        _train(torch, tuned, rows, labels, orders, rate, progress)
    return tuned


class TorchClassifier:
    """A trained network as the source model: ``predict_proba``, and ``features`` for ATLAS.

    Parameters
    ----------
    module : torch.nn.Module
        As for :func:`last_layer`.
    classes : array_like, (K,)
        The label of each output.
    image, threads
        As for :func:`last_layer`.

    Attributes
    ----------
    classes_ : ndarray, (K,)

    Examples
    --------
    >>> import torch
    >>> from priorshift import LabelShiftClassifier
    >>> X, y = np.array([[-1.0], [1.0]] * 10), np.array(["cat", "dog"] * 10)
    >>> tuned = fine_tune(torch.nn.Linear(1, 2), X, y == "dog", epochs=200, rate=0.1)
    >>> model = TorchClassifier(tuned, classes=["cat", "dog"])
    >>> clf = LabelShiftClassifier(model, learner="atlas", features=model.features).fit(X, y)
    >>> clf.adapt(X[1::2]).predict([[0.9]]).tolist()
    ['dog']
    """

    def __init__(
        self,
        module: Any,
        classes: ArrayLike,
        *,
        image: Image | None = None,
        threads: int | None = 1,
    ) -> None:
        _torch_for(module)
        self.module, self.image, self.threads = module, image, threads
        self.classes_: AnyArray = np.asarray(classes)

    def features(self, X: ArrayLike) -> FloatArray:
        """Return what the last layer sees of each row, (n, d)."""
        return self._read(X).features

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, (n, K)."""
        return self._read(X).proba

    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _read(self, X: ArrayLike) -> LastLayer:
        return last_layer(self.module, X, image=self.image, threads=self.threads)


def _torch_for(module: Any) -> Any:
    torch = import_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputTypeError(f"module is of type {type(module).__name__}: pass a torch.nn.Module")
    if not any(True for _ in module.parameters()):
        raise InputError("module has no parameters: pass a classifier that ends in nn.Linear")
    return torch


def _rows(X: ArrayLike, image: Image | None) -> AnyArray:
    rows = np.asarray(X)
    if rows.ndim < 2 or 0 in rows.shape or rows.dtype.kind not in "fiub":
        raise InputError(
            f"X has shape {rows.shape} and type {rows.dtype}; give rows of numbers, at least one"
        )
    if image is None:
        return rows
    if int(np.prod(rows.shape[1:])) != int(np.prod(image)):
        size = "x".join(map(str, image))
        raise InputError(
            f"X has {int(np.prod(rows.shape[1:]))} numbers a row, an image of {size} has "
            f"{int(np.prod(image))}"
        )
    return np.moveaxis(rows.reshape(len(rows), *image), 3, 1)


def _indices(y: ArrayLike, rows: int, classes: int) -> IntArray:
    labels = np.asarray(y)
    good = labels.shape == (rows,) and labels.dtype.kind in "iub"
    if not good or labels.min() < 0 or labels.max() >= classes:
        raise InputError(
            f"y has shape {labels.shape} and type {labels.dtype} for {rows} rows; give the class "
            f"index of each row, from 0 to {classes - 1} as the network has {classes} outputs"
        )
    return labels.astype(np.intp)


def _orders(rows: int, epochs: int, size: int, rng: np.random.Generator) -> list[IntArray]:
    """Row numbers of every step. Steps are of equal size: batch norm cannot do with one row."""
    parts = -(-rows // size)
    return [part for _ in range(epochs) for part in np.array_split(rng.permutation(rows), parts)]


def _train(
    torch: Any,
    module: Any,
    rows: AnyArray,
    labels: IntArray,
    orders: list[IntArray],
    rate: float,
    progress: Callable[[int, int], None] | None,
) -> None:
    free = [weights for weights in module.parameters() if weights.requires_grad]
    if not free:
        raise InputError("no parameter of the module has requires_grad: there is nothing to train")
    optimiser = torch.optim.AdamW(free, lr=rate, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=len(orders) + 1)
    module.train()
    for step, some in enumerate(orders, start=1):
        output = module(_tensor(module, rows[some]))
        target = torch.as_tensor(labels[some], device=output.device)
        loss = torch.nn.functional.cross_entropy(output, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if progress is not None:
            progress(step, len(orders))
    module.eval()


def _tensor(module: Any, rows: AnyArray) -> Any:
    weights = next(module.parameters())
    torch = import_torch()
    return torch.as_tensor(np.ascontiguousarray(rows), dtype=weights.dtype, device=weights.device)


def _array(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().cpu().double().numpy())


@contextmanager
def _inputs(module: Any) -> Iterator[dict[int, tuple[Any, Any]]]:
    """What goes into and comes out of every linear layer, by a forward hook."""
    torch = import_torch()
    seen: dict[int, tuple[Any, Any]] = {}

    def keep(layer: Any, given: tuple[Any, ...], output: Any) -> None:
        seen[id(layer)] = given[0], output

    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _input_behind(output: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """The input of the linear layer whose output is the network's own."""
    for given, made in seen.values():
        if made is output and output.ndim == 2:
            return given
    raise InputError(
        "the module's output is not that of an nn.Linear with one row of logits for each row of X: "
        "pass a classifier that ends in nn.Linear, without a softmax behind it"
    )


@contextmanager
def _evaluated(module: Any) -> Iterator[None]:
    """Dropout and batch norm as at the time of prediction; every part is then put back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def _threads(torch: Any, number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else check_integer(number, "threads", least=1))
    try:
        yield
    finally:
        torch.set_num_threads(before)
