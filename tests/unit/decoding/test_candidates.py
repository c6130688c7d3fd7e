from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from headwise.decoding.candidates import likeliest, log_normaliser, top_tokens


@pytest.mark.parametrize("vocab", [5, 127, 128, 1000, 1024, 4099])
@pytest.mark.parametrize("count", [1, 2, 6, 11])
def test_the_highest_logits_and_their_tokens_are_those_of_a_full_sort(vocab: int, count: int) -> None:
    torch.manual_seed(vocab + count)
    logits = torch.randn(7, vocab)
    highest, tokens = top_tokens(logits, count)
    expected = logits.sort(dim=-1, descending=True)
    kept = min(count, vocab)
    assert_close(highest, expected.values[:, :kept], rtol=0, atol=0)
    assert torch.equal(tokens, expected.indices[:, :kept])


def test_the_highest_are_found_in_the_last_tokens_and_when_all_are_in_one_place() -> None:
    logits = torch.zeros(2, 1030)
    logits[0, -3:] = torch.tensor([1.0, 3.0, 2.0])
    logits[1, 256:260] = torch.tensor([4.0, 6.0, 5.0, 7.0])
    assert top_tokens(logits, 3)[1].tolist() == [[1028, 1029, 1027], [259, 257, 258]]
    assert likeliest(logits)[1].tolist() == [1028, 259]


def test_forbidden_tokens_are_only_taken_when_nothing_else_is_left() -> None:
    logits = torch.full((1, 600), -torch.inf)
    logits[0, 17] = -50.0
    assert likeliest(logits)[1].tolist() == [17]
    assert top_tokens(logits, 2)[0].tolist() == [[-50.0, -torch.inf]]


def test_the_normaliser_makes_log_probabilities_even_of_huge_logits() -> None:
    logits = torch.tensor([[1000.0, 999.0, -1000.0], [-1e4, -1e4, -1e4]])
    assert_close(log_normaliser(logits), logits.logsumexp(dim=-1))
