"""One small network of every family, with dropout, and inputs for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import headwise as hw

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


# What makes a network, and what makes its inputs.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
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
