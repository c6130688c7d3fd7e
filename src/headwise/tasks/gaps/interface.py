"""What a way to make and fill gaps must offer. The task `fill` asks it, and knows no kind of network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import UsageError
from headwise.tasks.automatic import Choice
from headwise.tasks.interface import Evaluated, OnProgress
from headwise.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.cursor import Batches
    from headwise.data.store import Store
    from headwise.look.capture import Look
    from headwise.losses import BatchLoss
    from headwise.models.interface import Network


@dataclass(frozen=True)
class Candidate:
    """What may stand in a gap, and the whole text with it."""

    text: str  # of the gap
    probability: float
    filled: str


@dataclass(frozen=True)
class Filled:
    """A text with the likeliest candidate in each gap, and the candidates of each gap, likeliest first."""

    text: str
    gaps: tuple[tuple[Candidate, ...], ...]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        best = ", ".join(f"{gap[0].text!r} {gap[0].probability:.3f}" for gap in self.gaps if gap)
        return f"Filled({self.text!r}, {best})"


class FillsGaps(Protocol):
    """What `headwise.load` returns for a model of the task `fill`."""

    bundle: Bundle
    engine: Any  # with its `name`

    @overload
    def fill(self, texts: str, top: int = 5) -> Filled: ...  # type: ignore[overload-overlap]

    @overload
    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]: ...

    def fill(self, texts: str | Sequence[str], top: int = 5) -> Filled | list[Filled]:
        """Fills the gaps, written [MASK], of each text; gives `top` candidates for each."""
        ...

    def length(self, text: str) -> int:
        """The tokens of a text with gaps; raises a UsageError if it has none or is too long."""
        ...


class Gaps(ABC):
    """One way to make gaps in a text for training, and to fill those of a user."""

    decodes: bool = False  # whether gaps are filled by search, with the decoding settings of the model
    any_task: bool = False  # whether models that were trained for another task may fill gaps too

    # ---- training

    @abstractmethod
    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        """Names of the tokens that stand for gaps."""

    def check(self, recipe: Recipe) -> None:
        """Raises a RecipeError for settings that make no sense."""
        return

    def automatic(self, recipe: Recipe) -> list[Choice]:
        """What to choose where the recipe leaves a setting out, besides what all ways have."""
        return []

    @abstractmethod
    def batches(
        self, store: Store, recipe: Recipe, tokenizer: Tokenizer, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> Batches:  # fmt: skip
        """Texts with gaps, and what belongs into them."""

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        """With answers outside of training: their share that is right is the accuracy of a validation."""
        from headwise.losses import token_loss

        return token_loss(network, batch, smoothing)

    # ---- using a model

    @abstractmethod
    def open(self, bundle: Bundle, tokenizer: Tokenizer, engine: str, precision: str, device: str) -> FillsGaps: ...

    @abstractmethod
    def evaluate(
        self, bundle: Bundle, tokenizer: Tokenizer, lines: list[str], stride: int, on_progress: OnProgress | None
    ) -> Evaluated:
        """How well the gaps of a text are filled; `stride` is that of `headwise evaluate`, 0 where it is not given."""

    def look(self, opened: Any, text: str) -> Look:
        """Shows what the network attends to in a text."""
        raise UsageError("headwise look does not support models of this kind yet")
