"""`headwise translate`: output line n belongs to input line n, whatever is in it."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
import torch
from fixtures_models import english_sentences, german, small_transformer, word_tokenizers
from verbs import run, start

from headwise.bundle.directory import read_json, write_json
from headwise.bundle.weights import save_model
from headwise.workflows.translate import open_translator


@pytest.fixture(scope="module")
def model(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The word model and its export for the fast engine."""
    copy = Path(shutil.copytree(word_model, tmp_path_factory.mktemp("translate") / "model"))
    open_translator(copy)
    return copy


def test_text_arguments_are_translated_one_per_line(model: Path) -> None:
    done = run("translate", "--model", model, "one two three", "red dog")
    assert (done.code, done.out) == (0, "eins zwei drei\nrot Hund\n")


def test_each_sentence_of_a_line_is_translated_by_itself_unless_lines_are_to_stay_whole(model: Path) -> None:
    line = "red dog! Blue cat! 1 red dog"  # the model knows neither marks nor capitals nor digits
    apart = run("translate", "--model", model, "--alignments", line)
    assert apart.code == 0
    text, links = apart.lines[0].split("\t")
    translator = open_translator(model)
    pieces = translator.translate(["red dog!", "Blue cat!", "1 red dog"])
    assert text == " ".join(piece.text for piece in pieces)
    sources, targets = zip(*(map(int, link.split("-")) for link in links.split()), strict=True)
    assert max(targets) == len(text.split()) - 1, "word links count through all sentences"
    assert max(sources) >= 4
    whole = run("translate", "--model", model, "--whole-lines", line)
    assert whole.lines == [translator.translate(line, split_sentences=False).text]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_standard_input_is_translated_line_by_line_and_empty_lines_stay(model: Path, engine: str) -> None:
    done = run("translate", "--model", model, "--engine", engine, given=b"one\n\n  \ntwo\r\nblue cat")
    assert done.lines == ["eins", "", "", "zwei", "blau Katze"]


def test_files_go_in_and_out_packed_ones_too(model: Path, tmp_path: Path) -> None:
    sentences = ["", *english_sentences(1500, seed=70_000), ""]
    with gzip.open(tmp_path / "in.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{sentence}\n" for sentence in sentences)
    done = run("translate", "--model", model, "--input", tmp_path / "in.gz", "--output", tmp_path / "out", "--beam", 1)
    assert (done.code, done.out) == (0, "")
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == len(sentences)
    assert (lines[0], lines[-1]) == ("", "")
    right = sum(line == german(sentence) for line, sentence in zip(lines, sentences, strict=True))
    assert right > 0.95 * len(lines)  # a shifted line would make nearly all of them wrong


def test_an_answer_comes_before_the_next_line_is_given(model: Path) -> None:
    process = start("translate", "--model", model)
    assert process.stdin is not None
    assert process.stdout is not None
    for line, answer in (("one two", "eins zwei"), ("", ""), ("red dog", "rot Hund")):
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline().decode().rstrip("\n") == answer
    _, err = process.communicate()
    assert process.returncode == 0
    assert err.decode().endswith("torch imported: False\n")


def test_the_fast_engine_does_not_import_torch_once_its_export_is_made(model: Path) -> None:
    process = start("translate", "--model", model, "--json", "--alignments", "one two")
    out, err = process.communicate()
    assert json.loads(out)["text"] == "eins zwei"
    assert err.decode() == "torch imported: False\n"


def test_bytes_that_are_not_utf8_are_replaced_named_and_shift_no_line(model: Path, tmp_path: Path) -> None:
    bad = b"one\nred \xff dog\n\xc3\ntwo\n"
    done = run("translate", "--model", model, given=bad)
    assert done.code == 0
    assert len(done.lines) == 4
    assert (done.lines[0], done.lines[3]) == ("eins", "zwei")
    assert "standard input:2: not UTF-8" in done.err
    assert "standard input:3: not UTF-8" in done.err
    (tmp_path / "in").write_bytes(bad)
    assert run("translate", "--model", model, "--input", tmp_path / "in").out == done.out


def test_a_line_of_100000_characters_is_one_line_of_output(model: Path) -> None:
    done = run("translate", "--model", model, "--beam", 1, given=b"one\n" + b"red dog".ljust(100) * 1000 + b"\ntwo\n")
    assert done.code == 0
    assert len(done.lines) == 3
    assert (done.lines[0], done.lines[2]) == ("eins", "zwei")
    pieces = done.lines[1].split(" " * 93)  # with the spacing of the source between them
    assert len(pieces) >= 2000 // 500
    assert all(piece.startswith("rot Hund") for piece in pieces)


