"""`headwise generate`: what a language model writes after a prompt."""

from __future__ import annotations

import json
from pathlib import Path

from verbs import run


def test_a_seed_gives_the_same_text_as_argument_input_and_stream(language_model: Path) -> None:
    options = ["--model", language_model, "--max-tokens", 10, "--seed", 5, "--temperature", 0.7, "--top-k", 9]
    plain = run("generate", *options, "the")
    assert plain.code == 0
    assert len(plain.out) > 1
    assert plain.err == ""
    assert run("generate", *options, given=b"the\n").out == plain.out
    assert run("generate", *options, "--stream", "the").out == plain.out
    assert run("generate", *options[:-6], "--seed", 6, "the").out != plain.out


def test_without_a_seed_every_call_writes_anew_and_json_says_which_it_was(language_model: Path) -> None:
    options = ["--model", language_model, "--max-tokens", 12, "--json", "the"]
    first, second = (json.loads(run("generate", *options).out) for _ in range(2))
    assert first["text"] != second["text"]
    again = json.loads(run("generate", *options, "--seed", first["seed"]).out)
    assert again == first
    assert (first["prompt"], first["stopped"], first["tokens"]) == ("the", "length", 12)
    assert first["log_prob"] < 0


def test_several_samples_are_told_apart(language_model: Path) -> None:
    options = ["--model", language_model, "--max-tokens", 8, "--seed", 1, "--samples", 3]
    done = run("generate", *options, "a")
    assert [line for line in done.lines if line.startswith("--- ")] == [f"--- {i} of 3" for i in (1, 2, 3)]
    texts = [json.loads(line)["text"] for line in run("generate", *options, "--json", "a").lines]
    assert len(set(texts)) == 3
    assert done.out == "".join(f"--- {i} of 3\n{text}\n" for i, text in enumerate(texts, start=1))


def test_several_prompts_become_what_each_becomes_alone(language_model: Path) -> None:
    options = ["--model", language_model, "--max-tokens", 8, "--seed", 1, "--json"]
    for engine in ([], ["--engine", "ctranslate2", "--temperature", 0]):
        together = run("generate", *options, *engine, "a", "the dog").lines
        assert together == [run("generate", *options, *engine, prompt).lines[0] for prompt in ("a", "the dog")]
        assert [json.loads(line)["prompt"] for line in together] == ["a", "the dog"]


def test_it_ends_before_a_stop_string_and_a_line_break_can_be_one(language_model: Path) -> None:
    options = ["--model", language_model, "--seed", 3, "--json", "the"]
    free = json.loads(run("generate", *options, "--max-tokens", 400).out)["text"]
    assert "\n" in free
    held = json.loads(run("generate", *options, "--max-tokens", 400, "--stop", r"\n", "--stop", "never there").out)
    assert (held["text"], held["stopped"]) == (free.split("\n")[0], "stop")


def test_temperature_zero_and_top_k_one_are_the_likeliest_text(language_model: Path) -> None:
    options = ["--model", language_model, "--max-tokens", 12, "the"]
    likeliest = run("generate", *options, "--temperature", 0).out
    assert run("generate", *options, "--top-k", 1).out == likeliest
    assert run("generate", *options, "--min-p", 1).out == likeliest
    assert run("generate", *options, "--top-p", 1e-9).out == likeliest
    assert run("generate", *options, "--top-k", 1, "--repetition-penalty", 5).out != likeliest


def test_a_text_longer_than_the_context_is_windowed_with_a_notice(language_model: Path) -> None:
    options = ["--model", language_model, "--seed", 1]
    long = run("generate", *options, "--max-tokens", 4, "the lazy dog jumps over the fox")
    assert long.code == 0
    assert "the prompt has 32 tokens, more than the model's context of 16: only its end is used" in long.err
    grows = run("generate", *options, "--max-tokens", 30, "the")
    assert "34 tokens, more than the model's context of 16" in grows.err
    assert grows.err.count("\n") == 1


def test_nothing_at_all_is_a_prompt_too(language_model: Path) -> None:
    done = run("generate", "--model", language_model, "--max-tokens", 5, "--seed", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out == run("generate", "--model", language_model, "--max-tokens", 5, "--seed", 1, "").out


def test_wrong_calls_are_one_line_each(language_model: Path, word_model: Path, tmp_path: Path) -> None:
    model = ["--model", language_model, "a"]
    cases = {
        ("a",): "no model: give --model DIR",
        ("--model", tmp_path / "none", "a"): "none is not there",
        ("--model", word_model, "a"): "is a model of the task 'translate'; use headwise translate",
        (*model, "--top-p", 2): "top_p must be above 0 and at most 1",
        (*model, "--temperature", -1): "temperature must be 0 or more",
        (*model, "--max-tokens", 0): "at least 1",
        (*model, "--samples", 0): "at least 1",
        (*model, "--stop", ""): "must not be empty",
        (*model, "--stream", "--samples", 2): "without --samples",
        (*model, "b", "--stream"): "one prompt",
    }
    for arguments, problem in cases.items():
        done = run("generate", *arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert problem in done.err
        assert done.err.count("\n") == 1
    done = run("generate", "--model", language_model, given=b"caf\xe9")
    assert done.code == 2
    assert "standard input: not UTF-8 (byte 3)" in done.err
