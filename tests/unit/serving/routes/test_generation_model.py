from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from headwise.config import schema
from headwise.decoding.generation import Writing, prompt_ids
from headwise.serving.routes.generation_model import GenerationModel, OnToken, TextChunk, stream_text
from headwise.text.tokenizer import Tokenizer

LETTERS = Tokenizer.train(["abcdefgh"], schema.Tokenizer(kind="char", size=300))


class Spelling(GenerationModel):
    """Writes given texts, one token per step; fails afterwards if it is told to."""

    def __init__(self, *texts: str, problem: Exception | None = None) -> None:
        self.texts, self.problem = texts, problem

    async def generate(
        self, prompt: str, options: Mapping[str, Any], on_token: OnToken = lambda samples: None
    ) -> list[Writing]:
        begun = prompt_ids(LETTERS, prompt)
        samples = [Writing(LETTERS, begun, options.get("stop", ()), options["max_tokens"]) for _ in self.texts]
        for place in range(max(map(len, self.texts))):
            for sample, text in zip(samples, self.texts, strict=True):
                if not sample.done:
                    sample.add(LETTERS.encode(text[place])[0], -0.1)
            on_token(samples)
            await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        return samples


async def chunks(model: GenerationModel, **options: Any) -> list[TextChunk]:
    return [chunk async for chunk in stream_text(model, "a", options)]


def test_chunks_are_the_text_of_every_sample_and_the_last_says_why_it_ended() -> None:
    found = asyncio.run(chunks(Spelling("abcd", "efgh"), samples=2, max_tokens=4))
    for sample, text in enumerate(("abcd", "efgh")):
        own = [chunk for chunk in found if chunk.sample == sample]
        assert "".join(chunk.text for chunk in own) == text
        assert [chunk.stopped for chunk in own[:-1]] == [None] * (len(own) - 1)
        assert (own[-1].stopped, own[-1].tokens) == ("length", 4)


def test_what_may_become_a_stop_string_is_held_back() -> None:
    found = asyncio.run(chunks(Spelling("abcdef"), samples=1, max_tokens=9, stop=("de",)))
    assert "".join(chunk.text for chunk in found) == "abc"
    assert found[-1].stopped == "stop"


def test_an_error_of_the_engine_comes_out_after_what_was_written() -> None:
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(chunks(Spelling("ab", problem=ValueError("broken")), samples=1, max_tokens=9))
