"""T5 versions 1.0 and 1.1 (and Flan-T5, which is 1.1 with other weights), and our `t5`.

A published config says `tie_word_embeddings = false` of version 1.1: its output has a matrix of its own, and its states
are not scaled. Version 5 of `transformers` writes `scale_decoder_outputs = false` for the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.errors import UsageError
from headwise.interop.huggingface.families.marian import EXAMPLE, special_config, special_ids
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, adopt, vocabulary
from headwise.text.sentencepiece_file import read_pieces, unigram_parts
from headwise.text.tokenizer import TokenizerPair
from headwise.text.tokenizer_file import read_tokenizer

# Our activation and whether it is gated, by the name of both there.
_FEED_FORWARD = {
    "relu": ("relu", False), "gated-gelu": ("gelu-tanh", True), "gated-silu": ("silu", True),
    "gated-relu": ("relu", True), "gelu_new": ("gelu-tanh", False), "gelu": ("gelu", False), "silu": ("silu", False),
}  # fmt: skip
SENTINELS = 100  # <extra_id_0> is the last token of the vocabulary, <extra_id_1> the one before it, …


def read_config(config: Config) -> Architecture:
    config.must("layer_norm_epsilon", 1e-6)
    name = config.choice("feed_forward_proj", {name: name for name in _FEED_FORWARD}, "relu")
    activation, gated = _FEED_FORWARD[name]
    untied = config.values.get("tie_word_embeddings") is False or config.values.get("scale_decoder_outputs") is False
    return {
        "model_dim": config.number("d_model"),
        "num_heads": config.number("num_heads"),
        "head_dim": config.number("d_kv"),
        "encoder_layers": config.number("num_layers"),
        "decoder_layers": config.number("num_decoder_layers", config.number("num_layers")),
        "ff_dim": config.number("d_ff"),
        "activation": activation,
        "gated": gated,
        "tie": "none" if untied else "all",
        "buckets": config.number("relative_attention_num_buckets", 32),
        "max_distance": config.number("relative_attention_max_distance", 128),
        "dropout": config.fraction("dropout_rate", 0.1),
    }


def write_config(architecture: Architecture) -> dict[str, Any]:
    kind = architecture["activation"], architecture["gated"]
    written = {ours: theirs for theirs, ours in reversed(_FEED_FORWARD.items())}
    if kind not in written:
        raise UsageError("Hugging Face's T5 has no gated exact GELU: its gated-gelu is activation = 'gelu-tanh'")
    tied = architecture["tie"] == "all"
    return {
        "d_model": architecture["model_dim"], "d_kv": architecture["head_dim"], "d_ff": architecture["ff_dim"],
        "num_heads": architecture["num_heads"], "num_layers": architecture["encoder_layers"],
        "num_decoder_layers": architecture["decoder_layers"],
        "feed_forward_proj": written[kind],
        "relative_attention_num_buckets": architecture["buckets"],
        "relative_attention_max_distance": architecture["max_distance"],
        "dropout_rate": architecture["dropout"], "layer_norm_epsilon": 1e-6, "is_encoder_decoder": True,
        "tie_word_embeddings": tied, "vocab_size": architecture["vocab"] - architecture["absent"],
    }  # fmt: skip


def keys(architecture: Architecture) -> Iterator[Key]:
    yield Key("embedding.weight", ("shared.weight",), vocabulary="target")
    if architecture["tie"] == "none":
        yield Key("output.weight", ("lm_head.weight",), vocabulary="target")
    for stack in ("encoder", "decoder"):
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield Key(f"{stack}_bias.weight", (table,))
        yield Key(f"{stack}.norm.weight", (f"{stack}.final_layer_norm.weight",))
        for number in range(architecture[f"{stack}_layers"]):
            yield from _layer(stack, number, bool(architecture["gated"]))


def _layer(stack: str, number: int, gated: bool) -> Iterator[Key]:
    """A layer there is a row of sub-layers, each with its norm: self-attention, (cross-attention,) feed-forward."""
    ours, theirs = f"{stack}.layers.{number}", f"{stack}.block.{number}.layer"
    attentions = [("self", "SelfAttention"), *([("cross", "EncDecAttention")] if stack == "decoder" else [])]
    for place, (name, kind) in enumerate(attentions):
        parts = tuple(f"{theirs}.{place}.{kind}.{matrix}.weight" for matrix in "qkv")
        yield Key(f"{ours}.{name}_attention.query_key_value.weight", parts)
        yield Key(f"{ours}.{name}_attention.output.weight", (f"{theirs}.{place}.{kind}.o.weight",))
        yield Key(f"{ours}.{name}_residual.norm.weight", (f"{theirs}.{place}.layer_norm.weight",))
    last = len(attentions)
    inner = {"gate": "wi_0", "inner": "wi_1"} if gated else {"inner": "wi"}
    for name, matrix in {**inner, "outer": "wo"}.items():
        yield Key(f"{ours}.feed_forward.{name}.weight", (f"{theirs}.{last}.DenseReluDense.{matrix}.weight",))
    yield Key(f"{ours}.feed_residual.norm.weight", (f"{theirs}.{last}.layer_norm.weight",))


def read_beside(folder: Path, config: Config) -> Beside:
    """spiece.model with sentinels after its pieces; or the file of the tokenizers library."""
    rows, file = config.number("vocab_size"), folder / "tokenizer.json"
    if file.is_file():
        parts = read_tokenizer(file).parts
        # The sentinels are text to us: whoever writes <extra_id_0> means the gap.
        parts["added_tokens"] = [_as_text(token) for token in parts.get("added_tokens") or []]
    else:
        file = folder / "spiece.model"
        pieces = read_pieces(file)
        names = [*pieces.names, *(f"<extra_id_{number}>" for number in reversed(range(SENTINELS)))]
        parts = unigram_parts(pieces, {name: number for number, name in enumerate(names)})
    numbering = Numbering.of(rows, special_ids(config, vocabulary(parts, file), rows))
    tokenizer, origin = adopt(parts, numbering, file, documents=False)
    return Beside(Assets(TokenizerPair.one(tokenizer)), (numbering,), (origin,))


def _as_text(token: Any) -> Any:
    sentinel = isinstance(token, dict) and str(token.get("content", "")).startswith("<extra_id_")
    return {**token, "special": False} if sentinel else token


LAYOUTS = (
    Layout(
        family="t5",
        class_name="T5ForConditionalGeneration",
        task="translate",
        read_config=read_config,
        write_config=write_config,
        keys=keys,
        read_beside=read_beside,
        example=EXAMPLE,
        sizes=lambda beside: {"vocab": beside.numbering.vocab, "absent": beside.numbering.absent},
        special_config=special_config,
        ends_texts=True,
        ignored=r"lm_head\.weight|(en|de)coder\.embed_tokens\.weight"
        r"|decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    ),
)
