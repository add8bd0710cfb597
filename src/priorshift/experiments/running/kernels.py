"""Compiled kernels made ready before a run, with a word where that takes time."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from priorshift.learners import AtlasAda, Learner
from priorshift.risk import compiled


def prepare_kernels(learners: Iterable[Learner], *, quiet: bool = False) -> None:
    """Compile what the learners will call, once for all processes of a run.

    Examples
    --------
    >>> from priorshift.learners import FIX
    >>> prepare_kernels([FIX()])
    """
    linear = [learner for learner in learners if learner.has_model]
    if not linear or not compiled.available():
        return
    from priorshift.risk.compiled.warm import warm_up

    def say() -> None:
        if not quiet:
            print(
                "priorshift: compiling the kernels, once on this machine; up to a minute",
                file=sys.stderr,
                flush=True,
            )

    warm_up(say, implicit=any(isinstance(learner, AtlasAda) for learner in linear))
