from __future__ import annotations

import math

import pytest
import torch

from headwise.config import schema
from headwise.evaluation.masked_tokens import MaskedScores, masked_scores
from headwise.models.bert import Bert
from headwise.tasks.gaps.masked import masking
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import MASK

LINES = ["a big brown dog runs over the green hill", "", "two small birds", "the dog sees two birds and runs"]


def made() -> tuple[Bert, Tokenizer]:
    tokenizer = Tokenizer.train(LINES, schema.Tokenizer(kind="word", size=50), (MASK,))
    torch.manual_seed(1)
    return Bert(vocab=tokenizer.size, model_dim=16, num_heads=2, layers=1, ff_dim=16, max_length=8).eval(), tokenizer


def scores(stride: int = 0) -> MaskedScores:
    network, tokenizer = made()
    return masked_scores(network, tokenizer, LINES, masking(tokenizer), stride=stride)


@torch.inference_mode()
def test_pseudo_perplexity_hides_each_token_once_alone() -> None:
    network, tokenizer = made()
    nats, count = 0.0, 0
    for line in LINES:
        ids = tokenizer.encode(line)
        for start in range(0, len(ids), 6):
            piece = ids[start : start + 6]
            for place, token in enumerate(piece):
                seen = [2, *piece[:place], tokenizer.size - 1, *piece[place + 1 :], 3]
                nats -= network(torch.tensor([seen]))[0, place + 1].log_softmax(dim=-1)[token].item()
                count += 1
    found = scores()
    assert found.pseudo.tokens == count == sum(len(line.split()) for line in LINES)
    assert found.pseudo.nats == pytest.approx(nats, rel=1e-5)
    assert found.pseudo.perplexity == pytest.approx(math.exp(nats / count), rel=1e-5)


def test_a_stride_hides_every_token_once_too_and_the_signature_says_so() -> None:
    exact, quick = scores(), scores(stride=3)
    assert exact.pseudo.tokens == quick.pseudo.tokens
    assert exact.pseudo.nats != pytest.approx(quick.pseudo.nats, rel=1e-6)
    assert "hidden:one at a time" in exact.signature
    assert "hidden:1 in 3" in quick.signature
    assert "context:8" in exact.signature


def test_the_share_of_hidden_tokens_is_that_of_training_and_progress_is_told() -> None:
    network, tokenizer = made()
    told: list[int] = []
    found = masked_scores(network, tokenizer, LINES * 20, masking(tokenizer), on_progress=told.append)
    assert abs(found.masked.tokens - 0.15 * found.pseudo.tokens) <= 1
    assert sum(told) == found.pseudo.tokens
    assert found.as_dict()["masked_accuracy"] == found.masked.accuracy
    assert len(found.lines()) == 4
