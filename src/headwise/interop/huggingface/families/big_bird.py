"""BigBird (Zaheer et al. 2020) and our `bigbird`, which then computes what `transformers` computes in evaluation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from headwise.errors import UsageError
from headwise.interop.huggingface.encoders import Relative, read_sizes, write_sizes
from headwise.interop.huggingface.layout import Architecture, role_ids
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, Parts, around
from headwise.text.sentencepiece_file import read_pieces, unigram_parts
from headwise.text.tokenizer import BOS, EOS, PAD, UNK
from headwise.text.tokenizer_file import read_tokenizer

_SPECIAL = {PAD: "<pad>", UNK: "<unk>", BOS: "[CLS]", EOS: "[SEP]"}


def read_config(config: Config, classifies: bool = False) -> Architecture:
    for key, wanted in (
        ("attention_type", "block_sparse"), ("use_bias", True), ("rescale_embeddings", False), ("is_decoder", False),
        ("add_cross_attention", False), ("position_embedding_type", "absolute"),
    ):  # fmt: skip
        config.must(key, wanted)
    sizes = read_sizes(config, activation="gelu_new")
    return {
        **sizes,
        "norm": "post",
        "max_length": config.number("max_position_embeddings", 4096),
        "segments": config.number("type_vocab_size", 2),
        "pooling": "first",
        "pooler": True,
        "pooler_activation": sizes["activation"] if classifies else "tanh",
        "block": config.number("block_size", 64),
        "random": config.number("num_random_blocks", 3),
        "draw": False,
    }


def write_config(architecture: Architecture) -> dict[str, Any]:
    classifies = bool(architecture["classes"])
    wanted = architecture["activation"] if classifies else "tanh"
    if architecture["draw"]:
        raise UsageError("the Hub's BigBird draws no random blocks in evaluation (draw = false)")
    if architecture["random"] < 1:
        raise UsageError("the Hub's BigBird has random blocks (random = 1 or more)")
    if architecture["classes"] is not None and architecture["pooler_activation"] != wanted:
        raise UsageError(f"the Hub's BigBird has another activation there (pooler_activation = '{wanted}')")
    return {
        **write_sizes(architecture), "max_position_embeddings": architecture["max_length"],
        "attention_type": "block_sparse", "block_size": architecture["block"],
        "num_random_blocks": architecture["random"], "use_bias": True, "rescale_embeddings": False,
    }  # fmt: skip


def read_parts(folder: Path) -> Parts:
    """tokenizer.json, or SentencePiece's file, whose pieces include the special tokens."""
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json").parts
    pieces = read_pieces(folder / "spiece.model")
    ids = {name: number for number, name in enumerate(pieces.names)}
    return {**unigram_parts(pieces, ids), "post_processor": around(_SPECIAL, ids)}


def special_config(architecture: Architecture, numbering: Numbering) -> dict[str, Any]:
    return {**role_ids(numbering), "sep_token_id": numbering.special[EOS]}


BIG_BIRD = Relative(
    family="bigbird", name="BigBird", prefix="bert", special=_SPECIAL, mask="[MASK]", read_config=read_config,
    write_config=write_config, read_parts=read_parts, token_bias="cls.predictions.bias",
    token_head={"dense": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"},
    pooler="pooler", class_head={"pooler.dense": "classifier.dense", "output.linear": "classifier.out_proj"},
    ignored=r"cls\.seq_relationship\..*|cls\.predictions\.decoder\..*",
)  # fmt: skip


def _unused_pooler(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    width = architecture["model_dim"]
    return {"bert.pooler.weight": (width, width), "bert.pooler.bias": (width,)}


_ALONE, _MASKED, _LABELLED = BIG_BIRD.layouts(special_config=special_config)
_MASKED = replace(_MASKED, unused=_unused_pooler)
LAYOUTS = (
    _ALONE,
    _MASKED,
    replace(_MASKED, class_name="BigBirdForPreTraining"),
    # Between the pooled state and the labels there is the activation of the layers, not tanh.
    replace(_LABELLED, read_config=partial(read_config, classifies=True), unused=_unused_pooler),
)
