"""A held-out file and a stream whose class mix changes, as files."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from priorshift.files.fitting import fit_file
from stream_files import CLASSES, draw, fitting, write_csv


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """hold.csv, stream.csv, and what is in them."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(3)
    P0, y0 = draw(rng, 400, [0.4, 0.3, 0.3])
    parts = [draw(rng, 300, prior) for prior in ([0.4, 0.3, 0.3], [0.05, 0.15, 0.8])]
    P, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    names = [f"p_{c}" for c in CLASSES]
    labels0, labels = (np.array(CLASSES)[which] for which in (y0, y))
    ids = [f"row {i}, the {i}th" for i in range(len(y))]
    times = [f"2026-03-01T{i // 60:02d}:{i % 60:02d}:00" for i in range(len(y))]
    write_csv(folder / "hold.csv", [*names, "y"], [*P0.T.tolist(), labels0])
    stream = folder / "stream.csv"
    write_csv(stream, ["id", *names, "ts", "y"], [ids, *P.T.tolist(), times, labels])
    clf = fit_file(fitting(folder / "hold.csv"))
    source = folder / "source.priorshift"
    clf.save(source)
    return SimpleNamespace(
        folder=folder, hold=folder / "hold.csv", stream=stream, P=P, y=labels, source=source
    )
