"""The source: its arrays, and its model and feature map as far as a file can hold them."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from priorshift.calibration import MAPS
from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.risk import RiskData, class_sums, loss_by_name
from priorshift.saving.names import DERIVED, OWN_NAMES, check_type, full_name, reference
from priorshift.saving.sample import check_answers, decode_sample, encode_sample
from priorshift.saving.values import Parts
from priorshift.source import Source
from priorshift.source.model import FeatureMap, Model, log_probabilities
from priorshift.typing import AnyArray

_MOST_CLASSES = 1000
_ROUNDING = 1e-6


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
    encoded["sample"] = encode_sample(source, parts)
    return encoded


def encode_measured(source: Source, parts: Parts) -> dict[str, Any]:
    """Return for JSON what the offline stage has measured: all but f0 and the feature map."""
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
        "cross_fitted": source.cross_fitted,
        "loss": source.loss.name,
        "intercept": source.features.intercept,
    }
    encoded = {name: parts.encode(value, f"source/{name}") for name, value in fields.items()}
    optional = {
        "raw": source.raw,
        "row_weights": source.row_weights,
        "columns": source.model.columns,
        "projection": source.features.projection,
    }
    for name, value in optional.items():
        if value is not None:
            encoded[name] = parts.encode(value, f"source/{name}")
    if source.calibration is not None:
        encoded["calibration"] = parts.encode(source.calibration, "source/calibration")
    return encoded


def decode_source(
    encoded: Any, parts: Parts, estimator: Any, features: Any, other: str | None = None
) -> Source:
    """Return what ``encode_source`` was given, with the user's own objects if there are any.

    ``other`` is the version of scikit-learn that the file was made with, where it is not this one:
    then the file's own model has to prove that it still answers as it did.
    """
    model = _decode_object(encoded["estimator"], "estimator", parts, estimator)
    feature_map = _decode_object(encoded["features"], "features", parts, features)
    plain = {
        name: parts.decode(value, ("calibration-map/",))
        for name, value in encoded.items()
        if name not in ("estimator", "features", "derived", "sample")
    }
    sample = decode_sample(encoded["sample"], parts)
    _check_plain(plain)
    source = Source(
        model=Model(model, plain.pop("classes"), plain.pop("columns", None)),
        features=FeatureMap(feature_map, plain.pop("intercept"), plain.pop("projection", None)),
        loss=loss_by_name(plain.pop("loss")),
        risk=RiskData(
            plain.pop("XT"),
            plain.pop("offsets"),
            weights=plain.pop("weights", None),
            reach=plain.pop("reach", None),
            shuffled=plain.pop("shuffled", False),
        ),
        sample=None if sample is None else sample.rows,
        **plain,
    )
    check_source(source)
    asked = {}
    for role, given in (("estimator", estimator), ("features", features)):
        if given is not None:
            asked[role] = f"{role}="
        elif other is not None and "holds" in (encoded[role] or {}):
            asked[role] = f"its {role}, of scikit-learn {other},"
            if sample is None:
                _warn_unchecked(role, other)
    check_answers(sample, source, asked)
    for name, value in encoded.get("derived", {}).items():
        source.derived[name] = parts.decode(value, (f"derived/{name}",))
    check_derived(source)
    return source


def _warn_unchecked(role: str, other: str) -> None:
    warnings.warn(
        f"the file's {role} was saved with scikit-learn {other}, and without rows to check its "
        "answers on: compare some of them yourself",
        PriorshiftWarning,
        stacklevel=6,
    )


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
    if max(n, _MOST_CLASSES) < K:  # a matrix of K x K would be far larger than the file
        raise FileFormatError(f"the source has {K} classes and {n} rows")
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
    if source.row_weights is not None:
        needed.append(("row_weights", source.row_weights, np.float64, (n,)))
    if weights is not None:
        needed.append(("risk.weights", weights, np.float32, (m,)))
    for name, array, dtype, shape in needed:
        wanted = kind(np.broadcast_to(dtype(0), shape))
        if kind(array) != wanted:
            raise FileFormatError(f"source.{name} is {kind(array)}, {wanted} is needed")
    columns, projection = source.model.columns, source.features.projection
    if columns is not None and columns.shape != (K,):
        raise FileFormatError("source.columns are not as many as the classes")
    width = d - source.features.intercept
    if projection is not None and (
        kind(projection) != kind(np.broadcast_to(np.float64(0), (len(projection), width)))
        or not np.isfinite(projection).all()
    ):
        raise FileFormatError("source.projection does not make the features")
    _check_order(source, n)
    _check_numbers(source)


def _check_order(source: Source, n: int) -> None:
    """Rows are sorted by class, and compiled code walks from each offset to the next."""
    labels, offsets, weights = source.labels, source.risk.offsets, source.risk.weights
    K = source.n_classes
    if n == 0 or labels.min() < 0 or labels.max() >= K or (np.diff(labels) < 0).any():
        raise FileFormatError("source.labels are not the classes 0 to K - 1 in order")
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=K))])
    if weights is None and not np.array_equal(offsets, ends):
        raise FileFormatError("source.risk.offsets are not where the classes begin")
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != source.risk.XT.shape[1]:
        raise FileFormatError("source.risk.offsets lead out of the rows")
    if weights is not None:
        sums = class_sums(weights, offsets)
        expected = (np.diff(offsets) > 0).astype(np.float64)
        if not (weights >= 0).all() or not np.allclose(sums, expected, atol=1e-4):
            raise FileFormatError("source.risk.weights do not add up to one within each class")


def _check_numbers(source: Source) -> None:
    """What was measured is finite, and probabilities are probabilities."""
    for name, array in (
        ("prior", source.prior),
        ("proba", source.proba),
        ("raw", source.f0_proba),
        ("head", source.head),
        ("risk.XT", source.risk.XT),
    ):
        if not np.isfinite(array).all():
            raise FileFormatError(f"source.{name} holds a number that is not finite")
    own = source.row_weights
    if own is not None and not (np.isfinite(own).all() and own.min() >= 0.0):
        raise FileFormatError("source.row_weights holds what is no weight")
    for name, array in (
        ("prior", source.prior),
        ("proba", source.proba),
        ("raw", source.f0_proba),
    ):
        if array.min() < 0 or np.abs(array.sum(axis=-1) - 1.0).max() > _ROUNDING:
            raise FileFormatError(f"source.{name} holds no probabilities")
    if not 0 < source.diameter < np.inf:
        raise FileFormatError(f"source.diameter is {source.diameter}")
    if source.risk.reach is not None and not 0 <= source.risk.reach < np.inf:
        raise FileFormatError(f"source.risk.reach is {source.risk.reach}")


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


def _check_plain(plain: dict[str, Any]) -> None:
    """Refuse values of another type: they would be taken for something else."""
    flags = dict.fromkeys(("honest", "cross_fitted", "intercept", "shuffled"), bool)
    kinds = {**flags, "loss": str, "n_features": int}
    for name, wanted in kinds.items():
        if type(plain[name]) is not wanted:
            raise FileFormatError(f"source.{name} is {plain[name]!r}")
    for name in ("diameter", "reach"):
        if type(plain[name]) is not float and not (name == "reach" and plain[name] is None):
            raise FileFormatError(f"source.{name} is {plain[name]!r}")
    arrays = ("classes", "prior", "proba", "labels", "XT", "offsets", "head", "raw", "weights")
    for name in (*arrays, "row_weights", "columns", "projection"):
        if plain.get(name) is not None and not isinstance(plain[name], np.ndarray):
            raise FileFormatError(f"source.{name} is no array")
    if plain["classes"].ndim != 1 or plain["XT"].ndim != 2 or len(plain["classes"]) < 2:
        raise FileFormatError("source.classes is no list of two classes or more")
    if plain["classes"].dtype.kind == "f" and not np.isfinite(plain["classes"]).all():
        raise FileFormatError("source.classes holds a number that is not finite")


def _encode_object(value: Any, role: str, parts: Parts) -> Any:
    """Keep a model or a feature map: by the closed list, as priorshift's own, or by its name."""
    if value is None or type(value) in OWN_NAMES or value is log_probabilities:
        return parts.encode(value, f"source/{role}")
    from priorshift.saving import estimators  # it imports most of scikit-learn

    mark = set(parts.arrays)
    try:
        if isinstance(value, BaseEstimator):
            held = estimators.Writer(parts, role).encode(value)
            return {"holds": held, "type": full_name(value)}
        reason = ""
    except estimators.NotListedError as error:
        for name in set(parts.arrays) - mark:
            del parts.arrays[name]
        reason = str(error)
    return {"reference": full_name(value), "reason": reason}


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
    if isinstance(encoded, dict) and tuple(encoded) == ("holds", "type"):
        from priorshift.saving import estimators

        return estimators.from_file(encoded["holds"], parts, role)
    return parts.decode(encoded, ("model/",))


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
