"""To add a family is to add files: only its own files, and those that convert it, know a family by its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from headwise.config.families import family_names

PACKAGE = Path(__file__).parents[2] / "src/headwise"
OWN = ("models", "config/families", "interop")
# The family of a recipe that names none.
DEFAULTS = {"config/schema.py": {"transformer"}, "config/recipe.py": {"transformer"}}
COMPARISONS = {
    "workflows/train.py": ["start.declared.name != recipe.model.family"],  # whichever family a run goes on from
    "look/fonts.py": ["family == BASE"],  # a family of fonts
}


def family_literals(tree: ast.AST) -> set[str]:
    """Strings that are the name of a family."""
    names = set(family_names())
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in names}


def family_comparisons(tree: ast.AST) -> list[str]:
    """Where something called family is compared with a value (`==`, `!=`, `in`, `match`); loops are no comparisons."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            by_value = any(isinstance(way, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for way in node.ops)
            if by_value and any(_is_family(side) for side in (node.left, *node.comparators)):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Match) and _is_family(node.subject):
            found.append(f"match {ast.unparse(node.subject)}")
    return found


def _is_family(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_") == "family"


@pytest.mark.parametrize(
    "code", ["bundle.family == x", "x != family", "family in (a, b)", "match recipe.model.family:\n  case a: pass"]
)
def test_the_search_for_comparisons_finds_them(code: str) -> None:
    assert family_comparisons(ast.parse(code))


def test_the_search_leaves_loops_and_declarations_alone() -> None:
    tree = ast.parse("for family in families: print(family)\nif family is None: pass\nname = bundle.family")
    assert family_comparisons(tree) == []
    assert family_literals(ast.parse("FAMILIES = {'lm': 1}")) == {"lm"}


def test_no_module_but_its_own_knows_a_family_by_its_name() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(tuple(f"{folder}/" for folder in OWN)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = family_literals(tree), family_comparisons(tree)
        if any(known):
            found[name] = known
    exceptions = {*DEFAULTS, *COMPARISONS}
    assert found == {name: (DEFAULTS.get(name, set()), COMPARISONS.get(name, [])) for name in exceptions}
