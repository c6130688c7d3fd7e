"""Language models of a server: their queues, and text that is passed on while it is generated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headwise.cancellation import check_cancelled
from headwise.decoding.generation import Writing
from headwise.serving.served_models import ServedModel
from headwise.serving.streams import passed_on
from headwise.tasks.generate import ServedGenerator

OnToken = Callable[[list[Writing]], None]  # called in the engine's thread with all samples, after each token


@dataclass(frozen=True, eq=False)
class GenerateWork:
    """Generates one text. Never equal to another, so that no two share a batch."""

    model: GenerationModel
    options: Mapping[str, Any]
    on_token: OnToken

    def run(self, items: Sequence[str]) -> Sequence[list[Writing]]:
        return [self._generate(prompt) for prompt in items]

    def _generate(self, prompt: str) -> list[Writing]:
        samples: list[Writing] = []
        for samples in self.model.served.write(prompt, **self.options):
            check_cancelled()
            self.on_token(samples)
        return samples


class GenerationModel(ServedModel):
    """Generates text from a prompt."""

    served: ServedGenerator

    async def generate(
        self, prompt: str, options: Mapping[str, Any], on_token: OnToken = lambda samples: None
    ) -> list[Writing]:
        """Returns the finished samples; `options` are those of Writer.write."""
        (samples,) = await self.queue.submit(GenerateWork(self, options, on_token), [prompt], [50 + len(prompt)])
        return list(samples)


@dataclass(frozen=True)
class TextChunk:
    """The next part of a sample; the last one has the reason why the sample ended and its number of tokens."""

    sample: int
    text: str
    stopped: Literal["length", "stop"] | None = None
    tokens: int = 0


async def stream_text(model: GenerationModel, prompt: str, options: Mapping[str, Any]) -> AsyncIterator[TextChunk]:
    """Yields the text while it is generated. Closing the iterator stops the engine within a token."""
    sent = [0] * int(options["samples"])
    ended = [False] * len(sent)

    async def generate(hand_over: Callable[[TextChunk], None]) -> None:
        def on_token(samples: list[Writing]) -> None:
            for number, sample in enumerate(samples):
                text = sample.text[sent[number] : sample.final_length]
                sent[number] = max(sent[number], sample.final_length)
                over = sample.stopped or len(sample.ids) == options["max_tokens"]
                if not ended[number] and (text or over):
                    reason: Literal["length", "stop"] = "stop" if sample.stopped else "length"
                    hand_over(TextChunk(number, text, reason if over else None, len(sample.ids)))
                ended[number] = over

        await model.generate(prompt, options, on_token)

    chunks = passed_on(generate)  # holds at most max_tokens chunks per sample
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]
