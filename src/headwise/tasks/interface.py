"""The interface of tasks for the workflows. A family declares which tasks it supports; a task knows no family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe, Texts
from headwise.errors import RecipeError, TooLarge, UsageError

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.chunks import TextStream
    from headwise.data.cursor import Batches
    from headwise.evaluation.contamination import Overlap
    from headwise.losses import BatchLoss, Loss
    from headwise.models.interface import Network
    from headwise.tasks.automatic import Choice, DataFacts
    from headwise.text.findings import Report
    from headwise.training.hooks import Scorer

OnProgress = Callable[[int], None]  # called with the number of lines or tokens done since the last call
# Called with a stage ("tokenizer", "training text", …), items done, and total items if known.
Progress = Callable[[str, int, int | None], None]


class Items(Protocol):
    """A store of training items on disk: token ids, pixels, features. Its task makes batches of it."""

    directory: Path

    def __len__(self) -> int: ...

    def place(self, number: int) -> tuple[str, int]:
        """Converts the number of an item, as batches carry it in `lines`, to a file and a line in it."""
        ...


@dataclass(frozen=True)
class Examined:
    """The data of a recipe before it is prepared: what is wrong with it, and what choices depend on."""

    report: Report
    facts: DataFacts


@dataclass(frozen=True)
class Prepared:
    """The data of a recipe, ready for batches."""

    assets: Assets  # what the model will need besides its weights
    training: Items
    validation: Items | None
    fingerprints: dict[str, str]  # of the content of the training and validation files


class Evaluated(Protocol):
    """The result of `headwise evaluate`."""

    @property
    def overlap(self) -> Overlap | None:
        """Test lines that occur in the training data; None if unknown."""
        ...

    def lines(self) -> list[str]:
        """Returns the result as text."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Returns the result as JSON."""
        ...


class Seen(Protocol):
    """What `headwise look` found in one item."""

    @property
    def attention(self) -> Any:
        """The weights; a picture has one array, a text one for each kind of attention."""
        ...

    def alignment(self, layer: int | None = None, head: int | None = None) -> Any:
        """Links of words; printed."""
        ...

    def save(
        self, path: str | Path, what: str = "attention", layer: int | None = None, head: int | None = None,
        merge_pieces: bool = False,
    ) -> None:  # fmt: skip
        """Writes a file in the format of its suffix."""
        ...


@dataclass(frozen=True)
class LineScore:
    """The score of a line. `log_prob` is the sum over its tokens and its end of sentence, natural logarithm."""

    log_prob: float
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...] = ()  # of each token and of the end of sentence, if the task provides them


@dataclass(frozen=True)
class Facts:
    """What a server reports about a model."""

    name: str
    kind: str  # the task
    languages: tuple[str, ...]
    parameters: int
    engine: str
    context: int | None  # tokens that a model reads at once
    default_beam: int | None
    title: str | None
    about: str | None
    reads: str = "text"  # or pair (of texts), image, sound
    bundle: Bundle | None = field(default=None, repr=False, compare=False)  # where all that is known of it stands

    @classmethod
    def of(
        cls, name: str, bundle: Bundle, engine: str, *, beam: int | None = None, context: int | None = None,
        reads: str = "text",
    ) -> Facts:  # fmt: skip
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
            reads=reads,
            bundle=bundle,
        )

    def as_dict(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "bundle"}


def _text(value: Any) -> str | None:
    return str(value) if value else None


@dataclass(frozen=True)
class Measured:
    """Scores on held-out data (metric, value, signature), and the answers, to compare two forms of a model."""

    scores: tuple[tuple[str, float, str], ...]
    answers: tuple[str, ...]
    overlap: Overlap | None = None


class Served(Protocol):
    """An opened model in a server. Further methods are between the task and its routes."""

    facts: Facts

    def probe(self) -> None:
        """Decodes something small; raises an error if that fails."""
        ...

    def look(self, item: Any, target: str | None) -> str:
        """Returns a page that shows what the model attends to in a text, or in the content of a file, as it reads."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A served model that can tell what in an item moved its answer."""

    def explain(self, item: Any, target: str | None) -> dict[str, Any]:
        """Returns numbers for JSON; `target` is the answer that is asked about, by default the model's own."""
        ...


