"""The documents are true: pages that a script writes are current, links lead somewhere, records are numbered."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RECORDS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


@pytest.fixture
def make_path() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("make_path", ROOT / "docs" / "make_path.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    threads = torch.get_num_threads()
    spec.loader.exec_module(module)
    yield module
    torch.set_num_threads(threads)


def test_the_path_page_has_the_ids_and_shapes_of_this_code(make_path: ModuleType) -> None:
    written = make_path.PAGE.read_text(encoding="utf-8")
    made = make_path.make_page()
    assert make_path.comparable(made) == make_path.comparable(written), "run: .venv/bin/python docs/make_path.py"


def test_the_path_page_is_compared_by_all_but_measured_numbers(make_path: ModuleType) -> None:
    comparable = make_path.comparable
    assert comparable("shape (3, 4) is **0.51** of -1.20") == comparable("shape (3, 4) is 0.98\nof 7.00")
    assert comparable("shape (3, 4)") != comparable("shape (3, 5)")
    assert comparable("```text varies\n玛丽\n```") == comparable("```text varies\n汤姆\n```")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]
    missing = [link for link in links if link and not (document.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("document", [*RECORDS, ROOT / "docs" / "path.md"], ids=lambda path: path.name)
def test_every_module_that_a_record_names_exists(document: Path) -> None:
    source = ROOT / "src" / "headwise"
    folders = "|".join(
        ["src", "tests", "docs", "benchmarks", *(path.parent.name for path in source.glob("*/__init__.py"))]
    )
    named = re.findall(rf"`((?:{folders})/[\w./]*)`", document.read_text(encoding="utf-8"))
    real = [name for name in named if "NAME" not in name]  # a stand-in for any name
    missing = [name for name in real if not (ROOT / name).exists() and not (source / name).exists()]
    assert not missing


def test_decision_records_are_numbered_without_a_gap() -> None:
    assert [path.name[:4] for path in RECORDS] == [f"{number:04d}" for number in range(1, len(RECORDS) + 1)]
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.name[:4]}: ")
        for part in ("## Context", "## Choice", "## Rejected"):
            assert part in text, f"{path.name} has no part '{part}'"


def test_every_dependency_has_its_reason_in_the_first_record() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[<>=!~\[ ;]", requirement)[0] for requirement in wanted}
    record = RECORDS[0].read_text(encoding="utf-8")
    assert {name for name in names if not re.search(rf"\b{re.escape(name)}\b", record)} == set()


CHINESE = sorted((ROOT / "docs" / "zh").glob("*.md"))
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The code blocks of a page, line by line, without comments, which are in the page's language."""
    blocks = CODE.findall(page.read_text(encoding="utf-8"))
    return [[re.sub(r"\s*(?<!\S)#.*", "", line).rstrip() for line in block.splitlines()] for block in blocks]


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.name)
def test_a_chinese_page_has_the_commands_tables_and_headings_of_the_english_one(page: Path) -> None:
    english = page.parents[1] / page.name
    assert commands(page) == commands(english)
    texts = [CODE.sub("", one.read_text(encoding="utf-8")) for one in (page, english)]
    assert len({len(re.findall(r"^#+ ", text, re.MULTILINE)) for text in texts}) == 1
    assert len({text.count("\n|---") for text in texts}) == 1
    assert f"[English](../{page.name})" in texts[0]
    assert f"[中文](zh/{page.name})" in texts[1]


@pytest.mark.parametrize("page", [*CHINESE, *sorted((ROOT / "docs" / "tour" / "zh").glob("*.md"))], ids=str)
def test_chinese_sentences_have_full_width_punctuation(page: Path) -> None:
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", CODE.sub("", page.read_text(encoding="utf-8")))
    assert re.findall(r"[\u4e00-\u9fff][,;:?!]|[\u4e00-\u9fff]\.(?!\w)", prose) == []


def test_the_main_pages_of_the_handbook_are_there_in_chinese() -> None:
    names = {
        "data", "decoding", "fine-tuning", "language-models", "classify", "python", "transcribe", "fill", "embed",
        "images", "long", "serving",
    }  # fmt: skip
    assert names <= {page.stem for page in CHINESE}
