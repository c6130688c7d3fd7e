"""`headwise evaluate`: figures with signatures, comparisons, and a warning when the test was trained on."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_models import english_sentences, german
from verbs import run


@pytest.fixture(scope="module")
def files(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and a test set."""
    folder = tmp_path_factory.mktemp("evaluate")
    shutil.copytree(word_model, folder / "model")
    sources = [sentence for sentence in english_sentences(400, seed=60_000) if len(sentence.split()) > 5][:60]
    write(folder / "test.en", sources)
    write(folder / "test.de", [german(sentence) for sentence in sources])
    return folder


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_model_is_scored_as_the_sacrebleu_command_line_scores_its_output(files: Path, tmp_path: Path) -> None:
    done = run(
        "evaluate", "--model", files / "model", "--source", files / "test.en", "--reference", files / "test.de",
        "--output", tmp_path / "out.de", "--json",
    )  # fmt: skip
    assert done.code == 0
    scores = {score["name"]: score["value"] for score in json.loads(done.out)["scores"]}
    command = [sys.executable, "-m", "sacrebleu", files / "test.de", "-i", tmp_path / "out.de", "-b", "-w", "4"]
    theirs = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert scores["BLEU"] == pytest.approx(float(theirs), abs=1e-4)
    assert scores["BLEU"] > 90
    assert scores.keys() == {"BLEU", "chrF2", "TER"}


def test_the_report_shows_each_score_with_its_signature_and_how_it_was_decoded(files: Path) -> None:
    done = run(
        "evaluate", "--model", files / "model", "--source", files / "test.en", "--reference", files / "test.de",
        "--beam", 2,
    )  # fmt: skip
    assert [line.split()[0] for line in done.lines] == ["BLEU", "chrF2", "TER", "decoded"]
    assert all("version:" in line for line in done.lines[:3])
    assert done.lines[3].endswith("beam:2|length_penalty:0.6|engine:ctranslate2|precision:float32|split:sentences")
    fast = run(
        "evaluate", "--model", files / "model", "--source", files / "test.en", "--reference", files / "test.de",
        "--precision", "int8", "--whole-lines",
    )  # fmt: skip
    assert fast.lines[3].endswith("engine:ctranslate2|precision:int8|split:no")


def test_a_test_set_may_be_a_table_like_the_training_text(files: Path, tmp_path: Path) -> None:
    plain = run("evaluate", "--model", files / "model", "--source", files / "test.en", "--reference", files / "test.de")
    lines = [(files / name).read_text(encoding="utf-8").splitlines() for name in ("test.en", "test.de")]
    pairs = list(zip(*lines, strict=True))
    write(tmp_path / "test.tsv", [f"{source}\t{target}" for source, target in pairs])
    write(tmp_path / "test.csv", ["source,target", *(f'"{source}",{target}' for source, target in pairs)])
    records = [json.dumps({"english": source, "german": target}) for source, target in pairs]
    write(tmp_path / "test.jsonl", records)
    for name, fields in (("test.tsv", []), ("test.csv", []), ("test.jsonl", ["--fields", "english,german"])):
        done = run("evaluate", "--model", files / "model", "--source", tmp_path / name, *fields)
        assert (done.code, done.lines) == (0, plain.lines), name
    other = run(
        "evaluate", "--model", files / "model", "--source", tmp_path / "test.csv", "--reference", files / "test.de"
    )
    assert other.lines == plain.lines
    wrong = run("evaluate", "--model", files / "model", "--source", tmp_path / "test.jsonl")
    assert (wrong.code, "no text in field 'source'" in wrong.err) == (2, True)


def test_the_text_of_a_language_model_may_be_a_column(language_model: Path, tmp_path: Path) -> None:
    plain = run("evaluate", "--model", language_model, "--text", write(tmp_path / "a.txt", ["the dog", "a cat"]))
    table = write(tmp_path / "a.csv", ["id,body", "1,the dog", "2,a cat"])
    assert run("evaluate", "--model", language_model, "--text", table, "--fields", "body").lines == plain.lines


