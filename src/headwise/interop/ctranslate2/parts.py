"""Weights of our layers in CTranslate2's specifications: what the families share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError

Array = NDArray[np.float32]
Weights = dict[str, Array]

NEVER = -1e4  # the logit of a token without a vector, as in headwise.nn.embedding
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu-tanh": "GELUTanh", "silu": "SWISH"}


def fill_stack(stack: Any, weights: Weights, name: str, final_norm: bool) -> None:
    for index, layer in enumerate(stack.layer):
        place = f"{name}.layers.{index}"
        attention, feed_forward = layer.self_attention, layer.ffn
        fill_linear(attention.linear[0], weights, f"{place}.self_attention.query_key_value")
        fill_linear(attention.linear[1], weights, f"{place}.self_attention.output")
        fill_norm(attention.layer_norm, weights, f"{place}.self_residual.norm")
        if f"{place}.cross_residual.norm.weight" in weights:
            fill_cross(layer.attention, weights, place)
        gated = f"{place}.feed_forward.gate.weight" in weights  # the gate is what the activation is applied to
        fill_linear(feed_forward.linear_0, weights, f"{place}.feed_forward.{'gate' if gated else 'inner'}")
        if gated:
            fill_linear(feed_forward.linear_0_noact, weights, f"{place}.feed_forward.inner")
        fill_linear(feed_forward.linear_1, weights, f"{place}.feed_forward.outer")
        fill_norm(feed_forward.layer_norm, weights, f"{place}.feed_residual.norm")
    if final_norm:
        fill_norm(stack.layer_norm, weights, f"{name}.norm")


def fill_cross(attention: Any, weights: Weights, place: str) -> None:
    """Cross-attention's query has its own matrix, since it reads another input; key and value share one."""
    fused = f"{place}.cross_attention.query_key_value"
    inner = len(weights[f"{fused}.weight"]) // 3  # the heads' widths together
    for number, rows in enumerate((slice(0, inner), slice(inner, None))):
        fill_linear(attention.linear[number], weights, fused, rows)
    fill_linear(attention.linear[2], weights, f"{place}.cross_attention.output")
    fill_norm(attention.layer_norm, weights, f"{place}.cross_residual.norm")


def fill_linear(linear: Any, weights: Weights, name: str, rows: slice = slice(None)) -> None:
    linear.weight = weights[f"{name}.weight"][rows]
    if f"{name}.bias" in weights:
        linear.bias = weights[f"{name}.bias"][rows]


def fill_norm(norm: Any, weights: Weights, name: str) -> None:
    norm.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:  # RMSNorm has none
        norm.beta = weights[f"{name}.bias"]


def table(sizes: dict[str, Any], weights: Weights, name: str) -> Array:
    """Vectors of all tokens: CTranslate2's vocabulary has a row for those too that a published model lacks."""
    absent, rows = int(sizes.get("absent", 0)), weights[f"{name}.weight"]
    return np.pad(rows, ((absent, 0), (0, 0))) if absent else rows


def fill_output(linear: Any, sizes: dict[str, Any], weights: Weights, name: str, shared: Array | None = None) -> None:
    """The output layer, whose matrix may be the `shared` one of an embedding."""
    linear.weight = table(sizes, weights, name) if shared is None else shared
    absent, bias = int(sizes.get("absent", 0)), weights.get(f"{name}.bias")
    if absent or bias is not None:
        present = np.zeros(len(linear.weight) - absent, dtype=np.float32) if bias is None else bias
        linear.bias = np.pad(present, (absent, 0), constant_values=NEVER)


def activation(specs: Any, sizes: dict[str, Any]) -> Any:
    try:
        return getattr(specs.Activation, _ACTIVATIONS[sizes["activation"]])
    except KeyError:
        raise UsageError(f"ctranslate2 has no activation '{sizes['activation']}'; use the torch engine") from None


def positions(sizes: dict[str, Any], weights: Weights, name: str) -> Array:
    """The table to add. Without one CTranslate2 would add sines in its own order, so 'none' is a table of zeros."""
    if sizes["positions"] == "learned":
        return weights[f"{name}.weight"]
    if sizes["positions"] == "sinusoidal":
        return sinusoids(sizes["max_length"], sizes["model_dim"])
    return np.zeros((sizes["max_length"], sizes["model_dim"]), dtype=np.float32)


def sinusoids(length: int, model_dim: int, base: float = 10000.0) -> Array:
    """`headwise.nn.sinusoidal_positions` in numpy: sin on even columns, cos on odd ones."""
    position = np.arange(length, dtype=np.float64)[:, None]
    angle = position / base ** (np.arange(0, model_dim, 2, dtype=np.float64) / model_dim)  # (length, D/2)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(length, model_dim).astype(np.float32)
