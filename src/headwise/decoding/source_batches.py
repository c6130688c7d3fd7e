"""Batches source sentences of similar length, which need little padding and finish at about the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from headwise.data.batch import pad
from headwise.decoding.loops import has_loop
from headwise.decoding.options import NO_REQUEST, Request, SearchOptions
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS

_ENOUGH = 4  # batches per worker: enough to keep all workers busy almost until the end
_LEAST_SHARE = 4  # sentences: a step with fewer is hardly faster


# Sets what may not come next to -inf, in place: (logits (rows, V), step, tokens so far (rows, step)).
Rule = Callable[[Tensor, int, Tensor], None]


class Searched(Protocol):
    """What a search asks of a batch of sources, whether they are sentences or sounds."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The arguments of `Stepper.start`."""
        ...

    @property
    def prompt(self) -> Tensor:
        """What is read before the first token is written: (B,), or (B, T) of several tokens."""
        ...

    @property
    def requests(self) -> tuple[Request, ...]: ...

    @property
    def limits(self) -> Tensor: ...

    @property
    def guarded(self) -> Tensor: ...

    @property
    def rules(self) -> tuple[Rule, ...]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Sources:
    """A batch of sentences, ready for the encoder, with the options of each."""

    indices: tuple[int, ...]  # their indices in the input
    sentences: tuple[tuple[int, ...], ...]  # tokens without end of sentence
    requests: tuple[Request, ...]
    limits: Tensor  # (B,) maximum output length in tokens, including the end of sentence
    ids: Tensor  # (B, S) with end of sentence, padded
    lengths: Tensor  # (B,)
    guarded: Tensor  # (B,) whether an output that is caught in a loop is stopped

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        return self.ids, self.lengths

    @property
    def prompt(self) -> Tensor:
        return torch.full((len(self),), BOS, device=self.ids.device)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return ()

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
        """Builds the batch of the sentences at `indices`; `longest` is the model's number of positions."""
        sentences = tuple(tuple(sources[index]) for index in indices)
        chosen = tuple(NO_REQUEST if requests is None else requests[index] for index in indices)
        limits = [output_limit(s, r, options, longest) for s, r in zip(sentences, chosen, strict=True)]
        lengths = torch.tensor([len(sentence) + 1 for sentence in sentences])
        ids = pad(Ragged.of(sentences), end=EOS)
        # A required phrase may itself be a loop, and cutting a loop off could cut off a required phrase.
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
    """Returns the maximum output length: source length plus `max_extra`, plus room for required phrases."""
    required = sum(phrase.cost for phrase in request.phrases)
    limit = max(len(source), len(request.prefix)) + options.max_extra + required
    return limit if longest is None else min(limit, longest)


def batches(lengths: Sequence[int], options: SearchOptions) -> Iterator[list[int]]:
    """Yields batches of indices of sentences, longest first, within both limits of the options."""
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
    """Returns the batches as they are if they keep all workers busy, or else splits each into equal shares."""
    if workers == 1 or len(groups) >= _ENOUGH * workers:
        return groups
    return [
        group[first::count]
        for group in groups
        for count in [min(workers, max(1, len(group) // _LEAST_SHARE))]
        for first in range(count)
    ]
