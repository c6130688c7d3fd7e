"""Layers of BART's descendants on the Hub, MarianMT and Whisper, which have the same names."""

from __future__ import annotations

from headwise.interop.keys import Key


def layer_keys(stack: str, *, key_bias: bool = True) -> list[Key]:
    """Of a layer of the `encoder` or the `decoder`. A bias of keys changes nothing, so some do not publish one.

    Where the model's width has another order there (`Orders.width`), it is an axis of these weights.
    """
    ours, theirs = f"{stack}.layers.{{}}", f"model.{stack}.layers.{{}}"
    attentions = {"self": "self_attn", **({"cross": "encoder_attn"} if stack == "decoder" else {})}
    keys = []
    for name, there in attentions.items():
        keys += _attention(f"{ours}.{name}_attention", f"{theirs}.{there}", key_bias)
        keys += _norm(f"{ours}.{name}_residual", f"{theirs}.{there}_layer_norm")
    return [
        *keys,
        Key(f"{ours}.feed_forward.inner.weight", (f"{theirs}.fc1.weight",), width=(1,)),
        Key(f"{ours}.feed_forward.inner.bias", (f"{theirs}.fc1.bias",)),
        Key(f"{ours}.feed_forward.outer.weight", (f"{theirs}.fc2.weight",), width=(0,)),
        Key(f"{ours}.feed_forward.outer.bias", (f"{theirs}.fc2.bias",), width=(0,)),
        *_norm(f"{ours}.feed_residual", f"{theirs}.final_layer_norm"),
    ]


def _attention(ours: str, theirs: str, key_bias: bool) -> list[Key]:
    query, key, value = (f"{theirs}.{name}_proj" for name in "qkv")
    biases = (f"{query}.bias", f"{key}.bias" if key_bias else "", f"{value}.bias")
    return [
        Key(f"{ours}.query_key_value.weight", tuple(f"{part}.weight" for part in (query, key, value)), width=(1,)),
        Key(f"{ours}.query_key_value.bias", biases),
        Key(f"{ours}.output.weight", (f"{theirs}.out_proj.weight",), width=(0,)),
        Key(f"{ours}.output.bias", (f"{theirs}.out_proj.bias",), width=(0,)),
    ]


def _norm(ours: str, theirs: str) -> list[Key]:
    return [Key(f"{ours}.norm.{kind}", (f"{theirs}.{kind}",), width=(0,)) for kind in ("weight", "bias")]
