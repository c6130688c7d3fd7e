"""The models of a server, each with its queue, and what can be asked of them in a few calls."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.decoding.translator import Translation
from headwise.serving.batch_queue import Beat, Lane
from headwise.serving.limits import Limits
from headwise.serving.metrics import Metrics
from headwise.workflows.serve import Served, ServedGenerator, ServedTranslator

PROBE_SECONDS = 1.5  # in which a model that is alive decodes a word, even one that is at work
PROBE_KEPT = 0.2  # seconds for which an answer is good: any number of askers cause few decodes
LONG = 2_000  # characters: a longer text is split into sentences beside the event loop


@dataclass(frozen=True)
class Wanted:
    """How texts are to be translated: those that agree in it are decoded together."""

    beam: int | None = None
    alternatives: int = 0
    glossary: tuple[tuple[str, str], ...] = ()
    protect: bool = False
    details: bool = False

    @property
    def plain(self) -> bool:
        return not self.glossary and not self.protect


@dataclass(frozen=True)
class TranslateWork:
    model: TranslationModel
    wanted: Wanted

    def run(self, items: Sequence[str], beat: Beat) -> Sequence[Translation]:
        wanted, served = self.wanted, self.model.served
        n_best = 1 + wanted.alternatives
        if wanted.plain:
            return served.translate(items, beam=wanted.beam, n_best=n_best, details=wanted.details)
        return served.translate_exactly(
            items, beam=wanted.beam, n_best=n_best, glossary=dict(wanted.glossary), protect=wanted.protect
        )


@dataclass(frozen=True)
class LookWork:
    model: Model
    target: str | None

    def run(self, items: Sequence[str], beat: Beat) -> Sequence[str]:
        return [self.model.served.look(item, self.target) for item in items]


@dataclass(frozen=True)
class ProbeWork:
    model: Model

    def run(self, items: Sequence[None], beat: Beat) -> Sequence[None]:
        self.model.served.probe()
        return [None for _ in items]


@dataclass(frozen=True, eq=False)
class WriteWork:
    """One text that is being written: never done together with another. `tell` is called after each token."""

    model: GenerationModel
    options: Mapping[str, Any]
    tell: Callable[[list[Any]], None] = lambda writings: None

    def run(self, items: Sequence[str], beat: Beat) -> Sequence[list[Any]]:
        written = []
        for prompt in items:
            writings: list[Any] = []
            for writings in self.model.served.write(prompt, **self.options):
                beat()
                self.tell(writings)
            written.append(writings)
        return written


class Model:
    """A served model and the lanes to it."""

    def __init__(self, served: Served, lane: Lane, pictures: Lane) -> None:
        self.served, self.lane, self.pictures = served, lane, pictures
        self.facts = served.facts
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = -math.inf

    @property
    def lanes(self) -> set[Lane]:
        return {self.lane, self.pictures}

    async def look(self, text: str, target: str | None) -> str:
        (page,) = await self.pictures.do(LookWork(self, target), [text], [len(text) * 100])
        return str(page)

    async def trouble(self) -> str | None:
        """Why the model cannot be relied on at present, or None: it has just decoded something."""
        if self._probe is None or (self._probe.done() and time.monotonic() - self._probed > PROBE_KEPT):
            self._probe = asyncio.create_task(self._decode())
        return await asyncio.shield(self._probe)

    async def _decode(self) -> str | None:
        problem = None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self.lane.do(ProbeWork(self), [None], [1], urgent=True)
        except TimeoutError:
            # Threads that are all at work on long texts, each within its time, are no sign of trouble.
            problem = None if self.lane.saturated else "the engine does not answer"
        except Exception as error:
            problem = f"the engine fails: {type(error).__name__}"
        found = [lane.trouble() for lane in self.lanes]
        self._probed = time.monotonic()
        return next((trouble for trouble in found if trouble), problem)


class TranslationModel(Model):
    served: ServedTranslator

    async def translate(self, texts: Sequence[str], wanted: Wanted) -> list[Answer]:
        """Each text's sentences go their own way through the queue, and meet again here."""
        split = self._split if sum(map(len, texts)) < LONG else self._split_beside
        pieces = await split(texts)
        flat = [piece.text for sentences in pieces for piece in sentences if piece.text]
        beam = max(wanted.beam or self.facts.default_beam or 1, 1 + wanted.alternatives)
        lane = self.lane if wanted.plain else self.pictures
        found = iter(await lane.do(TranslateWork(self, wanted), flat, [beam * (10 + len(text)) for text in flat]))
        answers = []
        for sentences in pieces:
            parts: list[Translation] = [next(found) for piece in sentences if piece.text]
            whole = self.served.translator.joined(sentences, [[part, *part.alternatives] for part in parts])
            answers.append(Answer(whole, parts))
        return answers

    async def _split(self, texts: Sequence[str]) -> list[Any]:
        return [self.served.translator.pieces(text, True) for text in texts]

    async def _split_beside(self, texts: Sequence[str]) -> list[Any]:
        return [await asyncio.to_thread(self.served.translator.pieces, text, True) for text in texts]


@dataclass(frozen=True)
class Answer:
    whole: Translation
    sentences: list[Translation] = field(default_factory=list)


class GenerationModel(Model):
    served: ServedGenerator

    async def write(
        self, prompt: str, options: Mapping[str, Any], tell: Callable[[list[Any]], None] = lambda writings: None
    ) -> list[Any]:
        """The finished samples. `tell` is called in another thread."""
        (written,) = await self.lane.do(WriteWork(self, options, tell), [prompt], [50 + len(prompt)])
        return list(written)


def serve_models(served: Sequence[Served], limits: Limits, metrics: Metrics) -> list[Model]:
    """Lanes for each: as many threads as cores for the fast engine, one for torch, slots for language models."""
    models: list[Model] = []
    for one in served:
        name = one.facts.name

        def lane(kind: str, workers: int, name: str = name) -> Lane:
            return metrics.watch(Lane(name, workers, limits, metrics.observer(name, kind)), name, kind)

        if isinstance(one, ServedGenerator):
            models.append(GenerationModel(one, lane("write", limits.slots), lane("look", 1)))
        elif one.only_torch:
            only = lane("translate", 1)
            models.append(TranslationModel(one, only, only))
        else:
            models.append(TranslationModel(one, lane("translate", _cores()), lane("exact", 1)))
    return models


def _cores() -> int:
    """As many as the fast engine has workers: what OMP_NUM_THREADS says, else what the process may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) > 0 else len(os.sched_getaffinity(0))
