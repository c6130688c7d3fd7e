from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.decoding.generator import Generator
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS
from headwise.workflows.load import load


@pytest.fixture(scope="module")
def generator(language_model: Path) -> Generator:
    loaded = load(language_model)
    assert isinstance(loaded, Generator)
    return loaded


def test_a_seed_gives_the_same_text_alone_among_samples_and_streamed(generator: Generator) -> None:
    several = generator.generate("the dog", samples=5, max_tokens=30, seed=3, top_k=20)
    (alone,) = generator.generate("the dog", max_tokens=30, seed=3, top_k=20)
    assert (alone.text, alone.ids) == (several[0].text, several[0].ids)
    assert "".join(generator.stream("the dog", max_tokens=30, seed=3, top_k=20)) == alone.text
    assert len({sample.text for sample in several}) == 5
    assert generator.generate("the dog", max_tokens=30, seed=4, top_k=20)[0].text != alone.text


def test_cached_generation_gives_the_likeliest_tokens_of_the_whole_text(generator: Generator) -> None:
    (found,) = generator.generate("the", max_tokens=10, temperature=0.0)
    ids = [EOS, *generator.tokenizer.encode("the")]
    for token, log_prob in zip(found.ids, found.log_probs, strict=True):
        logits = generator.model(torch.tensor([ids]))[0, -1].detach().log_softmax(dim=-1)
        assert token == int(logits[EOS:].argmax()) + EOS
        assert log_prob == pytest.approx(float(logits[token]), abs=1e-4)
        ids.append(token)


def test_text_goes_on_beyond_the_context_and_after_a_prompt_that_fills_it(generator: Generator) -> None:
    (found,) = generator.generate("the quick brown fox jumps", max_tokens=40, seed=1)
    assert len(found.ids) == 40
    assert found.stopped == "length"


def test_a_stop_string_ends_the_text_and_is_not_in_it(generator: Generator) -> None:
    (free,) = generator.generate("dog", max_tokens=60, seed=1)
    stop = next(character for character in free.text[10:] if character.isascii())
    (held,) = generator.generate("dog", max_tokens=60, seed=1, stop=stop)
    assert held.stopped == "stop"
    assert held.text == free.text[: free.text.index(stop)]
    assert "".join(generator.stream("dog", max_tokens=60, seed=1, stop=[stop, "never there"])) == held.text


def test_an_end_of_sentence_is_a_line_break(generator: Generator) -> None:
    (found,) = generator.generate("the dog\nthe", max_tokens=900, seed=1)
    lines: list[list[int]] = [generator.tokenizer.encode("the")]
    for token in found.ids:
        if token == EOS:
            lines.append([])
        else:
            lines[-1].append(token)
    assert len(lines) > 1
    assert "the" + found.text == "\n".join(generator.tokenizer.decode(line) for line in lines)


def test_a_repetition_penalty_brings_more_different_tokens(generator: Generator) -> None:
    (plain,) = generator.generate("the", max_tokens=60, temperature=0.0)
    (varied,) = generator.generate("the", max_tokens=60, temperature=0.0, repetition_penalty=2.0)
    assert len(set(varied.ids)) > len(set(plain.ids))


@pytest.mark.parametrize(
    "call", [{"samples": 0}, {"max_tokens": 0}, {"stop": ""}, {"temprature": 1.0}, {"top_p": 2.0}, {"min_p": -1.0}]
)
def test_a_wrong_call_is_one_clear_line(generator: Generator, call: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$"):
        generator.generate("the", **call)
