"""NannyML's CBPE on given windows: ``python cbpe_windows.py FILE.npz``, where NannyML is.

The file holds ``reference`` (n, K) and ``labels`` (n,) of a held-out set, and predictions of
windows (W, rows, K) by name. Standard output gets JSON: for each name the metrics of each window as
CBPE estimates them, and the milliseconds that a window took. `benchmarks.cbpe` calls it.
"""

from __future__ import annotations

import json
import sys
import time

import nannyml
import numpy as np
import pandas as pd

METRICS = {"accuracy": "accuracy", "f1": "f1", "recall": "recall", "auc": "roc_auc"}


def frame(proba: np.ndarray, labels: np.ndarray | None = None) -> pd.DataFrame:
    """Probabilities (n, K) in the form that NannyML reads."""
    K = proba.shape[1]
    columns = {"p": proba[:, 1]} if K == 2 else {f"p{k}": proba[:, k] for k in range(K)}
    more = {} if labels is None else {"y": labels}
    return pd.DataFrame({**columns, "called": proba.argmax(axis=1), **more})


def estimates(reference: np.ndarray, labels: np.ndarray, windows: np.ndarray) -> dict:
    """What CBPE says of windows (W, rows, K)."""
    K = windows.shape[2]
    estimator = nannyml.CBPE(
        problem_type="classification_binary" if K == 2 else "classification_multiclass",
        y_pred_proba="p" if K == 2 else {k: f"p{k}" for k in range(K)},
        y_pred="called",
        y_true="y",
        metrics=list(METRICS.values()),
        chunk_size=windows.shape[1],
    )
    estimator.fit(frame(reference, labels))
    rows = frame(windows.reshape(-1, K))
    began = time.process_time()
    found = estimator.estimate(rows)
    seconds = time.process_time() - began
    table = found.filter(period="analysis").to_df()
    values = {ours: table[theirs, "value"].tolist() for ours, theirs in METRICS.items()}
    return {**values, "milliseconds": 1e3 * seconds / len(windows)}


def main(path: str) -> int:
    """Estimate, and print."""
    nannyml.usage_logging.disable_usage_logging()
    with np.load(path) as file:
        held = file["reference"], file["labels"]
        names = [name for name in file.files if name not in ("reference", "labels")]
        print(json.dumps({name: estimates(*held, file[name]) for name in names}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
