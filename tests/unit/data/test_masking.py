from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headwise.data.masking import Masking
from headwise.text.ragged import Ragged

MASK, VOCAB = 99, 100
RULE = Masking(MASK, np.arange(4, MASK), seed=3)


def corpus(rows: int = 3000, seed: int = 1) -> tuple[Ragged, np.ndarray]:
    chance = np.random.default_rng(seed)
    lengths = chance.integers(0, 40, rows)
    return Ragged(chance.integers(4, MASK, lengths.sum()), lengths), np.cumsum(lengths) - lengths


def test_the_shares_of_a_corpus_are_exact_in_every_epoch() -> None:
    sentences, places = corpus()
    total = len(sentences.tokens)
    for epoch in range(4):
        seen, asked = RULE.hide(sentences, places, epoch)
        chosen = int(asked.sum())
        assert abs(chosen - 0.15 * total) <= 1
        masked = int((seen.tokens[asked] == MASK).sum())
        assert abs(masked - 0.8 * chosen) <= 2
        changed = int((seen.tokens[asked] != sentences.tokens[asked]).sum()) - masked
        assert abs(changed - 0.1 * chosen * (1 - 1 / len(RULE.candidates))) <= 2 + 0.01 * chosen
        assert np.array_equal(seen.tokens[~asked], sentences.tokens[~asked])


@pytest.mark.parametrize("share", [0.01, 0.15, 0.4, 0.9])
def test_every_sentence_has_its_share_to_within_one_token(share: float) -> None:
    sentences, places = corpus(500)
    _, asked = replace(RULE, share=share).hide(sentences, places, 0)
    ends = np.cumsum(sentences.lengths)
    counts = np.array([asked[a:b].sum() for a, b in zip(ends - sentences.lengths, ends, strict=True)])
    assert (np.abs(counts - share * sentences.lengths) <= 1 + 1e-9).all()


def test_each_kind_has_its_share_to_within_one_token_of_ten_in_a_row() -> None:
    sentences, places = corpus(2000)
    seen, asked = RULE.hide(sentences, places, 0)
    others = replace(RULE, candidates=np.array([4])).hide(sentences, places, 0)[0].tokens
    kinds = np.where(seen.tokens == MASK, 0, np.where(others != sentences.tokens, 1, 2))[asked]
    unchanged_by_chance = (sentences.tokens[asked] == 4).mean()
    assert np.bincount(kinds, minlength=3)[0] == pytest.approx(0.8 * len(kinds), abs=2)
    assert np.bincount(kinds, minlength=3)[1] == pytest.approx(
        0.1 * len(kinds), abs=2 + unchanged_by_chance * len(kinds)
    )


def test_it_is_a_pure_function_of_seed_epoch_and_place() -> None:
    sentences, places = corpus(200)
    whole, asked = RULE.hide(sentences, places, 5)
    ends = np.cumsum(sentences.lengths)
    order = np.random.default_rng(2).permutation(200)
    for row in order[:50]:
        begin, end = ends[row] - sentences.lengths[row], ends[row]
        alone = Ragged(sentences.tokens[begin:end], sentences.lengths[row : row + 1])
        seen, flags = RULE.hide(alone, places[row : row + 1], 5)
        assert np.array_equal(seen.tokens, whole.tokens[begin:end])
        assert np.array_equal(flags, asked[begin:end])
    for other in (RULE.hide(sentences, places, 6), replace(RULE, seed=4).hide(sentences, places, 5)):
        agreement = (other[1] & asked).sum() / asked.sum()
        assert 0.1 < agreement < 0.2, "other epochs and seeds choose other tokens, independently"


def test_every_place_of_a_sentence_is_chosen_equally_often_and_masked_equally_often() -> None:
    sentences = Ragged(np.full(20, 50), np.array([20]))
    chosen, masked = np.zeros(20), np.zeros(20)
    for epoch in range(3000):
        seen, asked = RULE.hide(sentences, np.array([7]), epoch)
        chosen += asked
        masked += seen.tokens == MASK
    assert chosen.mean() / 3000 == pytest.approx(0.15, abs=0.003)
    assert np.abs(chosen / 3000 - 0.15).max() < 0.03
    assert np.abs(masked / chosen - 0.8).max() < 0.08


def test_whole_words_are_chosen_or_not_and_never_more_than_the_share() -> None:
    starts = np.arange(VOCAB) % 3 == 0
    sentences, places = corpus(400)
    _, asked = replace(RULE, word_starts=starts).hide(sentences, places, 1)
    ends, total = np.cumsum(sentences.lengths), 0
    for begin, end in zip(ends - sentences.lengths, ends, strict=True):
        begins = starts[sentences.tokens[begin:end]].copy()
        begins[:1] = True
        words = np.cumsum(begins)
        flags = asked[begin:end]
        assert all(len(set(flags[words == word])) == 1 for word in set(words))
        assert flags.sum() <= 0.15 * (end - begin) + 1
        total += int(flags.sum())
    assert 0.1 * len(sentences.tokens) < total < 0.15 * len(sentences.tokens)


def test_nothing_is_hidden_of_nothing() -> None:
    seen, asked = RULE.hide(Ragged.of([]), np.zeros(0, dtype=np.int64), 0)
    assert (len(seen.tokens), len(asked)) == (0, 0)
    seen, asked = RULE.hide(Ragged.of([[], [5, 6]]), np.array([0, 0]), 0)
    assert len(seen.tokens) == 2
