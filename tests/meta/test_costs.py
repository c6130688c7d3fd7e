"""What docs/costs.md works out on paper is what a small model really has, computes, holds and sends."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

from headwise.config.families.transformer import FAMILY
from headwise.data.batch import Batch
from headwise.data.pairs import pair_batch
from headwise.losses import batch_loss
from headwise.models.interface import Network
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.ragged import Ragged
from headwise.training.distributed import World
from headwise.training.parallel import Objective, replicate, shard

RANKS = 4
SIZES: dict[str, Any] = {"model_dim": 32, "num_heads": 4, "ff_dim": 64, "dropout": 0.0}


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    path = Path(__file__).parents[2] / "docs" / "make_costs.py"
    spec = importlib.util.spec_from_file_location("make_costs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_costs"] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def four_ranks() -> Iterator[World]:
    """PyTorch's process group for tests: rank 0 of four, whose messages go nowhere."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield World()
    dist.destroy_process_group()


def small(costs: ModuleType) -> tuple[Any, Network, Batch]:
    """A shape, its model, and a batch of 8 sentences of 12 tokens on both sides, without padding."""
    shape = costs.Shape("small", 32, 64, 3, 2, 100, 12)
    model = Transformer(source_vocab=100, encoder_layers=3, decoder_layers=2, **SIZES)
    sentences = Ragged.of([[5 + row + column for column in range(11)] for row in range(8)])
    return shape, model, pair_batch(sentences, sentences)


def test_the_page_is_what_the_formulas_give(costs: ModuleType) -> None:
    assert costs.PAGE.read_text(encoding="utf-8") == costs.make_page(), "run: .venv/bin/python docs/make_costs.py"


@pytest.mark.parametrize("name", ["BASE", "BIG", "BILLION"])
def test_parameters_are_those_of_the_models(costs: ModuleType, name: str) -> None:
    shape = getattr(costs, name)
    with torch.device("meta"):
        if shape.decoders:
            model: Network = Transformer(source_vocab=shape.vocabulary, **FAMILY.presets[shape.name])
        else:
            sizes = {"model_dim": shape.width, "num_heads": 16, "layers": shape.encoders, "ff_dim": shape.inner}
            model = LanguageModel(vocab=shape.vocabulary, **sizes)  # type: ignore[arg-type]
    assert sum(p.numel() for p in model.parameters()) == shape.parameters


def test_operations_of_a_step_are_those_that_pytorch_counts(costs: ModuleType) -> None:
    shape, _, batch = small(costs)
    # With dropout attention is matrix products and nothing that hides them; the loss adds a product in place.
    model = Transformer(source_vocab=100, encoder_layers=3, decoder_layers=2, **{**SIZES, "dropout": 0.1})
    in_place = {torch.ops.aten.addmm_: lambda total, left, right, **_: 2 * left[0] * left[1] * right[1]}
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
        total, *_ = Objective(model, batch_loss)(batch, 0.1)
        total.backward()
    assert counter.get_total_flops() == pytest.approx(shape.flops * batch.tokens, rel=0.02)


def held(model: Network) -> int:
    """Bytes of weights, gradients and Adam's moments on this rank after an update."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    optimizer.step()
    states = [value for state in optimizer.state.values() for name, value in state.items() if name != "step"]
    tensors = [*model.parameters(), *(p.grad for p in model.parameters() if p.grad is not None), *states]
    parts = [getattr(tensor, "to_local", lambda tensor=tensor: tensor)() for tensor in tensors]
    return sum(part.numel() * part.element_size() for part in parts)


def test_replicas_hold_everything_and_send_their_gradients_once(costs: ModuleType, four_ranks: World) -> None:
    shape, model, batch = small(costs)
    objective: Any = replicate(model, batch_loss)
    reduced = []

    def count(bucket: Any) -> Any:
        reduced.append(bucket.buffer().numel() * 4)
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    objective.register_comm_hook(None, lambda state, bucket: count(bucket))
    objective(batch, 0.1)[0].backward()
    assert held(model) == shape.memory(0, RANKS)
    # A ring sends every number twice, but for the part that stays.
    assert 2 * sum(reduced) * (RANKS - 1) / RANKS == shape.sent(False, RANKS)


def test_shards_hold_their_part_and_send_what_the_page_says(
    costs: ModuleType, four_ranks: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, model, batch = small(costs)
    objective = shard(model, batch_loss, torch.device("cpu"), RANKS)
    sent = []

    def counted(name: str) -> None:
        do = getattr(dist, name)

        def call(*arguments: Any, **options: Any) -> Any:
            tensors = [value for value in (*arguments, *options.values()) if isinstance(value, torch.Tensor)]
            sent.append(max(tensor.numel() for tensor in tensors) * 4 * (RANKS - 1) / RANKS)
            return do(*arguments, **options)

        monkeypatch.setattr(dist, name, call)

    new = hasattr(dist, "all_gather_single")  # their names in newer versions of PyTorch
    counted("all_gather_single" if new else "all_gather_into_tensor")
    counted("reduce_scatter_single" if new else "reduce_scatter_tensor")
    objective(batch, 0.1)[0].backward()
    assert held(model) == pytest.approx(shape.memory(3, RANKS), rel=0.01)
    assert sum(sent) == pytest.approx(shape.sent(True, RANKS), rel=0.02)
