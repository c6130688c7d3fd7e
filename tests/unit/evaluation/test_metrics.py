"""Scores are sacreBLEU's own, with the right tokenizer, and carry their signature."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.evaluation import metrics
from headwise.evaluation.metrics import bleu, bleu_tokenizer, chrf, corpus_scores, ter

GERMAN = ["Der Hund läuft über die Wiese.", "Zwei Kinder spielen im Schnee.", "Ein Mann liest, eine Frau schreibt."]
CHINESE = ["今天天气很好，我们去公园。", "他在看书。", "两个孩子在雪地里玩。"]


def noisy(lines: list[str], seed: int = 1) -> list[str]:
    """Drops some words (or characters, if there are no spaces) from the lines."""
    choose = random.Random(seed)
    spaced = " " in lines[0]
    units = [line.split(" ") if spaced else list(line) for line in lines]
    return [(" " if spaced else "").join(u for u in line if choose.random() > 0.2) for line in units]


def command_line(tmp_path: Path, hypotheses: list[str], references: list[str], *options: str) -> dict[str, float]:
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    (tmp_path / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-m", "bleu", "chrf", "ter", "-w", "6", *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    return {row["name"]: row["score"] for row in json.loads(run.stdout)}


def test_scores_are_those_of_the_sacrebleu_command_line(tmp_path: Path) -> None:
    hypotheses = noisy(GERMAN * 10)
    expected = command_line(tmp_path, hypotheses, GERMAN * 10)
    found = {score.name: score.value for score in corpus_scores(hypotheses, GERMAN * 10, language="de")}
    assert found == pytest.approx(expected, abs=1e-5)
    assert 0 < found["BLEU"] < 100


def test_chinese_scores_are_those_of_the_command_line_with_its_chinese_tokenizer(tmp_path: Path) -> None:
    hypotheses = noisy(CHINESE)
    options = ("--tokenize", "zh", "--ter-asian-support", "--ter-normalized")
    expected = command_line(tmp_path, hypotheses, CHINESE, *options)
    found = {score.name: score.value for score in corpus_scores(hypotheses, CHINESE, language="zh-Hans")}
    assert found == pytest.approx(expected, abs=1e-5)


def test_every_score_has_a_signature_that_names_tokenizer_and_version() -> None:
    assert "tok:13a" in bleu(GERMAN, GERMAN, language="de").signature
    assert "tok:zh" in bleu(CHINESE, CHINESE, language="zh").signature
    for score in corpus_scores(GERMAN, GERMAN):
        assert "version:" in score.signature
        assert "nrefs:1" in score.signature


def test_a_perfect_output_has_the_best_score_of_each_metric_and_lower_ter_is_better() -> None:
    assert bleu(GERMAN, GERMAN).value == pytest.approx(100)
    assert chrf(GERMAN, GERMAN).value == pytest.approx(100)
    assert ter(GERMAN, GERMAN).value == 0
    assert ter(GERMAN, GERMAN).better == -1


def test_a_second_reference_can_only_help_and_is_in_the_signature() -> None:
    hypotheses = noisy(GERMAN)
    one, two = bleu(hypotheses, GERMAN), bleu(hypotheses, GERMAN, hypotheses)
    assert two.value > one.value
    assert "nrefs:2" in two.signature


def test_japanese_falls_back_to_characters_where_mecab_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.importlib.util, "find_spec", lambda name: None)
    assert bleu_tokenizer("ja") == "char"
    monkeypatch.setattr(metrics.importlib.util, "find_spec", lambda name: object())
    assert bleu_tokenizer("ja_JP") == "ja-mecab"


@pytest.mark.parametrize("references", [["one line"], []])
def test_outputs_that_are_not_aligned_with_the_reference_are_refused(references: list[str]) -> None:
    with pytest.raises(DataError, match="must belong to line n"):
        bleu(GERMAN, references)


def test_nothing_to_score_is_an_error_not_a_zero() -> None:
    with pytest.raises(DataError, match="nothing to score"):
        bleu([], [])
