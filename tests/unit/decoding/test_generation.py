from __future__ import annotations

import pytest

from headwise.config import schema
from headwise.decoding.generation import Writing, prompt_ids, read_sampling, read_stops
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS, Tokenizer

LETTERS = Tokenizer.train(["abcdefgh"], schema.Tokenizer(kind="char", size=300))


def write(text: str, stops: tuple[str, ...] = (), prompt: str = "", max_tokens: int = 99) -> Writing:
    """Writes tokens until the writing is done; a line break is an end of sentence."""
    writing = Writing(LETTERS, prompt_ids(LETTERS, prompt), stops, max_tokens)
    for letter in text:
        if not writing.done:
            writing.add(EOS if letter == "\n" else LETTERS.encode(letter)[0], -0.5)
    return writing


def test_a_prompt_begins_with_an_end_of_sentence_and_has_one_per_line_break() -> None:
    a, b = LETTERS.encode("a")[0], LETTERS.encode("b")[0]
    assert prompt_ids(LETTERS, "a\n\nb") == [EOS, a, EOS, EOS, b]
    assert prompt_ids(LETTERS, "") == [EOS]


def test_the_text_has_no_prompt_and_ends_before_the_stop_string() -> None:
    written = write("abc\nde", prompt="gh")
    assert written.text == "abc\nde"
    assert (written.generation.stopped, len(written.generation.log_probs)) == ("length", 6)
    stopped = write("abcdef", stops=("x", "de"))
    assert (stopped.text, stopped.generation.stopped, stopped.done) == ("abc", "stop", True)
    assert write("abcdef", max_tokens=2).text == "ab"


def test_the_end_that_may_still_become_a_stop_string_is_not_sure() -> None:
    writing = write("abc", stops=("cde",))
    assert writing.text[: writing.final_length] == "a"
    assert write("abc", stops=("cde",), max_tokens=3).final_length == 3  # it is done


def test_a_wrong_option_is_one_clear_line() -> None:
    assert (read_stops("x"), read_stops(["x", "y"]), read_stops(())) == (("x",), ("x", "y"), ())
    with pytest.raises(UsageError, match="must not be empty"):
        read_stops(["x", ""])
    with pytest.raises(UsageError, match=r"unknown option.*heat"):
        read_sampling({"heat": 1.0})
    assert read_sampling({"top_k": 5}).top_k == 5
