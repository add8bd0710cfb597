"""What patch features are worth: ``python -m benchmarks.patches [--data NAME,NAME]``.

Errors in percent of a logistic regression. First on digits, 599 to learn from, mean over splits:
pixels as they are, standardised, divided by one number, and patch features. Then, of two named data
sets with the same images (such as mnist and mnist_patches), on samples of their offline rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from priorshift.datasets import digits_split, load_dataset, reduced
from priorshift.experiments.convert.patches import PatchFeatures
from priorshift.experiments.report.tables import text_table

Rows = tuple[np.ndarray, np.ndarray]


def error(train: Rows, test: Rows) -> float:
    """Of a logistic regression, in percent."""
    model = LogisticRegression(max_iter=300).fit(*train)
    return float(100 * np.mean(model.predict(test[0]) != test[1]))


def digits(splits: int) -> list[list[str]]:
    """A row for each way to look at the digits: mean, smallest and largest error."""
    found: dict[str, list[float]] = {}
    for seed in range(splits):
        s = digits_split(seed)
        test, y = np.vstack([s.X_holdout, s.X_pool]), np.r_[s.y_holdout, s.y_pool]
        middle = s.X_train.mean(axis=0)
        size = np.sqrt(np.mean((s.X_train - middle) ** 2))
        patches = PatchFeatures((8, 8), patches=64, components=64).fit(s.X_train)
        ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "pixels": lambda X: X,
            "pixels, standardised": StandardScaler().fit(s.X_train).transform,
            "pixels, one factor": lambda X, m=middle, k=size: (X - m) / k,
            "patch features": patches.transform,
        }
        for name, way in ways.items():
            one = error((way(s.X_train), s.y_train), (way(test), y))
            found.setdefault(name, []).append(one)
    return [
        [name, *(f"{value:.2f}" for value in (np.mean(e), min(e), max(e)))]
        for name, e in found.items()
    ]


def named(names: list[str], sizes: list[int]) -> list[list[str]]:
    """A row for each data set, a column for each number of offline rows."""
    rows = []
    for name in names:
        data = load_dataset(name)
        parts = [reduced(data, rows=size) for size in sizes]
        cells = [f"{error((one.X0, one.y0), (one.X1, one.y1)):.2f}" for one in parts]
        rows.append([name, *cells])
    return rows


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.patches", description=__doc__)
    parser.add_argument("--data", help="names with commas between them")
    parser.add_argument("--rows", default="3000,10000", help="offline rows, with commas")
    parser.add_argument("--splits", type=int, default=10, help="of the digits")
    options = parser.parse_args(argv)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        print(text_table(["digits", "error", "least", "most"], digits(options.splits)))
        if options.data:
            sizes = options.rows.split(",")
            rows = named(options.data.split(","), [int(size) for size in sizes])
            print("\n" + text_table(["data, offline rows", *sizes], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
