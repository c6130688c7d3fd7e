"""Every token of a text is scored once, with as much context as fits; the signature says how."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.config import schema
from headwise.errors import DataError
from headwise.evaluation.language_model import score_lines, score_stream, text_perplexity
from headwise.evaluation.perplexity import from_sums, windows
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import EOS, Tokenizer


def model(vocab: int = 30, context: int = 8) -> LanguageModel:
    torch.manual_seed(1)
    return LanguageModel(vocab=vocab, model_dim=16, num_heads=2, layers=2, ff_dim=32, max_length=context).eval()


def naive(lm: LanguageModel, tokens: list[int], before: list[int]) -> float:
    """Sums -log p, with a forward pass per token over the `before[i]` tokens in front of it."""
    total = 0.0
    for place in range(1, len(tokens)):
        seen = torch.tensor([tokens[place - before[place] : place]])
        with torch.no_grad():
            total -= float(lm(seen)[0, -1].log_softmax(-1)[tokens[place]])
    return total


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 12))
def test_windows_score_every_token_but_the_first_exactly_once(length: int, context: int, stride: int) -> None:
    stride = min(stride, context)
    found = list(windows(length, context, stride))
    assert [place for w in found for place in range(w.scored, w.end)] == list(range(1, length))
    for window in found:
        assert 0 <= window.start < window.scored
        assert window.end - 1 - window.start <= context
        assert window.start == 0 or window.scored - window.start >= context - stride


def test_a_text_within_the_context_is_scored_in_one_pass() -> None:
    tokens = [EOS, 7, 8, 9, 10, EOS]
    lm = model()
    expected = naive(lm, tokens, before=list(range(6)))
    found = score_stream(lm, np.array(tokens), context=8, stride=4)
    assert found == pytest.approx(expected, rel=1e-5)


def test_stride_one_gives_each_token_the_whole_context() -> None:
    tokens = [EOS, *np.random.default_rng(1).integers(4, 30, 25).tolist(), EOS]
    lm = model()
    expected = naive(lm, tokens, before=[min(place, 8) for place in range(len(tokens))])
    assert score_stream(lm, np.array(tokens), context=8, stride=1) == pytest.approx(expected, rel=1e-5)


def test_perplexity_divides_by_tokens_and_its_signature_says_so() -> None:
    tokenizer = Tokenizer.train(["abc def", "fed cba"], schema.Tokenizer(kind="char", size=300))
    found = text_perplexity(model(tokenizer.size), tokenizer, ["abc", "", "de f"])
    assert found.tokens == 3 + 1 + 0 + 1 + 4 + 1
    assert (found.words, found.characters) == (1 + 1 + 0 + 1 + 2 + 1, 10)
    assert found.value == pytest.approx(math.exp(found.nats / 10))
    assert found.bits_per_character == pytest.approx(found.nats / math.log(2) / 10)
    for part in ("tokens:10", "unk:0", "chars:10", "context:8", "stride:4", "tok:char-"):
        assert part in found.signature


def test_unknown_words_are_counted_in_the_signature() -> None:
    tokenizer = Tokenizer.train(["one two three"], schema.Tokenizer(kind="word", size=10))
    assert "unk:2" in text_perplexity(model(tokenizer.size), tokenizer, ["one nine ten"]).signature


def test_each_line_is_scored_independently_of_the_others() -> None:
    lm = model()
    first, second = score_lines(lm, [[5, 6], [7]])
    assert first == pytest.approx(-naive(lm, [EOS, 5, 6, EOS], [0, 1, 2, 3]), rel=1e-5)
    assert second == pytest.approx(-naive(lm, [EOS, 7, EOS], [0, 1, 2]), rel=1e-5)


def test_a_stride_beyond_the_context_and_an_empty_text_are_refused() -> None:
    with pytest.raises(DataError, match="stride"):
        list(windows(10, 4, 5))
    with pytest.raises(DataError, match="no tokens"):
        from_sums(0.0, tokens=0, unknown=0, text=(0, 0), tokenizer="char-1", context=4, stride=2)
