"""The sections of a recipe that all families share, each setting with its default and its meaning.

A recipe is a TOML file that names some of these; the rest keep the defaults below. What belongs to one family alone is
declared in `config/families/`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from headwise.config.families import family_names, find_family
from headwise.config.family import LARGEST, Family, Fraction, Natural, Positive, Section, Settings
from headwise.config.sound import Sound
from headwise.errors import RecipeError


def _as_tuple(value: object) -> object:
    """TOML has lists only, and a single value may stand for a list of one."""
    return (value,) if isinstance(value, (str, int)) else tuple(value) if isinstance(value, list) else value


def _as_names(value: object) -> object:
    values = _as_tuple(value)
    return tuple(str(v) if isinstance(v, int) else v for v in values) if isinstance(values, tuple) else values


# One path, a list of paths, or globs; a path is relative to the recipe that names it.
Paths = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_names)]


def _language(code: str) -> str:
    if not (0 < len(code) <= 64 and code.isprintable() and "/" not in code):
        raise ValueError("a language code such as 'en' or 'zh-Hans'")
    return code


Language = Annotated[str, AfterValidator(_language)]


def _warmup(value: float) -> float:
    if value >= 1 and value != int(value):
        raise ValueError("a whole number of updates, or a share below 1")
    return int(value) if value == int(value) else value


# Numbers that a machine cannot mean: beyond these a library aborts instead of saying what is wrong.
MOST_TOKENS, MOST_THREADS, LARGEST_SEED, WIDEST_BEAM = 1_000_000, 1024, 2**63 - 1, 500


class Texts(Section):
    """Where the data is. A task reads some of these: translation two aligned sides, a language model one text, …"""

    source: Paths = Field((), description="source side of parallel text; files, globs, or '-' for standard input")
    target: Paths = Field((), description="target side, aligned line by line with the source")
    text: Paths = Field((), description="running text, for a language model or to fill gaps in")
    table: Paths = Field((), description="texts with their labels: CSV, TSV or JSONL with named columns")
    images: Paths = Field((), description="pictures: a folder with a folder per class, a table of paths, or idx files")
    sounds: Paths = Field((), description="recordings with their text: a table (CSV, JSONL), or a folder")

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the fields that name files."""
        return tuple(name for name in Texts.model_fields if getattr(self, name))


class Filters(Section):
    """What is dropped before training; each name below is also the reason that the report counts."""

    empty: bool = Field(True, description="drop pairs with an empty side")
    max_characters: Positive = Field(2000, description="drop lines longer than this many characters")
    max_ratio: Annotated[float, Field(gt=1.0)] = Field(
        9.0, description="drop pairs in which one side has this many times the tokens of the other"
    )
    copies: bool = Field(False, description="drop pairs whose target equals the source")
    duplicates: bool = Field(False, description="drop pairs that occurred before")
    control: bool = Field(True, description="drop lines with control characters (NUL, escape sequences)")
    script: bool = Field(False, description="drop lines mostly in a script that the declared language does not use")


class Corpus(Texts):
    """Text to learn from, and what is held out of it."""

    format: Literal["auto", "text", "tsv", "csv", "jsonl"] = Field(
        "auto", description="auto goes by the file's name; tsv, csv and jsonl hold both sides in one file (data.source)"
    )
    fields: Names = Field(
        (),
        description="column numbers (tsv, from 1) or names (csv, jsonl) of source and target, and perhaps a third one "
        "of the prefix of each source",
    )
    prefix: Annotated[str, Field(max_length=1000)] = Field(
        "", description="text before every source that says what to do: 'translate English to German: '"
    )
    languages: Annotated[tuple[Language, ...], BeforeValidator(_as_names)] = Field(
        (), description="language codes, source then target; one for a language model"
    )
    validation: Texts = Field(Texts(), description="held-out text that validation scores")
    test: Texts = Field(Texts(), description="test text; only checked for overlap with training")

    @property
    def has_prefix_column(self) -> bool:
        """Whether a table says the prefix of each source."""
        return len(self.fields) == 3

    @model_validator(mode="after")
    def _one_prefix(self) -> Corpus:
        if self.prefix and self.has_prefix_column:
            raise RecipeError("prefix and a third column in fields both give the prefix: keep one of them")
        return self


