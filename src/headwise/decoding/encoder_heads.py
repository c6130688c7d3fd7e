"""What stands between an encoder's states and its answer, in numpy: pooling, labels, tokens. Does not import torch.

The same as headwise.nn.heads, for an engine that ends with the states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headwise.bundle.directory import WEIGHTS, Bundle
from headwise.errors import ModelError, UsageError

Floats = NDArray[np.float32]
_NEVER = -1e4  # the logit of a token without a vector, as in headwise.nn.embedding
_erf = np.vectorize(math.erf, otypes=[np.float32])
_ACTIVATIONS: dict[str, Callable[[Floats], NDArray[Any]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu-tanh": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
}


def pool(states: Floats, lengths: Sequence[int], kind: str) -> Floats:
    """One state per row: of the first position, or the mean over the row's tokens. (B, S, D) -> (B, D)."""
    if kind == "first":
        return states[:, 0]
    counts = np.array(lengths)
    real = (np.arange(states.shape[1]) < counts[:, None]).astype(np.float32)  # (B, S)
    pooled = np.einsum("bs,bsd->bd", real, states) / np.maximum(counts, 1)[:, None]
    return np.asarray(pooled, dtype=np.float32)


class LabelHead:
    """W tanh(P h + p) + b, or without the pooler W h + b."""

    def __init__(self, bundle: Bundle) -> None:
        names = ("pooler.dense.weight", "pooler.dense.bias", "output.linear.weight", "output.linear.bias")
        self.weights = read_weights(bundle, names)
        if "output.linear.weight" not in self.weights:
            raise ModelError(f"{bundle.path / WEIGHTS} has no weights for labels; take another copy of the model")

    def __call__(self, pooled: Floats) -> Floats:  # (B, D) -> (B, C)
        found = self.weights
        if "pooler.dense.weight" in found:
            pooled = np.tanh(pooled @ found["pooler.dense.weight"].T + found["pooler.dense.bias"])
        return np.asarray(pooled @ found["output.linear.weight"].T + found["output.linear.bias"])


class TokenHead:
    """E · LayerNorm(activation(W h + b)) + c, where E is the table of embeddings."""

    def __init__(self, bundle: Bundle) -> None:
        sizes = bundle.architecture
        if sizes["activation"] not in _ACTIVATIONS:
            raise UsageError(f"the fast engine has no activation '{sizes['activation']}'; use --engine torch")
        self.activation, self.epsilon = _ACTIVATIONS[sizes["activation"]], float(sizes["norm_epsilon"])
        self.absent = int(sizes.get("absent", 0))
        parts = ("output.dense", "output.norm", "embedding")
        names = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
        self.weights = read_weights(bundle, names)
        if len(self.weights) < len(names):
            raise ModelError(f"{bundle.path / WEIGHTS} has no weights for tokens; take another copy of the model")

    def __call__(self, states: Floats) -> Floats:  # (rows, D) -> (rows, V)
        found = self.weights
        hidden = self.activation(states @ found["output.dense.weight"].T + found["output.dense.bias"])
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        normed = centred / scale * found["output.norm.weight"] + found["output.norm.bias"]
        logits = normed @ found["embedding.weight"].T + found["embedding.bias"]
        return np.pad(logits, ((0, 0), (self.absent, 0)), constant_values=_NEVER).astype(np.float32)


def read_weights(bundle: Bundle, names: Sequence[str]) -> dict[str, Floats]:
    """Those of the named weights that the model has."""
    file = bundle.path / WEIGHTS
    try:
        with safe_open(file, framework="np") as stored:
            known = set(stored.keys())
            return {name: np.asarray(stored.get_tensor(name), dtype=np.float32) for name in names if name in known}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read: {error}; take another copy of the model") from error
