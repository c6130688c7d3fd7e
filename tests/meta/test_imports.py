"""What is imported when, who may import whom, and what nothing in the package may do."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/headwise").rglob("*.py"))
LIGHT = """
import sys
import headwise
after_import = "torch" in sys.modules
from headwise.cli import main
codes = []
for arguments in (["--help"], ["train", "--help"], ["info", "--help"], ["train", "--print-recipe", sys.argv[1]]):
    sys.argv = ["headwise", *arguments]
    try:
        main.run()
    except SystemExit as end:
        codes.append(end.code)
print("RESULT", after_import, codes, sorted({"torch", "matplotlib", "ctranslate2"} & set(sys.modules)))
"""


def test_importing_and_asking_for_help_is_light(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[training]\nsteps = 1\n")
    done = subprocess.run([sys.executable, "-c", LIGHT, str(recipe)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "RESULT False [0, 0, 0, 0] []"
    assert "label_smoothing = 0.1" in done.stdout


def test_imports_go_one_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def forbidden(tree: ast.AST) -> list[str]:
    """Ways in which a file that someone gives could come to run code."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in ("pickle", "dill", "marshal", "shelve")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("pickle", "dill", "marshal"):
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("eval", "exec", "compile", "torch.load", "torch.save", "__import__"):
                found.append(name)
            found += [f"{name}(allow_pickle)" for k in node.keywords if k.arg == "allow_pickle" and _true(k.value)]
    return found


def _true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value is False)


@pytest.mark.parametrize(
    "code", ["import pickle", "from pickle import loads", "torch.load('x')", "eval('1')", "np.load(p, allow_pickle=1)"]
)
def test_the_search_below_finds_what_it_looks_for(code: str) -> None:
    assert forbidden(ast.parse(code))


def test_nothing_pickles_or_runs_text_as_code() -> None:
    assert len(SOURCES) > 50
    found = {str(path): names for path in SOURCES if (names := forbidden(ast.parse(path.read_text(encoding="utf-8"))))}
    assert found == {}
