"""Batches of source sentences of similar length: little padding, and sentences that end at about the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.data.batch import pad
from headwise.decoding.loops import has_loop
from headwise.decoding.options import NOTHING_MORE, Request, SearchOptions
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import EOS

_ENOUGH = 4  # groups per worker: then it does not matter that one of them finishes last
_LEAST_SHARE = 4  # sentences: a step on fewer takes hardly less time


@dataclass(frozen=True)
class Sources:
    """Some sentences, ready for the encoder, and what is known of each."""

    indices: tuple[int, ...]  # their places in the input
    sentences: tuple[tuple[int, ...], ...]  # tokens without end of sentence
    requests: tuple[Request, ...]
    limits: Tensor  # (B,) most tokens of the output, end of sentence included
    ids: Tensor  # (B, S) with end of sentence, padded
    lengths: Tensor  # (B,)
    guarded: Tensor  # (B,) whether an output that goes round in a loop is stopped

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        """What a stepper starts from."""
        return self.ids, self.lengths

    @classmethod
    def of(
        cls,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        requests: Sequence[Request] | None,
        options: SearchOptions,
        longest: int | None = None,
        device: torch.device | str = "cpu",
    ) -> Sources:
        """`longest` is the most tokens that the model has positions for."""
        sentences = tuple(tuple(sources[index]) for index in indices)
        chosen = tuple(NOTHING_MORE if requests is None else requests[index] for index in indices)
        limits = [output_limit(s, r, options, longest) for s, r in zip(sentences, chosen, strict=True)]
        lengths = torch.tensor([len(sentence) + 1 for sentence in sentences])
        ids = pad(Ragged.of(sentences), end=EOS)
        # What must be said may be a loop itself, and cutting one off could cut off what must be said.
        guarded = [not r.phrases and not has_loop(s) for s, r in zip(sentences, chosen, strict=True)]
        return cls(
            tuple(indices),
            sentences,
            chosen,
            torch.tensor(limits, device=device),
            ids.to(device),
            lengths.to(device),
            torch.tensor(guarded, device=device),
        )


def output_limit(source: Sequence[int], request: Request, options: SearchOptions, longest: int | None = None) -> int:
    """Source length plus `max_extra`; room for what must be in the output comes on top."""
    required = sum(phrase.cost for phrase in request.phrases)
    limit = max(len(source), len(request.prefix)) + options.max_extra + required
    return limit if longest is None else min(limit, longest)


def batches(lengths: Sequence[int], options: SearchOptions) -> Iterator[list[int]]:
    """Places of sentences, longest first, in groups within both bounds of the options."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        width = lengths[group[0]] + 1 if group else 0
        if group and (len(group) == options.batch_sentences or width * (len(group) + 1) > options.batch_tokens):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def shares(groups: list[list[int]], workers: int) -> list[list[int]]:
    """The same groups where there are enough of them to keep all workers busy, else each cut into like shares."""
    if workers == 1 or len(groups) >= _ENOUGH * workers:
        return groups
    return [
        group[first::count]
        for group in groups
        for count in [min(workers, max(1, len(group) // _LEAST_SHARE))]
        for first in range(count)
    ]
