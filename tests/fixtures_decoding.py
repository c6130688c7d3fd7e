"""Models with random weights whose outputs are of all kinds: some end, some run on, some go round in a loop."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from headwise.decoding.hypothesis import length_penalty
from headwise.decoding.torch_engine import TorchEngine
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.interface import Network
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import EOS


def random_model(seed: int, vocab: int = 60, sharpness: float = 2.0, **changes: object) -> Transformer:
    """`sharpness` spreads the logits, so that rounding does not decide between two tokens."""
    sizes: dict[str, object] = {
        "model_dim": 32, "num_heads": 4, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 64, "tie": "none",
        "target_vocab": vocab,
    }  # fmt: skip
    torch.manual_seed(seed)
    model = Transformer(source_vocab=vocab, **{**sizes, **changes}).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.output.weight.mul_(sharpness)
        model.output.weight[EOS].mul_(1.75)
    return model


def random_sources(count: int, seed: int, vocab: int = 60, longest: int = 20) -> list[list[int]]:
    chance = random.Random(seed)
    return [[chance.randrange(4, vocab) for _ in range(chance.randint(1, longest))] for _ in range(count)]


@dataclass
class WholePast:
    """A state that remembers tokens only."""

    source: Tensor
    lengths: Tensor | None
    beam: int
    tokens: Tensor

    @property
    def length(self) -> int:
        return self.tokens.size(1)

    def reorder(self, indices: Tensor) -> None:
        rows = indices[:: self.beam].div(self.tokens.size(0) // self.source.size(0), rounding_mode="floor")
        self.source, self.tokens = self.source[rows], self.tokens[indices]
        self.lengths = None if self.lengths is None else self.lengths[rows]


class Uncached:
    """The slow reference: every step computes the whole output so far, by the model's own forward pass."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.output = model, model.output

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> WholePast:
        assert source is not None
        ids, lengths = source
        return WholePast(ids, lengths, rows, ids.new_zeros(ids.size(0) * rows, 0))

    def advance(self, state: WholePast, tokens: Tensor) -> Tensor:
        state.tokens = torch.cat((state.tokens[: tokens.numel()], tokens[:, None]), dim=1)
        width = tokens.numel() // state.source.size(0)
        source = state.source.repeat_interleave(width, dim=0)
        lengths = None if state.lengths is None else state.lengths.repeat_interleave(width)
        return self.model.states(source, state.tokens, lengths)[:, -1]


def exhaustive(
    model: Network, source: list[int], vocab: int, limit: int, alpha: float
) -> list[tuple[float, tuple[int, ...]]]:
    """Every output of at most `limit` tokens, the end of sentence included, best first."""
    words = range(EOS + 1, vocab)
    outputs = [output for length in range(limit + 1) for output in product(words, repeat=length)]
    scores = TorchEngine(model).score([source] * len(outputs), outputs)
    ranked = []
    for tokens, log_probs in zip(outputs, scores, strict=True):
        said = log_probs if len(tokens) < limit else log_probs[:-1]  # no room for the end of sentence
        ranked.append((sum(said) / length_penalty(len(said), alpha), tokens))
    return sorted(ranked, reverse=True)
