"""Compile the kernels that many tests need; ``make test`` does while it looks at types."""

from __future__ import annotations

import numpy as np

from priorshift import Fleet, LabelShiftClassifier
from priorshift.risk import compiled


def main() -> None:
    """As the first rounds of learners do, which numba keeps for every later process."""
    if not compiled.available():
        return
    from priorshift.risk.compiled.warm import warm_up

    y = np.arange(90) % 3
    X = np.random.default_rng(0).normal(size=(90, 3)) + 2.0 * np.eye(3)[y]
    guarded = LabelShiftClassifier().fit(X, y)  # rehearses
    for _ in range(4):
        guarded.adapt(X)
    P = guarded.predict_proba(X)
    clf = LabelShiftClassifier.from_probabilities(P, y, "tracker", safety="off")
    Fleet(clf).adapt_predict_proba(["one"] * 90, clf.adapt_predict_proba(P))
    warm_up(lambda: None, implicit=True)


if __name__ == "__main__":
    main()
