"""No model directory that somebody has tampered with can crash a command, hang it, or take its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwise.workflows.translate import open_translator


def campaign(translator: Path, writer: Path, folder: Path, count: int, seed: int) -> tuple[list[object], int]:
    """What did not end well, and how many commands there were."""
    open_translator(translator)  # with the fast engine's export in it
    script = Path(__file__).with_name("hostile_run.py")
    done = subprocess.run(
        [sys.executable, str(script), str(translator), str(writer), str(count), str(seed), str(folder)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *bad, total = map(json.loads, done.stdout.splitlines())
    return bad, total


def test_some_tampered_models_get_one_line_from_every_command(
    word_model: Path, language_model: Path, tmp_path: Path
) -> None:
    bad, total = campaign(word_model, language_model, tmp_path, 12, seed=1)
    assert bad == []
    assert total == 2 * 12 * 3


@pytest.mark.slow
def test_all_tampered_models_get_one_line_from_every_command(
    word_model: Path, language_model: Path, tmp_path: Path
) -> None:
    bad, total = campaign(word_model, language_model, tmp_path, 10_000, seed=1)
    print(f"{total} commands on tampered model directories")
    assert bad == []
    assert total > 2000
