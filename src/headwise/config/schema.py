"""Every setting of a recipe, with its default and its meaning. The only home of defaults.

A recipe is a TOML file that names some of these; the rest keep the values below. The models are frozen: a
resolved recipe is a value that can be stored, compared and printed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(ge=1)]


def _as_tuple(value: object) -> object:
    """TOML has lists only, and a single value may stand for a list of one."""
    return (value,) if isinstance(value, (str, int)) else tuple(value) if isinstance(value, list) else value


def _as_names(value: object) -> object:
    values = _as_tuple(value)
    return tuple(str(v) if isinstance(v, int) else v for v in values) if isinstance(values, tuple) else values


# One path, a list of paths, or globs; a path is relative to the recipe that names it.
Paths = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Cutoffs = Annotated[tuple[Positive, ...], BeforeValidator(_as_tuple)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_names)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Texts(Section):
    """Where text is: two aligned sides for translation, or one text for a language model."""

    source: Paths = Field((), description="source side of parallel text; files, globs, or '-' for standard input")
    target: Paths = Field((), description="target side, aligned line by line with the source")
    text: Paths = Field((), description="text of a language model")


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


class Data(Texts):
    """The corpus."""

    format: Literal["auto", "text", "tsv", "jsonl"] = Field(
        "auto", description="auto goes by the file's name; tsv and jsonl hold both sides in one file (data.source)"
    )
    fields: Names = Field((), description="column numbers (tsv, from 1) or names (jsonl) of source and target")
    languages: Names = Field((), description="language codes, source then target; one for a language model")
    validation: Texts = Field(Texts(), description="held-out text that validation scores")
    test: Texts = Field(Texts(), description="test text; only checked for overlap with training")
    filters: Filters = Field(Filters(), description="what to drop")


class Tokenizer(Section):
    """How text becomes tokens."""

    kind: Literal["bpe", "unigram", "word", "char", "byte"] = Field("bpe", description="the kind of token")
    size: Positive = Field(8000, description="number of tokens; word and char take at most this many")
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


class Model(Section):
    """The architecture: a preset, and any single number beside it."""

    family: Literal["transformer", "lm"] = Field("transformer", description="what is trained")
    preset: str | None = Field(None, description="named sizes: tiny, small, base, big; lm-small, gpt2 (see presets)")
    from_: str | None = Field(None, alias="from", description="fine-tune: start from this model directory")
    model_dim: Positive | None = Field(None, description="width of every layer")
    num_heads: Positive | None = Field(None, description="attention heads; must divide model_dim")
    encoder_layers: Positive | None = Field(None, description="layers of the encoder (transformer)")
    decoder_layers: Positive | None = Field(None, description="layers of the decoder (transformer)")
    layers: Positive | None = Field(None, description="layers (lm)")
    ff_dim: Positive | None = Field(None, description="inner width of the feed-forward network")
    dropout: Fraction | None = Field(None, description="on sub-layer outputs, and on embeddings + positions")
    attention_dropout: Fraction | None = Field(None, description="on attention weights; unset: as dropout")
    activation_dropout: Fraction | None = Field(None, description="inside the feed-forward; unset: as dropout")
    norm: Literal["post", "pre"] | None = Field(None, description="layer norm after the residual sum, or before")
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] | None = Field(None, description="of the feed-forward")
    positions: Literal["sinusoidal", "learned", "rotary", "none"] | None = Field(None, description="position code")
    max_length: Positive | None = Field(None, description="longest sequence (learned positions; lm context)")
    tie: Literal["all", "target", "none"] | None = Field(None, description="which embeddings share the output matrix")
    cutoffs: Cutoffs | None = Field(
        None,
        description="lm: from each of these ranks on words have a quarter of the width (adaptive input and softmax); "
        "for word vocabularies of tens of thousands",
    )


class Training(Section):
    """How the model learns. The first of steps, epochs and minutes that is reached ends the run."""

    steps: Positive | None = Field(None, description="updates")
    epochs: Positive | None = Field(None, description="passes over the corpus")
    minutes: Annotated[float, Field(gt=0)] | None = Field(None, description="training time, validation included")
    batch_tokens: Positive = Field(4096, description="tokens an update, the longer side of a batch with its padding")
    accumulate: Positive = Field(
        1, description="micro-batches that an update is computed in (same numbers, less memory)"
    )
    optimizer: Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw"] = Field("adam", description="by name")
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
    warmup: Annotated[int, Field(ge=0)] = Field(4000, description="updates of warm-up")
    label_smoothing: Fraction = Field(0.1, description="mass spread over all classes")
    clip_norm: Annotated[float, Field(ge=0)] = Field(0.0, description="bound on the gradient's norm; 0 is none")
    ema: Fraction = Field(0.0, description="decay of the moving average of weights that is validated; 0 is none")
    average: Annotated[int, Field(ge=0)] = Field(0, description="average the last N checkpoints at the end; 0 is none")
    validate_every: Positive = Field(1000, description="updates between validations")
    save_every: Positive = Field(1000, description="updates between checkpoints")
    log_every: Positive = Field(50, description="updates between log records")
    keep: Positive = Field(3, description="checkpoints kept besides the best")
    best: Literal["loss", "bleu", "chrf"] = Field("loss", description="which validation score picks the best model")
    patience: Annotated[int, Field(ge=0)] = Field(
        0, description="validations without a better score before stopping; 0: never"
    )
    validation_sentences: Positive = Field(200, description="sentences decoded for BLEU, chrF and samples")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of everything random")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="auto: bf16 only where the machine is fast at it"
    )
    threads: Annotated[int, Field(ge=0)] = Field(0, description="CPU cores, each with a share of every batch; 0: all")
    shard: bool = Field(
        False, description="under torchrun: each process keeps its part of weights, gradients and optimizer (FSDP2)"
    )
    max_bad_updates: Annotated[int, Field(ge=0)] = Field(
        10, description="updates skipped for a loss or gradient that is no number before the run stops"
    )


class Decoding(Section):
    """How text is produced, in validation and as the model's default."""

    beam: Positive = Field(5, description="hypotheses kept; 1 is greedy")
    length_penalty: Annotated[float, Field(ge=0)] = Field(0.6, description="alpha of ((5 + length) / 6) ** alpha")
    max_extra: Positive = Field(50, description="longest output: source length plus this")


class Recipe(Section):
    """A whole run."""

    data: Data = Field(Data(), description="the corpus")
    tokenizer: Tokenizer = Field(Tokenizer(), description="text to tokens")
    model: Model = Field(Model(), description="the architecture")
    training: Training = Field(Training(), description="how it learns")
    decoding: Decoding = Field(Decoding(), description="how text is produced")
