"""Our kinds of attention and the families that have them, run by benchmarks/long.py."""

from __future__ import annotations

import torch
from measure_long import CLASSES, VOCABULARY, Run, main
from torch import Tensor

from headwise.config.families import find_family
from headwise.models.registry import build_model
from headwise.nn import BlockSparseAttention, FavorAttention, MultiHeadAttention, WindowAttention


def attention(request: dict) -> torch.nn.Module:
    width, heads = request["model_dim"], request["num_heads"]
    match request["kind"]:
        case "exact":
            return MultiHeadAttention(width, heads)
        case "window":
            return WindowAttention(width, heads, window=request["window"], global_tokens=False)
        case "blocks":
            return BlockSparseAttention(width, heads, block=request["block"])
        case "features":
            return FavorAttention(width, heads, features=request["features"])
    raise ValueError(request["kind"])


FAMILIES = {
    "exact": ("bert", ()), "window": ("longformer", ("window",)), "blocks": ("bigbird", ("block",)),
    "features": ("performer", ("features",)),
}  # fmt: skip


def family(request: dict) -> torch.nn.Module:
    """A classifier: everything but a vocabulary's logits, whose cost is the same for all."""
    name, own = FAMILIES[request["kind"]]
    declared = find_family(name)
    assert declared is not None
    known = declared.settings.model_fields
    sizes = {key: request[key] for key in ("model_dim", "num_heads", "layers", "ff_dim", *own)}
    chosen = {**sizes, "dropout": 0.1, "attention_dropout": 0.0, "max_length": max(4096, request["length"])}
    settings = declared.settings.of({key: value for key, value in chosen.items() if key in known})
    return build_model(name, {"vocab": VOCABULARY, "classes": CLASSES, **settings.model_dump(mode="json")})


def build(request: dict) -> tuple[Run, torch.nn.Module]:
    if request["part"] == "attention":
        layer = attention(request)

        def attend(x: Tensor) -> Tensor:
            out: Tensor = layer(x, x, x)
            return out

        return attend, layer
    model = family(request)
    return model, model


if __name__ == "__main__":
    main(build)
