"""`headwise info`: what a model directory is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from verbs import run, start

from headwise.bundle.directory import open_bundle, write_config


def test_a_translator_is_described_without_torch(word_model: Path) -> None:
    process = start("info", word_model)
    out, err = process.communicate()
    assert err.decode() == "torch imported: False\n"
    lines = out.decode().splitlines()
    assert lines[0].split() == ["model", str(word_model)]
    assert "languages     en → de" in lines
    assert any("model_dim 64, num_heads 4" in line for line in lines)
    assert any(line.startswith("tokenizer     word, ") for line in lines)
    assert any(line.endswith(" bytes  model.safetensors") for line in lines)


def test_a_model_is_described_by_what_belongs_to_its_task(
    classifier_model: Path, filler_model: Path, word_model: Path, tmp_path: Path
) -> None:
    lines = run("info", classifier_model).lines
    assert "labels        'animals', 'colours', 'numbers'" in lines
    assert any(line.startswith("temperature   ") for line in lines)
    assert "trained on    300 rows" in lines
    assert open_bundle(classifier_model).decoding, "which it does not use"
    translator = Path(shutil.copytree(word_model, tmp_path / "model"))
    write_config(translator, replace(open_bundle(translator), decoding={"beam": 5}))
    decoders = [
        any(line.startswith("decoding ") for line in run("info", model).lines)
        for model in (classifier_model, filler_model, translator)
    ]
    assert decoders == [False, False, True]
    found = json.loads(run("info", classifier_model, "--json").out)
    assert (found["labels"], found["unit"]) == (["animals", "colours", "numbers"], "rows")
    assert found["temperature"] > 0


def test_json_is_for_programs_and_the_parameters_are_those_of_the_model(language_model: Path) -> None:
    from headwise.bundle.weights import open_model

    found = json.loads(run("info", language_model, "--json").out)
    _, model, tokenizers = open_model(language_model)
    assert found["parameters"] == sum(p.numel() for p in model.parameters())
    assert found["architecture"] == model.architecture
    assert found["tokenizers"] == [
        {"side": "both", "kind": "char", "size": tokenizers.source.size, "normalisation": "nfc"}
    ]
    assert (found["family"], found["languages"]) == ("lm", ["en"])
    assert found["files"] == {name: (language_model / name).stat().st_size for name in found["files"]}
    assert set(found["files"]) == {path.name for path in language_model.iterdir() if path.is_file()}


def test_scores_come_from_the_card_and_a_run_stands_for_its_model(word_model: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(word_model, tmp_path / "run/model"))
    bundle = open_bundle(copy)
    bundle.card.update(
        validation={"step": 800, "log_loss": 1.25, "bleu": 35.5}, headwise="0.1.0", data={"sentences": 9}
    )
    write_config(copy, bundle)
    done = run("info", tmp_path / "run")
    assert "validation    step 800, log_loss 1.25, bleu 35.5" in done.lines
    assert "trained on    9 sentences" in done.lines
    assert "written by    headwise 0.1.0" in done.lines


@pytest.mark.parametrize("card", [{"validation": "good"}, {"validation": {"bleu": None}, "data": 3}, {}])
def test_an_unusual_card_is_no_reason_to_fail(word_model: Path, tmp_path: Path, card: dict[str, object]) -> None:
    copy = Path(shutil.copytree(word_model, tmp_path / "model"))
    bundle = open_bundle(copy)
    bundle.card.clear()
    bundle.card.update(card)
    write_config(copy, bundle)
    assert run("info", copy).code == 0


def test_a_damaged_or_missing_model_is_one_line(word_model: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(word_model, tmp_path / "model"))
    with open(copy / "model.safetensors", "ab") as stream:
        stream.write(b"x")
    for path, problem in ((copy, "take another copy"), (tmp_path / "none", "is not there")):
        done = run("info", path)
        assert (done.code, done.out) == (2, "")
        assert problem in done.err
        assert done.err.count("\n") == 1
