from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_published import publish_gpt2
from safetensors.torch import load_file, save_file

from headwise.errors import ModelError
from headwise.interop.huggingface.read import read_model


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    publish_gpt2(tmp_path / "hub")
    return tmp_path / "hub"


def change_config(hub: Path, **values: Any) -> None:
    config = json.loads((hub / "config.json").read_text())
    (hub / "config.json").write_text(json.dumps({**config, **values}))


def change_weights(hub: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(hub / "model.safetensors")
    change(weights)
    save_file(weights, hub / "model.safetensors")


def test_files_without_the_prefix_and_with_old_buffers_are_read_too(hub: Path) -> None:
    whole = dict(read_model(hub).weights)

    def as_of_old(weights: dict[str, torch.Tensor]) -> None:
        for name in list(weights):
            weights[name.removeprefix("transformer.")] = weights.pop(name)
        weights["h.0.attn.bias"] = torch.ones(1, 1, 8, 8)

    change_weights(hub, as_of_old)
    found = dict(read_model(hub).weights)
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[name], whole[name]) for name in whole)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"n_layer": 3}, "lacks transformer.h.2"),
        ({"n_layer": 1}, r"has the unknown weights transformer\.h\.1\.\S+ and 11 more"),
        ({"n_layer": 10**9}, "declares 1000000000 layers, but the weights are"),
        ({"n_embd": 10**12, "n_head": 1}, "disagrees with config.json|impossible architecture"),
        ({"n_positions": 10**13}, "wpe.weight has the shape .* disagrees with config.json|impossible"),
        ({"vocab_size": 10**4}, r"config.json: vocab_size = 10000, but no tensor of the weights has so many rows"),
        ({"vocab_size": 10**30}, "but no tensor of the weights has so many rows"),
        ({"n_positions": 10**40}, "impossible architecture"),
        ({"eos_token_id": None}, "hub: the vocabulary has no token that ends a text"),
        ({"n_inner": 7}, "c_fc.bias|c_fc.weight"),
        ({"n_head": 5}, "num_heads"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon must be a number from 0"),
        ({"activation_function": "tanh"}, "activation_function = 'tanh' is not supported"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True is not supported"),
        ({"eos_token_id": 10**6}, "must name its eos_token_id"),
        ({"n_embd": "many"}, "n_embd must be a whole number"),
    ],
)
def test_a_config_that_asks_for_something_else_is_one_line(hub: Path, values: dict[str, Any], words: str) -> None:
    change_config(hub, **values)
    with pytest.raises(ModelError, match=words) as caught:
        dict(read_model(hub).weights)
    assert "\n" not in str(caught.value)


def test_a_weight_that_is_not_a_number_is_refused(hub: Path) -> None:
    change_weights(hub, lambda weights: weights["transformer.ln_f.bias"].fill_(torch.nan))
    with pytest.raises(ModelError, match="NaN or infinite"):
        dict(read_model(hub).weights)
