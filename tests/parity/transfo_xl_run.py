"""Runs Transformer-XL of the library transformers 4 on segments of a text.

Run by test_transformer_xl.py with the Python of an environment that has that version, which other tests cannot use.
Arguments: a file of weights and ids, the configuration as JSON, and the file to write states and memories into.
"""

from __future__ import annotations

import json
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import TransfoXLConfig, TransfoXLModel


def type_as(self: torch.Tensor, other: torch.Tensor | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The model calls `type_as(dtype=…)`, an argument that torch never had."""
    return self.to(other.dtype if other is not None else dtype)


def main(weights: str, config: str, output: str) -> None:
    torch.Tensor.type_as = type_as  # type: ignore[method-assign, assignment]
    tensors = load_file(weights)
    ids, segment = tensors.pop("ids"), int(tensors.pop("segment"))
    model = TransfoXLModel(TransfoXLConfig(**json.loads(config))).eval()
    left_out = model.load_state_dict(tensors, strict=False)
    assert left_out.unexpected_keys == [], left_out.unexpected_keys
    assert all("pos_emb" in name for name in left_out.missing_keys), left_out.missing_keys
    memory, found = None, {}
    with torch.no_grad():
        for number, part in enumerate(ids.split(segment, dim=1)):
            out = model(part, mems=memory)
            memory = out.mems
            found[f"states {number}"] = out.last_hidden_state.contiguous()
            for layer, states in enumerate(memory):
                found[f"memory {number} {layer}"] = states.transpose(0, 1).contiguous()  # (B, memory, D)
    save_file(found, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
