"""A reader can see from the listing what is where."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/headwise"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.stat().st_size]
LONGEST = 400  # lines


def test_every_module_says_in_its_first_line_what_it_is() -> None:
    silent = [str(path) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_no_file_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    everything = [path for part in ("src", "tests", "benchmarks") for path in (ROOT / part).rglob("*.py")]
    assert [str(path) for path in everything if drawers & {path.stem, path.parent.name}] == []


def test_no_file_is_too_long_to_read_in_one_go() -> None:
    long = {str(p): n for p in SOURCES if (n := len(p.read_text(encoding="utf-8").splitlines())) > LONGEST}
    assert long == {}


def test_every_verb_has_its_module_and_every_module_of_the_command_line_a_verb() -> None:
    from headwise.cli.main import VERBS

    modules = {path.stem for path in (PACKAGE / "cli").glob("*.py")} - {"__init__", "main", "live"}
    assert modules == set(VERBS)


def test_unit_tests_mirror_the_packages() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}
    mirrored = {path.name for path in (ROOT / "tests/unit").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert mirrored <= packages
