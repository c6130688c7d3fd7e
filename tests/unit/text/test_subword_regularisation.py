"""Subword regularisation: same text, draws that do not depend on the batch, right frequencies."""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.config import schema
from headwise.errors import RecipeError
from headwise.text.ragged import Ragged
from headwise.text.subword_regularisation import SMOOTHING, BpeDropout, UnigramSampling, draw_keys, draws, sampler
from headwise.text.tokenizer import Tokenizer

WORDS = [
    "the",
    "old",
    "dog",
    "sees",
    "a",
    "small",
    "bird",
    "under",
    "the",
    "tree",
    "aaaa",
    "--",
    "läuft",
    "über",
    "12",
    "345",
    "学校学校学",
    "我们今天去",
    "हिन्दी",
    ",",
    ".",
]
SYLLABLES = ["bi", "bir", "ird", "ds", "ing", "er", "ver", "lauf", "s", "tra"]


@cache
def texts(lines: int = 200) -> tuple[str, ...]:
    chance = random.Random(3)
    stems = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(80)]
    return tuple(" ".join(chance.choices(WORDS + stems, k=chance.randint(1, 9))) for _ in range(lines))


@cache
def trained(kind: str) -> Tokenizer:
    return Tokenizer.train(texts(), schema.Tokenizer.model_validate({"kind": kind, "size": 340}))


def resampled(
    kind: str, dropout: float, lines: list[str], epoch: int = 0, seed: int = 1, first: int = 0
) -> list[list[int]]:
    again = sampler(trained(kind), dropout, seed)
    return again(epoch, np.arange(first, first + len(lines)), trained(kind).encode_ragged(lines)).sentences()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from([*"the dogaelbirdnsuüä  -12345.,学校我们", "日", "\t", "\u0301", "ि"])), max_size=5
    )
)
def test_without_dropout_the_pieces_are_the_librarys(lines: list[str]) -> None:
    assert resampled("bpe", 0.0, lines) == trained("bpe").encode_batch(lines)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.95])
def test_sampled_pieces_spell_the_same_text(kind: str, dropout: float) -> None:
    lines = [*texts(), "", "日本 é", "  two  "]
    sampled = resampled(kind, dropout, lines)
    assert trained(kind).decode_batch(sampled) == lines
    assert sampled != trained(kind).encode_batch(lines)


def slow_bpe_dropout(
    tokenizer: Tokenizer, dropout: float, seed: int, epoch: int, row: int, ids: list[int]
) -> list[int]:
    """Runs the algorithm of the paper on one sentence, word by word, with the same draws as the fast one."""
    number = {piece: index for index, piece in enumerate(tokenizer.vocabulary)}
    rank = {(left, right): place for place, (left, right) in enumerate(tokenizer.parts["model"]["merges"])}
    symbols = [
        symbol
        for index in ids
        for symbol in ([tokenizer.vocabulary[index]] if index < 260 else tokenizer.vocabulary[index])
    ]
    words: list[list[tuple[int, str]]] = []
    for place, symbol in enumerate(symbols):
        if place == 0 or symbol == " ":
            words.append([])
        words[-1].append((place, symbol))
    result = []
    for word in words:
        for step in range(len(word)):
            possible = []
            for left, right in zip(range(len(word)), range(1, len(word)), strict=False):
                pair = (word[left][1], word[right][1])
                key = draw_keys(seed, epoch, np.array([row]), np.array([word[left][0]]))
                if pair in rank and draws(key, step)[0] >= dropout:
                    possible.append((rank[pair], left))
            if not possible:
                break
            _, left = min(possible)
            word[left : left + 2] = [(word[left][0], word[left][1] + word[left + 1][1])]
        result += [number[symbol] for _, symbol in word]
    return result


@pytest.mark.parametrize("dropout", [0.1, 0.4])
def test_bpe_dropout_does_what_the_slow_reference_does_with_the_same_draws(dropout: float) -> None:
    lines = [*texts(25), "日本 x"]
    encoded = trained("bpe").encode_batch(lines)
    expected = [slow_bpe_dropout(trained("bpe"), dropout, 5, 2, 10 + row, ids) for row, ids in enumerate(encoded)]
    assert resampled("bpe", dropout, lines, epoch=2, seed=5, first=10) == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_draw_depends_on_seed_epoch_and_sentence_but_not_on_the_batch(kind: str) -> None:
    lines = list(texts(40))
    whole = resampled(kind, 0.3, lines)
    alone = [resampled(kind, 0.3, [line], first=row)[0] for row, line in enumerate(lines)]
    rows = np.arange(40)[::-1]
    backwards = sampler(trained(kind), 0.3, 1)(0, rows, trained(kind).encode_ragged(lines[::-1])).sentences()
    assert alone == whole
    assert backwards == whole[::-1]
    assert resampled(kind, 0.3, lines, epoch=1) != whole
    assert resampled(kind, 0.3, lines, seed=2) != whole
    assert resampled(kind, 0.3, lines, first=1) != whole


def test_a_word_with_one_merge_stays_split_with_the_dropout_probability() -> None:
    tokenizer = trained("bpe")
    # A space and a letter: one possible merge, so one draw decides.
    whole = next(index for index, piece in enumerate(tokenizer.vocabulary) if len(piece) == 2 and piece[0] == " ")
    count = 20_000
    sampled = BpeDropout(tokenizer, 0.3, seed=1)(0, np.arange(count), Ragged.of([[whole]] * count))
    parts = np.mean(sampled.lengths == 2)
    assert abs(parts - 0.3) < 4 * math.sqrt(0.3 * 0.7 / count)


def test_unigram_segmentations_are_as_frequent_as_their_probability() -> None:
    tokenizer = trained("unigram")
    word = " bird"
    scores = {piece: SMOOTHING * score for piece, score in tokenizer.parts["model"]["vocab"][260:]}
    weights = {cut: math.exp(sum(scores[piece] for piece in cut)) for cut in segmentations(word, set(scores))}
    count = 20_000
    sentences = Ragged.of(tokenizer.encode_batch(["bird"]) * count)
    sampled = UnigramSampling(tokenizer, 0.999999, seed=1)(0, np.arange(count), sentences).sentences()
    assert len(weights) > 3
    for cut, weight in weights.items():
        share = weight / sum(weights.values())
        found = np.mean([tuple(tokenizer.vocabulary[index] for index in ids) == cut for ids in sampled])
        assert abs(found - share) < 5 * math.sqrt(share * (1 - share) / count) + 1e-4


def segmentations(word: str, pieces: set[str]) -> list[tuple[str, ...]]:
    if not word:
        return [()]
    return [
        (word[:end], *rest)
        for end in range(1, len(word) + 1)
        if word[:end] in pieces
        for rest in segmentations(word[end:], pieces)
    ]


def test_draws_are_uniform() -> None:
    keys = draw_keys(1, 0, np.repeat(np.arange(200), 50), np.tile(np.arange(50), 200))
    numbers = draws(keys, 0)
    counts, _ = np.histogram(numbers, bins=10, range=(0, 1))
    assert len(np.unique(numbers)) == len(numbers)
    assert np.all(np.abs(counts - 1000) < 5 * math.sqrt(900))


def test_kinds_without_merges_are_refused() -> None:
    tokenizer = Tokenizer.train(texts(), schema.Tokenizer.model_validate({"kind": "char", "size": 400}))
    with pytest.raises(RecipeError, match="not char"):
        sampler(tokenizer, 0.1, 1)
