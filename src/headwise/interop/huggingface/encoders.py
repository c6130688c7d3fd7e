"""BERT and its relatives on the Hub: what they have in common, in one table for each of them.

Each has three classes: the encoder alone, with a head for masked tokens, and with one for labels. The files of
sentence-transformers are those of the encoder alone, with the kind of pooling beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from headwise.bundle.assets import ENDS, LONGEST, Assets
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.interop.huggingface.sentences import read_longest, read_pooling, sentence_files
from headwise.interop.keys import modules, without_prefix
from headwise.text.published import Numbering, Parts, adopt, is_ours, pair_ends, vocabulary
from headwise.text.tokenizer import TokenizerPair
from headwise.text.vocabulary import MASK

# Our names of activations by theirs; the first of each is the one that is written.
ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
# Our modules of a layer by theirs.
LAYER: Mapping[str, str | tuple[str, ...]] = {
    "self_attention.query_key_value": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "self_attention.output": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
}


def read_sizes(config: Config, activation: str = "gelu", dropout: float = 0.1) -> Architecture:
    """The settings that all encoders have, by the names that all of them have; defaults are those of base models."""
    return {
        "model_dim": config.number("hidden_size", 768),
        "num_heads": config.number("num_attention_heads", 12),
        "layers": config.number("num_hidden_layers", 12),
        "ff_dim": config.number("intermediate_size", 3072),
        "dropout": config.fraction("hidden_dropout_prob", dropout),
        "attention_dropout": config.fraction("attention_probs_dropout_prob", dropout),
        "activation_dropout": 0.0,
        "norm_epsilon": config.epsilon("layer_norm_eps", 1e-12),
        "activation": config.choice("hidden_act", ACTIVATIONS, activation),
    }


def write_sizes(architecture: Architecture) -> dict[str, Any]:
    dropout, attention_dropout = architecture["dropout"], architecture["attention_dropout"]
    written = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return {
        "hidden_size": architecture["model_dim"],
        "num_attention_heads": architecture["num_heads"],
        "num_hidden_layers": architecture["layers"],
        "intermediate_size": architecture["ff_dim"],
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout if attention_dropout is None else attention_dropout,
        "hidden_act": written[architecture["activation"]],
        "layer_norm_eps": architecture["norm_epsilon"],
    }


@dataclass(frozen=True)
class Relative:
    """BERT or one of its relatives: where its files have what ours have."""

    family: str
    name: str  # with which the names of its classes begin
    prefix: str  # of the encoder's weights, where there is a head
    special: Mapping[int, str]  # names of our special tokens
    mask: str
    read_config: Callable[[Config], Architecture]
    write_config: Callable[[Architecture], dict[str, Any]]
    read_parts: Callable[[Path], Parts]  # the tokenizer
    token_bias: str
    token_head: Mapping[str, str]
    pooler: str  # of the encoder alone
    class_head: Mapping[str, str]
    ignored: str  # weights that our classes do not use
    layer: Mapping[str, str | tuple[str, ...]] = field(default_factory=lambda: LAYER)  # modules of a layer

    # ---- weights

    def keys(self, architecture: Architecture) -> Iterator[Key]:
        start = f"{self.prefix}.embeddings."
        yield Key("embedding.weight", (f"{start}word_embeddings.weight",), vocabulary="source")
        yield Key("positions.weight", (f"{start}position_embeddings.weight",), positions=True)
        yield Key("segments.weight", (f"{start}token_type_embeddings.weight",))
        yield from modules("", start, {"norm": "LayerNorm"})
        layer = modules("encoder.layers.{}.", f"{self.prefix}.encoder.layer.{{}}.", self.layer)
        for number in range(architecture["layers"]):
            yield from (key.at(number) for key in layer)
        if architecture["classes"] is None:
            yield Key("embedding.bias", (self.token_bias,), vocabulary="source")
            yield from modules("output.", "", self.token_head)
        elif architecture["classes"]:
            yield from modules("", "", self.class_head)
        else:
            yield from modules("", f"{self.prefix}.", {"pooler.dense": self.pooler})

    def bare_keys(self, architecture: Architecture) -> Iterator[Key]:
        return without_prefix(self.keys(architecture), f"{self.prefix}.")

    # ---- settings

    def read_bare_config(self, config: Config) -> Architecture:
        """The encoder alone: vectors are the mean of its states, unless sentence-transformers' files say otherwise."""
        return {**self.read_config(config), "pooling": read_pooling(config.file.parent)}

    def read_masked_config(self, config: Config) -> Architecture:
        config.must("tie_word_embeddings", True)
        return self.read_config(config)

    def checked_config(self, architecture: Architecture, classifies: bool = False) -> dict[str, Any]:
        for key, wanted, why in (
            ("norm", "post", "has its layer norms after each sub-layer (norm = 'post')"),
            ("activation_dropout", 0.0, "has no dropout inside the feed-forward network (activation_dropout = 0)"),
            *([("pooling", "first", "classifies the first token: train with model.pooling = 'first'")] * classifies),
            *((("pooler", True, "has a pooler (pooler = true)"),) if architecture["classes"] is not None else ()),
        ):
            if architecture[key] != wanted:
                raise UsageError(f"in the Hub's layout {self.name} {why}")
        rows = architecture["vocab"] - architecture["absent"]
        return {"type_vocab_size": architecture["segments"], "vocab_size": rows, **self.write_config(architecture)}

    # ---- files beside the weights

    def read_beside(self, folder: Path, config: Config, classifies: bool = False) -> Beside:
        parts, rows, file = self.read_parts(folder), config.number("vocab_size", 30522), folder / "tokenizer.json"
        named = vocabulary(parts, file)
        where = {name: number for number, name in named.items()}
        ours = is_ours(named)
        special = {number: number if ours else where.get(name) for number, name in self.special.items()}
        lacking = [self.special[number] for number, found in special.items() if found is None]
        if lacking:
            raise ModelError(f"{folder}: the tokenizer has no token {lacking[0]}; it is not one of {self.name}")
        numbering = Numbering.of(rows, {number: found for number, found in special.items() if found is not None})
        renames = {} if ours else {self.mask: MASK}
        tokenizer, origin = adopt(parts, numbering, file, documents=False, renames=renames)
        told = {ENDS: 2} if pair_ends(parts) == 2 else {}
        assets = Assets(TokenizerPair.one(tokenizer), config.labels() if classifies else (), told)
        return Beside(assets, (numbering,), (origin,))

    def read_bare_beside(self, folder: Path, config: Config) -> Beside:
        """With the length at which sentence-transformers cuts texts, where its files name one."""
        beside = self.read_beside(folder, config)
        if (longest := read_longest(folder)) is None:
            return beside
        told = {**beside.assets.preprocessing, LONGEST: longest}
        return replace(beside, assets=replace(beside.assets, preprocessing=told))

    def layouts(self, **more: Any) -> tuple[Layout, Layout, Layout]:
        """The encoder alone comes first: a config that names no class is one of it. `more` are fields of all."""
        old = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))
        prefix = f"{self.prefix}."
        bare = Layout(
            family=self.family, class_name=f"{self.name}Model", task="embed", read_config=self.read_bare_config,
            write_config=self.checked_config, keys=self.bare_keys, read_beside=self.read_bare_beside,
            sizes=partial(sizes, head=0), renamed=(*old, (f"^{prefix}", "")), files=_sentence_files,
            ignored=r"embeddings\.position_ids", ends_texts=True, begins_texts=True, **more,
        )  # fmt: skip
        headed = replace(
            bare, read_config=self.read_config, keys=self.keys, read_beside=self.read_beside, renamed=old,
            files=lambda architecture, beside: {},
            ignored=rf"{prefix}embeddings\.position_ids|{prefix}pooler\..*|{self.ignored}",
        )  # fmt: skip
        masked = replace(
            headed, class_name=f"{self.name}ForMaskedLM", task="fill", sizes=partial(sizes, head=None),
            read_config=self.read_masked_config,
        )  # fmt: skip
        labelled = replace(
            headed, class_name=f"{self.name}ForSequenceClassification", task="classify", sizes=partial(sizes, head=1),
            write_config=partial(self.checked_config, classifies=True),
            read_beside=partial(self.read_beside, classifies=True),
        )  # fmt: skip
        return bare, masked, labelled


def sizes(beside: Beside, head: int | None) -> dict[str, Any]:
    """`head` is 0 for the encoder alone, None for masked tokens, and anything else for the labels."""
    classes = len(beside.assets.labels) if head else head
    return {"vocab": beside.numbering.vocab, "absent": beside.numbering.absent, "classes": classes}


def _sentence_files(architecture: Architecture, beside: Beside) -> dict[str, Any]:
    return sentence_files(architecture, beside.assets.longest(architecture["max_length"]))