def test_an_existing_output_is_scored_and_compared_with_another(files: Path, tmp_path: Path) -> None:
    reference = (files / "test.de").read_text(encoding="utf-8").splitlines()
    good = write(tmp_path / "good", [line.replace("rot", "blau") for line in reference])
    bad = write(tmp_path / "bad", [" ".join(line.split()[::2]) for line in reference])
    done = run("evaluate", "--hypothesis", good, "--reference", files / "test.de", "--against", bad, "--language", "de")
    assert done.code == 0
    verdicts = [line for line in done.lines if "p = " in line]
    assert len(verdicts) == 3
    assert all(", significant" in line for line in verdicts)


def test_a_model_does_not_differ_significantly_from_itself(files: Path) -> None:
    done = run(
        "evaluate", "--model", files / "model", "--against-model", files / "model", "--source", files / "test.en",
        "--reference", files / "test.de", "--test", "randomisation", "--beam", 1, "--json",
    )  # fmt: skip
    assert [one["significant"] for one in json.loads(done.out)["comparisons"]] == [False] * 3


def test_test_lines_that_were_trained_on_are_reported(files: Path, tmp_path: Path) -> None:
    trained = [s for s in english_sentences(32, seed=3) if len(s.split()) > 5]
    fresh = (files / "test.en").read_text().splitlines()
    sources = [*fresh[:20], *trained]
    source, reference = write(tmp_path / "en", sources), write(tmp_path / "de", [german(s) for s in sources])
    done = run("evaluate", "--model", files / "model", "--source", source, "--reference", reference, "--beam", 1)
    assert f"about {len(trained)} of {len(sources)} test lines occur in the training data" in done.err
    clean = run(
        "evaluate", "--model", files / "model", "--source", files / "test.en", "--reference", files / "test.de",
        "--beam", 1,
    )  # fmt: skip
    assert clean.err == ""


def test_a_language_model_has_a_perplexity_with_its_convention(language_model: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "text", ["the quick brown fox", "", "jumps over the lazy dog and the fox"])
    done = run("evaluate", "--model", language_model, "--text", text, "--json")
    record = json.loads(done.out)
    assert record["tokens"] == 19 + 1 + 1 + 35 + 1
    assert record["perplexity"] == pytest.approx(math.exp(record["nats"] / record["tokens"]))
    assert record["bits_per_character"] == pytest.approx(record["nats"] / math.log(2) / record["characters"])
    assert "stride:8" in record["signature"]
    assert "context:16" in record["signature"]
    shown = run("evaluate", "--model", language_model, "--text", text)
    assert shown.lines[0].startswith("perplexity")


def test_wrong_calls_are_one_line_and_exit_2(files: Path, language_model: Path, tmp_path: Path) -> None:
    short = write(tmp_path / "short", ["nur eine"])
    source, reference, model = files / "test.en", files / "test.de", files / "model"
    cases = {
        "give --reference": ("--model", model, "--source", source),
        "--model DIR with --source FILE": ("--reference", reference),
        "needs --source": ("--model", model, "--reference", reference),
        "has 1 lines but": ("--model", model, "--source", source, "--reference", short),
        "is a translation model: evaluate it with --source": ("--model", model, "--text", source),
        "evaluate it with --text": ("--model", language_model, "--source", source, "--reference", reference),
        "cannot be combined": ("--model", model, "--text", source, "--source", source),
        "no model": ("--model", tmp_path / "none", "--source", source, "--reference", reference),
        "not both": (
            "--hypothesis", reference, "--source", source, "--reference", reference, "--against", reference,
            "--against-model", model,
        ),
    }  # fmt: skip
    for expected, arguments in cases.items():
        done = run("evaluate", *arguments)
        assert (done.code, done.out) == (2, ""), expected
        assert expected in done.err
        assert done.err.count("\n") == 1


def test_two_language_models_are_compared_by_a_paired_test_over_lines(language_model: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", ["the dog", "a cat", "", "the quick fox"])
    done = run("evaluate", "--model", language_model, "--text", text, "--against-model", language_model, "--json")
    comparison = json.loads(done.out)["comparison"]
    assert (comparison["difference"], comparison["p_value"], comparison["lines"]) == (0.0, 1.0, 3)
    shown = run("evaluate", "--model", language_model, "--text", text, "--against-model", language_model)
    assert "p = 1.0000, not significant at 5 %  lines:3|test:bootstrap" in shown.lines[-1]
