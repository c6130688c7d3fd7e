"""Translation models of a server: their queues, and texts that are split into sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwise.decoding.translator import Translation, concatenated
from headwise.serving.served_models import ServedModel
from headwise.tasks.translate import ServedTranslator
from headwise.text.html_text import Part, join_html, split_html

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

    def run(self, items: Sequence[str]) -> Sequence[Translation]:
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

    async def translate_html(self, documents: Sequence[str], settings: TranslationSettings) -> list[TranslatedText]:
        """Translates each stretch of text between two tags by itself; the tags stay as they are."""
        split = [await asyncio.to_thread(split_html, document) for document in documents]
        texts = [part.text for parts in split for part in parts if part.text]
        found = iter(await self.translate(texts, settings))
        return [_joined(parts, [next(found) for part in parts if part.text]) for parts in split]

    async def _split(self, texts: Sequence[str]) -> list[Any]:
        return [self.served.translator.pieces(text, True) for text in texts]

    async def _split_in_thread(self, texts: Sequence[str]) -> list[Any]:
        return [await asyncio.to_thread(self.served.translator.pieces, text, True) for text in texts]


def _joined(parts: Sequence[Part], texts: Sequence[TranslatedText]) -> TranslatedText:
    """Puts the translations of a document's texts in place; the i-th alternative has the i-th best of each text."""
    ranked = [[text.whole, *text.whole.alternatives] for text in texts]
    documents = []
    for rank in range(max(map(len, ranked), default=1)):
        chosen = [answer[min(rank, len(answer) - 1)] for answer in ranked]
        documents.append(concatenated(join_html(parts, [one.text for one in chosen]), chosen))
    whole = documents[0]._replace(alternatives=tuple(documents[1:]))
    return TranslatedText(whole, [sentence for text in texts for sentence in text.sentences])
