"""`headwise models`, and --from and --to: models that are there right after installation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_shipped import ship_another
from verbs import run

import headwise
from headwise.bundle import shipped
from headwise.tasks.translation_scores import TranslationScores
from headwise.workflows.evaluate import evaluate
from headwise.workflows.models import find_model, shipped_models


@pytest.fixture
def several(shipped_words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shipped: en → de, de → en, zh → en."""
    copy = Path(shutil.copytree(shipped_words.parent, tmp_path / "shipped")) / "words-en-de"
    ship_another(copy, "words-de-en", "de", "en")
    ship_another(copy, "words-zh-en", "zh", "en")
    monkeypatch.setattr(shipped, "FOLDER", copy.parent)
    return copy


def test_models_lists_name_languages_size_score_use_and_training_data(shipped_words: Path) -> None:
    done = run("models")
    (model,) = shipped_models()
    header, row, *more = done.lines
    assert header.split() == ["task", "name", "languages", "size", "score", "good", "for"]
    assert row.startswith("translate  words-en-de  en → de    ")
    assert f"{model.size / 1e6:.1f} MB" in row
    assert model.score is not None
    assert (model.score.test, model.score.engine) == ("test_words", "int8")
    assert f"BLEU {model.score.value:.1f}" in row
    assert row.endswith("one word after the other")
    assert any("sentences of colours, numbers and animals. Licence: public domain" in line for line in more)
    (record,) = json.loads(run("models", "--json").out)
    assert (record["path"], record["source"], record["target"]) == (str(shipped_words), "en", "de")


def test_a_target_is_enough_where_there_is_one_model_for_it(several: Path) -> None:
    for arguments in (["--to", "de"], ["--from", "en"], ["--from", "en", "--to", "DE"], ["--to", "de-AT"]):
        done = run("translate", *arguments, "red dog")
        assert (done.code, done.out) == (0, "rot Hund\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--to", "en"], "more than one model translates to en: add --from de or --from zh"),
        (
            ["--to", "fr"],
            "no shipped model translates to fr; there are de → en, en → de, zh → en; train one",
        ),
        (["--from", "zh", "--to", "de"], "translates from zh to de; there are"),
        (["--model", "words-en-de", "--to", "de"], "give either --model, or --from and --to"),
        ([], "no model: give --to LANGUAGE (de, en) for a shipped model, or --model DIR"),
    ],
)
@pytest.mark.parametrize("verb", ["translate", "look"])
def test_what_cannot_be_chosen_is_one_line_with_a_remedy(
    several: Path, verb: str, arguments: list[str], line: str
) -> None:
    output = ["--output", "page.html"] if verb == "look" else []
    done = run(verb, *arguments, *output, "red dog")
    assert (done.code, done.out) == (2, "")
    assert line in done.err
    assert done.err.count("\n") == 1


def test_a_pair_that_is_not_there_says_how_to_get_one(several: Path) -> None:
    err = run("translate", "--to", "fr", "red dog").err
    assert "headwise train RECIPE" in err
    assert "--model DIR" in err


def test_look_and_info_and_load_take_a_shipped_model(several: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("look", "--to", "de", "red dog", "--output", page).code == 0
    assert "Hund" in page.read_text(encoding="utf-8")
    lines = run("info", "words-en-de").lines
    assert any(line.startswith("good for") and line.endswith("one word after the other") for line in lines)
    assert any("test_words (int8): BLEU" in line and "tok:13a" in line for line in lines)
    assert any(line.startswith("parameters") and line.endswith("stored as float16") for line in lines)
    translator = headwise.load("words-en-de")
    assert isinstance(translator, headwise.Translator)
    assert translator.translate(["red dog"])[0].text == "rot Hund"
    assert find_model("zh", "en").name == "words-zh-en"


def test_without_models_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert run("models").err.startswith("this installation came without models; train one")
    assert run("models", "--json").out == "[]\n"
    done = run("translate", "--to", "de", "red dog")
    assert done.code == 2
    assert "this installation came without models" in done.err


READ_ONLY = """
import sys
from pathlib import Path
from headwise.bundle import shipped
shipped.FOLDER = Path(sys.argv.pop(1))
from headwise.cli import main
try:
    main.run()
finally:
    print("torch imported:", "torch" in sys.modules, file=sys.stderr)
"""


def test_the_first_translation_needs_neither_torch_nor_a_place_to_write(shipped_words: Path, tmp_path: Path) -> None:
    """The shipped int8 form is used as it is: nothing is made, nothing is written anywhere."""
    before = sorted(shipped_words.parent.rglob("*"))
    command = [sys.executable, "-c", READ_ONLY, str(shipped_words.parent), "translate", "--to", "de", "red dog"]
    blocked = tmp_path / "no-cache"
    blocked.write_text("a file, so that nothing can be made below it")
    environment = {**os.environ, "XDG_CACHE_HOME": str(blocked)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "rot Hund\n", "torch imported: False\n")
    assert sorted(shipped_words.parent.rglob("*")) == before


def test_what_else_is_made_of_a_shipped_model_goes_to_the_cache(
    shipped_words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = sorted(shipped_words.rglob("*"))
    for name, text in (("source", "red dog\n"), ("target", "rot Hund\n")):
        (tmp_path / name).write_text(text)
    scores = evaluate("words-en-de", source=str(tmp_path / "source"), reference=[str(tmp_path / "target")])
    assert isinstance(scores, TranslationScores)
    assert scores.translations == ["rot Hund"]
    assert sorted(shipped_words.rglob("*")) == before
    assert len(list((tmp_path / "cache/headwise/ctranslate2").glob("*-float32"))) == 1


FROM_PYTHON = """
import sys
from pathlib import Path
from headwise.bundle import shipped
shipped.FOLDER = Path(sys.argv[1])
import headwise
translator = headwise.load("words-en-de", engine="auto", precision="int8")
print(translator.translate("red dog"), translator.engine.name, "torch" in sys.modules)
"""


def test_loading_and_translating_from_python_does_not_import_torch(shipped_words: Path) -> None:
    command = [sys.executable, "-c", FROM_PYTHON, str(shipped_words.parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "rot Hund ctranslate2 False\n", done.stderr
