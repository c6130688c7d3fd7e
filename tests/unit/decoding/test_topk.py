from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from headwise.decoding.topk import log_normaliser, top_pairs


@pytest.mark.parametrize("vocab", [7, 64, 1030])
@pytest.mark.parametrize(("sentences", "width"), [(1, 1), (40, 1), (1, 5), (3, 2), (12, 5)])
@pytest.mark.parametrize("count", [2, 10, 24])
def test_the_best_ways_to_go_on_are_those_of_a_full_sort(sentences: int, width: int, vocab: int, count: int) -> None:
    torch.manual_seed(vocab + width)
    log_probs = (3 * torch.randn(sentences * width, vocab)).log_softmax(dim=-1)
    so_far = torch.randn(sentences, width)
    so_far[0, 1:2] = -torch.inf  # an empty place
    sums, rows, tokens, added = top_pairs(log_probs, so_far, count)
    by_row = log_probs.view(sentences, width, vocab)
    everything = by_row + so_far[:, :, None]
    expected = everything.flatten(1).sort(dim=1, descending=True).values[:, :count]
    assert torch.equal(sums, expected)
    where = torch.arange(sentences)[:, None], rows, tokens
    assert torch.equal(everything[where], sums)
    assert torch.equal(by_row[where], added)
    for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
        assert len(set(zip(row, token, strict=True))) == len(row)


def test_the_normaliser_makes_log_probabilities_even_of_huge_logits() -> None:
    logits = torch.tensor([[1000.0, 999.0, -1000.0], [-1e4, -1e4, -1e4]])
    assert_close(log_normaliser(logits), logits.logsumexp(dim=-1))
