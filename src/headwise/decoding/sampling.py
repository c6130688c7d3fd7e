"""Samples tokens at random, reproducibly.

Each row has a key, made of the seed, its source and the number of the sample; each step derives one random number from
the key and the step. Rows share nothing, so what a row draws does not depend on the rest of its batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from headwise.decoding.options import Sampling
from headwise.decoding.topk import log_normaliser
from headwise.errors import WorkFailed

_BLOCK = 128  # probabilities that `draw` sums at a time
_NEAR = 256  # most likely tokens that are tried first for `top_p`
# A temperature below this counts as 0: dividing logits by it would exceed the range of float32.
MIN_TEMPERATURE = 1e-6


def row_key(seed: int, tokens: Sequence[int], sample: int) -> int:
    """Hashes all three to 64 bits."""
    text = f"{seed}/{sample}/{','.join(map(str, tokens))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def uniform(keys: NDArray[np.uint64], step: int) -> Tensor:
    """Returns a number in [0, 1) for each key at this step, (rows,) in float64, by SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64(step + 1) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return torch.from_numpy((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)


@dataclass(frozen=True)
class Sampler:
    """Chooses one token per row as `Sampling` specifies; `keys` has one key per sentence of the batch."""

    settings: Sampling
    keys: NDArray[np.uint64]

    @property
    def needs_history(self) -> bool:
        return self.settings.repetition_penalty != 1.0

    def __call__(self, logits: Tensor, sentences: Sequence[int], step: int, history: Tensor | None) -> Tensor:
        """Maps logits (rows, V), -inf for forbidden tokens, to tokens (rows,)."""
        if history is not None and self.needs_history:
            logits = penalise_repetition(logits, history, self.settings.repetition_penalty)
        if self.settings.temperature < MIN_TEMPERATURE:
            return logits.argmax(dim=-1)
        if not logits.max().isfinite():
            raise WorkFailed("the model's probabilities are NaN: its weights are damaged, or its training diverged")
        numbers = uniform(self.keys[list(sentences)], step).to(logits.device)
        scaled = logits / self.settings.temperature
        if self.settings.top_p < 1.0 and self.settings.top_k == 0 and logits.size(1) > 4 * _NEAR:
            return _sample_top(scaled, numbers, self.settings)
        return _sample_all(scaled, numbers, self.settings)


def _sample_all(logits: Tensor, numbers: Tensor, settings: Sampling) -> Tensor:
    probabilities, tokens = filtered(logits, settings)
    place = draw(probabilities, numbers)
    return tokens.gather(1, place[:, None]).squeeze(1) if tokens is not None else place


def _sample_top(logits: Tensor, numbers: Tensor, settings: Sampling) -> Tensor:
    """Does the same for `top_p` without sorting all tokens, since the few most likely ones usually add up to it."""
    near, tokens = logits.topk(_NEAR, dim=-1)  # (rows, _NEAR), best first
    probabilities = (near - log_normaliser(logits)[:, None]).exp_()
    place = draw(_cut(probabilities, settings), numbers)
    chosen = tokens.gather(1, place[:, None]).squeeze(1)
    short = (probabilities.sum(dim=-1) < settings.top_p).nonzero().squeeze(1)
    if short.numel():
        chosen[short] = _sample_all(logits[short], numbers[short], settings)
    return chosen


def penalise_repetition(logits: Tensor, history: Tensor, penalty: float) -> Tensor:
    """Makes tokens that came before less likely (Keskar et al. 2019, section 4.1). history (rows, T)."""
    if history.size(1) == 0:
        return logits
    seen = logits.gather(1, history)
    return logits.scatter(1, history, torch.where(seen > 0, seen / penalty, seen * penalty))


def filtered(logits: Tensor, settings: Sampling) -> tuple[Tensor, Tensor | None]:
    """Returns the probabilities (rows, C) of the tokens that are left, and their ids; None means all, in order."""
    tokens = None
    if 0 < settings.top_k < logits.size(1):
        logits, tokens = logits.topk(settings.top_k, dim=-1)
    elif settings.top_p < 1.0:
        logits, tokens = logits.sort(dim=-1, descending=True, stable=True)
    return _cut(logits.softmax(dim=-1), settings), tokens


def _cut(probabilities: Tensor, settings: Sampling) -> Tensor:
    """Zeroes the probabilities that top_p and min_p exclude; for top_p they must be sorted, highest first."""
    if settings.top_p < 1.0:
        before = probabilities.cumsum(dim=-1) - probabilities  # total probability of the more likely tokens
        probabilities = probabilities.masked_fill(before >= settings.top_p, 0.0)
    if settings.min_p > 0.0:
        least = probabilities.amax(dim=-1, keepdim=True) * settings.min_p
        probabilities = probabilities.masked_fill(probabilities < least, 0.0)
    return probabilities


def draw(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """Finds where the cumulative sum of probabilities passes number · total: (rows, C), (rows,) -> (rows,).

    Finds the block first, then the index within it: a cumulative sum over all tokens would take longer than a step of a
    small model.
    """
    rows, classes = probabilities.shape
    padded = F.pad(probabilities, (0, -classes % _BLOCK)).view(rows, -1, _BLOCK)
    sums = padded.sum(dim=-1, dtype=torch.float64)
    wanted = numbers[:, None] * sums.sum(dim=-1, keepdim=True)  # (rows, 1)
    block, before = _passed(sums, wanted)
    inside = padded.gather(1, block[:, :, None].expand(-1, -1, _BLOCK)).squeeze(1).double()
    place, _ = _passed(inside, wanted - before)
    return (block * _BLOCK + place).squeeze(1)


def _passed(parts: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the part where the cumulative sum passes `wanted`, never an empty one, and the sum before it: (rows, 1)."""
    running = parts.cumsum(dim=-1)
    # Rounding may put `wanted` at the very end; the answer is then the part that reaches the end.
    last = torch.searchsorted(running, running[:, -1:].contiguous())
    place = torch.searchsorted(running, wanted, right=True).minimum(last)
    return place, running.gather(1, place) - parts.gather(1, place)
