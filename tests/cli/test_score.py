"""`headwise score` and `headwise export`."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import ctranslate2
import pytest
from verbs import run


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_right_translation_is_likelier_than_a_wrong_one_and_each_line_has_its_number(
    word_model: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "en", "one two", "", "one two", "red dog")
    target = write(tmp_path / "de", "eins zwei", "", "zwei eins", "rot Hund")
    done = run("score", "--model", word_model, "--source", source, "--target", target)
    numbers = [float(line) for line in done.lines]
    assert len(numbers) == 4
    assert numbers[0] > numbers[2] + 1
    assert max(numbers) <= 0


def test_json_has_the_share_of_each_token(word_model: Path, tmp_path: Path) -> None:
    source, target = write(tmp_path / "en", "one two"), write(tmp_path / "de", "eins zwei")
    record = json.loads(run("score", "--model", word_model, "--source", source, "--target", target, "--json").out)
    assert record["tokens"] == ["eins", "zwei"]
    assert len(record["log_probs"]) == 3
    assert record["log_prob"] == pytest.approx(math.fsum(record["log_probs"]))


def test_a_language_model_scores_lines_by_themselves(language_model: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "text", "the fox", "a longer line than the context of the model", "the fox")
    numbers = [float(line) for line in run("score", "--model", language_model, "--text", text).lines]
    assert numbers[0] == numbers[2]
    assert numbers[1] < numbers[0] < 0


def test_files_that_are_not_aligned_are_refused_by_name(word_model: Path, tmp_path: Path) -> None:
    source, target = write(tmp_path / "en", "one", "two"), write(tmp_path / "de", "eins")
    done = run("score", "--model", word_model, "--source", source, "--target", target)
    assert done.code == 2
    assert f"{target}: ends after 1 lines" in done.err


def test_wrong_calls_are_exit_2(word_model: Path, language_model: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "file", "one")
    for arguments in (
        ("--source", file, "--target", file),
        ("--model", word_model),
        ("--model", word_model, "--source", file),
        ("--model", word_model, "--text", file),
        ("--model", language_model, "--source", file, "--target", file),
    ):
        done = run("score", *arguments)
        assert done.code == 2
        assert done.err.startswith("headwise: error: ")


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_an_export_can_be_used_by_ctranslate2_itself(word_model: Path, tmp_path: Path, precision: str) -> None:
    done = run("export", "--model", word_model, "--to", "ctranslate2", "--precision", precision, tmp_path / "out")
    assert done.code == 0
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    (result,) = translator.translate_batch([["one", "two", "</s>"]], beam_size=1)
    assert result.hypotheses[0] == ["eins", "zwei"]
    again = run("export", "--model", word_model, "--precision", precision, tmp_path / "out")
    assert again.code == 0


def test_a_run_may_stand_for_its_model_everywhere(word_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(word_model, folder / "model")
    source, target = write(tmp_path / "en", "red dog"), write(tmp_path / "de", "rot Hund")
    sides = ("--source", source, "--target", target)
    for arguments in (
        ("translate", "--model", folder, "red dog"),
        ("score", "--model", folder, *sides),
        ("evaluate", "--model", folder, "--source", source, "--reference", target),
        ("look", "--model", folder, "red dog", "--output", tmp_path / "look.html"),
        ("info", folder),
        ("export", "--model", folder, "--to", "ctranslate2", tmp_path / "exported"),
    ):
        done = run(*arguments)
        assert done.code == 0, (arguments[0], done.err)


def test_an_export_does_not_overwrite_what_it_did_not_write(word_model: Path, tmp_path: Path) -> None:
    write(tmp_path / "precious", "text")
    assert "not an export" in run("export", "--model", word_model, tmp_path).err
    assert "not an export" in run("export", "--model", word_model, tmp_path / "precious").err
    assert (tmp_path / "precious").read_text() == "text\n"
    damaged = shutil.copytree(word_model, tmp_path / "damaged")
    (damaged / "tokenizer.json").unlink()
    done = run("export", "--model", damaged, tmp_path / "out")
    assert done.code == 2
    assert "tokenizer.json is missing" in done.err
    assert not (tmp_path / "out").exists()
