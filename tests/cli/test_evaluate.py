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
    assert "beam:2|" in done.lines[3]


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
