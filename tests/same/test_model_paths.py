"""Two ways to compute the same thing agree: cached and whole, alone and in a batch, padded or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import headwise as hw
from headwise.models.interface import Stepper

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def make(norm: str = "post", positions: str = "sinusoidal") -> hw.Transformer:
    torch.manual_seed(0)
    return hw.Transformer(
        source_vocab=40,
        model_dim=32,
        num_heads=4,
        encoder_layers=2,
        decoder_layers=3,
        ff_dim=48,
        norm=norm,
        positions=positions,
    ).eval()


def draw(rows: int = 5, source: int = 9, target: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([source, 1, 4, 7, 2])[:rows]
    return (
        torch.randint(0, 40, (rows, source), generator=generator),
        torch.randint(0, 40, (rows, target), generator=generator),
        lengths,
    )


def step(model: Stepper, state: Any, tokens: Tensor) -> Tensor:
    """Logits of the token after these."""
    return model.output.logits(model.advance(state, tokens))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@torch.no_grad()
def test_token_by_token_with_the_cache_equals_one_masked_pass(norm: str, positions: str) -> None:
    model = make(norm, positions)
    source, target, lengths = draw()
    whole = model(source, target, lengths)
    state = model.start((source, lengths))
    steps = torch.stack([step(model, state, target[:, t]) for t in range(target.size(1))], dim=1)
    torch.testing.assert_close(steps, whole, **CLOSE)


@torch.no_grad()
def test_cache_follows_arbitrary_reorders_of_rows() -> None:
    model = make()
    source, target, lengths = draw(target=12)
    state = model.start((source, lengths))
    generator = torch.Generator().manual_seed(2)
    rows, prefix = torch.arange(5), torch.empty(5, 0, dtype=torch.long)
    for t in range(12):
        if t % 3 == 2:
            pick = torch.randint(
                0, len(rows), (int(torch.randint(1, 8, (), generator=generator)),), generator=generator
            )
            state.reorder(pick)
            rows, prefix = rows[pick], prefix[pick]
        tokens = target[rows, t]
        prefix = torch.cat((prefix, tokens[:, None]), dim=1)
        logits = step(model, state, tokens)
        expected = model(source[rows], prefix, lengths[rows])[:, -1]
        torch.testing.assert_close(logits, expected, **CLOSE)


@torch.no_grad()
def test_hypotheses_that_share_a_sentence_equal_hypotheses_with_their_own() -> None:
    model = make()
    source, _, lengths = draw()
    beam, generator = 3, torch.Generator().manual_seed(3)
    shared = model.start((source, lengths), beam)
    rows = torch.arange(5).repeat_interleave(beam)
    own = model.start((source[rows], lengths[rows]))
    tokens = torch.randint(0, 40, (15,), generator=generator)
    for t in range(8):
        torch.testing.assert_close(step(model, shared, tokens), step(model, own, tokens), **CLOSE)
        sentences = torch.arange(tokens.numel() // beam)
        if t == 4:  # two sentences are finished and leave
            sentences = torch.tensor([0, 2, 3])
        order = (
            sentences[:, None] * beam + torch.randint(0, beam, (len(sentences), beam), generator=generator)
        ).flatten()
        shared.reorder(order)
        own.reorder(order)
        tokens = torch.randint(0, 40, (order.numel(),), generator=generator)


@torch.no_grad()
def test_a_sentence_does_not_depend_on_its_batch_or_on_padding() -> None:
    model = make()
    source, target, lengths = draw(target=11)
    batch = model(source, target, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(batch[row : row + 1], alone, **CLOSE)
    padded = torch.cat((source, torch.full((5, 20), 7)), dim=1)
    torch.testing.assert_close(model(padded, target, lengths), batch, **CLOSE)
    longer_target = torch.cat((target, torch.full((5, 9), 3)), dim=1)
    torch.testing.assert_close(model(source, longer_target, lengths)[:, :11], batch, **CLOSE)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@torch.no_grad()
def test_language_model_with_cache_equals_one_pass_and_looks_back_only(positions: str) -> None:
    torch.manual_seed(0)
    model = hw.LanguageModel(vocab=30, model_dim=32, num_heads=4, layers=2, ff_dim=48, positions=positions).eval()
    ids = torch.randint(0, 30, (3, 14))
    whole = model(ids)
    state = model.start()
    torch.testing.assert_close(step(model, state, ids[:, :6]), whole[:, 5], **CLOSE)
    torch.testing.assert_close(step(model, state, ids[:, 6:9]), whole[:, 8], **CLOSE)
    for t in range(9, 14):
        torch.testing.assert_close(step(model, state, ids[:, t]), whole[:, t], **CLOSE)
    changed = ids.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 30
    other = model(changed)
    assert torch.equal(other[:, :7], whole[:, :7])
    assert not torch.allclose(other[:, 7:], whole[:, 7:])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunked_loss_equals_the_loss_of_whole_logits(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwise import losses
    from headwise.nn.kernels import projected_loss

    monkeypatch.setattr(projected_loss, "_CHUNK_NUMBERS", 150)  # three rows of 50 classes at a time
    torch.manual_seed(0)
    states, weight = torch.randn(4, 7, 16, dtype=torch.float64), torch.randn(50, 16, dtype=torch.float64)
    targets = torch.randint(0, 50, (4, 7))
    targets[1, 3:] = 0
    first = [t.clone().requires_grad_() for t in (states, weight)]
    second = [t.clone().requires_grad_() for t in (states, weight)]
    whole, count = hw.label_smoothed_cross_entropy(first[0] @ first[1].T, targets, smoothing)
    chunked, same_count = losses.projected_cross_entropy(*second, targets, smoothing)
    assert count == same_count == (targets != 0).sum()
    torch.testing.assert_close(chunked, whole)
    (whole / 3).backward()
    (chunked / 3).backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
