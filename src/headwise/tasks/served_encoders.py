"""Classifiers, embedders and fillers for a server. They take encoded items, so that these can be checked before.

On torch each call uses one thread, since requests run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError
from headwise.tasks.interface import Facts, check_shown
from headwise.tasks.translate import PROBE, one_torch_thread

if TYPE_CHECKING:
    from headwise.look.capture import Look
    from headwise.tasks.classifier import Classification, Classifier
    from headwise.tasks.embedder import Embedder
    from headwise.tasks.gaps.interface import Filled, FillsGaps

MOST_PIXELS = 25_000_000  # of an uploaded picture; docs/serving.md says what memory that takes
MOST_SHOWN = 128  # tokens of a text whose attention a server draws: the page grows with the square of the length


class ServedClassifier:
    """A classifier of texts or pictures."""

    def __init__(self, name: str, opened: Classifier, open_on_torch: Callable[[], Classifier]) -> None:
        self.opened, self._open_on_torch = opened, open_on_torch
        self.reads = opened.inputs.reads(opened.assets)
        self.facts = Facts.of(name, opened.bundle, opened.engine.name, context=opened.longest, reads=self.reads)

    def probe(self) -> None:
        self.classify(self.opened.encode([self.opened.inputs.example(self.opened.assets)]))

    def encode(self, items: Sequence[Any]) -> list[Any]:
        """Texts, or pairs of them, as the network reads them; of a text that is too long the beginning."""
        return self.opened.encode(items)

    def read_file(self, content: bytes) -> Any:
        """Decodes and encodes the content of a file; raises a DataError with what is wrong with it."""
        return self.encode([self.opened.inputs.decode(content, MOST_PIXELS)])[0]

    def size(self, encoded: Any) -> int:
        return self.opened.inputs.cost(encoded)

    def classify(self, encoded: Sequence[Any]) -> list[Classification]:
        limit_torch(self.opened.engine)
        return self.opened.classify_encoded(encoded)

    def look(self, item: str | bytes, target: str | None) -> str:
        """Returns a page; `item` is a text, or the content of a file for a model of pictures."""
        seen: Any = self._seen(item, target)
        return str(seen.page()) if isinstance(item, bytes) else attention_page(seen)

    def explain(self, item: str | bytes, target: str | None) -> dict[str, Any]:
        """What in a text or a picture moved the label, by default the likeliest."""
        seen: Any = self._seen(item, target)
        return dict(seen.explained())

    def _seen(self, item: str | bytes, target: str | None) -> Any:
        one_torch_thread()
        if isinstance(item, bytes):
            return self._on_torch.look(self.opened.inputs.decode(item, MOST_PIXELS), target)
        if self.reads == "pair" and item.count("\t") != 1:
            raise UsageError("this model reads pairs of texts: put a tab between the two")
        check_shown(self.size(self.encode(self.opened.inputs.items([item], self.opened.assets))[0]), MOST_SHOWN)
        return self._on_torch.look(item, target)

    @cached_property
    def _on_torch(self) -> Classifier:
        return self.opened if self.opened.engine.name == "torch" else self._open_on_torch()


class ServedEmbedder:
    """A model of sentence vectors."""

    def __init__(self, name: str, opened: Embedder, open_on_torch: Callable[[], Embedder]) -> None:
        self.opened, self._open_on_torch = opened, open_on_torch
        self.facts = Facts.of(name, opened.bundle, opened.engine.name, context=opened.longest)

    def probe(self) -> None:
        self.embed(self.encode([PROBE]))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as token ids; of a text that is too long the beginning."""
        return self.opened.encode(texts)

    def embed(self, encoded: Sequence[list[int]]) -> NDArray[np.float32]:
        limit_torch(self.opened.engine)
        return self.opened.embed_encoded(encoded)

    def look(self, text: str, target: str | None) -> str:
        if target is not None:
            raise UsageError("a model of sentence vectors has no target; leave it out")
        check_shown(len(self.encode([text])[0]), MOST_SHOWN)
        return look_page(self._on_torch, lambda opened: opened.look(text))

    @cached_property
    def _on_torch(self) -> Embedder:
        return self.opened if self.opened.engine.name == "torch" else self._open_on_torch()


class ServedFiller:
    """A model that fills gaps."""

    def __init__(self, name: str, opened: FillsGaps, open_on_torch: Callable[[], FillsGaps]) -> None:
        self.opened, self._open_on_torch = opened, open_on_torch
        self.facts = Facts.of(name, opened.bundle, opened.engine.name, context=opened.bundle.settings.longest)

    def probe(self) -> None:
        self.fill([f"{PROBE} [MASK]"], 1)

    def length(self, text: str) -> int:
        """The tokens of a text; raises a UsageError if it has no gap or is too long."""
        return self.opened.length(text)

    def fill(self, texts: Sequence[str], top: int) -> list[Filled]:
        limit_torch(self.opened.engine)
        return self.opened.fill(texts, top)

    def look(self, text: str, target: str | None) -> str:
        from headwise.tasks.fill import TASK

        check_shown(self.length(text), MOST_SHOWN)
        return look_page(self._on_torch, lambda opened: TASK.look(opened, text, target))

    @cached_property
    def _on_torch(self) -> FillsGaps:
        return self.opened if self.opened.engine.name == "torch" else self._open_on_torch()


def look_page(opened: Any, look: Callable[[Any], Any]) -> str:
    """Draws the attention that `look` finds, as a page."""
    one_torch_thread()
    return attention_page(look(opened))


def attention_page(seen: Look) -> str:
    from headwise.look.page import page

    return page(seen, seen.panels(), "attention")


def limit_torch(engine: Any) -> None:
    """Limits torch to one thread, in the calling thread, if the engine runs on it."""
    if engine.name == "torch":
        one_torch_thread()
