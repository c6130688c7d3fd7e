"""Selects the most likely tokens from logits, with their log-probabilities."""

from __future__ import annotations

from torch import Tensor


def log_normaliser(logits: Tensor) -> Tensor:
    """Computes log Σ exp(logits), (rows, V) -> (rows,): a token's log-probability is its logit minus this."""
    highest = logits.amax(dim=-1, keepdim=True)
    return (logits - highest).exp_().sum(dim=-1).log_().add_(highest.squeeze(-1))


def top_pairs(log_probs: Tensor, so_far: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Finds the `count` best continuations per sentence: (B · width, V), (B, width) -> four of (B, count), best first.

    These are the sum of log-probabilities including the new token, the row of the sentence that is continued, the
    token, and its log-probability.
    """
    (sentences, width), vocab = so_far.shape, log_probs.size(1)
    sums = (log_probs.view(sentences, width, vocab) + so_far[:, :, None]).flatten(1)
    highest, place = sums.topk(min(count, width * vocab), dim=1)
    row = place.div(vocab, rounding_mode="floor")
    return highest, row, place - row * vocab, log_probs.view(sentences, -1).gather(1, place)
