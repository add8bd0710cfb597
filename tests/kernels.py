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

    P = np.tile([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], (20, 1))
    clf = LabelShiftClassifier.from_probabilities(P, np.arange(60) % 3, "tracker", safety="off")
    clf.adapt_predict_proba(P)
    clf.predict_proba(P)
    Fleet(clf).adapt_predict_proba(["one"] * 60, P)
    warm_up(lambda: None, implicit=True)


if __name__ == "__main__":
    main()