def test_empty_input_gives_empty_output(model: Path, tmp_path: Path) -> None:
    assert run("translate", "--model", model, given=b"").out == ""
    (tmp_path / "empty").write_bytes(b"")
    assert run("translate", "--model", model, "--input", tmp_path / "empty", "--output", tmp_path / "out").code == 0
    assert (tmp_path / "out").read_bytes() == b""


def test_n_best_scores_and_alignments_are_columns_of_the_line(model: Path) -> None:
    given = b"one two\n\nred dog\n"
    done = run("translate", "--model", model, "--n-best", 2, "--scores", "--alignments", given=given)
    assert len(done.lines) == 3
    first = done.lines[0].split("\t")
    assert len(first) == 6
    assert first[0] == "eins zwei"
    assert first[2] == "0-0 1-1"
    assert float(first[1]) > float(first[4])
    assert done.lines[1] == ""


def test_json_has_all_that_is_known_one_object_a_line(model: Path) -> None:
    done = run("translate", "--model", model, "--json", "--n-best", 3, given=b"one two\n\n")
    records = [json.loads(line) for line in done.lines]
    assert [record["source"] for record in records] == ["one two", ""]
    assert records[0]["text"] == "eins zwei"
    assert records[0]["tokens"] == ["eins", "zwei"]
    assert len(records[0]["log_probs"]) == 3
    assert 0.5 < records[0]["confidence"] <= 1
    assert len(records[0]["alternatives"]) == 2
    assert records[1]["text"] == ""


def test_a_glossary_term_is_in_the_output(model: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tPferd\n\n", encoding="utf-8")
    done = run("translate", "--model", model, "--glossary", tmp_path / "terms.tsv", "red dog", "red cat")
    assert "Pferd" in done.lines[0].split()
    assert done.lines[1] == "rot Katze"


@pytest.mark.parametrize(
    ("text", "place"), [("dog Pferd\n", ":1:"), ("dog\tPferd\ncat\t\n", ":2:"), ("a\tb\na\tc\n", ":2:")]
)
def test_a_glossary_line_that_is_no_pair_is_named(model: Path, tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    done = run("translate", "--model", model, "--glossary", tmp_path / "terms.tsv", "red dog")
    assert done.code == 2
    assert f"terms.tsv{place}" in done.err


def test_a_model_that_loops_is_stopped_and_the_line_is_named(tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizers = word_tokenizers()
    looping = small_transformer(tokenizers.source.size)
    with torch.no_grad():
        looping.source_embedding.weight[3] = 0  # the end of sentence is never likely
        looping.source_embedding.weight[7] *= 30
    save_model(tmp_path / "model", looping.eval(), tokenizers, family="transformer", languages=("en", "de"))
    for engine in ("torch", "ctranslate2"):
        done = run("translate", "--model", tmp_path / "model", "--engine", engine, "--beam", 1, "one two", "two")
        assert len(done.lines) == 2
        assert "loop or at the length limit: line 1, 2" in done.err


def test_a_missing_damaged_or_newer_model_is_one_line_and_exit_2(model: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(model, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:-10])
    newer = shutil.copytree(model, tmp_path / "newer")
    write_json(newer / "config.json", {**read_json(model / "config.json"), "format": 999})
    cases = {tmp_path / "nothing": "no model", damaged: "damaged", newer: "upgrade headwise"}
    for directory, expected in cases.items():
        done = run("translate", "--model", directory, "one")
        assert (done.code, done.out) == (2, "")
        assert expected in done.err
        assert done.err.count("\n") == 1


def test_wrong_calls_are_refused_before_any_work(model: Path, language_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\n")
    assert "no model: give --" in run("translate", "one").err
    assert "not both" in run("translate", "--model", model, "--input", tmp_path / "in", "one").err
    assert "n_best" in run("translate", "--model", model, "--n-best", 0, "one").err
    assert "use headwise generate" in run("translate", "--model", language_model, "one").err
    fast = run("translate", "--model", model, "--engine", "ctranslate2", "--protect", "one")
    assert "does not support --glossary and --protect" in fast.err
    assert "no such file" in run("translate", "--model", model, "--input", tmp_path / "none").err
    missing = run("translate", "--model", model, "--output", tmp_path / "no" / "out", "one")
    assert missing.code == 2
    assert "no such folder" in missing.err


def test_an_error_leaves_the_old_output_file_as_it_was(model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    (tmp_path / "in").write_bytes("one\n".encode("utf-16"))
    done = run("translate", "--model", model, "--input", tmp_path / "in", "--output", tmp_path / "out")
    assert done.code == 2
    assert "UTF-16" in done.err
    assert (tmp_path / "out").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
