"""BERT (Devlin et al. 2019) and our `bert`: masked tokens, labels, or the encoder alone, also of sentence vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers

from headwise.bundle.directory import read_json
from headwise.errors import ModelError
from headwise.files import read_bounded
from headwise.interop.huggingface.encoders import Relative, read_sizes, write_sizes
from headwise.interop.huggingface.layout import Architecture
from headwise.interop.huggingface.published import Config
from headwise.text.published import Parts, around
from headwise.text.tokenizer import BOS, EOS, PAD, UNK
from headwise.text.tokenizer_file import LARGEST_FILE, read_tokenizer

_UNKNOWN = "[UNK]"
SPECIAL = {PAD: "[PAD]", UNK: _UNKNOWN, BOS: "[CLS]", EOS: "[SEP]"}


def read_config(config: Config) -> Architecture:
    for key, wanted in (
        ("position_embedding_type", "absolute"), ("is_decoder", False), ("add_cross_attention", False)
    ):  # fmt: skip
        config.must(key, wanted)
    return {
        **read_sizes(config),
        "norm": "post",
        "max_length": config.number("max_position_embeddings", 512),
        "segments": config.number("type_vocab_size", 2),
        "pooling": "first",
        "pooler": True,
    }


def write_config(architecture: Architecture) -> dict[str, Any]:
    return {**write_sizes(architecture), "max_position_embeddings": architecture["max_length"]}


def read_parts(folder: Path) -> Parts:
    """tokenizer.json, or the vocab.txt of WordPiece."""
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json").parts
    file = folder / "vocab.txt"
    if not file.is_file():
        raise ModelError(f"{folder} has no tokenizer.json, nor vocab.txt; add the model's tokenizer")
    told = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
    pieces = read_bounded(file, LARGEST_FILE).decode("utf-8", errors="replace").splitlines()
    names = {piece: number for number, piece in enumerate(pieces)}
    for name in SPECIAL.values():
        if name not in names:
            raise ModelError(f"{file} has no token {name}; it is not one of BERT")
    made = library.Tokenizer(models.WordPiece(names, unk_token=_UNKNOWN))
    lower = told.get("do_lower_case", True) is not False
    made.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=told.get("strip_accents"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    parts: Parts = json.loads(made.to_str())
    return {**parts, "post_processor": around(SPECIAL, names)}


BERT = Relative(
    family="bert", name="Bert", prefix="bert", special=SPECIAL, mask="[MASK]", read_config=read_config,
    write_config=write_config, read_parts=read_parts, token_bias="cls.predictions.bias",
    token_head={"dense": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"},
    pooler="pooler.dense", class_head={"pooler.dense": "bert.pooler.dense", "output.linear": "classifier"},
    ignored=r"cls\.seq_relationship\..*|cls\.predictions\.decoder\..*",
)  # fmt: skip
_ALONE, _MASKED, _LABELLED = BERT.layouts()
LAYOUTS = (_ALONE, _MASKED, replace(_MASKED, class_name="BertForPreTraining"), _LABELLED)
