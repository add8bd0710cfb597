"""The source: its arrays, and its model and feature map as far as a file can hold them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from priorshift.calibration import MAPS
from priorshift.errors import FileFormatError, InputError
from priorshift.risk import RiskData, loss_by_name
from priorshift.saving.estimators import from_skops, is_sklearn, to_skops
from priorshift.saving.names import DERIVED, OWN_NAMES, check_type, full_name, reference
from priorshift.saving.values import Parts
from priorshift.source import Source
from priorshift.source.model import FeatureMap, Model, log_probabilities
from priorshift.typing import AnyArray


def encode_source(source: Source, parts: Parts) -> dict[str, Any]:
    """Return a source for JSON; its arrays, and the bytes of its model, go into ``parts``.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> source, parts = build_source(ProbabilityModel(classes=[0, 1]), P, [0, 1]), Parts()
    >>> encoded = encode_source(source, parts)
    >>> encoded["loss"], encoded["proba"], encoded["estimator"]["object"]
    ('softmax', {'array': 'source/proba'}, 'model/probability')
    >>> decode_source(encoded, parts, None, None).proba.tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    if loss_by_name(source.loss.name) != source.loss:
        raise InputError(f"the loss {source.loss!r} cannot be saved: use 'softmax' or 'hinge'")
    if source.calibration is not None and type(source.calibration) not in MAPS.values():
        raise InputError(
            f"the calibration map {full_name(source.calibration)} cannot be saved: use a "
            "calibration of priorshift's own"
        )
    encoded = encode_measured(source, parts)
    if source.derived:
        encoded["derived"] = {
            name: parts.encode(value, f"source/derived/{name}")
            for name, value in source.derived.items()
        }
    encoded["estimator"] = _encode_object(source.model.estimator, "estimator", parts)
    encoded["features"] = _encode_object(source.features.map, "features", parts)
    return encoded


def encode_measured(source: Source, parts: Parts) -> dict[str, Any]:
    """Return for JSON what the offline stage has measured: all but f0 and the feature map.

    Examples
    --------
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0, 1])
    >>> encode_measured(source, Parts())["prior"]
    {'array': 'source/prior'}
    """
    fields = {
        "classes": source.classes,
        "prior": source.prior,
        "proba": source.proba,
        "labels": source.labels,
        "XT": source.risk.XT,
        "offsets": source.risk.offsets,
        "weights": source.risk.weights,
        "reach": source.risk.reach,
        "shuffled": source.risk.shuffled,
        "head": source.head,
        "diameter": source.diameter,
        "n_features": source.n_features,
        "honest": source.honest,
        "loss": source.loss.name,
        "intercept": source.features.intercept,
    }
    encoded = {name: parts.encode(value, f"source/{name}") for name, value in fields.items()}
    if source.raw is not None:
        encoded["raw"] = parts.encode(source.raw, "source/raw")
    if source.calibration is not None:
        encoded["calibration"] = parts.encode(source.calibration, "source/calibration")
    return encoded


def decode_source(encoded: Any, parts: Parts, estimator: Any, features: Any) -> Source:
    """Return what ``encode_source`` was given, with the user's own objects if there are any.

    Examples
    --------
    >>> decode_source({"estimator": {"reference": "my.models:Nearest"}}, Parts(), None, None)
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: only refers to its estimator, my.models:Nearest, and does \
not hold it: pass that object, load(path, estimator=...)
    """
    model = _decode_object(encoded["estimator"], "estimator", parts, estimator)
    feature_map = _decode_object(encoded["features"], "features", parts, features)
    plain = {
        name: parts.decode(value)
        for name, value in encoded.items()
        if name not in ("estimator", "features", "derived")
    }
    source = Source(
        model=Model(model, plain.pop("classes")),
        features=FeatureMap(feature_map, plain.pop("intercept")),
        loss=loss_by_name(plain.pop("loss")),
        risk=RiskData(
            plain.pop("XT"),
            plain.pop("offsets"),
            weights=plain.pop("weights", None),
            reach=plain.pop("reach", None),
            shuffled=plain.pop("shuffled", False),
        ),
        **plain,
    )
    check_source(source)
    for name, value in encoded.get("derived", {}).items():
        source.derived[name] = parts.decode(value)
    check_derived(source)
    return source


