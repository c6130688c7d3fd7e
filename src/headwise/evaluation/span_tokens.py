"""How well an encoder and decoder fill spans: accuracy and perplexity of what belongs into the gaps of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from headwise.data.pairs import pair_batch
from headwise.data.spans import LONGEST, Corruption
from headwise.errors import DataError
from headwise.evaluation.contamination import Overlap
from headwise.evaluation.masked_tokens import Sums
from headwise.losses import token_loss
from headwise.models.interface import Network
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import Tokenizer

_TEXTS = 32  # of a batch
OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class SpanScores:
    """The result of `headwise evaluate` on a model that fills spans; sentinels and ends count like other tokens."""

    spans: Sums
    signature: str
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        return [
            f"span accuracy     {self.spans.accuracy:10.4f}  {self.signature}",
            f"span perplexity   {self.spans.perplexity:10.4f}",
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "span_accuracy": self.spans.accuracy, "span_perplexity": self.spans.perplexity,
            "signature": self.signature, "spans": asdict(self.spans),
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
        }  # fmt: skip


@torch.inference_mode()
def span_scores(
    network: Network, tokenizer: Tokenizer, lines: Sequence[str], corruption: Corruption,
    on_progress: OnProgress | None = None,
) -> SpanScores:  # fmt: skip
    """Corrupts a text line by line, always in the same way; a line that is too long is cut into pieces."""
    cut = [ids[at : at + LONGEST] for ids in tokenizer.encode_batch(lines) for at in range(0, len(ids), LONGEST)]
    pieces = [piece for piece in cut if len(piece) > 1]
    if not pieces:
        raise DataError("there is nothing to score: a gap needs lines of two tokens or more")
    places = np.cumsum([0, *map(len, pieces[:-1])])
    device = next(network.parameters()).device
    tokens, right, nats = 0, 0, 0.0
    for start in range(0, len(pieces), _TEXTS):
        texts = Ragged.of(pieces[start : start + _TEXTS])
        batch = pair_batch(*corruption.corrupt(texts, places[start : start + _TEXTS], 0)).to(device)
        sums = token_loss(network, batch)
        wanted = batch.targets[batch.targets != batch.ignore]
        assert sums.answers is not None
        tokens, nats = tokens + sums.count, nats + sums.log_loss.item()
        right += int((sums.answers == wanted).sum())
        if on_progress is not None:
            on_progress(int(texts.lengths.sum()))
    signature = (
        f"tok:{tokenizer.kind}-{tokenizer.size}|targets:{tokens}|share:{corruption.share:g}|mean:{corruption.mean:g}|"
        f"context:{LONGEST}|log:e"
    )
    return SpanScores(Sums(tokens, right, nats), signature)
