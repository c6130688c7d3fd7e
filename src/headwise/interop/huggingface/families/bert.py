"""BERT (Devlin et al. 2019) and our `bert`: masked tokens, labels, or the encoder alone, also of sentence vectors.

The files of sentence-transformers are those of the encoder, with the kind of pooling beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers

from headwise.bundle.assets import Assets
from headwise.bundle.directory import read_json
from headwise.errors import ModelError, UsageError
from headwise.files import read_bounded
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, Parts, adopt, is_ours, vocabulary
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, TokenizerPair
from headwise.text.tokenizer_file import LARGEST_FILE, read_tokenizer
from headwise.text.vocabulary import MASK

# Our names by theirs; the first of each is the one that is written.
_ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
_SPECIAL = {PAD: "[PAD]", UNK: "[UNK]", BOS: "[CLS]", EOS: "[SEP]"}
_MASK = "[MASK]"
_POOLING = Path("1_Pooling/config.json")


def _both(ours: str, *theirs: str) -> list[Key]:
    return [Key(f"{ours}.{kind}", tuple(f"{name}.{kind}" for name in theirs)) for kind in ("weight", "bias")]


def _layer() -> list[Key]:
    ours, theirs = "encoder.layers.{}", "bert.encoder.layer.{}"
    parts = [f"{theirs}.attention.self.{name}" for name in ("query", "key", "value")]
    return [
        *_both(f"{ours}.self_attention.query_key_value", *parts),
        *_both(f"{ours}.self_attention.output", f"{theirs}.attention.output.dense"),
        *_both(f"{ours}.self_residual.norm", f"{theirs}.attention.output.LayerNorm"),
        *_both(f"{ours}.feed_forward.inner", f"{theirs}.intermediate.dense"),
        *_both(f"{ours}.feed_forward.outer", f"{theirs}.output.dense"),
        *_both(f"{ours}.feed_residual.norm", f"{theirs}.output.LayerNorm"),
    ]


_LAYER = _layer()


def keys(architecture: Architecture) -> Iterator[Key]:
    yield Key("embedding.weight", ("bert.embeddings.word_embeddings.weight",), vocabulary="source")
    yield Key("positions.weight", ("bert.embeddings.position_embeddings.weight",))
    yield Key("segments.weight", ("bert.embeddings.token_type_embeddings.weight",))
    yield from _both("norm", "bert.embeddings.LayerNorm")
    for number in range(architecture["layers"]):
        yield from (key.at(number) for key in _LAYER)
    if architecture["classes"] is None:
        yield Key("embedding.bias", ("cls.predictions.bias",), vocabulary="source")
        yield from _both("output.dense", "cls.predictions.transform.dense")
        yield from _both("output.norm", "cls.predictions.transform.LayerNorm")
        return
    yield from _both("pooler.dense", "bert.pooler.dense")
    if architecture["classes"]:
        yield from _both("output.linear", "classifier")


def bare_keys(architecture: Architecture) -> Iterator[Key]:
    """BertModel by itself has the same names without their first part."""
    return (replace(key, theirs=tuple(name.removeprefix("bert.") for name in key.theirs)) for key in keys(architecture))


def read_config(config: Config) -> Architecture:
    for key, wanted in (
        ("position_embedding_type", "absolute"), ("is_decoder", False), ("add_cross_attention", False)
    ):  # fmt: skip
        config.must(key, wanted)
    epsilon = config.values.get("layer_norm_eps", 1e-12)
    if not isinstance(epsilon, float) or not 0 < epsilon <= 1e-3:
        raise ModelError(f"{config.file}: layer_norm_eps must be a small positive number, not {epsilon!r}")
    return {
        "model_dim": config.number("hidden_size", 768),
        "num_heads": config.number("num_attention_heads", 12),
        "layers": config.number("num_hidden_layers", 12),
        "ff_dim": config.number("intermediate_size", 3072),
        "dropout": config.fraction("hidden_dropout_prob", 0.1),
        "attention_dropout": config.fraction("attention_probs_dropout_prob", 0.1),
        "activation_dropout": 0.0,
        "norm": "post",
        "norm_epsilon": epsilon,
        "activation": config.choice("hidden_act", _ACTIVATIONS, "gelu"),
        "max_length": config.number("max_position_embeddings", 512),
        "segments": config.number("type_vocab_size", 2),
        "pooling": "first",
        "pooler": True,
    }


def read_bare_config(config: Config) -> Architecture:
    """The encoder alone: vectors are the mean of its states, unless sentence-transformers' files say otherwise."""
    file, pooling = config.file.parent / _POOLING, "mean"
    if file.is_file():
        told = {name for name, value in read_json(file).items() if name.startswith("pooling_mode") and value is True}
        kinds = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
        if len(told) != 1 or not told <= kinds.keys():
            raise ModelError(f"{file}: only the mean of all tokens or the first one is supported, not {sorted(told)}")
        pooling = kinds[told.pop()]
    return {**read_config(config), "pooling": pooling}


