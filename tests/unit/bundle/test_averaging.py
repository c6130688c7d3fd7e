from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headwise.bundle.averaging import average_weights, model_directory
from headwise.bundle.directory import WEIGHTS, open_bundle, write_config
from headwise.bundle.weights import named_weights, open_model, save_model
from headwise.config import schema
from headwise.errors import ModelError, UsageError
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.average import average


@pytest.fixture
def three(model: Transformer, tokenizers: TokenizerPair, tmp_path: Path) -> list[Path]:
    """Models whose weights are all 1, all 2 and all 6."""
    paths = []
    for value in (1.0, 2.0, 6.0):
        weights = {name: torch.full_like(weight, value) for name, weight in named_weights(model).items()}
        paths.append(tmp_path / f"m{value:.0f}")
        save_model(paths[-1], model, tokenizers, family="transformer", weights=weights, card={"is": value})
    return paths


def test_every_weight_is_the_mean(three: list[Path]) -> None:
    bundle, weights = average_weights(three)
    assert bundle.card == {"is": 6.0}
    assert all(weight.dtype == torch.float32 and bool((weight == 3.0).all()) for weight in weights.values())


def test_the_order_does_not_matter_and_the_mean_of_one_is_itself(directory: Path, three: list[Path]) -> None:
    _, one = average_weights([directory])
    assert all(torch.equal(one[name], tensor) for name, tensor in load_file(directory / WEIGHTS).items())
    _, forward = average_weights([directory, *three])
    _, backward = average_weights([*reversed(three), directory])
    assert all(torch.equal(forward[name], backward[name]) for name in forward)


def test_an_averaged_directory_is_a_model_like_any_other(three: list[Path], tmp_path: Path) -> None:
    average(three, tmp_path / "mean")
    bundle, model, _ = open_model(tmp_path / "mean")
    assert bundle.card["average"] == [str(path) for path in three]
    assert all(bool((weight == 3.0).all()) for weight in named_weights(model).values())
    with pytest.raises(UsageError, match="already exists"):
        average(three, tmp_path / "mean")


def test_a_checkpoint_stands_for_the_model_inside_of_it(three: list[Path], tmp_path: Path) -> None:
    shutil.copytree(three[0], tmp_path / "step-00000001/model")
    assert model_directory(tmp_path / "step-00000001") == tmp_path / "step-00000001/model"
    assert model_directory(three[0]) == three[0]
    _, weights = average_weights([tmp_path / "step-00000001", three[1]])
    assert all(bool((weight == 1.5).all()) for weight in weights.values())


def test_only_models_of_one_kind_can_be_averaged(three: list[Path], tokenizers: TokenizerPair, tmp_path: Path) -> None:
    size = tokenizers.source.size
    wider = Transformer(source_vocab=size, model_dim=32, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=16)
    save_model(tmp_path / "wider", wider, tokenizers, family="transformer")
    with pytest.raises(ModelError, match="wider differs in architecture"):
        average_weights([*three, tmp_path / "wider"])
    other = TokenizerPair.one(Tokenizer.train(["v w x y z"], schema.Tokenizer(kind="word", size=20)))
    _, model, _ = open_model(three[0])
    save_model(tmp_path / "other", model, other, family="transformer")
    with pytest.raises(ModelError, match="other differs in its tokenizer"):
        average_weights([*three, tmp_path / "other"])


def test_damage_and_nothing_at_all_are_refused(three: list[Path]) -> None:
    with pytest.raises(UsageError, match="at least one"):
        average_weights([])
    weights = load_file(three[1] / WEIGHTS)
    weights.pop(min(weights))
    save_file(weights, three[1] / WEIGHTS)
    with pytest.raises(ModelError, match="hash"):
        average_weights(three)
    write_config(three[1], open_bundle(three[1], verify=False))
    with pytest.raises(ModelError, match="does not fit its architecture"):
        average_weights(three)
