"""Models that answer each item by itself, in one pass: classifiers, embedders, fillers. Their work and its bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from headwise.cancellation import check_cancelled
from headwise.config.cores import decoding_cores
from headwise.errors import DataError
from headwise.serving.errors import RequestError
from headwise.serving.routes import MakeQueue
from headwise.serving.served_models import ServedModel
from headwise.serving.uploads import refused_file
from headwise.tasks.classifier import Classification
from headwise.tasks.gaps.interface import Filled
from headwise.tasks.interface import Served
from headwise.tasks.served_encoders import ServedClassifier, ServedEmbedder, ServedFiller

LONG_TEXT = 2_000  # characters: longer texts are tokenized outside the event loop's thread
MOST_TOKENS = 32_768  # of all texts of a request together; models of some ten million weights take seconds for them

M = TypeVar("M", bound=ServedModel)
T = TypeVar("T")


class ClassifierModel(ServedModel):
    """Chooses labels for texts or pictures."""

    served: ServedClassifier

    async def classify_texts(self, items: Sequence[Any], characters: int) -> list[Classification]:
        """`items` are texts, or pairs of them for a model that reads pairs."""
        self.queue.check_room()
        return await self._classify(await off_loop(self.served.encode, items, characters))

    async def classify_files(self, contents: Sequence[bytes]) -> list[Classification]:
        """Decodes all pictures before any is classified; a bad one is refused by what is wrong with it."""
        self.queue.check_room()
        numbered = list(enumerate(contents, start=1))
        sizes = [1 + len(content) // 1_000 for content in contents]
        return await self._classify(await self.side_queue.submit(ReadWork(self, len(contents)), numbered, sizes))

    async def _classify(self, encoded: Sequence[Any]) -> list[Classification]:
        sizes = [self.served.size(one) for one in encoded]
        check_tokens(sizes)
        return await self.queue.submit(ClassifyWork(self), encoded, sizes)


class EmbedderModel(ServedModel):
    """Turns texts into vectors."""

    served: ServedEmbedder

    async def embed(self, texts: Sequence[str]) -> tuple[list[Any], int]:
        """Returns one vector per text, and the number of tokens that were read."""
        self.queue.check_room()
        encoded = await off_loop(self.served.encode, texts, sum(map(len, texts)))
        sizes = [len(ids) for ids in encoded]
        check_tokens(sizes)
        return await self.queue.submit(EmbedWork(self), encoded, sizes), sum(sizes)


class FillerModel(ServedModel):
    """Fills the gaps of texts."""

    served: ServedFiller

    async def fill(self, texts: Sequence[str], top: int) -> list[Filled]:
        self.queue.check_room()
        sizes = await off_loop(lambda given: [self.served.length(one) for one in given], texts, sum(map(len, texts)))
        check_tokens(sizes)
        return await self.queue.submit(FillWork(self, top), texts, sizes)


def open_encoder(kind: type[M], served: Served, make_queue: MakeQueue, work: str, side: str = "look") -> M:
    """Gives a model one thread per core, and one for what is slow; `work` and `side` name the queues in the metrics."""
    return kind(served, make_queue(work, decoding_cores()), make_queue(side, 1))


# ---- work


@dataclass(frozen=True)
class ClassifyWork:
    """Classifies encoded items, of any number of requests together."""

    model: ClassifierModel

    def run(self, items: Sequence[Any]) -> Sequence[Classification]:
        return self.model.served.classify(items)


@dataclass(frozen=True)
class EmbedWork:
    """Embeds encoded texts."""

    model: EmbedderModel

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        return list(self.model.served.embed(items))


@dataclass(frozen=True)
class FillWork:
    """Fills the gaps of texts, with so many candidates each."""

    model: FillerModel
    top: int

    def run(self, items: Sequence[str]) -> Sequence[Filled]:
        return self.model.served.fill(items, self.top)


@dataclass(frozen=True, eq=False)
class ReadWork:
    """Decodes pictures. Never equal to another: a picture that is damaged must not stop those of others."""

    model: ClassifierModel
    count: int  # pictures of the request

    def run(self, items: Sequence[tuple[int, bytes]]) -> Sequence[Any]:
        return [self._read(number, content) for number, content in items]

    def _read(self, number: int, content: bytes) -> Any:
        check_cancelled()  # a few bytes may hold many pixels: others wait for one picture, not for all of a request
        try:
            return self.model.served.read_file(content)
        except DataError as error:
            refusal = refused_file(error, "the picture" if self.count == 1 else f"picture {number}")
        raise refusal  # out here, so that it does not keep the other error, and with that the picture, in memory


# ---- bounds


async def off_loop(work: Callable[[Sequence[Any]], T], items: Sequence[Any], characters: int) -> T:
    """Runs work on texts, in another thread if they are long, so that other requests are answered meanwhile."""
    return work(items) if characters < LONG_TEXT else await asyncio.to_thread(work, items)


def check_tokens(sizes: Sequence[int]) -> None:
    """Raises a 413 if the texts of a request have too many tokens."""
    if (tokens := sum(sizes)) > MOST_TOKENS:
        raise RequestError(
            413, f"the texts have {tokens:,} tokens, but a request may have {MOST_TOKENS:,}; send fewer at once"
        )
