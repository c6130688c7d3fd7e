"""`headwise embed`, and `evaluate` on pairs, as a user has them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_tables import write_table
from verbs import run


def test_vectors_of_a_file_have_its_order_and_length_one(embedder_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("dog cat dog\nred blue\ncat dog cat\n")
    done = run("embed", "--model", embedder_model, "--input", tmp_path / "in.txt", "--output", tmp_path / "v.npy")
    assert (done.code, done.out) == (0, "")
    vectors = np.load(tmp_path / "v.npy", allow_pickle=False)
    assert (vectors.shape, vectors.dtype) == ((3, 32), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[2] > vectors[0] @ vectors[1]
    run("embed", "--model", embedder_model, "--input", tmp_path / "in.txt", "--output", tmp_path / "v.jsonl")
    records = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == ["dog cat dog", "red blue", "cat dog cat"]
    assert np.allclose([record["vector"] for record in records], vectors, atol=1e-6)


def test_arguments_and_standard_input_become_json_lines(embedder_model: Path) -> None:
    given = run("embed", "--model", embedder_model, "dog cat", "red blue")
    piped = run("embed", "--model", embedder_model, given=b"dog cat\nred blue\n")
    assert given.out == piped.out
    assert [json.loads(line)["text"] for line in given.lines] == ["dog cat", "red blue"]


def test_similar_texts_are_found_with_their_lines(embedder_model: Path) -> None:
    text = b"red blue red\ndog cat dog cat\none two one\n"
    done = run("embed", "--model", embedder_model, "--similar", "cat dog cat", "--top", 2, given=text)
    rows = [line.split("\t") for line in done.lines]
    assert (rows[0][1:], len(rows)) == (["2", "dog cat dog cat"], 2)
    assert float(rows[0][0]) > float(rows[1][0])
    done = run("embed", "--model", embedder_model, "--similar", "cat dog cat", "--json", given=text)
    assert json.loads(done.lines[0])["line"] == 2


@pytest.mark.parametrize("fixture", ["filler_model", "classifier_model"])
def test_models_of_other_tasks_have_vectors_too(fixture: str, request: pytest.FixtureRequest) -> None:
    done = run("embed", "--model", request.getfixturevalue(fixture), "dog cat")
    assert np.linalg.norm(json.loads(done.lines[0])["vector"]) == pytest.approx(1, abs=1e-4)


def test_evaluate_says_how_often_partners_find_each_other(embedder_model: Path, tmp_path: Path) -> None:
    done = run("evaluate", "--model", embedder_model, "--table", embedder_model.parents[1] / "val.csv")
    assert done.lines[0].startswith("partner is nearest")
    assert "pairs:60|similarity:cosine" in done.lines[0]
    rows = [("dog cat", "cat dog", "5"), ("dog cat", "red one", "0"), ("red blue", "blue red", "4.5")]
    table = write_table(tmp_path / "graded.csv", rows, ("a", "b", "grade"))
    done = run("evaluate", "--model", embedder_model, "--table", table, "--columns", "a,b,grade", "--json")
    assert json.loads(done.out)["correlation"] > 0.4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a"], "no model"),
        (["--model", "{model}", "--output", "v.txt", "a"], "must end with .npy or .jsonl"),
        (["--model", "{model}", "--input", "x", "a"], "not both"),
        (["--model", "{model}", "--similar", "a", "--output", "v.npy", "b"], "give one of them"),
    ],
)
def test_a_wrong_call_is_one_line(embedder_model: Path, arguments: list[str], words: str) -> None:
    done = run("embed", *(word.format(model=embedder_model) for word in arguments))
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_family_without_vectors_is_refused(language_model: Path) -> None:
    done = run("embed", "--model", language_model, "a")
    assert (done.code, "has no sentence vectors" in done.err) == (2, True)