class Task(ABC):
    """Base class of tasks: turns data into batches, batches into a loss, and a model directory into a usable object."""

    name: str
    # The fields of [data] that are read together; a task that learns from several kinds of data has alternatives.
    reads: tuple[tuple[str, ...], ...]
    scores: tuple[str, ...] = ()  # what validation measures besides the loss; training.best may be one of them
    falling: tuple[str, ...] = ()  # those of them of which less is better
    ships_fast: bool = True  # whether a shipped model has an int8 form: what opens it by default takes the fast engine
    mixes: bool = False  # whether it learns from several corpora at once, each with its prefix

    # ---- training

    def check(self, recipe: Recipe) -> None:
        """Raises a RecipeError for settings that make no sense for this task."""
        return

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        """What to choose where the recipe leaves a setting out, by the size of the data."""
        from headwise.tasks.automatic import before_tokenizing

        return before_tokenizing(recipe, facts)

    @abstractmethod
    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        """Reads the data once and reports on it, as `headwise check` does; paths are relative to `base`."""

    @abstractmethod
    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        """Makes assets and stores of a recipe's files; reuses what is in `cache`.

        `start` are the assets of a model that is fine-tuned.
        """

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[TextStream, str] | None:
        """What tokenizers are trained on, and the fingerprint of its files; None for data that has no text."""
        return None

    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        """Names of tokens that a tokenizer must have for this task, besides those that all have."""
        return ()

    @abstractmethod
    def open_store(self, directory: Path) -> Items:
        """Opens a store that `prepare` made, without reading the data again."""

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]] | None:
        """The texts that are trained on, with a name, for the sketch in the card; None if there are none."""
        return None

    @abstractmethod
    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        """Returns the network's arguments that depend on the data: vocabulary sizes, number of labels, …"""

    @abstractmethod
    def batches(
        self,
        store: Any,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> Batches:
        """Makes batches of a store: shuffled and augmented for training, or all rows in order for validation."""

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        from headwise.losses import batch_loss

        return batch_loss(network, batch, smoothing)

    def objective(self, recipe: Recipe, prepared: Prepared) -> Loss:
        """Returns what training minimises; validation measures `loss`."""
        return self.loss

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> Scorer | None:
        """Builds a function that measures `scores` and collects samples in validation; None if there are no scores."""
        return None

    def describe(self, model: Path, recipe: Recipe, prepared: Prepared) -> dict[str, Any]:
        """Returns what to add to the card of a finished model, such as a calibration."""
        return {}

    # ---- using a model

    @abstractmethod
    def open(self, bundle: Bundle, engine: str = "auto", **options: Any) -> Any:
        """Opens what `headwise.load` returns: Translator, Generator, …. Imports torch only if the engine needs it."""

    @abstractmethod
    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> Evaluated:
        """Evaluates the model on given files; `asked` are the given options of `headwise evaluate`."""

    def decodes(self, bundle: Bundle) -> bool:
        """Whether the model answers by search, with the decoding settings of its directory."""
        return False

    def unit(self, assets: Assets) -> str:
        """What a training item is, in words."""
        return "sentences"

    def measure(self, bundle: Bundle, files: Mapping[str, Sequence[str]], engine: str = "torch") -> Measured:
        """Answers held-out data, for the card of a shipped model; `files` are those of data.validation or data.test."""
        raise UsageError(f"models of the task '{self.name}' cannot be shipped yet")

    def score(self, bundle: Bundle, files: Mapping[str, str], **options: Any) -> Iterator[list[LineScore]]:
        """Computes log-probabilities of given text, line by line; `files` has a file for each field that is read.

        `options` are those of `open`.
        """
        raise UsageError(f"{bundle.path}: models of the task '{self.name}' cannot score text")

    def look(self, opened: Any, item: str, target: str | None = None, **options: Any) -> Seen:
        """Shows what every head attends to in one item."""
        raise UsageError(f"headwise look does not support the task '{self.name}' yet")

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> Served:
        """Opens the model for a server; the task's routes are in `serving/routes/`."""
        raise UsageError(f"{bundle.path}: headwise serve does not support the task '{self.name}' yet")

    def serve_each(self, name: str, bundle: Bundle, engine: str, precision: str) -> list[Served]:
        """Opens all that a model can be told to do, each under a name of its own; as a rule that is one thing."""
        return [self.serve(name, bundle, engine, precision)]


def check_shown(tokens: int, most: int) -> None:
    """Refuses to draw the attention in a text that is too long for a page."""
    if tokens > most:
        raise TooLarge(f"the text has {tokens:,} tokens, and a picture of attention may have {most:,}; shorten it")


def trained_columns(bundle: Bundle) -> tuple[str, ...]:
    """The columns of a table that the recipe of a model named."""
    recipe: Any = bundle.card.get("recipe")
    columns = recipe.get("data", {}).get("columns", ()) if isinstance(recipe, dict) else ()
    return tuple(map(str, columns)) if isinstance(columns, list | tuple) else ()


def check_fields(task: Task, recipe: Recipe) -> None:
    """Checks that the recipe names the files that the task reads, and no others."""
    if recipe.data.mixture and not task.mixes:
        raise RecipeError(f"the task '{task.name}' has one corpus: [[data.mixture]] is for the task 'translate'")
    for part in recipe.data.parts:
        if (part.prefix or part.has_prefix_column) and not task.mixes:
            raise RecipeError(f"the task '{task.name}' has no prefixes, which are for the task 'translate'")
        place = f"part '{part.name}' of data.mixture" if recipe.data.mixture else "data"
        _check_texts(task, part, place, needed=True)
        _check_texts(task, part.validation, f"the validation text of {place}" if part.name else "data.validation")


def _check_texts(task: Task, texts: Texts, place: str, *, needed: bool = False) -> None:
    wanted = " or ".join(" and ".join(fields) for fields in task.reads)
    given = texts.given
    if not given and not needed:
        return
    if foreign := [name for name in given if not any(name in fields for fields in task.reads)]:
        field = f"'{foreign[0]}' in {place}" if " " in place else f"{place}.{foreign[0]}"
        raise RecipeError(f"the task '{task.name}' does not use {field}, but {wanted}")
    # The second side may be in the file of the first.
    if not any(fields[0] in given and set(given) <= set(fields) for fields in task.reads):
        raise RecipeError(f"the task '{task.name}' needs {wanted} in {place}")
