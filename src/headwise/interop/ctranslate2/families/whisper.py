"""Whisper as CTranslate2's WhisperSpec, which goes by the order of tokens and by the names of a few."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import UsageError
from headwise.interop.ctranslate2.parts import Weights, activation, fill_stack
from headwise.nn.sound_stem import sinusoids_in_halves
from headwise.text.speech_tokens import SpeechTokens, read_speech_tokens
from headwise.text.tokenizer import BOS, EOS, TokenizerPair

TAKES_PREPROCESSING = True  # `build` is told what the special tokens mean


def lacks(sizes: dict[str, Any]) -> str | None:
    """What of these settings CTranslate2 does not have."""
    return None if sizes["activation"] == "gelu" else f"Whisper with the activation '{sizes['activation']}'"


def build(
    specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair, preprocessing: Mapping[str, Any]
) -> Any:
    tokens = read_speech_tokens(preprocessing, sizes["mels"], sizes["vocab"], Path("the model"))
    if tokens.no_timestamps is None:
        raise UsageError("ctranslate2 has no Whisper without a token for 'no timestamps'; use the torch engine")
    heads = sizes["num_heads"]
    spec = specs.WhisperSpec(sizes["encoder_layers"], heads, sizes["decoder_layers"], heads)
    encoder, decoder = spec.encoder, spec.decoder
    for convolution, name in ((encoder.conv1, "stem.first"), (encoder.conv2, "stem.second")):
        convolution.weight, convolution.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    encoder.position_encodings.encodings = sinusoids_in_halves(sizes["source_positions"], sizes["model_dim"]).numpy()
    decoder.position_encodings.encodings = weights["target_positions.weight"]
    decoder.activation = np.dtype("int8").type(activation(specs, sizes))
    fill_stack(encoder, weights, "encoder", final_norm=True)
    fill_stack(decoder, weights, "decoder", final_norm=True)
    order = tokens.published_order(sizes["vocab"])
    rows = weights["target_embedding.weight"][np.array(order) - int(sizes.get("absent", 0))]
    decoder.embeddings.weight = decoder.projection.weight = rows
    place = {ours: number for number, ours in enumerate(order)}
    spec.register_vocabulary(_names(order, tokenizers, tokens))
    spec.config.suppress_ids = [place[number] for number in tokens.never()]
    spec.config.suppress_ids_begin = [place[number] for number in tokens.suppress_first]
    spec.config.lang_ids = [place[number] for number in tokens.languages.values()]
    spec.config.alignment_heads = [tuple(head) for head in tokens.alignment_heads] or _last_layers(sizes)
    return spec


def _names(order: list[int], tokenizers: TokenizerPair, tokens: SpeechTokens) -> list[str]:
    """CTranslate2 finds these marks by their published names, whatever they are called here."""
    named = dict(enumerate(tokenizers.target.vocabulary))
    named |= {BOS: "<|startoftranscript|>", EOS: "<|endoftext|>"}
    named |= {number: f"<|{name}|>" for name, number in (*tokens.languages.items(), *tokens.tasks.items())}
    marks = {"notimestamps": tokens.no_timestamps, "nospeech": tokens.no_speech, "startofprev": tokens.previous}
    named |= {number: f"<|{name}|>" for name, number in marks.items() if number is not None}
    return [named[number] for number in order]


def _last_layers(sizes: dict[str, Any]) -> list[tuple[int, int]]:
    """The heads of the upper half: what CTranslate2's own converter takes where nothing else is known."""
    layers, heads = sizes["decoder_layers"], sizes["num_heads"]
    return [(layer, head) for layer in range(layers // 2, layers) for head in range(heads)]