def check_source(source: Source) -> None:
    """Refuse arrays that do not fit each other.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from priorshift.source.model import ProbabilityModel
    >>> from priorshift.source import build_source
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> source = build_source(ProbabilityModel(classes=[0, 1]), P, [0, 1])
    >>> check_source(replace(source, prior=np.ones(3)))
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: source.prior is an array of float64 with shape (3,), \
an array of float64 with shape (2,) is needed
    """
    d, m = source.risk.XT.shape
    weights = source.risk.weights
    n = m if weights is None else len(source.labels)
    K = len(source.classes)
    if source.calibration is not None:
        _check_calibration(source.calibration, K)
    needed: list[tuple[str, AnyArray, type[Any], tuple[int, ...]]] = [
        ("prior", source.prior, np.float64, (K,)),
        ("proba", source.proba, np.float64, (n, K)),
        ("labels", source.labels, np.intp, (n,)),
        ("risk.XT", source.risk.XT, np.float32, (d, m)),
        ("risk.offsets", source.risk.offsets, np.intp, (K + 1,)),
        ("head", source.head, np.float32, (K, d)),
    ]
    if source.raw is not None:
        needed.append(("raw", source.raw, np.float64, (n, K)))
    if weights is not None:
        needed.append(("risk.weights", weights, np.float32, (m,)))
    for name, array, dtype, shape in needed:
        wanted = kind(np.broadcast_to(dtype(0), shape))
        if kind(array) != wanted:
            raise FileFormatError(f"source.{name} is {kind(array)}, {wanted} is needed")
    if weights is not None:
        sums = np.add.reduceat(weights, source.risk.offsets[:-1], dtype=np.float64)
        if not (weights >= 0).all() or not np.allclose(sums, 1.0, atol=1e-4):
            raise FileFormatError("source.risk.weights do not add up to one within each class")


def check_derived(source: Source) -> None:
    """Refuse things derived from a source that are not of the known types, or do not fit it."""
    for name, value in source.derived.items():
        if value is not None and type(value) is not DERIVED.get(name):
            raise FileFormatError(f"source.derived holds {full_name(value)} as its {name}")
        if value is not None:
            value.check(source)


def _check_calibration(fitted: Any, n_classes: int) -> None:
    if type(fitted) not in MAPS.values():
        raise FileFormatError(f"source.calibration is {full_name(fitted)}, which is no map")
    if fitted.n_classes not in (None, n_classes):
        raise FileFormatError(
            f"source.calibration is for {fitted.n_classes} classes, the source has {n_classes}"
        )


def _encode_object(value: Any, role: str, parts: Parts) -> Any:
    """Keep a model or a feature map: by skops, as priorshift's own, or by its name."""
    if is_sklearn(value):
        data = to_skops(value)
        if data is not None:
            parts.files[f"{role}.skops"] = data
            return {"skops": f"{role}.skops", "type": full_name(value)}
    elif value is None or type(value) in OWN_NAMES or value is log_probabilities:
        return parts.encode(value, f"source/{role}")
    return {"reference": full_name(value)}


def _decode_object(encoded: Any, role: str, parts: Parts, given: Any) -> Any:
    if given is not None:
        check_type(encoded, role, given)
        return given
    missing = reference(encoded)
    if missing is not None:
        raise FileFormatError(
            f"only refers to its {role}, {missing}, and does not hold it: "
            f"pass that object, load(path, {role}=...)"
        )
    if isinstance(encoded, dict) and "skops" in encoded:
        return from_skops(parts.files[encoded["skops"]], role)
    return parts.decode(encoded)


def kind(value: Any) -> str | None:
    """What a value is, in words that are equal for values that can be exchanged.

    Examples
    --------
    >>> kind(3), kind(np.zeros((2, 3))), kind("three")
    ('a whole number', 'an array of float64 with shape (2, 3)', None)
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "a truth value"
    if isinstance(value, numbers.Integral):
        return "a whole number"
    if isinstance(value, numbers.Real):
        return "a number"
    return None
