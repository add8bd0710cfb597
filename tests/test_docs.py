"""The documents hold what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"@[A-Z0-9]+@", text)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "follow_a_stream.py"), run_name="__main__")
    alone, adapted = (float(x) for x in re.findall(r"([\d.]+) %", capsys.readouterr().out))
    assert adapted < alone
