"""A class mix as the command line reads it."""

from __future__ import annotations

import numpy as np

from priorshift._validation import check_priors
from priorshift.datasets import Dataset
from priorshift.errors import InputError
from priorshift.typing import FloatArray


def class_mix(text: str, dataset: Dataset, option: str) -> FloatArray:
    """Read a class mix: shares with commas between them, or one class that has it all.

    Parameters
    ----------
    text : str
        As many shares as there are classes, or a class by its label, or else by its index.
    dataset : Dataset
        Whose classes they are.
    option : str
        What to call the value in an error.

    Examples
    --------
    >>> from priorshift.datasets import load_dataset
    >>> data = load_dataset("synthetic")
    >>> class_mix("0.5,0.25,0.25", data, "--mu2").tolist()
    [0.5, 0.25, 0.25]
    >>> class_mix("1", data, "--mu2").tolist()
    [0.0, 1.0, 0.0]
    """
    if "," not in text:
        mix = np.zeros(dataset.n_classes)
        mix[_class_index(text.strip(), dataset, option)] = 1.0
        return mix
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{option} is {text!r}; give numbers with commas between them, or one class"
        ) from None
    if len(shares) != dataset.n_classes:
        raise InputError(
            f"{option} has {len(shares)} shares, the data have {dataset.n_classes} classes; "
            "give one share for each"
        )
    return check_priors(shares, option)


def _class_index(text: str, dataset: Dataset, option: str) -> int:
    labels = [_label(label) for label in dataset.classes]
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < dataset.n_classes:
        return int(text)
    shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    raise InputError(f"{option} is {text!r}, which is no class of the data; they are: {shown}")


def _label(label: object) -> str:
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)
