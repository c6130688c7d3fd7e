"""Our Transformer-XL computes what the last version of transformers that had one computes.

That version lives in an environment of its own: `python -m benchmarks.environments transfo-xl` creates it. Without it,
tests/unit/nn/test_relative.py compares with the paper's equations, pair by pair.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from headwise.models.xl import TransformerXL

PYTHON = Path.home() / ".cache/headwise/benchmarks/transfo-xl/bin/python"
SEGMENT, MEMORY = 7, 11


def theirs(model: TransformerXL) -> dict[str, torch.Tensor]:
    """Our weights by the names of TransfoXLModel."""
    ours, found = dict(model.state_dict()), {}
    found["word_emb.emb_layers.0.weight"] = ours["embedding.weight"]
    for number in range(len(model.stack.layers)):
        here, there = f"stack.layers.{number}", f"layers.{number}"
        found |= {
            f"{there}.dec_attn.qkv_net.weight": ours[f"{here}.self_attention.query_key_value.weight"],
            f"{there}.dec_attn.o_net.weight": ours[f"{here}.self_attention.output.weight"],
            f"{there}.dec_attn.r_net.weight": ours[f"{here}.self_attention.distance_key.weight"],
            f"{there}.pos_ff.CoreNet.0.weight": ours[f"{here}.feed_forward.inner.weight"],
            f"{there}.pos_ff.CoreNet.0.bias": ours[f"{here}.feed_forward.inner.bias"],
            f"{there}.pos_ff.CoreNet.3.weight": ours[f"{here}.feed_forward.outer.weight"],
            f"{there}.pos_ff.CoreNet.3.bias": ours[f"{here}.feed_forward.outer.bias"],
        }
        for part, residual in (("dec_attn", "self_residual"), ("pos_ff", "feed_residual")):
            for kind in ("weight", "bias"):
                found[f"{there}.{part}.layer_norm.{kind}"] = ours[f"{here}.{residual}.norm.{kind}"]
        positions = "distances" if model.distances is not None else f"{here}.self_attention.positions"
        for name, bias in (("r_w_bias", "content_bias"), ("r_r_bias", "position_bias")):
            found[f"{there}.dec_attn.{name}"] = ours[f"{positions}.{bias}"]
            if model.distances is not None:  # there the layers and the model name one parameter
                found[name] = ours[f"{positions}.{bias}"]
    return {name: tensor.clone() for name, tensor in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shared", "clamp", "head_dim"), [(True, None, None), (False, 6, 5)], ids=["shared biases", "own biases, clamped"]
)
@torch.no_grad()
def test_states_and_memories_of_segments_are_those_of_transformers(
    tmp_path: Path, shared: bool, clamp: int | None, head_dim: int | None
) -> None:
    if not PYTHON.exists():
        pytest.skip("needs transformers 4 in its own environment: python -m benchmarks.environments transfo-xl")
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"model_dim": 16, "num_heads": 2, "layers": 3, "ff_dim": 24, "head_dim": head_dim}
    model = TransformerXL(
        vocab=50, segment=SEGMENT, memory=MEMORY, share_biases=shared, clamp=clamp, **sizes
    ).eval()  # fmt: skip
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)
    ids = torch.randint(0, 50, (3, 4 * SEGMENT))
    config = {
        "vocab_size": 50, "cutoffs": [], "d_model": 16, "d_embed": 16, "n_head": 2, "d_head": head_dim or 8,
        "d_inner": 24, "div_val": 1, "n_layer": 3, "mem_len": MEMORY, "clamp_len": clamp or -1, "dropout": 0.0,
        "dropatt": 0.0, "untie_r": not shared, "same_length": False, "eos_token_id": None,
    }  # fmt: skip
    save_file({**theirs(model), "ids": ids, "segment": torch.tensor(SEGMENT)}, tmp_path / "weights.safetensors")
    script = Path(__file__).with_name("transfo_xl_run.py")
    done = subprocess.run(
        [PYTHON, script, tmp_path / "weights.safetensors", json.dumps(config), tmp_path / "found.safetensors"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = load_file(tmp_path / "found.safetensors")
    memory = (torch.zeros(3, MEMORY, 16),) * 3  # theirs begins with zeros, the paper's and ours with nothing
    for number, part in enumerate(ids.split(SEGMENT, dim=1)):
        states, memory = model.carried(part, *memory)
        assert_close(states, expected[f"states {number}"], atol=1e-4, rtol=1e-4)
        for layer, kept in enumerate(memory):
            assert_close(kept, expected[f"memory {number} {layer}"], atol=1e-4, rtol=1e-4)
