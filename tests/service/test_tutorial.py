"""The tutorial, word for word, in one shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import serving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
@pytest.mark.skipif(shutil.which("bash") is None, reason="signals of Unix")
def test_the_tutorial(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    script = ["set -e -o pipefail -m"]  # as in a terminal, with jobs
    for kind, block in re.findall(r"```(python|bash)\n(.*?)```", text, re.DOTALL):
        script.append(f"python <<'PYTHON'\n{block}PYTHON" if kind == "python" else block)
    # Nothing is changed but the port, which may be taken here.
    lines = "\n".join(script).replace("8750", str(serving.free_port()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", lines + "\necho the end"],
        cwd=tmp_path,
        env={**serving.ENVIRONMENT, "PATH": path},
        capture_output=True,
        text=True,
        timeout=2 * serving.PATIENCE,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    said = found.stdout
    assert said.rstrip().endswith("the end")
    sevens = re.search(r"sevens: ([\d.]+), between ([\d.]+) and ([\d.]+)", said)
    prior, low, high = map(float, sevens.groups())
    assert 0.5 < low <= prior <= high
    measured, estimated = map(
        float, re.search(r"batches ([\d.]+), estimated ([\d.]+)", said).groups()
    )
    assert abs(measured - estimated) < 0.05
    for words in (
        '"batch_id":"by-hand"',
        '"unadapted"',
        '"watching":true',
        '"version":43',
        "digits@1 at version 43 True",
        "no fault",
    ):
        assert words in said, words
    assert re.search(r'priorshift_prior_ratio\{.*class="7"', said)
    assert re.search(r"^psk_\S+$", said, re.MULTILINE)
    refused = [line for line in said.splitlines() if '"code"' in line]
    assert refused == []
