from __future__ import annotations

import pytest
import torch

from headwise.errors import ModelError
from headwise.interop.imported import Weights


def test_each_tensor_is_read_when_it_is_asked_for() -> None:
    read: list[str] = []

    def one(name: str) -> torch.Tensor:
        read.append(name)
        return torch.full((2,), torch.nan if name == "bad" else 1.0)

    weights = Weights("folder", {"a": (2,), "bad": (2,)}, one)
    assert (list(weights), len(weights), read) == (["a", "bad"], 2, [])
    assert "a" in weights
    assert "c" not in weights
    assert weights["a"].tolist() == [1, 1]
    assert read == ["a"]
    with pytest.raises(ModelError, match="folder: bad has numbers that are NaN or infinite"):
        weights["bad"]
