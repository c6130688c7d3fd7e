"""Which prefix a model is used with: by its languages, by the prefix itself, or because there is only one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwise.bundle.assets import PREPROCESSING
from headwise.bundle.directory import Bundle
from headwise.config.recipe import build_recipe
from headwise.errors import ModelError, UsageError
from headwise.tasks.prefixes import Asked, choose_prefix, parts_of, prefixes_of

GERMAN, ENGLISH = "translate English to German: ", "translate German to English: "
PARTS = [{"prefix": GERMAN, "languages": ["en", "de"]}, {"prefix": ENGLISH, "languages": ["de", "en"]}]


def bundle_of(folder: Path, data: dict[str, Any]) -> Bundle:
    """A model directory with nothing in it but what a recipe's data leaves there."""
    kept = prefixes_of(build_recipe({"data": data}).data)
    bundle = Bundle(folder, "t5", {}, ("xx", "yy"))
    if not kept:
        return bundle
    (folder / PREPROCESSING).write_text(json.dumps(kept))
    return replace(bundle, files={PREPROCESSING: "0" * 64})


def test_a_direction_is_chosen_by_one_or_both_languages(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {"mixture": PARTS})
    assert choose_prefix(model, Asked(None, "de", "en")) == (ENGLISH, ("de", "en"))
    assert choose_prefix(model, Asked(None, "", "de")) == (GERMAN, ("en", "de"))
    assert choose_prefix(model, Asked(None, "en-GB", "")) == (GERMAN, ("en", "de"))
    with pytest.raises(UsageError, match="not trained for these languages: choose --from en --to de, --from de"):
        choose_prefix(model, Asked(None, "fr", "en"))
    with pytest.raises(UsageError, match="was trained for several things: choose --from en --to de"):
        choose_prefix(model, Asked())


def test_a_prefix_is_found_whatever_spaces_are_around_it_and_any_other_is_taken_as_it_is(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {"mixture": PARTS})
    assert choose_prefix(model, Asked("translate English to German:")) == (GERMAN, ("en", "de"))
    assert choose_prefix(model, Asked("de-en")) == (ENGLISH, ("de", "en"))  # the name of the part
    assert choose_prefix(model, Asked("")) == ("", ("xx", "yy"))
    assert choose_prefix(model, Asked("summarise: ")) == ("summarise: ", ("xx", "yy"))


def test_the_only_prefix_need_not_be_asked_for(tmp_path: Path) -> None:
    assert choose_prefix(bundle_of(tmp_path, {"prefix": "fix: "}), Asked()) == ("fix: ", ("xx", "yy"))


def test_a_model_without_prefixes_has_none_and_its_own_languages(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {})
    assert parts_of(model) == []
    assert choose_prefix(model, Asked()) == ("", ("xx", "yy"))
    assert choose_prefix(model, Asked("translate: ")).prefix == "translate: "
    with pytest.raises(UsageError, match="a model has its own languages"):
        choose_prefix(model, Asked(None, "en", "de"))


def test_prefixes_of_a_column_must_be_said(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {"fields": ["source", "target", "task"]})
    with pytest.raises(UsageError, match="with a prefix for each text: say it with --prefix"):
        choose_prefix(model, Asked())
    assert choose_prefix(model, Asked("fix: ")).prefix == "fix: "


def test_parts_without_languages_are_chosen_by_prefix(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {"mixture": [{"prefix": "copy: "}, {"prefix": "reverse: "}]})
    with pytest.raises(UsageError, match="choose --prefix 'copy:', --prefix 'reverse:'"):
        choose_prefix(model, Asked())


def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path) -> None:
    model = bundle_of(tmp_path, {"mixture": PARTS})
    (tmp_path / PREPROCESSING).write_text('{"kind": "text", "parts": [{"prefix": 3}]}')
    with pytest.raises(ModelError, match=r"is damaged: parts.0.prefix must be"):
        choose_prefix(model, Asked())
