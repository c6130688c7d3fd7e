"""`headwise classify`, and `evaluate`, `check` and `train` on tables, as a user has them."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from command import Command
from small_tables import WORDS, labelled_texts, write_table, write_table_recipe
from verbs import run, start


def test_texts_get_labels_in_their_order(classifier_model: Path) -> None:
    done = run("classify", "--model", classifier_model, "dog cat dog bird", "red blue red", "one two three three")
    assert [line.split("\t")[0] for line in done.lines] == ["animals", "colours", "numbers"]
    assert all(0.3 < float(line.split("\t")[1]) <= 1 for line in done.lines)


def test_standard_input_and_files_keep_their_lines_and_empty_lines_stay_empty(
    classifier_model: Path, tmp_path: Path
) -> None:
    text = "dog cat dog bird\n\nred blue red\n"
    (tmp_path / "in.txt").write_text(text)
    piped = run("classify", "--model", classifier_model, given=text.encode())
    assert [line.split("\t")[0] for line in piped.lines] == ["animals", "", "colours"]
    done = run(
        "classify", "--model", classifier_model, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.tsv"
    )
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "out.tsv").read_text() == piped.out


def test_json_has_all_probabilities_and_top_has_the_likeliest(classifier_model: Path) -> None:
    (line,) = run("classify", "--model", classifier_model, "--json", "dog cat horse").lines
    record = json.loads(line)
    assert record["label"] == "animals"
    assert list(record["probabilities"]) == sorted(WORDS, key=lambda label: -record["probabilities"][label])
    assert sum(record["probabilities"].values()) == pytest.approx(1, abs=1e-4)
    (line,) = run("classify", "--model", classifier_model, "--top", 2, "dog cat horse").lines
    assert line.split("\t")[::2] == list(record["probabilities"])[:2]


def test_evaluate_shows_accuracy_with_its_signature_and_every_label(classifier_model: Path) -> None:
    table = classifier_model.parents[1] / "test.csv"
    done = run("evaluate", "--model", classifier_model, "--table", table)
    assert done.lines[0].startswith("accuracy")
    assert "rows:90|labels:3|average:macro|temperature:card|engine:torch" in done.lines[0]
    assert [line.split()[0] for line in done.lines[6:9]] == list(WORDS)
    figures = json.loads(run("evaluate", "--model", classifier_model, "--table", table, "--json").out)
    assert figures["accuracy"] >= 0.95
    assert sum(map(sum, figures["confusion"])) == figures["rows"] == 90


def test_evaluate_warns_of_rows_that_were_trained_on(classifier_model: Path) -> None:
    done = run("evaluate", "--model", classifier_model, "--table", classifier_model.parents[1] / "train.csv")
    assert "test lines occur in the training data" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["text"], "no model"),
        (["--model", "{model}", "--input", "x", "text"], "not both"),
        (["--model", "nowhere", "text"], "no model"),
    ],
)
def test_a_wrong_call_is_one_line(classifier_model: Path, arguments: list[str], words: str) -> None:
    done = run("classify", *(word.format(model=classifier_model) for word in arguments))
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_evaluate_names_the_line_of_a_label_that_the_model_does_not_have(
    classifier_model: Path, tmp_path: Path
) -> None:
    table = write_table(tmp_path / "t.csv", [("dog", "animals"), ("x", "letters")])
    done = run("evaluate", "--model", classifier_model, "--table", table)
    assert done.code == 2
    assert f"{table}:3: the model has no label 'letters'" in done.err


def test_a_table_alone_is_enough_to_train(headwise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "reviews.csv", labelled_texts(240, 1))
    small = "model.model_dim=32 model.num_heads=2 model.layers=1 model.ff_dim=32 training.steps=8 training.threads=1"
    settings = [word for setting in small.split() for word in ("--set", setting)]
    code, _, err = headwise("train", "--table", "reviews.csv", *settings, "--set", "tokenizer.kind=word")
    assert code == 0, err
    assert "data.split=0.1" in err
    assert "accuracy" in err
    code, out, _ = headwise("classify", "--model", tmp_path / "runs/reviews/model", "dog cat dog cow cow")
    assert (code, out.split("\t")[0] in WORDS) == (0, True)


def test_the_vocabulary_that_is_chosen_can_be_trained_and_stays_when_the_run_goes_on(
    headwise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "few-words.csv", labelled_texts(240, 1))
    small = "model.model_dim=32 model.num_heads=2 model.layers=1 model.ff_dim=32 training.threads=1"
    settings = [word for setting in small.split() for word in ("--set", setting)]
    command = ["train", "--table", "few-words.csv", *settings, "--set", "training.schedule=constant"]
    code, _, err = headwise(*command, "--set", "training.steps=4", "--output", "run")
    assert code == 0, err
    size = tomllib.loads(Path("run/recipe.toml").read_text())["tokenizer"]["size"]
    assert f"tokenizer.size={size}" in err
    code, _, err = headwise(*command, "--set", "training.steps=8", "--output", "run")
    assert (code, "resuming from update 4" in err, "tokenizer.size=" in err) == (0, True, False)
    assert tomllib.loads(Path("run/recipe.toml").read_text())["tokenizer"]["size"] == size
    code, _, err = headwise(*command, "--set", "training.steps=8", "--output", "whole")
    assert code == 0, err
    both = [Path(name, "model/model.safetensors").read_bytes() for name in ("run", "whole")]
    assert both[0] == both[1]


def test_the_columns_of_a_table_are_named_as_the_message_says(
    headwise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write_table(tmp_path / "train.csv", [(label, text) for text, label in labelled_texts(40, 1)], ("b", "a"))
    code, _, err = headwise("train", "--table", table, "--print-recipe")
    assert code == 0, err
    code, _, err = headwise("train", "--table", table)
    assert (code, "set data.columns or --columns" in err) == (2, True)
    for named in (["--columns", "a,b"], ["--set", "data.columns=a,b"]):
        code, out, err = headwise("train", "--table", table, *named, "--print-recipe")
        assert (code, tomllib.loads(out)["data"]["columns"]) == (0, ["a", "b"]), err
    code, _, err = headwise("init", "mine.toml", "--table", table, "--columns", "a,b")
    assert (code, tomllib.loads(Path("mine.toml").read_text())["data"]["columns"]) == (0, ["a", "b"]), err


def test_check_reports_on_a_table_and_refuses_one_label(headwise: Command, tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", labelled_texts(60, 1))
    code, out, _ = headwise("check", "--table", table)
    assert code == 0
    assert "3 labels: rows per label" in out
    assert "60 rows = 60 kept" in out
    write_table(table, [("a", "x"), ("b", "x")])
    code, out, _ = headwise("check", "--table", table)
    assert code == 1
    assert "one-label: all rows have the label 'x'" in out


def test_pairs_of_texts_are_read_from_two_columns(headwise: Command, tmp_path: Path) -> None:
    names = ("question", "answer", "verdict")
    rows = [
        (one, other, "same" if label == answer else "different")
        for (one, label), (other, answer) in zip(labelled_texts(120, 1), labelled_texts(120, 2), strict=True)
    ]
    recipe = write_table_recipe(tmp_path, data={"columns": list(names)}, training={"steps": 4})
    write_table(tmp_path / "train.csv", rows[:80], names)
    write_table(tmp_path / "val.csv", rows[80:], names)
    code, _, err = headwise("train", recipe, "--output", tmp_path / "run")
    assert code == 0, err
    model = tmp_path / "run/model"
    code, out, _ = headwise("classify", "--model", model, "dog cat\tred blue")
    assert (code, out.split("\t")[0] in ("same", "different")) == (0, True)
    for wrong, tabs in (("none", "no tab"), ("a\tb\tc", "2 tabs")):
        code, _, err = headwise("classify", "--model", model, wrong)
        assert (code, f"pairs of texts with a tab between them, but text 1 has {tabs}" in err) == (2, True)
    code, out, _ = headwise("evaluate", "--model", model, "--table", tmp_path / "val.csv", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 40)


def test_classifying_and_embedding_from_cold_do_not_import_torch(classifier_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(classifier_model, model)
    assert run("classify", "--model", model, "dog").code == 0  # makes the export
    for verb in ("classify", "embed"):
        out, err = start(verb, "--model", model, "dog cat").communicate()
        assert out, err.decode()
        assert err.decode().splitlines()[-1] == "torch imported: False"


def test_the_confusion_is_drawn_and_heads_are_ranked(classifier_model: Path, tmp_path: Path) -> None:
    table = classifier_model.parents[1] / "test.csv"
    done = run("evaluate", "--model", classifier_model, "--table", table, "--output", tmp_path / "confusion.svg")
    assert done.code == 0
    assert "animals" in (tmp_path / "confusion.svg").read_text() or (tmp_path / "confusion.svg").stat().st_size > 1000
    done = run("look", "--model", classifier_model, "dog red", "--between", "dog", "red")
    assert [line.split("\t")[1] for line in done.lines] == ["layer 1"] * 2


def test_evaluate_says_which_engine_and_precision_it_measured(classifier_model: Path) -> None:
    table = classifier_model.parents[1] / "val.csv"
    asked = ("evaluate", "--model", classifier_model, "--table", table, "--engine", "ctranslate2")
    assert "engine:ctranslate2|precision:float32" in run(*asked).lines[0]
    assert "engine:ctranslate2|precision:int8" in run(*asked, "--precision", "int8").lines[0]
