"""`headwise fill`, and `evaluate` on a model that fills gaps, as a user has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from verbs import run, start


def test_candidates_come_with_their_probability_and_the_whole_text(filler_model: Path) -> None:
    done = run("fill", "--model", filler_model, "--top", 3, "dog cat [MASK] bird fish cow")
    rows = [line.split("\t") for line in done.lines]
    assert len(rows) == 3
    assert rows[0][1:] == ["horse", "dog cat horse bird fish cow"]
    assert 0.5 < float(rows[0][0]) <= 1
    assert [float(row[0]) for row in rows] == sorted((float(row[0]) for row in rows), reverse=True)


def test_lines_keep_their_order_and_those_without_a_gap_are_copied(filler_model: Path, tmp_path: Path) -> None:
    text = "dog cat [MASK] bird fish\nno gap\n\nred [MASK] green <mask> black\n"
    done = run("fill", "--model", filler_model, "--top", 1, given=text.encode())
    assert done.lines == ["dog cat horse bird fish", "no gap", "", "red blue green white black"]
    (tmp_path / "in.txt").write_text(text)
    run("fill", "--model", filler_model, "--top", 1, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == done.out


def test_json_has_the_candidates_of_every_gap(filler_model: Path) -> None:
    (line,) = run("fill", "--model", filler_model, "--json", "--top", 2, "red [MASK] green [MASK] black").lines
    record = json.loads(line)
    assert record["text"] == "red blue green white black"
    assert [gap[0]["text"] for gap in record["gaps"]] == ["blue", "white"]
    assert all(len(gap) == 2 for gap in record["gaps"])


def test_evaluate_shows_accuracy_and_pseudo_perplexity_with_a_signature(filler_model: Path) -> None:
    text = filler_model.parents[1] / "val.txt"
    done = run("evaluate", "--model", filler_model, "--text", text)
    assert [line.split("  ")[0] for line in done.lines[:3]] == [
        "masked accuracy", "masked perplexity", "pseudo-perplexity"
    ]  # fmt: skip
    assert "hidden:one at a time" in done.lines[0]
    exact = json.loads(run("evaluate", "--model", filler_model, "--text", text, "--json").out)
    quick = json.loads(run("evaluate", "--model", filler_model, "--text", text, "--json", "--stride", 6).out)
    assert exact["pseudo"]["tokens"] == quick["pseudo"]["tokens"]
    assert 1 < exact["pseudo_perplexity"] < 3
    assert exact["masked_accuracy"] > 0.8
    assert "hidden:1 in 6" in quick["signature"]


def test_a_file_of_empty_lines_is_not_evaluated(filler_model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    done = run("evaluate", "--model", filler_model, "--text", tmp_path / "empty.txt")
    assert (done.code, done.err.count("\n"), "no text to evaluate" in done.err) == (2, 1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a [MASK]"], "no model"),
        (["--model", "{model}", "nothing missing"], "write [MASK]"),
        (
            ["--model", "{model}", "one [MASK]", "dog " * 30 + "[MASK]"],
            "dog dog [MASK]' has 33 tokens, but the model reads at most 24",
        ),
        (["--model", "{model}", "--input", "x", "a [MASK]"], "not both"),
    ],
)
def test_a_wrong_call_is_one_line(filler_model: Path, arguments: list[str], words: str) -> None:
    done = run("fill", *(word.format(model=filler_model) for word in arguments))
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_model_of_another_task_names_its_own_command(classifier_model: Path) -> None:
    done = run("fill", "--model", classifier_model, "a [MASK]")
    assert (done.code, "use headwise classify" in done.err) == (2, True)


def test_filling_from_cold_does_not_import_torch(filler_model: Path) -> None:
    run("fill", "--model", filler_model, "dog [MASK]")  # makes the export
    process = start("fill", "--model", filler_model, "--top", "1", "dog cat [MASK] bird fish cow")
    out, err = process.communicate()
    assert out.decode() == "dog cat horse bird fish cow\n"
    assert err.decode().splitlines()[-1] == "torch imported: False"
