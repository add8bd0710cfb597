"""A history in a file: read back to the last bit, and refused where no stream can have left it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorshift.errors import FileFormatError
from priorshift.learners import FTH, Tracker
from priorshift.monitoring.guard import Guard
from priorshift.monitoring.history import FIELDS, History
from priorshift.saving import Saved, load_parts, save_parts, stream_from_bytes, stream_to_bytes
from priorshift.stream import Deployment, Stream
from saved_files import bits, draw, forge, make_source


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return Deployment(make_source(), Tracker(), Guard(), history=8)


def lived(deployment: Deployment, rounds: int) -> Stream:
    stream = deployment.start()
    for t in range(rounds):
        batch = deployment.source.read(draw(12, seed=t)[0])
        stream, _ = deployment.step(stream, batch, key=t, time=1e9 + t)
    return stream


@pytest.mark.parametrize("rounds", [1, 5, 30])
def test_it_comes_back_to_the_last_bit(deployment: Deployment, rounds: int, tmp_path: Path) -> None:
    stream = lived(deployment, rounds)
    again = stream_from_bytes(deployment, stream_to_bytes(deployment, stream))
    assert bits(again.history) == bits(stream.history)
    assert bits(again.shift) == bits(stream.shift)
    save_parts(tmp_path / "a", Saved(deployment, stream, {}))
    found = load_parts(tmp_path / "a")
    assert found.deployment.history == 8
    assert bits(found.stream.history) == bits(stream.history)


def test_the_bytes_do_not_grow_with_the_rounds(deployment: Deployment) -> None:
    sizes = [
        len(stream_to_bytes(deployment, lived(deployment, rounds)._replace(memory=())))
        for rounds in (8, 40)
    ]
    assert sizes[1] <= sizes[0]


def column(name: str) -> int:
    return FIELDS.index(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r * np.where(np.arange(r.shape[1]) == column("size"), np.inf, 1.0), "no batch"),
        (lambda r: np.where(np.arange(r.shape[1]) == column("rows"), 0.0, r), "no batch has left"),
        (lambda r: np.where(np.arange(r.shape[1]) == len(FIELDS), -0.5, r), "no batch has left"),
        (lambda r: r * np.nan, "holds NaN"),
        (lambda r: r[::-1].copy(), "do not follow each other"),
        (lambda r: np.repeat(r, 2, axis=0), "places for 8"),
    ],
)
def test_what_no_stream_has_left_is_refused(
    deployment: Deployment, change: Any, words: str
) -> None:
    stream = lived(deployment, 6)
    assert stream.history is not None
    broken = stream._replace(history=History(change(stream.history.records)))
    data = stream_to_bytes(deployment, broken)
    with pytest.raises(FileFormatError, match=words):
        stream_from_bytes(deployment, data)


def test_a_stream_with_a_history_is_not_one_without(deployment: Deployment) -> None:
    plain = Deployment(deployment.source, Tracker(), Guard())
    data = stream_to_bytes(deployment, lived(deployment, 3))
    with pytest.raises(FileFormatError):
        stream_from_bytes(plain, data)
    with pytest.raises(FileFormatError):
        stream_from_bytes(deployment, stream_to_bytes(plain, lived(plain, 3)))


@pytest.mark.parametrize("places", [-1, "many", 2.5, None, True])
def test_a_forged_number_of_places_is_refused(places: Any, tmp_path: Path) -> None:
    here = Deployment(make_source(), FTH(), history=8)
    save_parts(tmp_path / "a", Saved(here, here.start(), {}))
    forge(tmp_path / "a", tmp_path / "b", lambda manifest, _: manifest.update(history=places))
    with pytest.raises(FileFormatError):
        load_parts(tmp_path / "b")


def test_a_file_of_before_there_was_a_history(tmp_path: Path) -> None:
    here = Deployment(make_source(), FTH())
    save_parts(tmp_path / "a", Saved(here, here.start(), {}))

    def before(manifest: dict[str, Any], blocks: Any) -> None:
        del manifest["history"]

    forge(tmp_path / "a", tmp_path / "b", before)
    assert load_parts(tmp_path / "b").deployment.history == 0
