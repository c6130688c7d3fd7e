from __future__ import annotations

import math

import pytest
import torch

from headwise.data.spans import Corruption
from headwise.errors import DataError
from headwise.evaluation.span_tokens import span_scores
from headwise.models.t5 import T5
from headwise.tasks.gaps.spans import SENTINELS, sentinels
from headwise.text.tokenizer import BOS, EOS, Tokenizer

LINES = ["red green blue dog cat", "dog cat", "alone", "", "cat dog red green blue dog cat red"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(LINES, None, SENTINELS[::-1], kind="word", size=150)


@pytest.fixture(scope="module")
def network(tokenizer: Tokenizer) -> T5:
    torch.manual_seed(1)
    sizes = {"model_dim": 16, "num_heads": 2, "head_dim": 8, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 16}
    return T5(vocab=tokenizer.size, **sizes).eval()


@torch.inference_mode()
def test_the_sums_are_those_of_the_lines_one_by_one(network: T5, tokenizer: Tokenizer) -> None:
    rule = Corruption(sentinels(tokenizer))
    found = span_scores(network, tokenizer, LINES, rule)
    kept = [ids for ids in tokenizer.encode_batch(LINES) if len(ids) > 1]  # a gap needs two tokens
    assert len(kept) == 3
    first = rule.sentinels[0]
    # Each of these lines has one gap, wherever it is drawn: the target is a sentinel, what is hidden, and the end.
    assert found.spans.tokens == sum(1 + max(1, round(0.15 * len(ids))) + 1 for ids in kept)
    assert 0 <= found.spans.accuracy <= 1
    assert found.spans.perplexity == pytest.approx(math.exp(found.spans.nats / found.spans.tokens))
    source, target = torch.tensor([[kept[1][0], first, EOS]]), torch.tensor([[BOS, first, kept[1][1]]])
    log_probs = network(source, target).log_softmax(dim=-1)[0]
    wanted = torch.tensor([first, kept[1][1], EOS])
    alone = span_scores(network, tokenizer, [LINES[1]], rule)
    assert alone.spans.nats == pytest.approx(-log_probs.gather(1, wanted[:, None]).sum().item(), abs=1e-4)
    assert alone.spans.right == int((log_probs.argmax(dim=1) == wanted).sum())


def test_a_signature_says_how_it_was_measured_and_nothing_to_score_is_told(network: T5, tokenizer: Tokenizer) -> None:
    rule = Corruption(sentinels(tokenizer))
    found = span_scores(network, tokenizer, LINES, rule)
    assert "share:0.15|mean:3|context:512" in found.signature
    assert found.lines()[0].startswith("span accuracy")
    assert found.as_dict()["span_perplexity"] == found.spans.perplexity
    with pytest.raises(DataError, match="lines of two tokens or more"):
        span_scores(network, tokenizer, ["alone"], rule)
