"""What a kind of things to classify (texts, pictures) must offer: reading, examining, preparing, batches.

A task such as `classify` knows labels, and asks this for all that comes before the network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import UsageError
from headwise.tasks.automatic import Choice, DataFacts
from headwise.tasks.interface import Examined, Items, OnProgress, Prepared, Progress, Seen

if TYPE_CHECKING:
    from torch import Tensor

    from headwise.data.chunks import TextStream
    from headwise.data.cursor import Batches
    from headwise.models.interface import Network


@dataclass(frozen=True)
class Examples:
    """Items with their true labels, to evaluate a model on."""

    items: list[Any]
    labels: list[str]
    places: list[str]  # where each item is: train.csv:17, cats/3.png
    texts: list[str] | None = None  # what is compared with the training data, if that is known


class Inputs(ABC):
    """One kind of things to classify. `field` is the field of [data] that names its files."""

    field: str
    unit: str  # what an item is, in words: rows

    # ---- training

    def check(self, recipe: Recipe) -> None:
        """Raises a RecipeError for settings that make no sense for this kind."""
        return

    @abstractmethod
    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        """What to choose where the recipe leaves a setting out."""

    @abstractmethod
    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        """Reads the data once and reports on it."""

    @abstractmethod
    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        """Makes assets, with `labels`, and stores; the name of a store's directory begins with `field` and a dash."""

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[TextStream, str] | None:
        """What tokenizers are trained on, and the fingerprint of its files; None for data that has no text."""
        return None

    @abstractmethod
    def open_store(self, directory: Path) -> Items:
        """Opens a store that `prepare` made."""

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]] | None:
        """The texts that are trained on, with a name, for the sketch in the card; None if there are none."""
        return None

    @abstractmethod
    def sizes(self, assets: Assets) -> dict[str, Any]:
        """The arguments of the network that depend on what it reads: vocabulary, channels, …"""

    @abstractmethod
    def batches(
        self, store: Any, recipe: Recipe, assets: Assets, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> Batches:  # fmt: skip
        """Batches with one label per row as targets, (B,), and NO_LABEL (data/sequences.py) as their `ignore`."""

    @abstractmethod
    def label_counts(self, store: Any, classes: int) -> NDArray[np.int64]:
        """How many items of a store have each label, (classes,)."""

    # ---- using a model

    @abstractmethod
    def opens(self, assets: Assets) -> bool:
        """Whether a model with these assets reads this kind."""

    @abstractmethod
    def reads(self, assets: Assets) -> str:
        """What a model with these assets reads, in a word: text, pair (of texts), image."""

    @abstractmethod
    def example(self, assets: Assets) -> Any:
        """An item that any such model can classify."""

    def decode(self, content: bytes, most_pixels: int) -> Any:
        """The content of a file that somebody uploads as an item; a picture may have `most_pixels`."""
        raise UsageError("this model reads text, not files; send text")

    @abstractmethod
    def items(self, given: Sequence[str], assets: Assets) -> list[Any]:
        """What a user gives on the command line or line by line (texts, names of files) as items."""

    @abstractmethod
    def examples(self, files: Sequence[str], assets: Assets, columns: Sequence[str] = ()) -> Examples:
        """Reads labelled items, as in training; every label must be one of the model's."""

    @abstractmethod
    def encode(self, items: Sequence[Any], assets: Assets, longest: int | None) -> list[Any]:
        """Each item as what the network reads of it. Needs no torch."""

    def cost(self, one: Any) -> int:
        """The size of an encoded item: those of similar size form a batch."""
        return 1

    @abstractmethod
    def tensors(self, several: Sequence[Any]) -> tuple[Tensor, ...]:
        """Encoded items as the network's inputs, padded."""

    def fast_engine(self, bundle: Bundle, assets: Assets, precision: str) -> Any:
        """An engine without torch; raises UsageError where there is none."""
        raise UsageError("ctranslate2 does not run this model; use --engine torch")

    def look(
        self, network: Network, assets: Assets, item: Any, answer: int, longest: int | None, chance: float
    ) -> Seen:
        """Shows what the network attends to in one item, and what of it speaks for the class `answer`.

        `chance` is the probability of that class.
        """
        raise UsageError("headwise look does not support models of this kind yet")
