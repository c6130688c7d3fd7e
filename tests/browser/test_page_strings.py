"""The words of the server's page: everything in both languages, nothing missing, nothing left over."""

from __future__ import annotations

import re
from importlib import resources

import pytest

PAGE = resources.files("headwise.serving").joinpath("page")
STRING = re.compile(r'^  "([a-z0-9_.]+)": "((?:[^"\\]|\\.)*)",$')
# Keys that are put together from a part of a name.
MADE = {
    "legend": ("sure", "fair", "unsure", "doubtful"),
    "training.state": ("running", "finished", "failed", "stopped"),
    "chart": ("bleu", "chrf", "accuracy", "macro_f1", "wer", "cer"),
    "task": ("translate", "generate", "classify", "fill", "embed", "transcribe"),
}


def languages() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.joinpath("strings.js").read_text(encoding="utf-8").splitlines():
        if start := re.match(r"const (\w+) = \{", line):
            language = found.setdefault(start[1], {})
        elif string := STRING.match(line):
            assert string[1] not in language, f"{string[1]} is there twice"
            language[string[1]] = string[2]
        else:
            assert not line.startswith("  "), f"no string: {line}"
    return found


def used_keys() -> set[str]:
    keys = {f"{start}.{end}" for start, ends in MADE.items() for end in ends}
    for file in PAGE.iterdir():
        if file.name.endswith(".html"):
            keys |= set(re.findall(r'data-(?:text|label|placeholder|hint)="([^"]+)"', file.read_text(encoding="utf-8")))
        elif file.name.endswith(".js") and file.name != "strings.js":
            keys |= set(re.findall(r'"((?:[a-z_]+\.)+[a-z0-9_]+|copy|clear|cancel)"', file.read_text(encoding="utf-8")))
    return keys


def test_both_languages_have_the_same_keys() -> None:
    found = languages()
    assert set(found) == {"en", "zh"}
    assert list(found["en"]) == list(found["zh"])
    assert len(found["en"]) > 100


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_string_that_the_page_asks_for_exists_and_is_asked_for(language: str) -> None:
    keys = set(languages()[language])
    known = {key for key in used_keys() if key in keys or key.split(".")[0] in {k.split(".")[0] for k in keys}}
    assert known == keys


def test_both_languages_fill_in_the_same_values() -> None:
    found = languages()
    for key, text in found["en"].items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", found["zh"][key])), key


def test_chinese_is_chinese() -> None:
    foreign = {"moved.and", "tokens.tip", "generate.top_p", "chart.bleu", "chart.chrf"}
    plain = {key for key, text in languages()["zh"].items() if not re.search(r"[\u4e00-\u9fff]", text)}
    assert plain == foreign


def test_the_page_has_no_inline_script_style_or_foreign_address() -> None:
    """What its policy would refuse, and what a build-free page must not need."""
    html = PAGE.joinpath("index.html").read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", html)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))
    for file in PAGE.iterdir():
        addresses = set(re.findall(r"https?://[^\s\"'`]+", file.read_text(encoding="utf-8")))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