class Part(Corpus):
    """One of several corpora that a model learns from together."""

    name: Annotated[str, Field(max_length=100)] = Field(
        "", description="of the part in logs and scores; unset: its languages (en-de), or its number"
    )
    weight: Annotated[float, Field(gt=0, le=1000)] = Field(
        1.0, description="how often an epoch has each line of this part: 2 is twice, 0.5 every second line in turn"
    )


class Data(Corpus):
    """The corpus, or several."""

    columns: Names = Field((), description="columns of a table: what is read, then the label; unset: text, label")
    labels: Names = Field((), description="names of the classes 0, 1, … of idx files, which have numbers only")
    split: Fraction = Field(
        0.0, description="share of the training text that is held out where there is no validation text"
    )
    filters: Filters = Field(Filters(), description="what to drop")
    sound: Sound = Field(Sound(), description="how recordings are varied in training")
    mixture: Annotated[tuple[Part, ...], BeforeValidator(_as_tuple), Field(max_length=1000)] = Field(
        (), description="several corpora instead of one, each with its prefix, weight and held-out text"
    )

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the mixture, with their names; without a mixture the one corpus, whose name is empty."""
        if not self.mixture:
            return (Part.model_validate({name: getattr(self, name) for name in Corpus.model_fields}),)
        names = [part.name or "-".join(part.languages) or str(n) for n, part in enumerate(self.mixture, start=1)]
        return tuple(part.model_copy(update={"name": name}) for part, name in zip(self.mixture, names, strict=True))

    @property
    def validated(self) -> bool:
        """Whether there is validation text."""
        return all(part.validation.given for part in self.parts)

    @property
    def common_languages(self) -> tuple[str, ...]:
        """The languages of all parts; none where parts differ."""
        found = {part.languages for part in self.parts}
        return found.pop() if len(found) == 1 else ()

    @model_validator(mode="after")
    def _parts_are_whole(self) -> Data:
        """A mixture stands for the one corpus, and its parts can be told apart and compared."""
        if not self.mixture:
            return self
        default = Corpus()
        for name in Corpus.model_fields:
            if getattr(self, name) != getattr(default, name):
                raise RecipeError(f"data.{name} cannot stand beside [[data.mixture]]: move it into a part")
        names = [part.name for part in self.parts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise RecipeError(f"two parts of [[data.mixture]] are named '{twice}': give each its own name")
        held_out = [bool(part.validation.given) for part in self.parts]
        if any(held_out) and not all(held_out):
            without = names[held_out.index(False)]
            raise RecipeError(
                f"part '{without}' of [[data.mixture]] has no validation text, but others have: give it to all parts "
                "or to none"
            )
        return self


class Tokenizer(Section):
    """How text becomes tokens."""

    kind: Literal["bpe", "unigram", "word", "char", "byte"] = Field("bpe", description="the kind of token")
    size: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = Field(
        8000, description="number of tokens; word and char take at most this many"
    )
    shared: bool = Field(True, description="one vocabulary for both languages, or one for each")
    normalisation: Literal["none", "nfc", "nfkc"] = Field("nfc", description="Unicode normalisation before all else")
    dropout: Fraction = Field(
        0.0,
        description="subword regularisation of the source: chance that a merge is left out (bpe), or the "
        "share of sampled segmentations (unigram)",
    )
    target_dropout: Fraction = Field(
        0.0, description="the same of the target; a small model then spends itself on other spellings of one word"
    )
    files: Paths = Field((), description="ready tokenizer files instead of training: one shared, or source and target")


class Images(Section):
    """How pictures are read, and how those of training are changed; what changes is drawn anew in every epoch."""

    size: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="height and width in pixels; unset: model.image_size, or as the model that is fine-tuned"
    )
    channels: Literal["auto", "grey", "colour"] = Field("auto", description="auto: grey if all pictures are")
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="crop: the middle square; stretch: the whole picture, distorted; pad: the whole, on black"
    )
    flip: bool = Field(False, description="mirror half of the pictures; not for letters and digits")
    shift: Annotated[int, Field(ge=0, le=512)] = Field(0, description="move by up to so many pixels, in all directions")
    operations: Annotated[int, Field(ge=0, le=8)] = Field(
        0, description="random operations per picture (turn, shear, scale, contrast, …), as RandAugment has them"
    )
    strength: Annotated[float, Field(ge=0, le=1)] = Field(0.5, description="of the random operations")
    erase: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="share of pictures that get a grey rectangle")
    mixup: Annotated[float, Field(ge=0, le=10)] = Field(
        0.0, description="blend two pictures and their labels; alpha of Beta(alpha, alpha); 0 is none"
    )
    cutmix: Annotated[float, Field(ge=0, le=10)] = Field(
        0.0, description="paste a part of another picture, and mix the labels by area; alpha as of mixup; 0 is none"
    )


class Model(Section):
    """The architecture: a family, a preset of it, and any single hyperparameter beside it (see config/families)."""

    family: str = Field("transformer", description="the architecture")
    preset: str | None = Field(None, description="named hyperparameters of the family")
    from_: str | None = Field(None, alias="from", description="fine-tune: start from this model directory")
    settings: SerializeAsAny[Settings] = Field(description="the family's hyperparameters, all of them")
    own: dict[str, Any] = Field({}, description="those that the recipe itself names")

    @model_validator(mode="before")
    @classmethod
    def _split(cls, values: Any) -> Any:
        """A recipe has everything in one table: what is not one of the first three keys belongs to the family."""
        if not isinstance(values, dict) or isinstance(values.get("settings"), Settings):
            return values
        common = {name: value for name, value in values.items() if name in ("family", "preset", "from", "from_")}
        own = {name: value for name, value in values.items() if name not in common}
        family = require_family(common.get("family", "transformer"))
        return {**common, "own": own, "settings": family.resolve(_text(common.get("preset")), own)}

    @model_serializer(mode="wrap")
    def _join(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """One table again. A model that starts from another one has that one's hyperparameters, so only its own."""
        values: dict[str, Any] = handler(self)
        settings, own = values.pop("settings"), values.pop("own")
        return {**values, **(own if self.from_ is not None else settings)}


