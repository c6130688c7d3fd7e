"""A shipped model has a name; a path that exists means itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle import shipped
from headwise.bundle.directory import open_bundle
from headwise.bundle.shipped import is_shipped, locate, shipped_directories
from headwise.errors import ModelError


def test_a_name_opens_the_shipped_model_and_a_path_of_that_name_wins(
    shipped_words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_bundle("words-en-de").path == shipped_words
    assert is_shipped(locate("words-en-de"))
    (tmp_path / "words-en-de").mkdir()
    assert locate("words-en-de") == Path("words-en-de")
    assert not is_shipped(locate("words-en-de"))
    with pytest.raises(ModelError, match=r"words-en-de has no config\.json"):
        open_bundle("words-en-de")


def test_a_run_stands_for_its_model(word_model: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model").symlink_to(word_model)
    assert open_bundle(tmp_path / "run").files == open_bundle(word_model).files
    with pytest.raises(ModelError, match=r"has no config\.json"):
        open_bundle(tmp_path)


def test_a_name_that_is_nothing_gets_a_line_with_those_that_are(shipped_words: Path) -> None:
    with pytest.raises(ModelError, match=r"no model: words-en-fr is not there; .* came with Headwise: words-en-de$"):
        open_bundle("words-en-fr")


def test_an_installation_without_models_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "nothing")
    assert shipped_directories() == {}
    with pytest.raises(ModelError, match=r"such as RUN/model$"):
        open_bundle("words-en-de")
