"""Writing on with a cache is the same as reading the whole text again for every token."""

from __future__ import annotations

import pytest
import torch

from headwise.decoding import language_step
from headwise.decoding.language_step import FastLanguageModel
from headwise.errors import UsageError
from headwise.models.lm import LanguageModel

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


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@torch.inference_mode()
def test_fast_steps_give_the_logits_of_the_whole_text(arrangement: dict[str, object]) -> None:
    model = small(**arrangement)
    ids = torch.randint(0, 50, (3, 20))
    expected = model(ids)
    fast = FastLanguageModel(model)
    past, logits = fast.read(ids[:, :6], 3, 20)
    torch.testing.assert_close(logits, expected[:, 5], atol=1e-5, rtol=1e-5)
    for place in range(6, 20):
        logits = fast.step(past, ids[:, place])
        torch.testing.assert_close(logits, expected[:, place], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_a_prompt_read_once_serves_all_rows_and_rows_can_be_left_out() -> None:
    model = small(norm="pre")
    prompt, later = torch.randint(0, 50, (1, 7)), torch.randint(0, 50, (4, 3))
    expected = model(torch.cat((prompt.expand(4, -1), later), dim=1))
    fast = FastLanguageModel(model)
    past, logits = fast.read(prompt, 4, 12)
    torch.testing.assert_close(logits, expected[:, 6], atol=1e-5, rtol=1e-5)
    fast.step(past, later[:, 0])
    kept = torch.tensor([3, 1])
    past.select(kept)
    fast.step(past, later[kept, 1])
    torch.testing.assert_close(fast.step(past, later[kept, 2]), expected[kept, 9], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@torch.inference_mode()
def test_the_models_own_steps_give_the_same_and_no_token_sees_a_later_one(arrangement: dict[str, object]) -> None:
    model = small(**arrangement)
    ids = torch.randint(0, 50, (2, 15))
    expected = model(ids)
    state = model.start()
    torch.testing.assert_close(model.step(state, ids[:, :4]), expected[:, 3], atol=1e-5, rtol=1e-5)
    for place in range(4, 15):
        torch.testing.assert_close(model.step(state, ids[:, place]), expected[:, place], atol=1e-5, rtol=1e-5)
    for place in (1, 7, 14):
        changed = ids.clone()
        changed[:, place] = (changed[:, place] + 1) % 50
        found = model(changed)
        assert torch.equal(found[:, :place], expected[:, :place])
        assert not torch.allclose(found[:, place], expected[:, place])


def test_more_memory_than_there_may_be_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_step, "_MOST_BYTES", 100_000)
    with pytest.raises(UsageError, match="ask for fewer samples"):
        FastLanguageModel(small()).check_room(100, 40)
