"""Translation models of a server: their queues, and texts that are split into sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headwise.decoding.translator import Translation, concatenated
from headwise.serving.routes.translation_cost import Plan, TranslationSettings, plan_translation
from headwise.serving.served_models import ServedModel
from headwise.tasks.translate import ServedTranslator
from headwise.text.html_text import Part, join_html, split_html

LONG_TEXT = 2_000  # characters: a longer text is split into sentences outside the event loop's thread


@dataclass(frozen=True)
class TranslateWork:
    """Translates sentences; with `torch`, not on the fast engine."""

    model: TranslationModel
    settings: TranslationSettings
    torch: bool

    def run(self, items: Sequence[str]) -> Sequence[Translation]:
        settings = self.settings
        return self.model.served.translate(
            items,
            details=settings.details,
            torch=self.torch,
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
    """Translates texts. What only torch can do, or can do without blocking others, goes through the side queue."""

    served: ServedTranslator

    def probe_side(self) -> None:
        self.served.probe_torch()

    async def translate(self, texts: Sequence[str], settings: TranslationSettings) -> list[TranslatedText]:
        """Splits the texts, queues every sentence by itself, and joins the translations."""
        (self.side_queue if settings.constrained else self.queue).check_room()
        if sum(map(len, texts)) < LONG_TEXT:
            plan = plan_translation(self.served, texts, settings)
        else:
            plan = await asyncio.to_thread(plan_translation, self.served, texts, settings)
        found = iter(await self._translate_all(plan, settings))
        answers = []
        for sentences in plan.sentences:
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

    async def _translate_all(self, plan: Plan, settings: TranslationSettings) -> list[Translation]:
        found: dict[int, Translation] = {}
        for queue, torch in ((self.queue, False), (self.side_queue, True)):
            places = [place for place, one in enumerate(plan.planned) if one.slow == torch]
            texts, sizes = [plan.planned[place].text for place in places], [plan.size(place) for place in places]
            work = TranslateWork(self, settings if torch else settings.unconstrained, torch)
            found |= zip(places, await queue.submit(work, texts, sizes), strict=True)
        return [found[place] for place in range(len(plan.planned))]


def _joined(parts: Sequence[Part], texts: Sequence[TranslatedText]) -> TranslatedText:
    """Puts the translations of a document's texts in place; the i-th alternative has the i-th best of each text."""
    ranked = [[text.whole, *text.whole.alternatives] for text in texts]
    documents = []
    for rank in range(max(map(len, ranked), default=1)):
        chosen = [answer[min(rank, len(answer) - 1)] for answer in ranked]
        documents.append(concatenated(join_html(parts, [one.text for one in chosen]), chosen))
    whole = documents[0]._replace(alternatives=tuple(documents[1:]))
    return TranslatedText(whole, [sentence for text in texts for sentence in text.sentences])
