"""GPT-2 (Radford et al. 2019) and our `lm`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.errors import UsageError
from headwise.interop.huggingface.layout import Architecture, Beside, Key, Layout
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering, adopt, is_ours, read_parts, vocabulary
from headwise.text.tokenizer import EOS, TokenizerPair

# Our names of activations by theirs; the first of each is the one that is written.
_ACTIVATIONS = {
    "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu": "gelu", "relu": "relu", "silu": "silu",
    "swish": "silu",
}  # fmt: skip

_LAYER = (
    Key("stack.layers.{}.self_residual.norm.weight", ("transformer.h.{}.ln_1.weight",)),
    Key("stack.layers.{}.self_residual.norm.bias", ("transformer.h.{}.ln_1.bias",)),
    Key("stack.layers.{}.self_attention.query_key_value.weight", ("transformer.h.{}.attn.c_attn.weight",), True),
    Key("stack.layers.{}.self_attention.query_key_value.bias", ("transformer.h.{}.attn.c_attn.bias",)),
    Key("stack.layers.{}.self_attention.output.weight", ("transformer.h.{}.attn.c_proj.weight",), True),
    Key("stack.layers.{}.self_attention.output.bias", ("transformer.h.{}.attn.c_proj.bias",)),
    Key("stack.layers.{}.feed_residual.norm.weight", ("transformer.h.{}.ln_2.weight",)),
    Key("stack.layers.{}.feed_residual.norm.bias", ("transformer.h.{}.ln_2.bias",)),
    Key("stack.layers.{}.feed_forward.inner.weight", ("transformer.h.{}.mlp.c_fc.weight",), True),
    Key("stack.layers.{}.feed_forward.inner.bias", ("transformer.h.{}.mlp.c_fc.bias",)),
    Key("stack.layers.{}.feed_forward.outer.weight", ("transformer.h.{}.mlp.c_proj.weight",), True),
    Key("stack.layers.{}.feed_forward.outer.bias", ("transformer.h.{}.mlp.c_proj.bias",)),
)


def read_config(config: Config) -> Architecture:
    for key, wanted in (
        ("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False), ("add_cross_attention", False),
    ):  # fmt: skip
        config.must(key, wanted)
    width = config.number("n_embd")
    return {
        "model_dim": width,
        "num_heads": config.number("n_head"),
        "layers": config.number("n_layer"),
        "ff_dim": config.number("n_inner", 4 * width),
        "max_length": config.number("n_positions"),
        "activation": config.choice("activation_function", _ACTIVATIONS, "gelu_new"),
        "dropout": config.fraction("resid_pdrop", 0.1),
        "attention_dropout": config.fraction("attn_pdrop", 0.1),
        "activation_dropout": 0.0,
        "norm": "pre",
        "norm_epsilon": config.fraction("layer_norm_epsilon", 1e-5),
        "positions": "learned",
        "scale_embeddings": False,
        "tie": "all" if config.values.get("tie_word_embeddings", True) else "none",
    }


def write_config(architecture: Architecture) -> dict[str, Any]:
    for key, wanted, why in (
        ("norm", "pre", "GPT-2 has its layer norms before each sub-layer (norm = 'pre')"),
        ("positions", "learned", "GPT-2 has learned positions (positions = 'learned')"),
        ("scale_embeddings", False, "GPT-2 adds embeddings as they are (scale_embeddings = false)"),
        ("cutoffs", [], "GPT-2 has no adaptive softmax (cutoffs)"),
    ):
        if architecture[key] != wanted:
            raise UsageError(why)
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    dropout = architecture["dropout"]
    attention_dropout = architecture["attention_dropout"]
    return {
        "n_embd": architecture["model_dim"],
        "n_head": architecture["num_heads"],
        "n_layer": architecture["layers"],
        "n_inner": architecture["ff_dim"],
        "n_positions": architecture["max_length"],
        "activation_function": written[architecture["activation"]],
        "resid_pdrop": dropout,
        "embd_pdrop": dropout,
        "attn_pdrop": dropout if attention_dropout is None else attention_dropout,
        "layer_norm_epsilon": architecture["norm_epsilon"],
        "tie_word_embeddings": architecture["tie"] != "none",
        "vocab_size": architecture["vocab"] - architecture["absent"],
    }


def keys(architecture: Architecture) -> Iterator[Key]:
    yield Key("embedding.weight", ("transformer.wte.weight",), vocabulary="target")
    if architecture["tie"] == "none":
        yield Key("output.weight", ("lm_head.weight",), vocabulary="target")
    yield Key("positions.weight", ("transformer.wpe.weight",))
    for number in range(architecture["layers"]):
        yield from (key.at(number) for key in _LAYER)
    yield Key("stack.norm.weight", ("transformer.ln_f.weight",))
    yield Key("stack.norm.bias", ("transformer.ln_f.bias",))


def read_beside(folder: Path, config: Config) -> Beside:
    """Of its special tokens GPT-2 has only the one between texts; ours has four, in front."""
    parts, rows = read_parts(folder), config.number("vocab_size")
    end = config.token("eos_token_id", rows)
    special = {} if end is None else {EOS: end}
    if is_ours(vocabulary(parts, folder / "tokenizer.json")):
        special = {number: number for number in range(EOS + 1)}
    numbering = Numbering.of(rows, special)
    tokenizer, origin = adopt(parts, numbering, folder / "tokenizer.json")
    return Beside(Assets(TokenizerPair.one(tokenizer)), (numbering,), (origin,))


EXAMPLE = """
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForCausalLM.from_pretrained(".")
inputs = tokenizer("A text", return_tensors="pt")
output = model.generate(**inputs, max_new_tokens=20, do_sample=True, top_p=0.9)
print(tokenizer.decode(output[0], skip_special_tokens=True))
"""

LAYOUTS = (
    Layout(
        family="lm",
        class_name="GPT2LMHeadModel",
        task="generate",
        read_config=read_config,
        write_config=write_config,
        keys=keys,
        read_beside=read_beside,
        example=EXAMPLE,
        sizes=lambda beside: {"vocab": beside.numbering.vocab, "absent": beside.numbering.absent},
        ignored=r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)|lm_head\.weight",
        prefix="transformer.",
    ),
)