def write_config(architecture: Architecture, classifies: bool = False) -> dict[str, Any]:
    for key, wanted, why in (
        ("norm", "post", "BERT has its layer norms after each sub-layer (norm = 'post')"),
        ("activation_dropout", 0.0, "BERT has no dropout inside the feed-forward network (activation_dropout = 0)"),
        *((("pooling", "first", "BERT classifies the first token (pooling = 'first')"),) if classifies else ()),
        *((("pooler", True, "BERT has a pooler (pooler = true)"),) if architecture["classes"] is not None else ()),
    ):
        if architecture[key] != wanted:
            raise UsageError(f"in the Hub's layout {why}")
    dropout, attention_dropout = architecture["dropout"], architecture["attention_dropout"]
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    return {
        "hidden_size": architecture["model_dim"],
        "num_attention_heads": architecture["num_heads"],
        "num_hidden_layers": architecture["layers"],
        "intermediate_size": architecture["ff_dim"],
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout if attention_dropout is None else attention_dropout,
        "hidden_act": written[architecture["activation"]],
        "layer_norm_eps": architecture["norm_epsilon"],
        "max_position_embeddings": architecture["max_length"],
        "type_vocab_size": architecture["segments"],
        "vocab_size": architecture["vocab"] - architecture["absent"],
    }


# ---- files beside the weights


def read_beside(folder: Path, config: Config, classifies: bool = False) -> Beside:
    parts, rows = _read_parts(folder), config.number("vocab_size", 30522)
    file = folder / "tokenizer.json"
    named = vocabulary(parts, file)
    where = {name: number for number, name in named.items()}
    ours = is_ours(named)
    special = {number: number for number in _SPECIAL} if ours else {n: where.get(name) for n, name in _SPECIAL.items()}
    lacking = [_SPECIAL[number] for number, found in special.items() if found is None]
    if lacking:
        raise ModelError(f"{folder}: the tokenizer has no token {lacking[0]}; it is not one of BERT")
    numbering = Numbering.of(rows, {number: found for number, found in special.items() if found is not None})
    tokenizer, origin = adopt(parts, numbering, file, documents=False, renames={} if ours else {_MASK: MASK})
    assets = Assets(TokenizerPair.one(tokenizer), config.labels() if classifies else ())
    return Beside(assets, (numbering,), (origin,))


def _read_parts(folder: Path) -> Parts:
    """tokenizer.json, or the vocab.txt of WordPiece."""
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json").parts
    file = folder / "vocab.txt"
    if not file.is_file():
        raise ModelError(f"{folder} has no tokenizer.json, nor vocab.txt; add the model's tokenizer")
    told = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
    pieces = read_bounded(file, LARGEST_FILE).decode("utf-8", errors="replace").splitlines()
    names = {piece: number for number, piece in enumerate(pieces)}
    if _SPECIAL[UNK] not in names:
        raise ModelError(f"{file} has no token {_SPECIAL[UNK]}; it is not one of BERT")
    made = library.Tokenizer(models.WordPiece(names, unk_token=_SPECIAL[UNK]))
    lower = told.get("do_lower_case", True) is not False
    made.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=told.get("strip_accents"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    parts: Parts = json.loads(made.to_str())
    return parts


def sizes(beside: Beside, head: int | None) -> dict[str, Any]:
    """`head` is 0 for the encoder alone, None for masked tokens, and anything else for the labels."""
    classes = len(beside.assets.labels) if head else head
    return {"vocab": beside.numbering.vocab, "absent": beside.numbering.absent, "classes": classes}


_RENAMED = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))
_POSITIONS = r"(bert\.)?embeddings\.position_ids"
_NEXT = r"cls\.seq_relationship\..*|cls\.predictions\.decoder\..*"
_BARE = Layout(
    family="bert", class_name="BertModel", task="embed", read_config=read_bare_config, write_config=write_config,
    keys=bare_keys, read_beside=read_beside, sizes=partial(sizes, head=0), renamed=(*_RENAMED, (r"^bert\.", "")),
    ignored=_POSITIONS, ends_texts=True, begins_texts=True,
)  # fmt: skip
_MASKED = replace(
    _BARE, class_name="BertForMaskedLM", task="fill", read_config=read_config, keys=keys,
    sizes=partial(sizes, head=None), renamed=_RENAMED, ignored=rf"{_POSITIONS}|bert\.pooler\..*|{_NEXT}",
)  # fmt: skip
LAYOUTS = (
    _BARE,
    _MASKED,
    replace(_MASKED, class_name="BertForPreTraining"),
    replace(
        _BARE, class_name="BertForSequenceClassification", task="classify", read_config=read_config, keys=keys,
        write_config=partial(write_config, classifies=True), read_beside=partial(read_beside, classifies=True),
        sizes=partial(sizes, head=1), renamed=_RENAMED,
    ),
)  # fmt: skip
