"""CTranslate2's WhisperSpec as our `whisper`: the form in which faster-whisper publishes its models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.bundle.assets import Assets
from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory, Rows, read_weights
from headwise.interop.ctranslate2.layer_keys import stack_keys, stack_settings
from headwise.interop.ctranslate2.own_export import read_own
from headwise.interop.huggingface.published import licence_of
from headwise.interop.imported import Imported
from headwise.interop.keys import Key, Orders
from headwise.interop.whisper_tokens import special_tokens
from headwise.nn.sound_stem import sinusoids_in_halves
from headwise.text.published import Numbering, adopt, read_parts
from headwise.text.speech_tokens import preprocessing, read_speech_tokens
from headwise.text.tokenizer import BOS, EOS, TokenizerPair

READS = ("WhisperSpec",)
_STACKS = ("encoder", "decoder")
_TABLE, _POSITIONS = "decoder/embeddings/weight", "position_encodings/encodings"
_NAMES = {"suppress_ids": "suppress_tokens", "suppress_ids_begin": "begin_suppress_tokens"}


def read(directory: Directory) -> Imported:
    settings = [*stack_settings(*_STACKS), f"encoder/{_POSITIONS}",
                *(f"decoder/projection/{name}" for name in ("weight", "weight_scale", "bias"))]  # fmt: skip
    if directory.manifest:
        return read_own(directory, keys, settings, "whisper", _arrange)
    vocabulary = directory.vocabulary("vocabulary")
    named = dict(enumerate(vocabulary))
    try:
        special = {BOS: vocabulary.index("<|startoftranscript|>"), EOS: vocabulary.index("<|endoftext|>")}
    except ValueError as error:
        raise ModelError(f"{directory.path}: its vocabulary is not that of Whisper ({error})") from None
    numbering = Numbering.of(len(vocabulary), special)
    tokenizer, origin = adopt(read_parts(directory.path), numbering, directory.path / "tokenizer.json", documents=False)
    architecture = {**_architecture(directory), "vocab": numbering.vocab, "absent": numbering.absent}
    _check_positions(directory, architecture)
    orders = Orders({side: torch.tensor(numbering.order) for side in ("source", "target")})
    weights = read_weights(directory, "whisper", architecture, keys(architecture), orders, settings=settings)
    config = {**directory.config, **{new: directory.config.get(old) for old, new in _NAMES.items()}}
    tokens = special_tokens(named, numbering, config)
    return Imported(
        "whisper", "transcribe", architecture, weights,
        Assets(TokenizerPair.one(tokenizer), preprocessing=preprocessing(architecture["mels"], tokens)),
        () if tokens.languages else ("en",),
        origin={"format": "ctranslate2", "source": directory.path.name, "model_type": "whisper",
                "licence": licence_of(directory.path), "tokenizers": [origin.as_dict()]},
    )  # fmt: skip


def _arrange(architecture: dict[str, Any], preprocessing: Mapping[str, Any]) -> tuple[Orders, dict[str, Rows]]:
    """An export has the order of published models, and no rows for padding and unknown, whose vectors nothing reads."""
    tokens = read_speech_tokens(preprocessing, architecture["mels"], architecture["vocab"], Path("the export"))
    vocab, absent = architecture["vocab"], architecture["absent"]
    present = tokens.published_order(vocab)
    lacking = sorted(set(range(absent, vocab)) - set(present))
    place = {number: row for row, number in enumerate([*present, *lacking])}
    order = torch.tensor([place[number] for number in range(absent, vocab)])
    return Orders({"target": order}), {"target": Rows((None,) * len(lacking))}


def keys(architecture: dict[str, Any]) -> Iterator[Key]:
    for ours, theirs in (("first", "conv1"), ("second", "conv2")):
        yield Key(f"stem.{ours}.weight", (f"encoder/{theirs}/weight",))
        yield Key(f"stem.{ours}.bias", (f"encoder/{theirs}/bias",))
    yield Key("target_embedding.weight", (_TABLE,), vocabulary="target")
    yield Key("target_positions.weight", (f"decoder/{_POSITIONS}",))
    for stack in _STACKS:
        yield from stack_keys(stack, stack, architecture[f"{stack}_layers"], cross=stack == "decoder", norm=True)


def _architecture(directory: Directory) -> dict[str, Any]:
    shape = directory.file.shape("encoder/conv1/weight")
    if len(shape) != 3:
        raise ModelError(f"{directory.file.file}: its first convolution has the shape {list(shape)}; take another copy")
    return {
        "mels": shape[1],
        "model_dim": shape[0],
        "num_heads": int(directory.setting("encoder", "num_heads", 6)),
        "encoder_layers": directory.layers("encoder"),
        "decoder_layers": directory.layers("decoder"),
        "ff_dim": directory.matrix("encoder/layer_0/ffn/linear_0/weight")[0],
        "source_positions": directory.matrix(f"encoder/{_POSITIONS}")[0],
        "max_length": directory.matrix(f"decoder/{_POSITIONS}")[0],
    }


def _check_positions(directory: Directory, architecture: dict[str, Any]) -> None:
    """The encoder's positions are not trained, and not stored here."""
    table = directory.file.floats(f"encoder/{_POSITIONS}")
    wanted = sinusoids_in_halves(architecture["source_positions"], architecture["model_dim"]).numpy()
    if table.shape != wanted.shape or float(np.abs(table - wanted).max()) > 0.01:
        raise ModelError(f"{directory.file.file}: its positions of sound are not Whisper's sinusoids")
