from __future__ import annotations

import numpy as np
import pytest

from headwise.config import schema
from headwise.config.families.bert import BertSettings
from headwise.config.recipe import build_recipe
from headwise.errors import UsageError
from headwise.tasks.gaps import gaps_of
from headwise.tasks.gaps.interface import Gaps
from headwise.tasks.gaps.masked import GAPS, mask_of, masking
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import MASK


def tokenizer(*extra: str) -> Tokenizer:
    return Tokenizer.train(["walking talking walked"] * 5, schema.Tokenizer(kind="bpe", size=280), extra)


def test_an_encoder_fills_masked_tokens_in_their_place() -> None:
    assert gaps_of(BertSettings()) is GAPS
    assert isinstance(GAPS, Gaps)
    assert GAPS.special_tokens(build_recipe({"model": {"family": "bert"}})) == (MASK,)


def test_the_rule_replaces_by_no_special_token_and_knows_words_if_asked() -> None:
    found = tokenizer(MASK)
    rule = masking(found, 0.2, 7, whole_words=True)
    assert (rule.mask, rule.share, rule.seed) == (found.size - 1, 0.2, 7)
    assert not set(rule.candidates) & {0, 1, 2, 3, rule.mask}
    assert len(rule.candidates) == found.size - 5
    assert rule.word_starts is not None
    assert rule.word_starts.dtype == np.bool_
    assert masking(found).word_starts is None


def test_a_tokenizer_without_a_mask_cannot_fill() -> None:
    with pytest.raises(UsageError, match="was not trained to fill gaps"):
        mask_of(tokenizer())
