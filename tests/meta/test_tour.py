"""The tour is true: its snippets run with their numbers, both languages say the same, its pictures are drawn."""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs" / "tour"
CHAPTERS = sorted(TOUR.glob("*.md"))
PAGES = [*CHAPTERS, *sorted((TOUR / "zh").glob("*.md"))]
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def make_pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", TOUR / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_name(path: Path) -> str:
    return str(path.relative_to(TOUR))


def references(page: Path) -> dict[str, str]:
    """Name and path of each picture: `[name]: path` at the end of a page."""
    return dict(re.findall(r"^\[(\w+)\]: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=page_name)
def test_every_snippet_runs_and_has_the_numbers_that_it_claims(
    chapter: Path, make_pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = make_pictures.snippet(chapter)
    assert len(re.findall(r"^\s*assert ", code, re.MULTILINE)) >= 3
    (tmp_path / "snippet.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    try:
        runpy.run_path("snippet.py")
    finally:
        torch.set_num_threads(threads)
    assert [path.name for path in tmp_path.iterdir()] == ["snippet.py"]  # a reader's folder stays as it was


def test_there_are_eleven_chapters_in_both_languages() -> None:
    assert [path.name[:2] for path in CHAPTERS] == [f"{number:02d}" for number in range(1, 12)]
    assert [path.name for path in sorted((TOUR / "zh").glob("*.md"))] == [path.name for path in CHAPTERS]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=page_name)
def test_both_languages_have_the_same_snippets_headings_pictures_and_figures(
    chapter: Path, make_pictures: ModuleType
) -> None:
    chinese = TOUR / "zh" / chapter.name
    trees = [ast.dump(ast.parse(make_pictures.snippet(page))) for page in (chapter, chinese)]
    assert trees[0] == trees[1]
    texts = [page.read_text(encoding="utf-8") for page in (chapter, chinese)]
    levels = [re.findall(r"^(#+) ", CODE.sub("", text), re.MULTILINE) for text in texts]
    assert levels[0] == levels[1]
    assert {name: f"../{path}" for name, path in references(chapter).items()} == references(chinese)
    # Numbers with decimals, and those of three digits and more, are digits in either language.
    figures = [sorted(re.findall(r"\d+\.\d+|\d[\d,]+\d", CODE.sub("", text))) for text in texts]
    assert figures[0] == figures[1]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_chapter_has_a_picture_and_names_code_that_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert references(page)
    assert set(re.findall(r"!\[[^\]]+\]\[(\w+)\]", text)) == set(references(page))
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", text)
    assert named
    source = ROOT / "src" / "headwise"
    assert [name for name in named if not (source / name).is_file() and not (ROOT / name).is_file()] == []


def test_every_picture_of_the_tour_is_drawn_by_the_build_and_each_that_is_drawn_is_shown(
    make_pictures: ModuleType,
) -> None:
    shown = {Path(path).name for chapter in CHAPTERS for path in references(chapter).values()}
    assert sorted(shown) == make_pictures.picture_names()


@pytest.mark.parametrize("name", ["paths", "head", "counting", "schedule"])
def test_a_picture_can_be_drawn(name: str, make_pictures: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.svg"
    getattr(make_pictures, name)(path)
    assert path.read_bytes().startswith(b"<?xml")


def test_the_site_lists_every_page_and_asks_nothing_of_the_network() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/-]+\.md)$", settings, re.MULTILINE))
    docs = ROOT / "docs"
    assert listed == {str(path.relative_to(docs)) for path in docs.rglob("*.md")}, "mkdocs.yml must list each page"
    assert re.search(r"^  font: false$", settings, re.MULTILINE)
    assert "://" not in settings


def test_the_pictures_of_every_chapter_are_in_the_repository(make_pictures: ModuleType) -> None:
    there = {path.name for path in (TOUR / "pictures").glob("*.svg")}
    assert {Path(name).with_suffix(".svg").name for name in make_pictures.picture_names()} == there
