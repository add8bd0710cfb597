"""What the tests of saved files share."""

from __future__ import annotations

from pathlib import Path

import pytest

from priorshift.source import Source
from saved_files import make_source


@pytest.fixture(scope="module")
def source() -> Source:
    return make_source()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.priorshift"
