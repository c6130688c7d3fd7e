"""What a task offers to the workflows. A family says which tasks it can do; a task never asks for the family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import UsageError
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.cursor import Batches
    from headwise.data.store import Store
    from headwise.evaluation.contamination import Overlap
    from headwise.look.capture import Look
    from headwise.losses import BatchLoss
    from headwise.models.interface import Network
    from headwise.tasks.automatic import Choice, DataFacts
    from headwise.training.hooks import Scorer

OnProgress = Callable[[int], None]  # is told how many lines or tokens more are done


class Evaluated(Protocol):
    """The result of `headwise evaluate`."""

    @property
    def overlap(self) -> Overlap | None:
        """Test lines that occur in the training data; None: unknown."""
        ...

    def lines(self) -> list[str]:
        """For people."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        ...


@dataclass(frozen=True)
class LineScore:
    """`log_prob` is the sum over the line's tokens and its end of sentence, natural logarithm."""

    log_prob: float
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...] = ()  # of each token and of the end of sentence, where the task gives them


@dataclass(frozen=True)
class Facts:
    """What a server tells of a model."""

    name: str
    kind: str  # the task
    languages: tuple[str, ...]
    parameters: int
    engine: str
    context: int | None  # tokens that a language model sees at once
    default_beam: int | None
    title: str | None
    about: str | None

    @classmethod
    def of(
        cls, name: str, bundle: Bundle, engine: str, *, beam: int | None = None, context: int | None = None
    ) -> Facts:
        from headwise.bundle.directory import parameter_count

        card = bundle.card
        about = card.get("about")
        told = about if isinstance(about, dict) else {"good_for": about} if isinstance(about, str) else {}
        return cls(
            name=name,
            kind=bundle.task_name,
            languages=tuple(bundle.languages),
            parameters=parameter_count(bundle),
            engine=engine,
            context=context,
            default_beam=beam,
            title=_text(card.get("title") or told.get("title")),
            about=_text(told.get("good_for")),
        )


def _text(value: Any) -> str | None:
    return str(value) if value else None


class Served(Protocol):
    """An opened model as a server holds it. What else it can do, the task's routes know."""

    facts: Facts

    def probe(self) -> None:
        """Decodes something small; raises if the model cannot."""
        ...

    def look(self, text: str, target: str | None) -> str:
        """A page of what the model attends to."""
        ...


class Task(ABC):
    """What a person wants done: data to batches, batches to a loss, a model directory to an object that does it."""

    name: str
    columns: tuple[str, ...]  # what of [data] is read: the sides of the token store, in order
    scores: tuple[str, ...] = ()  # what validation measures besides the loss; training.best may name one

    # ---- training

    def check(self, recipe: Recipe) -> None:
        """Raises a RecipeError for settings that make no sense for this task."""
        return

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        """What to choose where the recipe leaves a setting out, by the size of the data."""
        from headwise.tasks.automatic import before_tokenizing

        return before_tokenizing(recipe, facts)

    @abstractmethod
    def sizes(self, tokenizers: TokenizerPair, recipe: Recipe) -> dict[str, Any]:
        """The network's arguments that come from the data: vocabulary sizes, number of labels, …"""

    @abstractmethod
    def batches(
        self,
        store: Store,
        recipe: Recipe,
        tokenizers: TokenizerPair,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> Batches:
        """Batches of a token store: shuffled and augmented for training, or all rows in order for validation."""

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        from headwise.losses import batch_loss

        return batch_loss(network, batch, smoothing)

    def scorer(self, network: Network, tokenizers: TokenizerPair, recipe: Recipe) -> Scorer | None:
        """Measures `scores` and shows samples during validation; None: the loss is all there is."""
        return None

    def describe(self, model: Path, recipe: Recipe) -> dict[str, Any]:
        """What to add to the card of a finished model, such as a calibration."""
        return {}

    # ---- using a model

    @abstractmethod
    def open(self, bundle: Bundle, engine: str = "auto", **options: Any) -> Any:
        """Translator, Generator, …: what `headwise.load` returns. Torch is loaded only if the engine needs it."""

    @abstractmethod
    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> Evaluated:
        """How good the model is on given files; `asked` are the options of `headwise evaluate` that were given."""

    def score(self, bundle: Bundle, files: Mapping[str, str]) -> Iterator[list[LineScore]]:
        """Log-probabilities of given text, line by line; `files` has a file for each of `columns`."""
        raise UsageError(f"{bundle.path}: the task '{self.name}' has no log-probabilities of text")

    def look(self, opened: Any, item: str, target: str | None = None, **options: Any) -> Look:
        """What every head attends to while the model works on one item."""
        raise UsageError(f"a model of the task '{self.name}' cannot be looked into yet")

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> Served:
        """The model for a server; `serving/routes/` has the task's routes."""
        raise UsageError(f"{bundle.path}: the task '{self.name}' cannot be served yet")


def check_columns(task: Task, recipe: Recipe) -> None:
    """The recipe must name the files that the task reads, and no others."""
    from headwise.config.schema import Texts
    from headwise.errors import RecipeError

    for place, texts in (("data", recipe.data), ("data.validation", recipe.data.validation)):
        given = [name for name in Texts.model_fields if getattr(texts, name)]
        if not given and place != "data":
            continue
        if foreign := [name for name in given if name not in task.columns]:
            raise RecipeError(
                f"{place}.{foreign[0]} is not for the task '{task.name}', which reads {_listed(task.columns)}"
            )
        if task.columns[0] not in given:
            raise RecipeError(f"{place} needs {_listed(task.columns)}, because the task is '{task.name}'")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