def require_family(name: object) -> Family:
    family = find_family(name) if isinstance(name, str) else None
    if family is None:
        raise RecipeError(f"model.family must be one of {', '.join(family_names())}, not {name!r}")
    return family


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Training(Section):
    """How the model learns. The first of steps, epochs and minutes that is reached ends the run."""

    steps: Positive | None = Field(None, description="updates")
    epochs: Positive | None = Field(None, description="passes over the corpus")
    minutes: Annotated[float, Field(gt=0)] | None = Field(None, description="training time, validation included")
    batch_tokens: Positive = Field(4096, description="tokens an update, the longer side of a batch with its padding")
    accumulate: Annotated[int, Field(ge=1, le=1000)] = Field(
        1, description="micro-batches that an update is computed in (same numbers, less memory)"
    )
    optimizer: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "adafactor"] = Field(
        "adam", description="by name"
    )
    betas: Annotated[tuple[Fraction, Fraction], BeforeValidator(_as_tuple)] = Field(
        (0.9, 0.98), description="Adam's decay rates (the paper's)"
    )
    epsilon: Annotated[float, Field(gt=0)] = Field(1e-9, description="Adam's and RMSProp's epsilon (the paper's)")
    momentum: Fraction = Field(0.9, description="of the momentum optimizer")
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="adamw: decoupled; the others: L2")
    schedule: Literal["noam", "cosine", "inverse-sqrt", "linear", "constant"] = Field(
        "noam", description="course of the learning rate, each after a linear warm-up"
    )
    learning_rate: Annotated[float, Field(gt=0)] = Field(1.0, description="noam's factor; the peak of the others")
    minimum_rate: Annotated[float, Field(ge=0)] = Field(0.0, description="where cosine and linear end")
    warmup: Annotated[float, Field(ge=0, le=LARGEST), AfterValidator(_warmup)] = Field(
        4000, description="updates of warm-up; below 1: the share of all updates"
    )
    label_smoothing: Fraction = Field(0.1, description="mass spread over all classes")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: a row of a rare label counts more, so that all labels count alike"
    )
    freeze: Names = Field((), description="names of weights that stay as they are: 'encoder.*', 'source_embedding.*'")
    clip_norm: Annotated[float, Field(ge=0)] = Field(0.0, description="bound on the gradient's norm; 0 is none")
    ema: Fraction = Field(0.0, description="decay of the moving average of weights that is validated; 0 is none")
    average: Natural = Field(0, description="average the last N checkpoints at the end; 0 is none")
    validate_every: Positive = Field(1000, description="updates between validations")
    save_every: Positive = Field(1000, description="updates between checkpoints")
    log_every: Positive = Field(50, description="updates between log records")
    keep: Positive = Field(3, description="checkpoints kept besides the best")
    best: str = Field("loss", description="which validation score picks the best model: loss, or one of the task's")
    patience: Natural = Field(0, description="validations without a better score before stopping; 0: never")
    validation_sentences: Positive = Field(200, description="sentences decoded for BLEU, chrF and samples")
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] = Field(1, description="of everything random")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="auto: bf16 only where the machine is fast at it"
    )
    threads: Annotated[int, Field(ge=0, le=MOST_THREADS)] = Field(
        0, description="CPU cores, each with a share of every batch; 0: all"
    )
    shard: bool = Field(
        False, description="under torchrun: each process keeps its part of weights, gradients and optimizer (FSDP2)"
    )
    max_bad_updates: Natural = Field(
        10, description="updates skipped for a loss or gradient that is NaN or infinite before the run stops"
    )


