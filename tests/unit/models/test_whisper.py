"""Whisper as a network: shapes, gradients, decoding from a cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headwise.decoding.fast_step import FastStepper, fast_stepper
from headwise.errors import ShapeError
from headwise.models.registry import build_model
from headwise.models.whisper import Whisper
from headwise.nn import capture_attention

SMALL: dict[str, Any] = {
    "vocab": 30, "mels": 10, "model_dim": 16, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2, "ff_dim": 24,
    "source_positions": 40, "max_length": 50,
}  # fmt: skip


def small(**changes: Any) -> Whisper:
    torch.manual_seed(0)
    return Whisper(**{**SMALL, **changes}).eval()


def test_logits_are_one_row_per_token_and_the_architecture_builds_the_model_again() -> None:
    model = small()
    assert model(torch.randn(3, 60, 10), torch.randint(4, 30, (3, 7))).shape == (3, 7, 30)
    assert build_model("whisper", model.architecture).architecture == model.architecture
    assert model.output is model.target_embedding


def test_a_token_sees_no_later_token_but_all_of_the_sound() -> None:
    model, sound, ids = small(), torch.randn(1, 40, 10), torch.randint(4, 30, (1, 6))
    changed = ids.clone()
    changed[0, 4] += 1
    assert torch.equal(model(sound, ids)[0, :4], model(sound, changed)[0, :4])
    louder = sound.clone()
    louder[0, 39] += 1
    assert not torch.allclose(model(sound, ids)[0, 0], model(louder, ids)[0, 0])


@torch.inference_mode()
def test_cached_steps_give_what_the_whole_pass_gives_while_hypotheses_move() -> None:
    model = small()
    fast = fast_stepper(model)
    assert isinstance(fast, FastStepper)
    sounds, prompt = torch.randn(2, 30, 10), torch.tensor([[2, 5, 6], [2, 7, 6]])
    states = [stepper.start((sounds,), 2) for stepper in (model, fast)]
    written, source = prompt, torch.tensor([0, 1])
    tokens = prompt
    for step in range(40):
        expected = model(sounds[source], written)[:, -1]
        for stepper, state in zip((model, fast), states, strict=True):
            found = stepper.output.logits(stepper.advance(state, tokens))
            torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
        if step in (0, 9):
            moves = torch.tensor([0, 0, 1, 1] if step == 0 else [1, 0, 2, 2])
            for state in states:
                state.reorder(moves)
            written, source = written[moves], source[moves]
        tokens = torch.randint(4, 30, (4,))
        written = torch.cat((written, tokens[:, None]), dim=1)


def test_every_weight_but_the_bias_of_keys_gets_a_gradient() -> None:
    model = small().train()
    model(torch.randn(2, 30, 10), torch.randint(4, 30, (2, 5))).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
    bias = model.encoder.layers[0].self_attention.query_key_value.bias  # type: ignore[union-attr]
    assert not bool(bias.grad[16:32].any())


def test_attention_can_be_seen() -> None:
    model = small()
    with capture_attention(model) as seen:
        model(torch.randn(1, 30, 10), torch.randint(4, 30, (1, 5)))
    names = model.attention_names()
    assert {name for kind in names.values() for name in kind} == set(seen)
    assert seen[names["cross"][0]][0].shape == (1, 2, 5, 15)
    assert model.entrance() is model.source_positions


def test_what_does_not_fit_is_refused() -> None:
    model = small()
    for features, problem in (
        (torch.randn(1, 31, 10), "even number of frames"),
        (torch.randn(1, 30, 9), r"\(batch, frames, 10\)"),
        (torch.randn(1, 100, 10), "longer than the model's 40"),
        (torch.randn(2, 30, 10), "2 sounds but 1 texts"),
    ):
        with pytest.raises(ShapeError, match=problem):
            model(features, torch.tensor([[2, 4]]))
    with pytest.raises(ShapeError, match="needs a source"):
        model.start(None)
