"""How well an encoder fills gaps: accuracy and perplexity of hidden tokens, and the pseudo-perplexity of a text.

The pseudo-perplexity (Salazar et al. 2020, arXiv 1910.14659) hides each token once, alone, and is exp of the mean of
-log P(token | all others). With a stride of k, every k-th token is hidden at once: k passes instead of one per token,
and a somewhat higher figure, because less is seen; the signature says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from headwise.data.batch import pad
from headwise.data.masking import Masking
from headwise.evaluation.contamination import Overlap
from headwise.models.interface import Network
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS, Tokenizer

_TOKENS = 8192  # of a batch, with padding
OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class Sums:
    """Over hidden tokens: how many, how many were the likeliest, and the sum of -log P."""

    tokens: int
    right: int
    nats: float

    @property
    def accuracy(self) -> float:
        return self.right / max(self.tokens, 1)

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.nats / max(self.tokens, 1), 700.0))


@dataclass(frozen=True)
class MaskedScores:
    """The result of `headwise evaluate` on a model that fills gaps."""

    masked: Sums
    pseudo: Sums
    words: int
    signature: str
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        return [
            f"masked accuracy     {self.masked.accuracy:10.4f}  {self.signature}",
            f"masked perplexity   {self.masked.perplexity:10.4f}",
            f"pseudo-perplexity   {self.pseudo.perplexity:10.4f}",
            f"per word            {math.exp(min(self.pseudo.nats / max(self.words, 1), 700.0)):10.4f}",
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "masked_accuracy": self.masked.accuracy, "masked_perplexity": self.masked.perplexity,
            "pseudo_perplexity": self.pseudo.perplexity, "signature": self.signature, "words": self.words,
            "masked": asdict(self.masked), "pseudo": asdict(self.pseudo),
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
        }  # fmt: skip


def masked_scores(
    network: Network, tokenizer: Tokenizer, lines: Sequence[str], masking: Masking, *,
    stride: int = 0, on_progress: OnProgress | None = None,
) -> MaskedScores:  # fmt: skip
    """Scores a text line by line; a line that is too long is cut into pieces. `stride` 0 hides one token at a time."""
    room = (network.max_length or _TOKENS) - 2
    pieces = [ids[start : start + room] for ids in tokenizer.encode_batch(lines) for start in range(0, len(ids), room)]
    masked = _score(network, _hidden(pieces, masking), None)
    pseudo = _score(network, _one_by_one(pieces, masking.mask, stride), on_progress)
    tokens = sum(map(len, pieces))
    words = sum(len(line.split()) for line in lines)
    signature = (
        f"tok:{tokenizer.kind}-{tokenizer.size}|tokens:{tokens}|words:{words}|share:{masking.share:g}|"
        f"hidden:{f'1 in {stride}' if stride else 'one at a time'}|context:{room + 2}|log:e"
    )
    return MaskedScores(masked, pseudo, words, signature)


# An input with hidden tokens, where they are in it, and what they were.
_Question = tuple[list[int], list[int], list[int]]


def _hidden(pieces: Sequence[list[int]], masking: Masking) -> Iterator[_Question]:
    text = Ragged.of(pieces)
    ends = np.cumsum(text.lengths)
    seen, asked = masking.hide(text, ends - text.lengths, 0)
    for ids, begin, end in zip(seen.sentences(), ends - text.lengths, ends, strict=True):
        places = np.flatnonzero(asked[begin:end]).tolist()
        if places:
            yield [BOS, *ids, EOS], [1 + place for place in places], text.tokens[begin:end][places].tolist()


def _one_by_one(pieces: Sequence[list[int]], mask: int, stride: int) -> Iterator[_Question]:
    for ids in pieces:
        step = stride or len(ids)
        for first in range(min(step, len(ids))):
            places = range(first, len(ids), step)
            seen = [BOS, *ids, EOS]
            for place in places:
                seen[1 + place] = mask
            yield seen, [1 + place for place in places], [ids[place] for place in places]


def _score(network: Network, questions: Iterator[_Question], on_progress: OnProgress | None) -> Sums:
    tokens, right, nats = 0, 0, 0.0
    for batch in _batches(questions):
        count, good, loss = _answer(network, batch)
        tokens, right, nats = tokens + count, right + good, nats + loss
        if on_progress is not None:
            on_progress(count)
    return Sums(tokens, right, nats)


def _batches(questions: Iterator[_Question]) -> Iterator[list[_Question]]:
    """Questions about one piece are equally long, so that batches in their order have little padding."""
    batch: list[_Question] = []
    longest = 0
    for question in questions:
        longest = max(longest, len(question[0]))
        if batch and longest * (len(batch) + 1) > _TOKENS:
            yield batch
            batch, longest = [], len(question[0])
        batch.append(question)
    if batch:
        yield batch


@torch.inference_mode()
def _answer(network: Network, batch: Sequence[_Question]) -> tuple[int, int, float]:
    device = next(network.parameters()).device
    ids = pad(Ragged.of([question[0] for question in batch])).to(device)
    lengths = torch.tensor([len(question[0]) for question in batch], device=device)
    rows = [row for row, question in enumerate(batch) for _ in question[1]]
    columns = [place for question in batch for place in question[1]]
    wanted = torch.tensor([token for question in batch for token in question[2]], device=device)
    states = network.states(ids, lengths)[rows, columns]  # (hidden, D)
    log_probs = network.output.logits(states).log_softmax(dim=-1)
    nats = -log_probs.gather(1, wanted[:, None]).double().sum().item()
    return len(wanted), int((log_probs.argmax(dim=1) == wanted).sum()), nats
