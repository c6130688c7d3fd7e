"""What stands beside the weights comes back as it was, and a damaged file is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwise.bundle.assets import LABELS, PREPROCESSING, Assets
from headwise.config import schema
from headwise.errors import ModelError
from headwise.text.tokenizer import Tokenizer, TokenizerPair


def words() -> TokenizerPair:
    settings = schema.Tokenizer.model_validate({"kind": "word"})
    return TokenizerPair.one(Tokenizer.train(["good bad"], settings))


@pytest.mark.parametrize(
    "assets",
    [Assets(words()), Assets(words(), ("good", "schlecht", "好")), Assets(labels=("a",), preprocessing={"size": 28})],
)
def test_assets_come_back_as_they_were(assets: Assets, tmp_path: Path) -> None:
    assets.save(tmp_path)
    found = Assets.load(tmp_path)
    assert (found.labels, dict(found.preprocessing)) == (assets.labels, dict(assets.preprocessing))
    assert (found.text is None) == (assets.text is None)
    if assets.text is not None:
        assert found.tokenizers.source == assets.tokenizers.source


def test_a_model_without_tokenizer_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no tokenizer"):
        _ = Assets.load(tmp_path).tokenizers


@pytest.mark.parametrize(
    "content",
    [{}, {"labels": "good"}, {"labels": ["a", 1]}, {"labels": ["a", "a"]}, {"labels": [""]}, {"labels": ["a"], "x": 1}],
)
def test_damaged_labels_are_one_clear_line(content: object, tmp_path: Path) -> None:
    (tmp_path / LABELS).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match=r"labels\.json is damaged") as caught:
        Assets.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("told", "network", "longest"), [({}, 8, 8), ({}, None, None), (5, 8, 5), (5, None, 5), (9, 8, 8)]
)
def test_the_smaller_of_both_lengths_counts(told: object, network: int | None, longest: int | None) -> None:
    assets = Assets(preprocessing={"longest": told} if told else {})
    assert assets.longest(network) == longest


@pytest.mark.parametrize("told", ["5", 0, -1, True, 2.5])
def test_a_length_that_is_none_is_refused(told: object) -> None:
    with pytest.raises(ModelError, match="longest must be a whole number from 1"):
        Assets(preprocessing={"longest": told}).longest(8)


def test_a_huge_preprocessing_file_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / PREPROCESSING).write_text(json.dumps({"x": "y" * (2 << 20)}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"preprocessing\.json"):
        Assets.load(tmp_path)
