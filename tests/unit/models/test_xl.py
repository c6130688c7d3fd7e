from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import word_tokenizers
from torch.testing import assert_close

import headwise as hw
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model, save_model
from headwise.errors import ShapeError
from headwise.models.xl import TransformerXL

ARRANGEMENTS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "share_biases": False, "tie": "none", "clamp": 5},
    {"head_dim": 5, "cutoffs": [10, 25], "activation": "gelu"},
]


def small(**changes: Any) -> TransformerXL:
    torch.manual_seed(4)
    sizes = {"vocab": 50, "model_dim": 16, "num_heads": 2, "layers": 3, "ff_dim": 24, "segment": 6, "memory": 40}
    model = TransformerXL(**{**sizes, **changes}).eval()
    for name, parameter in model.named_parameters():  # biases that matter
        if name.endswith(("content_bias", "position_bias")):
            torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@pytest.mark.parametrize("segment", [1, 6, 11])
@torch.no_grad()
def test_a_text_in_segments_with_memory_is_the_text_in_one_pass(arrangement: dict[str, Any], segment: int) -> None:
    model, ids = small(**arrangement), torch.randint(0, 50, (3, 33))
    expected, memory, found = model(ids), (), []
    for part in ids.split(segment, dim=1):
        states, memory = model.carried(part, *memory)
        found.append(model.output.logits(states))
    assert_close(torch.cat(found, dim=1), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("memory", [0, 1, 4, 9])
@torch.no_grad()
def test_a_memory_that_is_shorter_than_the_text_reaches_as_far_as_it_says(memory: int) -> None:
    model, ids, found, carry = small(memory=memory), torch.randint(0, 50, (2, 30)), [], ()
    for part in ids.split(6, dim=1):
        states, carry = model.carried(part, *carry)
        found.append(states)
        assert all(kept.shape[1] <= memory for kept in carry)
    place = torch.arange(30)
    reached = place[None, :] >= (place // 6 * 6 - memory)[:, None]
    whole = model.stack(model.embedding(ids), reached, causal=True, positions=model.distances)
    assert_close(torch.cat(found, dim=1), whole, atol=1e-5, rtol=1e-5)
    assert_close(model.states(ids), whole, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_states_of_a_long_text_are_those_after_each_of_its_beginnings_as_a_prompt() -> None:
    model, ids = small(memory=7), torch.randint(0, 50, (2, 30))
    states = model.states(ids)
    for length in range(1, 31):
        assert_close(model.advance(model.start(), ids[:, :length]), states[:, length - 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole_text(arrangement: dict[str, Any]) -> None:
    model, ids = small(**arrangement), torch.randint(0, 50, (3, 38))
    expected, state = model(ids), model.start(None, 1)
    logits = model.output.logits(model.advance(state, ids[:, :17]))  # several segments
    assert_close(logits, expected[:, 16], atol=1e-5, rtol=1e-5)
    rows = torch.tensor([2, 0])
    state.reorder(rows)
    for place in range(17, 38):
        logits = model.output.logits(model.advance(state, ids[rows, place]))
        assert_close(logits, expected[rows, place], atol=1e-5, rtol=1e-5)
    assert state.length == 38


@torch.inference_mode()
def test_steps_beyond_the_memory_forget() -> None:
    model, ids = small(memory=7), torch.randint(0, 50, (2, 30))
    place = torch.arange(30)
    near = place[None, :] >= place[:, None] - 7
    expected = model.stack(model.embedding(ids), near, causal=True, positions=model.distances)
    state = model.start(None, 1)
    for number in range(30):
        assert_close(model.advance(state, ids[:, number]), expected[:, number], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_text_says_the_same_wherever_it_stands() -> None:
    """Only distances count: what comes before the reach of the memory may be anything."""
    model, ids = small(memory=0), torch.randint(0, 50, (1, 6))
    _, carry = model.carried(torch.randint(0, 50, (1, 6)))
    assert torch.equal(model.carried(ids, *carry)[0], model.states(ids))


def test_what_is_carried_has_no_gradient_but_teaches_the_projections() -> None:
    model, ids = small(dropout=0.0).train(), torch.randint(0, 50, (2, 12))
    _, carry = model.carried(ids[:, :6])
    assert [tuple(kept.shape) for kept in carry] == [(2, 6, 16)] * 3
    assert not any(kept.requires_grad for kept in carry)
    weight = model.stack.layers[0].self_attention.distance_key.weight
    remembered, forgotten = (
        torch.autograd.grad(model.states(ids[:, 6:], *past).sum(), weight)[0] for past in (carry, ())
    )
    assert not torch.allclose(remembered, forgotten)


def test_it_goes_out_and_in(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    model = small(vocab=tokenizers.source.size)
    save_model(tmp_path / "xl", model, tokenizers, family="xl")
    loaded = load_model(open_bundle(tmp_path / "xl"))
    assert isinstance(loaded, hw.TransformerXL)
    assert (loaded.segment, loaded.memory, loaded.max_length) == (6, 40, None)
    ids = torch.randint(4, 20, (1, 9))
    assert torch.equal(loaded(ids), model(ids))


def test_wrong_sizes_are_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="num_heads"):
        small(num_heads=3)
    with pytest.raises(ShapeError, match="one tensor per layer"):
        small()(torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2, 16))
