"""MarianMT, as OPUS-MT publishes its translators (Tiedemann & Thottingal 2020), and our `transformer`.

Marian's sinusoids stand in halves [sin | cos], the paper's in pairs. The coordinates of a model have no order of their
own: with the widths of all weights in another order, it computes the same with the paper's sinusoids.

Source and target have one vocabulary and one table of vectors, or two of each (`share_encoder_decoder_embeddings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.bundle.assets import Assets
from headwise.bundle.directory import read_json
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.bart_layers import layer_keys
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, adopt, is_ours, vocabulary
from headwise.text.sentencepiece_file import Pieces, read_pieces, unigram_parts
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, TokenizerPair
from headwise.text.tokenizer_file import read_tokenizer

# Our names of activations by theirs; the first of each is the one that is written.
_ACTIVATIONS = {
    "swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
}  # fmt: skip
_PIECES = ("source.spm", "target.spm")
_VOCABULARIES = ("vocab.json", "target_vocab.json")
_SAME = ("attention_heads", "ffn_dim")  # of encoder and decoder


_LAYERS = {stack: layer_keys(stack) for stack in ("encoder", "decoder")}


def keys(architecture: Architecture) -> Iterator[Key]:
    if architecture["tie"] == "all":
        output = "source_embedding"
        yield Key("source_embedding.weight", ("model.shared.weight",), vocabulary="source", width=(1,))
    else:
        output = "target_embedding"
        yield Key("source_embedding.weight", ("model.encoder.embed_tokens.weight",), vocabulary="source", width=(1,))
        yield Key("target_embedding.weight", ("model.decoder.embed_tokens.weight",), vocabulary="target", width=(1,))
    if architecture["output_bias"]:
        yield Key(f"{output}.bias", ("final_logits_bias",), published=(1, -1), vocabulary="target")
    for stack, layer in _LAYERS.items():
        for number in range(architecture[f"{stack}_layers"]):
            yield from (key.at(number) for key in layer)


def in_halves(model_dim: int) -> list[int]:
    """Where each of our coordinates is there: ours alternate sine and cosine."""
    return [number // 2 + (model_dim // 2 if number % 2 else 0) for number in range(model_dim)]


def read_config(config: Config) -> Architecture:
    config.must("scale_embedding", True)  # of these the published default differs, but OPUS-MT always has them
    if not config.values.get("scale_embedding", False):
        raise ModelError(f"{config.file}: scale_embedding = False is not supported, only True")
    for key, wanted in (
        ("normalize_before", False), ("normalize_embedding", False), ("add_final_layer_norm", False),
        ("tie_word_embeddings", True), ("static_position_embeddings", True),
    ):  # fmt: skip
        config.must(key, wanted)
    for name in _SAME:
        config.must(f"decoder_{name}", config.number(f"encoder_{name}"))
    if _is_shared(config):
        config.must("decoder_vocab_size", config.number("vocab_size"))
    if config.number("d_model") % 2:
        raise ModelError(f"{config.file}: d_model must be even")
    return {
        "model_dim": config.number("d_model"),
        "num_heads": config.number("encoder_attention_heads"),
        "encoder_layers": config.number("encoder_layers"),
        "decoder_layers": config.number("decoder_layers"),
        "ff_dim": config.number("encoder_ffn_dim"),
        "max_length": config.number("max_position_embeddings", 1024),
        "activation": config.choice("activation_function", _ACTIVATIONS, "gelu"),
        "dropout": config.fraction("dropout", 0.1),
        "attention_dropout": config.fraction("attention_dropout", 0.0),
        "activation_dropout": config.fraction("activation_dropout", 0.0),
        "norm": "post",
        "positions": "sinusoidal",
        "tie": "all" if _is_shared(config) else "target",
        "output_bias": config.values.get("output_bias", True) is not False,
    }


def _is_shared(config: Config) -> bool:
    """Whether source and target have one vocabulary."""
    return config.values.get("share_encoder_decoder_embeddings", True) is not False


def write_config(architecture: Architecture) -> dict[str, Any]:
    for key, wanted, why in (
        ("norm", "post", "MarianMT has its layer norms after each sub-layer (norm = 'post'); try --to ctranslate2"),
        ("positions", "sinusoidal", "MarianMT has sinusoidal positions"),
        ("final_norm", None, "MarianMT has no layer norm after its stacks (final_norm)"),
        ("norm_epsilon", 1e-5, "MarianMT adds 1e-5 to the variance in layer norms (norm_epsilon)"),
        ("source_end", True, "MarianMT attends to the source's end of sentence (source_end)"),
    ):
        if architecture[key] != wanted:
            raise UsageError(why)
    if architecture["tie"] == "none":
        raise UsageError("MarianMT has one matrix for target embeddings and the output (tie = 'all' or 'target')")
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    rates = {name: architecture[name] for name in ("dropout", "attention_dropout", "activation_dropout")}
    sides = {
        f"{side}_{name}": architecture[ours]
        for side in ("encoder", "decoder")
        for name, ours in (("attention_heads", "num_heads"), ("ffn_dim", "ff_dim"), ("layers", f"{side}_layers"))
    }
    source, target = (architecture[f"{side}_vocab"] - architecture["absent"] for side in ("source", "target"))
    return {
        "d_model": architecture["model_dim"], **sides, "vocab_size": source, "decoder_vocab_size": target,
        "max_position_embeddings": architecture["max_length"], "scale_embedding": True, "is_encoder_decoder": True,
        "share_encoder_decoder_embeddings": architecture["tie"] == "all", "tie_word_embeddings": True,
        "activation_function": written[architecture["activation"]], "output_bias": architecture["output_bias"],
        **{name: rates["dropout"] if rate is None else rate for name, rate in rates.items()},
    }  # fmt: skip


def read_beside(folder: Path, config: Config) -> Beside:
    """source.spm and target.spm with the ids of vocab.json (and target_vocab.json); or the files that we write."""
    files = [folder / "tokenizer.json", folder / "target.tokenizer.json"]
    if files[0].is_file():
        return _beside(config, [read_tokenizer(file).parts for file in files if file.is_file()], files)
    pieces = [read_pieces(folder / name) for name in _PIECES]
    ids = [read_json(folder / name) for name in (_VOCABULARIES[:1] if _is_shared(config) else _VOCABULARIES)]
    return beside_of(folder, config, ids, pieces)


def beside_of(folder: Path, config: Config, ids: Sequence[Mapping[str, int]], pieces: list[Pieces]) -> Beside:
    """The tokenizers of SentencePiece files, with the ids of a vocabulary, or of two."""
    one = len(ids) == 1 and pieces[0] == pieces[1]
    sides = [unigram_parts(piece, ids[min(n, len(ids) - 1)]) for n, piece in enumerate(pieces[:1] if one else pieces)]
    return _beside(config, sides, [folder / name for name in _PIECES])


def _beside(config: Config, sides: list[dict[str, Any]], files: list[Path]) -> Beside:
    named = [vocabulary(parts, file) for parts, file in zip(sides, files, strict=False)]
    shared = _is_shared(config)
    rows = config.number("vocab_size" if shared else "decoder_vocab_size")
    target = Numbering.of(rows, special_ids(config, named[-1], rows))
    source = target if shared else Numbering.of(config.number("vocab_size"), _special_by_name(named[0], files[0]))
    if source.absent != target.absent:
        raise ModelError(f"{config.file}: the source and target vocabularies have different special tokens")
    numberings = (source, target)[: len(sides)]
    adopted = [
        adopt(parts, numbering, file, documents=False)
        for parts, numbering, file in zip(sides, numberings, files, strict=False)
    ]
    pair = TokenizerPair(adopted[0][0], adopted[-1][0])
    return Beside(Assets(pair), numberings, tuple(origin for _, origin in adopted))


def _special_by_name(named: dict[int, str], file: Path) -> dict[int, int]:
    """Of a vocabulary of the source alone, whose special tokens the config does not number."""
    if is_ours(named):
        return {number: number for number in range(EOS + 1)}
    where = {name: number for number, name in named.items()}
    roles = {UNK: "<unk>", BOS: "<pad>", EOS: "</s>"}
    for name in roles.values():
        if name not in where:
            raise ModelError(f"{file}: the vocabulary of the source has no token {name}")
    return {role: where[name] for role, name in roles.items()}


def special_ids(config: Config, named: dict[int, str], rows: int) -> dict[int, int]:
    """The decoder starts with padding there, which is our begin of sentence; our padding has no vector then."""
    if is_ours(named):
        return {number: number for number in range(EOS + 1)}
    start = config.token("decoder_start_token_id", rows)
    unknown = next((number for number, name in named.items() if name == "<unk>"), None)
    found = {UNK: unknown, BOS: start, EOS: config.token("eos_token_id", rows)}
    lacking = [
        name for name, number in zip(("<unk>", "decoder_start", "eos"), found.values(), strict=True) if number is None
    ]
    if lacking:
        raise ModelError(f"{config.file}: the {lacking[0]} token is not one of the vocabulary")
    return {ours: number for ours, number in found.items() if number is not None}


def special_config(architecture: Architecture, numbering: Numbering) -> dict[str, Any]:
    ids = numbering.special
    padding = ids.get(PAD, ids[BOS])
    return {
        "pad_token_id": padding, "eos_token_id": ids[EOS], "decoder_start_token_id": ids[BOS], "bos_token_id": ids[BOS],
        "forced_eos_token_id": ids[EOS], "bad_words_ids": [[number] for ours, number in ids.items() if ours != EOS],
    }  # fmt: skip


def constants(architecture: Architecture) -> dict[str, Tensor]:
    """The bias must be in a file there, even if there is none."""
    rows = architecture["target_vocab"] - architecture["absent"]
    return {} if architecture["output_bias"] else {"final_logits_bias": torch.zeros(1, rows)}


EXAMPLE = """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
inputs = tokenizer("A text.", return_tensors="pt", return_token_type_ids=False)
output = model.generate(**inputs, num_beams=5, max_new_tokens=40)
print(tokenizer.decode(output[0], skip_special_tokens=True))
"""

LAYOUTS = (
    Layout(
        family="transformer",
        class_name="MarianMTModel",
        task="translate",
        read_config=read_config,
        write_config=write_config,
        keys=keys,
        read_beside=read_beside,
        example=EXAMPLE,
        sizes=lambda beside: {
            "source_vocab": beside.numberings[0].vocab, "target_vocab": beside.numbering.vocab,
            "absent": beside.numbering.absent,
        },
        special_config=special_config,
        constants=constants,
        ends_texts=True,
        ignored=r"lm_head\.weight|final_logits_bias|model\.(en|de)coder\.embed_(tokens|positions)\.weight",
        width=in_halves,
    ),
)  # fmt: skip
