from __future__ import annotations

import pytest
import torch
from fixtures_models import small_transformer

from headwise.bundle.weights import named_weights
from headwise.config.schema import Training
from headwise.models.transformer import Transformer
from headwise.training.distributed import ALONE
from headwise.training.ema import MovingAverage
from headwise.training.gather import FullModel, Order, part_of, placed, whole
from headwise.training.optimizers import build_optimizer


def full(model: Transformer, *, averaged: bool) -> FullModel:
    average = MovingAverage(model, 0.5) if averaged else None
    return FullModel(model, build_optimizer(Training(), model.parameters()), ALONE, average)


def moved(averaged: bool) -> FullModel:
    """A model whose weights have moved by one since its average was taken."""
    torch.manual_seed(1)
    found = full(small_transformer(20), averaged=averaged)
    with torch.no_grad():
        for parameter in found.model.parameters():
            parameter.add_(1.0)
    return found


@pytest.mark.parametrize("averaged", [False, True])
def test_a_checkpoint_has_everything_by_name(averaged: bool) -> None:
    found = moved(averaged)
    tensors = found.gather()
    assert part_of(tensors, "weights").keys() == named_weights(found.model).keys()
    assert bool(part_of(tensors, "average")) is averaged
    kept = found.evaluated_weights(tensors)
    expected = part_of(tensors, "average" if averaged else "weights")
    assert all(kept[name] is tensor for name, tensor in expected.items())


@pytest.mark.parametrize("averaged", [False, True])
def test_evaluation_sees_averaged_weights_and_training_goes_on_as_if_nothing_had_happened(averaged: bool) -> None:
    found = moved(averaged)
    found.model.train()
    before = found.model.output.weight.detach().clone()
    with found.evaluated() as model:
        assert not model.training
        difference = (before - model.output.weight.detach()).abs().max()
        assert difference == pytest.approx(1.0 if averaged else 0.0, abs=1e-5)
    assert found.model.training
    assert torch.equal(found.model.output.weight, before)


def test_orders_cannot_be_mistaken_for_reasons_to_stop() -> None:
    from headwise.training.loop import REASONS

    assert min(Order) >= len(REASONS)


def test_a_tensor_that_is_not_sharded_is_taken_as_it_is() -> None:
    tensor = torch.ones(2)
    assert whole(tensor) is tensor
    assert placed(tensor, torch.zeros(2)) is tensor
