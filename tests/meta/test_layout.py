"""A reader can see from the listing what is where."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE, TESTS = ROOT / "src/headwise", ROOT / "tests"
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

    shared = {"__init__", "main", "live", "options", "progress"}
    modules = {path.stem for path in (PACKAGE / "cli").glob("*.py")} - shared
    assert {module.removesuffix("_") for module in modules} == set(VERBS)


# ---- where a module's tests are


def mirrored(test: Path) -> Path | None:
    """The module that a file of tests/unit is about: tests/unit/P/test_M.py or test_M_something.py -> P/M.py."""
    words = test.stem.removeprefix("test_").split("_")
    folder = PACKAGE / test.relative_to(TESTS / "unit").parent
    stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    candidates = [folder / name for stem in stems for name in (f"{stem}.py", f"{stem}/__init__.py")]
    return next((module for module in candidates if module.is_file()), None)


def imported(test: Path) -> set[str]:
    """Modules that a file imports by their own names: `headwise.nn.masks`, not a name that `headwise.nn` passes on."""
    found = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def has_code(module: Path) -> bool:
    """Not a package's `__init__`, nor its `__main__`."""
    return not module.stem.startswith("__") and any(
        isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in ast.walk(ast.parse(module.read_text("utf-8")))
    )


def test_a_file_of_unit_tests_is_named_after_its_module_in_the_same_folder() -> None:
    tests = sorted((TESTS / "unit").rglob("test_*.py"))
    assert len(tests) > 80
    assert [str(test.relative_to(TESTS)) for test in tests if mirrored(test) is None] == []


def texts(folder: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((TESTS / folder).glob("*.py")))


def is_run(module: Path) -> bool:
    """A verb of the command line that tests/cli (`serve`: tests/serving) runs, or a route that tests/serving asks."""
    if module.parent.name == "cli":
        verb = module.stem.removesuffix("_")
        return bool(re.search(rf'\(\s*"{verb}"|"headwise", "{verb}"', texts("cli") + texts("serving")))
    paths = re.findall(r'@router\.(?:get|post)\(\s*"([^"{]+)', module.read_text(encoding="utf-8"))
    return any(f'{path}"' in texts("serving") for path in paths if len(path) > 1)


def test_every_module_is_imported_or_run_by_a_test() -> None:
    found = set().union(*(imported(test) for test in TESTS.rglob("*.py")))
    modules = [module for module in SOURCES if has_code(module)]
    assert len(modules) > 150
    names = {".".join(module.relative_to(PACKAGE.parent).with_suffix("").parts): module for module in modules}
    assert [name for name, module in names.items() if name not in found and not is_run(module)] == []
