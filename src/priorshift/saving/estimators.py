"""scikit-learn's objects through skops, and which of their types are trusted."""

from __future__ import annotations

import importlib
from typing import Any
from zipfile import ZIP_STORED

import sklearn
from sklearn.base import BaseEstimator

from priorshift.errors import FileFormatError, InputError
from priorshift.saving.archive import check_stored

_PACKAGES = ("sklearn", "numpy", "scipy")


def import_skops() -> Any:
    """Return ``skops.io``, which is an extra.

    Examples
    --------
    >>> import_skops().__name__
    'skops.io'
    """
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        raise InputError(
            "skops is needed to save or load a scikit-learn model and is not installed: "
            'pip install "priorshift[save]"'
        ) from error


def is_sklearn(value: Any) -> bool:
    """Say whether ``value`` is an estimator of scikit-learn itself.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> is_sklearn(PCA()), is_sklearn(PCA)
    (True, False)
    """
    return isinstance(value, BaseEstimator) and type(value).__module__.startswith("sklearn.")


def to_skops(value: Any) -> bytes | None:
    """Return the object in skops' format, or None where loading it would be refused.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from_skops(to_skops(PCA(2)), "features")
    PCA(n_components=2)
    """
    skops = import_skops()
    try:
        data: bytes = skops.dumps(value, compression=ZIP_STORED)
    except TypeError:  # how skops refuses an object, for one a foreign step of a pipeline
        return None
    return data if all(map(is_scientific, skops.get_untrusted_types(data=data))) else None


def from_skops(data: bytes, role: str) -> Any:
    """Return what ``to_skops`` was given; other types than it lets pass are refused.

    Examples
    --------
    >>> import os
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from_skops(import_skops().dumps(FunctionTransformer(os.path.join)), "features")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: its features holds the type ...join, which is not loaded \
from files: make the object yourself and pass it, load(path, features=...)
    """
    skops = import_skops()
    check_stored(data)
    names = skops.get_untrusted_types(data=data)
    for name in names:
        if not is_scientific(name):
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


def is_scientific(name: str) -> bool:
    """Say whether ``name`` is defined by scikit-learn, NumPy or SciPy, and not only imported there.

    A module of theirs may hold a function of the standard library under its own name; that must not
    come in with them. Nor are their scripts and tests run.

    Examples
    --------
    >>> is_scientific("scipy.special.expit"), is_scientific("sklearn.datasets._base.Path")
    (True, False)
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
