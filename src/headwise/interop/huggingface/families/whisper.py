"""Whisper, as OpenAI publishes it (Radford et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from headwise.bundle.assets import Assets
from headwise.bundle.directory import read_json
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.bart_layers import layer_keys
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.interop.keys import modules
from headwise.interop.whisper_tokens import Renumbered, special_tokens
from headwise.nn.sound_stem import sinusoids_in_halves
from headwise.text.published import Numbering, adopt, is_ours, read_parts, vocabulary
from headwise.text.speech_tokens import LATEST_START, preprocessing, read_speech_tokens
from headwise.text.tokenizer import BOS, EOS, TokenizerPair

# Our names of activations by theirs; the first of each is the one that is written.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
}
_SAME = ("attention_heads", "ffn_dim")  # of encoder and decoder
_SOUND = {"sampling_rate": 16_000, "hop_length": 160, "n_fft": 400}
GENERATION, PREPROCESSOR, ADDED = "generation_config.json", "preprocessor_config.json", "added_tokens.json"


_LAYERS = {stack: layer_keys(stack, key_bias=False) for stack in ("encoder", "decoder")}


def keys(architecture: Architecture) -> Iterator[Key]:
    yield from modules("stem.", "model.encoder.", {"first": "conv1", "second": "conv2"})
    yield Key("target_embedding.weight", ("model.decoder.embed_tokens.weight",), vocabulary="target")
    yield Key("target_positions.weight", ("model.decoder.embed_positions.weight",))
    for stack, layer in _LAYERS.items():
        for number in range(architecture[f"{stack}_layers"]):
            yield from (key.at(number) for key in layer)
        yield from modules(f"{stack}.", f"model.{stack}.", {"norm": "layer_norm"})


def constants(architecture: Architecture) -> dict[str, Tensor]:
    """The encoder's positions, which are not trained."""
    table = sinusoids_in_halves(architecture["source_positions"], architecture["model_dim"])
    return {"model.encoder.embed_positions.weight": table}


def read_config(config: Config) -> Architecture:
    for key, wanted in (("scale_embedding", False), ("tie_word_embeddings", True)):
        config.must(key, wanted)
    for name in _SAME:
        config.must(f"decoder_{name}", config.number(f"encoder_{name}"))
    if config.number("d_model") % 2:
        raise ModelError(f"{config.file}: d_model must be even")
    return {
        "mels": config.number("num_mel_bins", 80),
        "model_dim": config.number("d_model"),
        "num_heads": config.number("encoder_attention_heads"),
        "encoder_layers": config.number("encoder_layers"),
        "decoder_layers": config.number("decoder_layers"),
        "ff_dim": config.number("encoder_ffn_dim"),
        "source_positions": config.number("max_source_positions", 1500),
        "max_length": config.number("max_target_positions", 448),
        "activation": config.choice("activation_function", _ACTIVATIONS, "gelu"),
        "dropout": config.fraction("dropout", 0.0),
        "attention_dropout": config.fraction("attention_dropout", 0.0),
        "activation_dropout": config.fraction("activation_dropout", 0.0),
    }


def write_config(architecture: Architecture) -> dict[str, Any]:
    if architecture["activation"] not in _ACTIVATIONS.values():
        raise UsageError(f"the Hub's Whisper has no activation '{architecture['activation']}'")
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    rates = {name: architecture[name] for name in ("dropout", "attention_dropout", "activation_dropout")}
    sides = {
        f"{side}_{name}": architecture[ours]
        for side in ("encoder", "decoder")
        for name, ours in (("attention_heads", "num_heads"), ("ffn_dim", "ff_dim"), ("layers", f"{side}_layers"))
    }
    return {
        "d_model": architecture["model_dim"], **sides, "num_mel_bins": architecture["mels"],
        "vocab_size": architecture["vocab"] - architecture["absent"], "is_encoder_decoder": True,
        "max_source_positions": architecture["source_positions"], "max_target_positions": architecture["max_length"],
        "activation_function": written[architecture["activation"]], "scale_embedding": False,
        "tie_word_embeddings": True, "use_cache": True,
        **{name: rates["dropout"] if rate is None else rate for name, rate in rates.items()},
    }  # fmt: skip


