"""The OpenAPI schema is true: valid and invalid requests made from it get the answers that it documents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import Running

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,unsupported_method"
)
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 413, 415, 429]
"""


def ask_by_schema(server: Running, folder: Path, examples: int, phases: str) -> int:
    """Runs schemathesis and returns the number of cases."""
    settings = folder / "schemathesis.toml"
    settings.write_text(SETTINGS)
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(settings), "run",
        f"{server.url}/openapi.json", "--max-examples", str(examples), "--phases", phases, "--mode", "all",
        "--checks", CHECKS, "--seed", "1", "--continue-on-failure", "--request-timeout", "600", "--no-color",
        "--suppress-health-check", "all", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = re.search(r"([\d,]+) generated", done.stdout)
    assert found is not None, done.stdout[-2000:]
    assert server.ask("GET", "/health/ready").status == 200
    return int(found[1].replace(",", ""))


def test_hundreds_of_requests_from_the_schema_cause_no_server_error(server: Running, tmp_path: Path) -> None:
    assert ask_by_schema(server, tmp_path, examples=25, phases="fuzzing") >= 300


@pytest.mark.slow
def test_5000_requests_from_the_schema_cause_no_server_error(server: Running, tmp_path: Path) -> None:
    assert ask_by_schema(server, tmp_path, examples=700, phases="coverage,fuzzing") >= 5000
