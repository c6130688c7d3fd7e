"""Whichever call to the disk fails, in a save or while text is prepared: the state before stays, one line says why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_recipe import write_small_recipe


@pytest.mark.slow
def test_each_call_of_a_save_and_of_preparing_text_may_fail(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: install one to let single system calls fail")
    library, here = tmp_path / "failing_calls.so", Path(__file__)
    source = str(here.with_name("failing_calls.c"))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), source, "-ldl"], check=True)
    (tmp_path / "work").mkdir()
    write_small_recipe(tmp_path / "work")
    done = subprocess.run(
        [sys.executable, str(here.with_name("failing_calls.py")), str(tmp_path / "work")],
        capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "LD_PRELOAD": str(library)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    print(*(f"\n{counts}" for counts in told if "attempts" in counts))
    assert [one for one in told if "wrong" in one] == []
    assert [(one["what"], one["calls"] > 30) for one in told] == [("save", True), ("preparing text", True)]
