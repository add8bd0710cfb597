"""G and B of the data sets of Tables 3 and 4: the bounds from the data, and the estimates.

Run ``python -m benchmarks.bounds``: a table in Markdown. Data that are not there are left out.
"""

from __future__ import annotations

from priorshift.errors import PriorshiftError
from priorshift.experiments.description import Data
from priorshift.experiments.paper import declared
from priorshift.source import Source

_NAMES = ("synthetic", "digits", "shl", "arxiv", "eurosat", "mnist", "fashion", "cifar10")


def sources() -> dict[str, Source]:
    """The offline stage of every data set that is there."""
    found = {}
    for name in _NAMES:
        data = Data(name, **declared()["data"][name])
        try:
            loaded = data.load()
        except PriorshiftError:
            continue
        found[name] = data.fit(getattr(loaded, "dataset", loaded), "softmax")
    return found


def table(known: dict[str, Source]) -> str:
    """One column a data set.

    Examples
    --------
    >>> table({}).splitlines()[0]
    '| |  |'
    """
    rows = {
        "G, bound": [source.gradient_bound for source in known.values()],
        "G, estimate": [source.estimated_bounds.gradient for source in known.values()],
        "B, bound": [source.loss_bound for source in known.values()],
        "B, estimate": [source.estimated_bounds.loss for source in known.values()],
    }
    lines = [f"| | {' | '.join(known)} |", f"|---|{'---|' * len(known)}"]
    lines += [f"| {name} | {' | '.join(f'{v:.3g}' for v in row)} |" for name, row in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sources()))
