"""Runs one verb of the command line as a user does: its output, and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from typer import Typer
from typer.testing import CliRunner

from headwise.cli.main import function_of
from headwise.errors import HeadwiseError


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]


def run(verb: str, *arguments: object, given: bytes = b"") -> Finished:
    """In this process: quick. A HeadwiseError becomes a line on standard error and its exit code, as in the command."""
    app = Typer(pretty_exceptions_enable=False)
    app.command(verb)(function_of(verb))
    result = CliRunner().invoke(app, list(map(str, arguments)), input=given)
    if isinstance(result.exception, HeadwiseError):
        return Finished(result.exception.exit_code, result.stdout, f"headwise: error: {result.exception}\n")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Finished(result.exit_code, result.stdout, result.stderr)


SCRIPT = """
import importlib, sys, typer
from headwise.errors import HeadwiseError
verb = sys.argv.pop(1)
app = typer.Typer(pretty_exceptions_enable=False)
app.command(verb)(getattr(importlib.import_module(f"headwise.cli.{verb}"), verb))
code = 0
try:
    app(standalone_mode=False)
except HeadwiseError as error:
    print(f"headwise: error: {error}", file=sys.stderr)
    code = error.exit_code
print("torch imported:", "torch" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


def start(verb: str, *arguments: object) -> subprocess.Popen[bytes]:
    """In a process of its own; its last line on standard error says whether torch was imported."""
    command = [sys.executable, "-c", SCRIPT, verb, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes)
