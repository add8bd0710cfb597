"""The entry of the command line: statuses, and help with examples."""

from __future__ import annotations

import threading

from priorshift.cli import main


def test_main_returns_a_status_from_other_threads(capsys):
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(main(["--version"])))
    thread.start()
    thread.join()
    assert found == [0]


def test_help_has_examples(capsys):
    assert main(["--help"]) == 0
    assert "priorshift run --data mine.npz" in capsys.readouterr().out
    for command in ("run", "demo"):
        assert main([command, "--help"]) == 0
