from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headwise.bundle.directory import WEIGHTS, open_bundle
from headwise.bundle.weights import load_model, named_weights, open_model, save_model, start_from
from headwise.errors import ModelError
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import TokenizerPair


def problem(directory: Path, **architecture: Any) -> str:
    bundle = open_bundle(directory, verify=False)
    with pytest.raises(ModelError) as error:
        load_model(replace(bundle, architecture={**bundle.architecture, **architecture}))
    assert str(directory) in str(error.value)
    return str(error.value)


def test_a_model_comes_back_bit_for_bit_and_gives_the_same_logits(directory: Path, model: Transformer) -> None:
    bundle, loaded, tokenizers = open_model(directory)
    assert not loaded.training
    assert loaded.architecture == model.architecture == bundle.architecture
    for name, weight in named_weights(model).items():
        assert torch.equal(named_weights(loaded)[name], weight)
    ids = torch.tensor([tokenizers.source.encode("a b c")])
    assert torch.equal(loaded(ids, ids), model(ids, ids))


def test_a_tied_matrix_is_stored_once(directory: Path, model: Transformer) -> None:
    stored = load_file(directory / WEIGHTS)
    assert sum(tensor.numel() for tensor in stored.values()) == sum(p.numel() for p in model.parameters())


def test_loading_does_not_move_the_callers_generator(directory: Path) -> None:
    before = torch.get_rng_state()
    open_model(directory)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_weights_can_stand_in_for_the_models_own(
    model: Transformer, tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    zeros = {name: torch.zeros_like(weight) for name, weight in named_weights(model).items()}
    save_model(tmp_path / "zeros", model, tokenizers, family="transformer", weights=zeros)
    _, loaded, _ = open_model(tmp_path / "zeros")
    assert all(not weight.any() for weight in named_weights(loaded).values())


def test_weights_of_another_shape_missing_ones_and_extra_ones_are_named(directory: Path) -> None:
    weights = load_file(directory / WEIGHTS)
    first = min(weights)
    for changed in (
        {**weights, first: torch.zeros(3, 3)},
        {name: weight for name, weight in weights.items() if name != first},
        {**weights, first + ".more": torch.zeros(1)},
    ):
        save_file(changed, directory / WEIGHTS)
        assert first in problem(directory)


@pytest.mark.parametrize("content", [b"", b"\x00" * 7, b"\xff" * 64, b"\x08\x00\x00\x00\x00\x00\x00\x00notjson!"])
def test_a_weights_file_that_is_none_is_refused(directory: Path, content: bytes) -> None:
    (directory / WEIGHTS).write_bytes(content)
    assert "cannot be read" in problem(directory)


@pytest.mark.parametrize(
    "architecture",
    [
        {"model_dim": 10**7},
        {"ff_dim": 10**12},
        {"source_vocab": 10**12, "target_vocab": 10**12},
        {"encoder_layers": 10**9},
        {"decoder_layers": 5000},
        {"positions": "learned", "max_length": 10**12},
        {"model_dim": 2**62},
    ],
)
def test_a_huge_declared_architecture_is_refused_before_memory_is_taken(
    directory: Path, architecture: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr("headwise.bundle.weights.load_tensors", lambda path: made.append(path))
    tracemalloc.start()
    message = problem(directory, **architecture)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "does not fit" in message or "declares" in message
    assert most < 5_000_000
    assert made == []


@pytest.mark.parametrize(
    "architecture",
    [
        {"num_heads": 3},
        {"num_heads": 0},
        {"model_dim": "16"},
        {"model_dim": -16},
        {"norm": "sideways"},
        {"activation": "magic"},
        {"positions": 7},
        {"encoder_layers": "1"},
        {"encoder_layers": None},
        {"no_such_thing": 1},
    ],
)
def test_an_impossible_architecture_is_one_clear_line(directory: Path, architecture: dict[str, Any]) -> None:
    assert "\n" not in problem(directory, **architecture)


def test_an_unknown_family_is_named(directory: Path) -> None:
    with pytest.raises(ModelError, match="unknown model family 'boxes'"):
        load_model(replace(open_bundle(directory), family="boxes"))


def test_fine_tuning_starts_from_the_weights_that_fit_and_names_the_new_ones(directory: Path) -> None:
    bundle = open_bundle(directory)
    same, fresh = start_from(bundle, {})
    assert fresh == []
    assert all(torch.equal(a, b) for a, b in zip(same.parameters(), load_model(bundle).parameters(), strict=True))
    state = torch.random.get_rng_state()
    size = bundle.architecture["target_vocab"] + 3
    grown, fresh = start_from(bundle, {"source_vocab": size, "target_vocab": size})
    assert len(fresh) == 1
    assert fresh[0].endswith("weight")
    assert dict(grown.named_parameters())[fresh[0]].shape[0] == size
    assert torch.equal(torch.random.get_rng_state(), state)
