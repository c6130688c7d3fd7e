"""Longformer (Beltagy et al. 2020) and our `longformer`: the first token is global, as for labels there.

Positions begin after the number of the padding token, which is RoBERTa's habit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.encoders import LAYER, Relative, read_sizes, write_sizes
from headwise.interop.huggingface.layout import Architecture, role_ids
from headwise.interop.huggingface.published import Config
from headwise.text import published
from headwise.text.published import Numbering, Parts, around
from headwise.text.tokenizer import BOS, EOS, PAD, UNK


def read_config(config: Config) -> Architecture:
    # Its head for masked tokens always has GELU.
    for key, wanted in (("hidden_act", "gelu"), ("position_embedding_type", "absolute"), ("is_decoder", False)):
        config.must(key, wanted)
    rows, padding = config.number("max_position_embeddings", 512), config.values.get("pad_token_id", 1)
    if type(padding) is not int or not 0 <= padding < rows - 1:
        raise ModelError(f"{config.file}: pad_token_id must be a token before all positions, not {padding!r}")
    return {
        **read_sizes(config),
        "norm": "post",
        "max_length": rows - padding - 1,
        "segments": config.number("type_vocab_size", 2),
        "pooling": "first",
        "pooler": True,
        "window": _window(config),
        "global_first": True,
    }


def _window(config: Config) -> int:
    value = config.values.get("attention_window", 512)
    sizes = set(value) if isinstance(value, list) and all(type(size) is int for size in value) else {value}
    window = sizes.pop() if len(sizes) == 1 else None
    if type(window) is not int or window < 2 or window % 2:
        raise ModelError(f"{config.file}: attention_window must be an even number, the same in all layers")
    return window


def write_config(architecture: Architecture) -> dict[str, Any]:
    for key, wanted, why in (
        ("global_first", True, "Longformer's first token is global (global_first = true)"),
        ("activation", "gelu", "Longformer has GELU (activation = 'gelu')"),
    ):
        if architecture[key] != wanted:
            raise UsageError(f"in the Hub's layout {why}")
    return {**write_sizes(architecture), "attention_window": [architecture["window"]] * architecture["layers"]}


def skipped(numbering: Numbering) -> int:
    """Rows before the first position that a token can have."""
    return numbering.special[PAD] + 1


def special_config(architecture: Architecture, numbering: Numbering) -> dict[str, Any]:
    rows = architecture["max_length"] + skipped(numbering)
    return {
        **role_ids(numbering), "sep_token_id": numbering.special[EOS], "max_position_embeddings": rows,
    }  # fmt: skip


def read_parts(folder: Path) -> Parts:
    """tokenizer.json, or vocab.json and merges.txt, to which RoBERTa's special tokens belong."""
    parts = published.read_parts(folder)
    ids = {name: number for number, name in published.vocabulary(parts).items()}
    if parts.get("post_processor") or not ids.keys() >= set(_SPECIAL.values()):
        return parts
    return {**parts, "post_processor": around(_SPECIAL, ids, ends=2)}


_SPECIAL = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
_GLOBAL = tuple(f"attention.self.{name}_global" for name in ("query", "key", "value"))
LONGFORMER = Relative(
    family="longformer", name="Longformer", prefix="longformer",
    special=_SPECIAL, mask="<mask>", read_config=read_config,
    write_config=write_config, read_parts=read_parts, token_bias="lm_head.bias",
    token_head={"dense": "lm_head.dense", "norm": "lm_head.layer_norm"}, pooler="pooler.dense",
    class_head={"pooler.dense": "classifier.dense", "output.linear": "classifier.out_proj"},
    ignored=r"lm_head\.decoder\..*", layer={**LAYER, "self_attention.global_query_key_value": _GLOBAL},
)  # fmt: skip
LAYOUTS = LONGFORMER.layouts(special_config=special_config, skipped=skipped)
