"""What it costs not to know T: learners tuned for the horizon beside those without one.

``python -m benchmarks.anytime [--rounds T] [--rows N] [--seed S]`` runs the paper's synthetic
problem and prints errors in % and the mean rewritten risk under the true class mix, R_t(w_t).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from priorshift.datasets import load_dataset
from priorshift.datasets.offline import offline_stage
from priorshift.datasets.synthetic import SyntheticProblem
from priorshift.learners import ATLAS, UOGD, AtlasAda
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.shifts import shift_by_name
from priorshift.simulation.streams import SimulatedStream

KINDS: dict[str, Any] = {"uogd": UOGD, "atlas": ATLAS, "atlas-ada okm": AtlasAda}


def main(argv: list[str] | None = None) -> int:
    """Print a row for each learner, preset and shift."""
    parser = argparse.ArgumentParser(prog="benchmarks.anytime", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    data = load_dataset("synthetic")
    print("| learner | constants | shift | error, T known | anytime | risk, T known | anytime |")
    print("|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        source = offline_stage(data)
        for name, kind in KINDS.items():
            for preset in ("paper", "theory"):
                bound = SyntheticProblem.gradient_bound if preset == "paper" else None
                for shift in ("lin", "squ"):
                    rng = np.random.default_rng(args.seed)
                    priors = shift_by_name(shift).priors(data.mu1, data.mu2, args.rounds, rng)
                    stream = SimulatedStream(data.population, priors, args.rows, args.seed)
                    found = [
                        evaluate(
                            kind(preset=preset, horizon=horizon, gradient_bound=bound),
                            source,
                            stream,
                            risk=source.risk,
                        )
                        for horizon in (args.rounds, None)
                    ]
                    errors = " | ".join(f"{one.error:.2f}" for one in found)
                    risks = " | ".join(f"{np.mean(one.risks):.4f}" for one in found)
                    print(f"| {name} | {preset} | {shift} | {errors} | {risks} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
