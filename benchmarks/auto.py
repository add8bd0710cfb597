"""Where the members of ``auto`` pay: real data, few labelled rows, a linear f.

``python -m benchmarks.auto [--data NAME,...] [--rounds T] [--shift NAME,...] [--sharp S]`` prints
for each data set what the correction gains on the held-out set (nats, and their standard error),
and errors in %: of f, of f with the true class mix, of learners, and the weight of the online
linear model at the end. f is a logistic regression on 1,500 rows, the held-out set has 1,500 more;
linear learners see 64 principal components. ``--sharp 3`` spoils f: its logits are multiplied by 3.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from priorshift.datasets import Dataset, load_dataset
from priorshift.learners import as_learner
from priorshift.learners.trackers.correction import correction
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import PoolPopulation, SimulatedStream
from priorshift.source import Source, build_source
from priorshift.source.model import ProbabilityModel, log_probabilities

_ROWS, _COMPONENTS = 1500, 64


def small_source(data: Dataset, sharp: float) -> Source:
    """Make f and its held-out set from the first rows of the offline set."""
    X, y = data.X0[: 2 * _ROWS], data.y0[: 2 * _ROWS]
    half = len(X) // 2
    if data.probabilities:
        model: Any = ProbabilityModel(classes=list(range(data.n_classes)))
        P = spoiled(X[half:], sharp)
        return build_source(model, P, y[half:], features=log_probabilities)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounds of the solver
        model = LogisticRegression(max_iter=300).fit(X[:half], y[:half])
    model.coef_ *= sharp
    model.intercept_ *= sharp
    wide = X.shape[1] > _COMPONENTS
    features = PCA(_COMPONENTS, random_state=0).fit(X[:half]) if wide else None
    return build_source(model, X[half:], y[half:], features=features)


def spoiled(proba: Any, sharp: float) -> Any:
    """Class probabilities whose logits are multiplied."""
    powers = np.maximum(proba, 1e-12) ** sharp
    return powers / powers.sum(axis=1, keepdims=True)


def main(argv: list[str] | None = None) -> int:
    """Print a row for each data set and shift."""
    parser = argparse.ArgumentParser(prog="benchmarks.auto", description=__doc__)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--shift", default="lin,squ")
    parser.add_argument("--learner", default="uogd,atlas-ada,tracker,auto")
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--sharp", type=float, default=1.0)
    args = parser.parse_args(argv)
    names = args.learner.split(",")
    print(f"| data | gain | shift | f | f + true mix | {' | '.join(names)} | linear weight |")
    print("|" + "---|" * (6 + len(names)))
    with threadpool_limits(1):
        for name in args.data.split(","):
            data = load_dataset(name)
            plain = small_source(data, args.sharp)
            sources = {"none": plain, "auto": plain.calibrated("auto")}
            found = correction(sources["auto"])
            gain = "-" if found is None else f"{found.gain:.4f} ± {found.noise:.4f}"
            X1 = spoiled(data.X1, args.sharp) if data.probabilities else data.X1
            population = PoolPopulation(X1, data.y1, data.n_classes)
            for shift in args.shift.split(","):
                rng = np.random.default_rng(0)
                priors = shift_by_name(shift).priors(data.mu1, data.mu2, args.rounds, rng)
                stream = SimulatedStream(population, priors, args.rows, 0)
                errors, weight = [], "-"
                for learner in (as_learner(n, horizon=args.rounds) for n in names):
                    source = sources[str(learner.calibration)]
                    result = evaluate(learner, source, stream)
                    errors.append(f"{result.error:.2f}")
                    if learner.name == "auto":
                        weight = f"{learner.weights(source, result.state)[1]:.2f}"
                print(
                    f"| {name} | {gain} | {shift} | {result.fix_error:.2f} | "
                    f"{result.oracle_error:.2f} | {' | '.join(errors)} | {weight} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
