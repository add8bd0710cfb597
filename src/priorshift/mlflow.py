"""MLflow's face: log a fitted classifier, load it as a ``pyfunc`` model anywhere MLflow runs.

What MLflow keeps is the file of ``LabelShiftClassifier.save``, not a pickle; this module is what
reads it back, so that priorshift has to be installed where the model is served.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from priorshift._extras import need
from priorshift.classifier import LabelShiftClassifier, load
from priorshift.errors import InputError

__all__ = ["LabelShiftModel", "log_model", "save_model"]

_FILE = "classifier.priorshift"
# What predict takes beside its rows; adapting is only done when it is asked for.
_PARAMS = {"adapt": False}


class LabelShiftModel:
    """What ``mlflow.pyfunc.load_model`` gives, behind MLflow's own wrapper.

    Parameters
    ----------
    classifier : LabelShiftClassifier

    Examples
    --------
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
    >>> LabelShiftModel(clf).predict([[0.9], [-0.9]])["label"].tolist()
    ['yes', 'no']
    """

    def __init__(self, classifier: LabelShiftClassifier) -> None:
        self.classifier = classifier

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return a frame with ``label`` and ``p_`` of every class.

        With ``params={"adapt": True}`` the rows are a batch of the stream: they are learned from,
        and then predicted. Otherwise nothing changes.
        """
        need("pandas")
        import pandas

        unknown = set(params or {}) - set(_PARAMS)
        if unknown:
            raise InputError(f"params has {sorted(unknown)}; there is only adapt")
        clf = self.classifier
        adapts = bool((params or {}).get("adapt", False))
        X = model_input
        if hasattr(X, "iloc") and not hasattr(clf, "feature_names_in_"):
            X = np.asarray(X)  # MLflow makes frames of arrays; the classifier never had names
        proba = clf.adapt_predict_proba(X) if adapts else clf.predict_proba(X)
        frame = pandas.DataFrame(proba, columns=clf.get_feature_names_out())
        frame.insert(0, "label", clf.classes_[proba.argmax(axis=1)])
        return frame


def save_model(classifier: LabelShiftClassifier, path: str | os.PathLike[str], **more: Any) -> None:
    """Write a folder that ``mlflow.pyfunc.load_model`` reads.

    Parameters
    ----------
    classifier : LabelShiftClassifier
        Fitted, with a model that a file can hold (docs/saving.md).
    path : path
        A folder that is not there yet.
    **more
        As for ``mlflow.pyfunc.save_model``.

    Examples
    --------
    >>> import mlflow
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]], ["no", "no", "yes", "yes"]
    >>> clf = LabelShiftClassifier(learner="fth", cv=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(clf, f"{folder}/model")
    ...     mlflow.pyfunc.load_model(f"{folder}/model").predict(np.array([[0.9]]))["label"].tolist()
    ['yes']
    """
    need("mlflow")
    import mlflow.pyfunc

    _with_file(classifier, lambda given: mlflow.pyfunc.save_model(path=path, **given, **more))


def log_model(classifier: LabelShiftClassifier, name: str = "model", **more: Any) -> Any:
    """Log a classifier to the run that is active, and return what MLflow knows of the model.

    Parameters
    ----------
    classifier : LabelShiftClassifier
    name : str
        The model's name in the run.
    **more
        As for ``mlflow.pyfunc.log_model``: ``registered_model_name``, ``input_example``.

    Examples
    --------
    >>> import mlflow
    >>> log_model(LabelShiftClassifier())
    Traceback (most recent call last):
    ...
    sklearn.exceptions.NotFittedError: ...
    """
    need("mlflow")
    import mlflow.pyfunc

    return _with_file(classifier, lambda given: mlflow.pyfunc.log_model(name, **given, **more))


def _with_file(classifier: LabelShiftClassifier, write: Any) -> Any:
    """Save the classifier, and let MLflow copy the file, with what it has to know of it."""
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec

    spec = [ParamSpec(name, "boolean", default) for name, default in _PARAMS.items()]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _FILE
        classifier.save(file)
        return write(
            {
                "loader_module": "priorshift.mlflow",
                "data_path": str(file),
                "signature": ModelSignature(params=ParamSchema(spec)),
                "pip_requirements": ["priorshift[frames]"],
            }
        )


def _load_pyfunc(path: str) -> LabelShiftModel:
    """What MLflow calls to read a model back."""
    return LabelShiftModel(load(path))