class Gaps(Section):
    """What a model that learns to fill gaps has to fill."""

    share: Annotated[float, Field(gt=0, lt=1)] = Field(0.15, description="share of the tokens that are to be filled in")
    whole_words: bool = Field(False, description="choose words instead of single tokens")
    mean_span: Annotated[float, Field(ge=1, le=100)] = Field(
        3.0, description="mean length, in tokens, of the gaps that a decoder fills (t5)"
    )


class Contrast(Section):
    """How sentence vectors learn from pairs of texts that belong together."""

    pairs: Annotated[int, Field(ge=2, le=10_000)] = Field(
        32, description="pairs in a group: each text must find its own partner among those of its group"
    )
    temperature: Annotated[float, Field(gt=0, le=10)] = Field(0.05, description="that cosines are divided by")


class Decoding(Section):
    """How text is produced, in validation and as the model's default."""

    beam: Annotated[int, Field(ge=1, le=WIDEST_BEAM)] = Field(5, description="hypotheses kept; 1 is greedy")
    length_penalty: Annotated[float, Field(ge=0, le=10)] = Field(
        0.6, description="alpha of ((5 + length) / 6) ** alpha"
    )
    max_extra: Annotated[int, Field(ge=1, le=10_000)] = Field(50, description="longest output: source length plus this")


class Recipe(Section):
    """A whole run."""

    data: Data = Field(Data(), description="the corpus")
    tokenizer: Tokenizer = Field(Tokenizer(), description="text to tokens")
    images: Images = Field(Images(), description="pictures to pixels")
    task: str | None = Field(None, description="what the model is trained for; unset: the first task of its family")
    model: Model = Field(Model.model_validate({}), description="the architecture")
    training: Training = Field(Training(), description="how it learns")
    decoding: Decoding = Field(Decoding(), description="how text is produced")
    gaps: Gaps = Field(Gaps(), description="what is filled in")
    contrast: Contrast = Field(Contrast(), description="how sentence vectors learn")

    @property
    def task_name(self) -> str:
        return self.task or require_family(self.model.family).tasks[0]

    @model_validator(mode="after")
    def _task_fits(self) -> Recipe:
        tasks = require_family(self.model.family).tasks
        if self.task is not None and self.task not in tasks:
            raise RecipeError(f"task '{self.task}' is not one of family '{self.model.family}': {', '.join(tasks)}")
        return self