def read_beside(folder: Path, config: Config) -> Beside:
    """The tokenizer, and what its special tokens mean: by their names, or as generation_config.json says."""
    _check_preprocessor(folder)
    parts, rows = read_parts(folder), config.number("vocab_size")
    if not (folder / "tokenizer.json").is_file() and (folder / ADDED).is_file():
        added = read_json(folder / ADDED)
        parts["added_tokens"] = [
            {"id": number, "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False}
            for name, number in added.items() if type(number) is int
        ]  # fmt: skip
    named = vocabulary(parts, folder)
    numbering = Numbering.of(rows, _special(config, named, rows))
    tokenizer, origin = adopt(parts, numbering, folder / "tokenizer.json", documents=False)
    file = folder / GENERATION
    generation = {**config.values, **(read_json(file) if file.is_file() else {})}
    multilingual = generation.get("is_multilingual")
    tokens = special_tokens(
        named, numbering, generation, multilingual=multilingual if isinstance(multilingual, bool) else None
    )
    assets = Assets(
        TokenizerPair.one(tokenizer), preprocessing=preprocessing(config.number("num_mel_bins", 80), tokens)
    )
    return Beside(assets, (numbering,), (origin,))


def _special(config: Config, named: Mapping[int, str], rows: int) -> dict[int, int]:
    if is_ours(named):
        return {number: number for number in range(EOS + 1)}
    found = {BOS: config.token("decoder_start_token_id", rows), EOS: config.token("eos_token_id", rows)}
    if None in found.values():
        raise ModelError(f"{config.file}: decoder_start_token_id or eos_token_id is not a token of the vocabulary")
    return {ours: number for ours, number in found.items() if number is not None}


def _check_preprocessor(folder: Path) -> None:
    file = folder / PREPROCESSOR
    values = read_json(file) if file.is_file() else {}
    for key, wanted in _SOUND.items():
        if values.get(key, wanted) != wanted:
            raise ModelError(f"{file}: {key} = {values[key]!r} is not supported, only {wanted}")


def special_config(architecture: Architecture, numbering: Numbering) -> dict[str, Any]:
    ids = numbering.special
    return {
        "decoder_start_token_id": ids[BOS], "eos_token_id": ids[EOS], "pad_token_id": ids[EOS],
        "bos_token_id": ids[EOS], "suppress_tokens": None, "begin_suppress_tokens": None,
    }  # fmt: skip


def files(architecture: Architecture, beside: Beside) -> dict[str, dict[str, Any]]:
    tokens = read_speech_tokens(
        beside.assets.preprocessing, architecture["mels"], architecture["vocab"], Path("the model")
    )
    numbered = Renumbered(beside.numbering)
    generation: dict[str, Any] = {
        **special_config(architecture, beside.numbering), "max_length": architecture["max_length"],
        "is_multilingual": bool(tokens.languages), "suppress_tokens": numbered.theirs_of(tokens.suppress),
        "begin_suppress_tokens": numbered.theirs_of(tokens.suppress_first),
    }  # fmt: skip
    if tokens.no_timestamps is not None:
        generation["no_timestamps_token_id"] = numbered.theirs(tokens.no_timestamps)
        generation["max_initial_timestamp_index"] = LATEST_START
    if tokens.previous is not None:
        generation["prev_sot_token_id"] = numbered.theirs(tokens.previous)
    if tokens.languages:
        generation["lang_to_id"] = {f"<|{name}|>": numbered.theirs(n) for name, n in tokens.languages.items()}
        generation["task_to_id"] = {name: numbered.theirs(number) for name, number in tokens.tasks.items()}
    if tokens.alignment_heads:
        generation["alignment_heads"] = tokens.alignment_heads
    seconds = -(-architecture["source_positions"] // 50)
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor",
        "feature_size": architecture["mels"], **_SOUND, "chunk_length": seconds, "n_samples": seconds * 16_000,
        "nb_max_frames": seconds * 100, "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False,
    }  # fmt: skip
    return {GENERATION: generation, PREPROCESSOR: extractor}


LAYOUTS = (
    Layout(
        family="whisper",
        class_name="WhisperForConditionalGeneration",
        task="transcribe",
        read_config=read_config,
        write_config=write_config,
        keys=keys,
        read_beside=read_beside,
        sizes=lambda beside: {"vocab": beside.numbering.vocab, "absent": beside.numbering.absent},
        special_config=special_config,
        constants=constants,
        files=files,
        ignored=r"proj_out\.weight|model\.encoder\.embed_positions\.weight",
        prefix="model.",
    ),
)
