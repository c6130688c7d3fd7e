"""Translation models of a server: their queues, and how they are found by a pair of languages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from headwise.decoding.translator import Translation
from headwise.serving.batch_queue import Heartbeat
from headwise.serving.errors import RequestError
from headwise.serving.language_detection import detect_by_script
from headwise.serving.model_index import ModelIndex, listed
from headwise.serving.served_models import ServedModel
from headwise.tasks.translate import TASK, ServedTranslator

LONG_TEXT = 2_000  # characters: a longer text is split into sentences outside the event loop's thread


@dataclass(frozen=True)
class TranslationSettings:
    """How texts are to be translated; sentences with equal settings may share a batch."""

    beam: int | None = None
    alternatives: int = 0
    glossary: tuple[tuple[str, str], ...] = ()
    protect: bool = False
    details: bool = False

    @property
    def constrained(self) -> bool:
        """Tells whether the translation must contain certain words: only torch can do that."""
        return bool(self.glossary) or self.protect


@dataclass(frozen=True)
class TranslateWork:
    """Translates sentences."""

    model: TranslationModel
    settings: TranslationSettings

    def run(self, items: Sequence[str], heartbeat: Heartbeat) -> Sequence[Translation]:
        settings = self.settings
        return self.model.served.translate(
            items,
            details=settings.details,
            beam=settings.beam,
            n_best=1 + settings.alternatives,
            glossary=dict(settings.glossary),
            protect=settings.protect,
        )


@dataclass(frozen=True)
class TranslatedText:
    """A text's translation, and those of its sentences."""

    whole: Translation
    sentences: list[Translation]


class TranslationModel(ServedModel):
    """Translates texts; constrained translations go through the side queue."""

    served: ServedTranslator

    async def translate(self, texts: Sequence[str], settings: TranslationSettings) -> list[TranslatedText]:
        """Splits the texts, queues every sentence by itself, and joins the translations."""
        split = self._split if sum(map(len, texts)) < LONG_TEXT else self._split_in_thread
        pieces = await split(texts)
        flat = [piece.text for sentences in pieces for piece in sentences if piece.text]
        beam = max(settings.beam or self.facts.default_beam or 1, 1 + settings.alternatives)
        queue = self.side_queue if settings.constrained else self.queue
        sizes = [beam * (10 + len(text)) for text in flat]
        found = iter(await queue.submit(TranslateWork(self, settings), flat, sizes))
        answers = []
        for sentences in pieces:
            parts: list[Translation] = [next(found) for piece in sentences if piece.text]
            whole = self.served.translator.joined(sentences, [[part, *part.alternatives] for part in parts])
            answers.append(TranslatedText(whole, parts))
        return answers

    async def _split(self, texts: Sequence[str]) -> list[Any]:
        return [self.served.translator.pieces(text, True) for text in texts]

    async def _split_in_thread(self, texts: Sequence[str]) -> list[Any]:
        return [await asyncio.to_thread(self.served.translator.pieces, text, True) for text in texts]


class Translators:
    """Finds the translation models of a server by their languages."""

    def __init__(self, index: ModelIndex) -> None:
        self.index = index
        self.models = cast(list[TranslationModel], index.of_task(TASK.name))

    def find(self, source: str, target: str, name: str | None = None) -> TranslationModel:
        """Finds the model of a pair of languages, or checks that the one with this name translates the pair."""
        chosen = self.models if name is None else [m for m in self.models if m is self.index.by_name(name)]
        for model in chosen:
            if model.facts.languages == (source, target):
                return model
        pairs = listed(" to ".join(model.facts.languages) for model in self.models)
        raise RequestError(400, f"no such pair of languages{' in this model' if name else ''}; there are {pairs}")

    def sources(self, target: str | None = None) -> list[str]:
        """Lists the source languages, those with a model for `target` if it is given."""
        pairs = [model.facts.languages for model in self.models]
        return list(dict.fromkeys(pair[0] for pair in pairs if target in (None, pair[1])))

    def targets(self, source: str) -> list[str]:
        """Lists the languages that `source` can be translated to."""
        pairs = [model.facts.languages for model in self.models]
        return list(dict.fromkeys(pair[1] for pair in pairs if pair[0] == source))

    def detect(self, text: str, among: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Returns source languages with the share of the text in their script, likeliest first."""
        languages = self.sources() if among is None else among
        found = detect_by_script(text, languages)
        if languages and not found:
            raise RequestError(
                400,
                f"detection is not supported between {listed(languages)}: give the source language instead of auto",
            )
        return [(language, round(share, 1)) for language, share in found]
