from __future__ import annotations

import pytest
import torch
from fixtures_decoding import random_model
from torch.testing import assert_close

from headwise.decoding.fast_step import FastTransformer
from headwise.decoding.topk import NextTokens, likeliest, log_normaliser, top_pairs, top_tokens


@pytest.mark.parametrize("vocab", [5, 127, 128, 1000, 1024, 4099])
@pytest.mark.parametrize("count", [1, 2, 6, 11])
@pytest.mark.parametrize("rows", [7, 150])  # looked through as they are, and in blocks
def test_the_highest_logits_and_their_tokens_are_those_of_a_full_sort(rows: int, vocab: int, count: int) -> None:
    torch.manual_seed(vocab + count)
    logits = torch.randn(rows, vocab)
    highest, tokens = top_tokens(logits, count)
    expected = logits.sort(dim=-1, descending=True)
    kept = min(count, vocab)
    assert_close(highest, expected.values[:, :kept], rtol=0, atol=0)
    assert torch.equal(tokens, expected.indices[:, :kept])


def test_the_highest_are_found_in_the_last_tokens_and_when_all_are_in_one_place() -> None:
    logits = torch.zeros(2, 1030)
    logits[0, -3:] = torch.tensor([1.0, 3.0, 2.0])
    logits[1, 256:260] = torch.tensor([4.0, 6.0, 5.0, 7.0])
    for many in (1, 80):
        repeated = logits.repeat(many, 1)
        assert top_tokens(repeated, 3)[1].tolist() == [[1028, 1029, 1027], [259, 257, 258]] * many
        assert likeliest(repeated)[1].tolist() == [1028, 259] * many


@pytest.mark.parametrize("vocab", [7, 64, 130, 1024, 4099])
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


def test_forbidden_tokens_are_only_taken_when_nothing_else_is_left() -> None:
    logits = torch.full((1, 600), -torch.inf)
    logits[0, 17] = -50.0
    assert likeliest(logits)[1].tolist() == [17]
    assert top_tokens(logits, 2)[0].tolist() == [[-50.0, -torch.inf]]


def test_the_normaliser_makes_log_probabilities_even_of_huge_logits() -> None:
    logits = torch.tensor([[1000.0, 999.0, -1000.0], [-1e4, -1e4, -1e4]])
    assert_close(log_normaliser(logits), logits.logsumexp(dim=-1))


@torch.inference_mode()
def test_memory_that_is_used_again_holds_what_was_just_computed() -> None:
    model = random_model(1)
    score = NextTokens(FastTransformer(model))
    for count in (5, 300, 3, 130, 400):  # more, and fewer again
        states = torch.randn(count, 32)
        expected = model.project(states)
        logits, log_probs = score(states)
        assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        assert_close(log_probs, expected.log_softmax(dim=-1), atol=1e-5, rtol=1e-5)
