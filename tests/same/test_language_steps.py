"""Writing on with a cache is the same as reading the whole text again for every token."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headwise.decoding import generator
from headwise.decoding.fast_step import FastStepper, fast_stepper
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel
from headwise.workflows.load import load

ARRANGEMENTS = [
    {},
    {"norm": "pre", "positions": "learned", "activation": "gelu-tanh", "scale_embeddings": False},
    {"norm": "pre", "positions": "rotary", "tie": "none"},
    {"norm": "pre", "positions": "none", "activation": "silu"},
    {"norm": "pre", "cutoffs": [10, 25]},
]


def small(**changes: object) -> LanguageModel:
    torch.manual_seed(4)
    sizes: dict[str, object] = {
        "vocab": 50, "model_dim": 32, "num_heads": 4, "layers": 2, "ff_dim": 48, "max_length": 40,
    }  # fmt: skip
    return LanguageModel(**{**sizes, **changes}).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("fast", [True, False], ids=["fast step", "the network's own"])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole_text(arrangement: dict[str, object], fast: bool) -> None:
    model = small(**arrangement)
    ids = torch.randint(0, 50, (3, 38))  # more than the cache holds at first
    expected = model(ids)
    stepper = fast_stepper(model) if fast else model
    assert isinstance(stepper, FastStepper) == fast
    state = stepper.start(None, 1)
    logits = stepper.output.logits(stepper.advance(state, ids[:, :6]))
    torch.testing.assert_close(logits, expected[:, 5], atol=1e-5, rtol=1e-5)
    logits = stepper.output.logits(stepper.advance(state, ids[:, 6:9]))  # several tokens later on
    torch.testing.assert_close(logits, expected[:, 8], atol=1e-5, rtol=1e-5)
    for place in range(9, 38):
        logits = stepper.output.logits(stepper.advance(state, ids[:, place]))
        torch.testing.assert_close(logits, expected[:, place], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_a_prompt_read_once_serves_all_rows_and_rows_can_be_left_out() -> None:
    model = small(norm="pre")
    prompt, later = torch.randint(0, 50, (1, 7)), torch.randint(0, 50, (4, 3))
    expected = model(torch.cat((prompt.expand(4, -1), later), dim=1))
    fast = fast_stepper(model)
    state = fast.start(None, 1)
    logits = fast.output.logits(fast.advance(state, prompt))
    torch.testing.assert_close(logits.expand(4, -1), expected[:, 6], atol=1e-5, rtol=1e-5)
    state.reorder(torch.zeros(4, dtype=torch.long))
    fast.advance(state, later[:, 0])
    kept = torch.tensor([3, 1])
    state.reorder(kept)
    fast.advance(state, later[kept, 1])
    logits = fast.output.logits(fast.advance(state, later[kept, 2]))
    torch.testing.assert_close(logits, expected[kept, 9], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@torch.inference_mode()
def test_no_token_sees_a_later_one(arrangement: dict[str, object]) -> None:
    model = small(**arrangement)
    ids = torch.randint(0, 50, (2, 15))
    expected = model(ids)
    for place in (1, 7, 14):
        changed = ids.clone()
        changed[:, place] = (changed[:, place] + 1) % 50
        found = model(changed)
        assert torch.equal(found[:, :place], expected[:, :place])
        assert not torch.allclose(found[:, place], expected[:, place])


def test_more_memory_than_there_may_be_is_refused_before_it_is_taken(
    language_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "_MOST_BYTES", 100_000)
    with pytest.raises(UsageError, match="reduce samples or max_tokens"):
        load(language_model).generate("the", samples=100, max_tokens=40)  # type: ignore[union-attr]
