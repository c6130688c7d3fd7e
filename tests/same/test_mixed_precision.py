"""Every family trains in bfloat16: its gradients are nearly those of float32, with the same dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headwise as hw
from headwise.nn.kernels.dropout import seeded_dropout

VOCAB, ROWS, LENGTH = 50, 4, 24
SMALL: dict[str, Any] = {"model_dim": 32, "num_heads": 2, "layers": 2, "ff_dim": 48, "dropout": 0.1}
WEIGHTS: dict[str, Any] = {"attention_dropout": 0.1}
PAIR: dict[str, Any] = {"model_dim": 32, "dropout": 0.1}
STACKS: dict[str, Any] = {"num_heads": 2, "encoder_layers": 2, "decoder_layers": 2, "ff_dim": 48, **PAIR}


def ids(seed: int = 0) -> Tensor:
    return torch.randint(4, VOCAB, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))


def text() -> tuple[Tensor, ...]:
    return (ids(),)


def pair() -> tuple[Tensor, ...]:
    return ids(), ids(1), torch.full((ROWS,), LENGTH)


def padded() -> tuple[Tensor, ...]:
    return ids(), torch.tensor([LENGTH, 5, 1, 20])


def picture() -> tuple[Tensor, ...]:
    return (torch.randn(ROWS, 3, 16, 16),)


def sound() -> tuple[Tensor, ...]:
    return torch.randn(ROWS, 2 * LENGTH, 80), ids()


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "transformer": (lambda: hw.Transformer(source_vocab=VOCAB, **STACKS, **WEIGHTS), pair),
    "rnn": (lambda: hw.RecurrentSeq2Seq(source_vocab=VOCAB, **PAIR), pair),
    "lm": (lambda: hw.LanguageModel(vocab=VOCAB, **SMALL, **WEIGHTS), text),
    "lm of rare words": (lambda: hw.LanguageModel(vocab=VOCAB, cutoffs=[10, 25], **SMALL), text),
    "xl": (lambda: hw.TransformerXL(vocab=VOCAB, segment=LENGTH, memory=LENGTH, **SMALL, **WEIGHTS), text),
    "performer": (lambda: hw.Performer(vocab=VOCAB, features=16, **SMALL), text),
    "performer, classes": (lambda: hw.Performer(vocab=VOCAB, features=16, classes=5, **SMALL), padded),
    "t5": (lambda: hw.T5(vocab=VOCAB, **STACKS), pair),
    "bert": (lambda: hw.Bert(vocab=VOCAB, **SMALL, **WEIGHTS), padded),
    "longformer": (lambda: hw.Longformer(vocab=VOCAB, window=8, **SMALL, **WEIGHTS), padded),
    "bigbird": (lambda: hw.BigBird(vocab=VOCAB, block=2, random=1, classes=5, **SMALL), padded),
    "vit": (lambda: hw.ViT(image_size=16, patch_size=4, classes=5, **SMALL), picture),
    "whisper": (lambda: hw.Whisper(vocab=VOCAB, **STACKS), sound),
}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_bfloat16_are_nearly_those_of_float32(kind: str) -> None:
    torch.manual_seed(1)
    make, draw = KINDS[kind]
    model, inputs = make(), draw()

    def gradients(enabled: bool) -> Tensor:
        with seeded_dropout(3), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            states = model.states(*inputs).flatten(0, -2)
            targets = torch.arange(len(states)) % 5
            loss, _ = model.output.loss(states, targets, 0.0)
        assert loss.dtype == torch.float32
        found = torch.autograd.grad(loss, [one for one in model.parameters() if one.requires_grad], allow_unused=True)
        return torch.cat([one.flatten() for one in found if one is not None])

    narrow, wide = gradients(True), gradients(False)
    assert not torch.equal(narrow, wide)
    assert torch.cosine_similarity(narrow, wide, dim=0) > 0.99
