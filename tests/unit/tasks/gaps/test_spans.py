from __future__ import annotations

import pytest

from headwise.config.families.t5 import T5Settings
from headwise.config.recipe import build_recipe
from headwise.errors import RecipeError
from headwise.tasks.automatic import DataFacts
from headwise.tasks.fill import TASK
from headwise.tasks.gaps import gaps_of
from headwise.tasks.gaps.spans import GAPS, SENTINELS, sentinels
from headwise.text.tokenizer import Tokenizer


def test_sentinels_are_at_the_top_of_the_vocabulary_the_first_one_last() -> None:
    assert gaps_of(T5Settings()) is GAPS
    extra = GAPS.special_tokens(build_recipe({"model": {"family": "t5"}}))
    tokenizer = Tokenizer.train(["a b c"], None, extra, kind="word", size=200)
    assert sentinels(tokenizer) == tuple(range(tokenizer.size - 1, tokenizer.size - 101, -1))
    assert tokenizer.encode("<extra_id_0> a")[0] not in sentinels(tokenizer)  # never text
    assert len(SENTINELS) == 100


def test_whole_words_are_refused_and_what_is_left_out_is_chosen() -> None:
    recipe = build_recipe({"task": "fill", "model": {"family": "t5"}, "gaps": {"whole_words": True}})
    with pytest.raises(RecipeError, match=r"gaps\.whole_words is for single tokens"):
        TASK.check(recipe)
    chosen = {choice.key: choice.value for choice in TASK.automatic(recipe, DataFacts(1000, 50_000))}
    assert chosen["model.preset"] == "t5-tiny"
    assert "model.max_length" not in chosen  # which this family does not have
