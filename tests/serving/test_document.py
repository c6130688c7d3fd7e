"""The examples of docs/serving.md work as they stand, against a server with small models; every route has one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from running import Running
from sounds import save, tone

DOCUMENT = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
CURL = [line for _, block in BLOCKS for line in block.splitlines() if line.startswith("curl http://127.0.0.1:8000")]
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
NAMES = {"story": "letters", "photos": "stripes"}  # what the document calls the models


def here(text: str, server: Running) -> str:
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    for name, own in NAMES.items():
        text = re.sub(rf'("?model"?[=:] ?"?|/models/){name}\b', rf"\1{own}", text)
    return text.replace("/runs/my-run", "/runs/run")


def write_files(folder: Path) -> None:
    Image.new("L", (8, 8)).save(folder / "photo.png")
    save(folder / "speech.wav", tone(0.5))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: install it")
def test_every_call_of_curl_is_answered(server: Running, tmp_path: Path) -> None:
    write_files(tmp_path)
    for line in CURL:
        command = [*shlex.split(here(line, server)), "--silent", "--show-error", "--fail-with-body"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout or (tmp_path / "attention.html").stat().st_size > 1000


def test_every_python_example_runs(server: Running, tmp_path: Path) -> None:
    write_files(tmp_path)
    whole = "\n".join(here(block, server) for block in PYTHON)
    done = subprocess.run([sys.executable, "-c", whole], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_route_has_an_example(server: Running) -> None:
    routes = [path.partition("{")[0] for path in server.ask("GET", "/openapi.json").json["paths"]]
    assert len(routes) > 15
    missing = [route for route in routes if not any(f":8000{route}" in line for line in CURL)]
    assert not missing, "add a call of curl to docs/serving.md"
    asked = "\n".join(PYTHON)
    for route in ("/translate", "/generate", "/classify", "/fill", "/embed", "/look", "/models"):
        assert f'"{route}"' in asked or f':8000{route}"' in asked, f"add {route} to the Python of docs/serving.md"
    for method in ("completions.create", "embeddings.create", "audio.transcriptions.create"):
        assert method in asked
