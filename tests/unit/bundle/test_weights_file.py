from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from headwise.bundle.weights_file import write_tensors
from headwise.files import file_hash


def test_the_file_is_the_one_that_the_library_writes(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = {"b.weight": torch.randn(3, 4), "a": torch.randn(5), "b.bias": torch.randn(3), "é": torch.randn(2, 1, 2)}
    digest = write_tensors(tmp_path / "ours", weights, {name: tuple(x.shape) for name, x in weights.items()})
    save_file(weights, tmp_path / "theirs")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert digest == file_hash(tmp_path / "theirs")
    found = load_file(tmp_path / "ours")
    assert all(torch.equal(found[name], weights[name]) for name in weights)
