"""Subword regularisation: segments each sentence differently in each epoch; a resumed run repeats the same draws.

A draw depends only on (seed, epoch, sentence, position in the sentence, step), through a counter-based hash; neither
the batch nor earlier draws matter. Both samplers start from stored ids, whose pieces spell the text.

`BpeDropout` (Provilkov et al. 2020, https://arxiv.org/abs/1910.13267) applies the trained merges again, to a batch of
sentences at once. In each round every word draws which of its possible merges to drop and applies the best of the
others: lowest rank, then leftmost. Without dropout that is exactly what the library does, merge by merge.

`UnigramSampling` (Kudo 2018, https://arxiv.org/abs/1804.10959) draws segmentations of words by their probability.

A word here begins at a space. It may consist of several of the tokenizer's runs, but no merge or piece reaches from one
run into the next (see headwise.text.tokenizer), so the text does not have to be split again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from headwise.errors import RecipeError
from headwise.text.ragged import Ragged, spans
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import LONGEST_PIECE, RESERVED, RUNS

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
NEVER = np.int64(2**31)  # the rank of a pair that no merge joins
SMOOTHING = 0.2  # the exponent that flattens unigram probabilities before they are drawn from
_WORDS_KEPT = 100_000  # words whose lattices are cached


def draw_keys(seed: int, epoch: int, sentence: NDArray[np.integer], place: NDArray[np.integer]) -> Keys:
    """Returns the key from which the draws at a position of a sentence are derived."""
    key = _mixed(_mixed(np.array([seed], dtype=np.uint64)) ^ np.uint64(epoch))
    return _mixed(_mixed(key ^ sentence.astype(np.uint64)) ^ place.astype(np.uint64))


def draws(keys: Keys, step: int | NDArray[np.integer]) -> NDArray[np.float64]:
    """Draws a number in [0, 1) for each key."""
    bits = _mixed(keys ^ _mixed(np.atleast_1d(np.asarray(step, dtype=np.uint64))))
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _mixed(value: Keys) -> Keys:
    """Applies one step of splitmix64: a bijection that makes every bit depend on every bit."""
    mixed = value + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def sampler(tokenizer: Tokenizer, dropout: float, seed: int) -> BpeDropout | UnigramSampling:
    """Builds the sampler for the kind of tokenizer; `dropout` is the recipe's tokenizer.dropout."""
    kinds: dict[str, type[BpeDropout] | type[UnigramSampling]] = {"bpe": BpeDropout, "unigram": UnigramSampling}
    if tokenizer.kind not in kinds:
        raise RecipeError(f"tokenizer.dropout needs kind bpe or unigram, not {tokenizer.kind}; set it to 0")
    splitting = tokenizer.parts["pre_tokenizer"] or {}
    if splitting.get("pattern") != {"Regex": RUNS}:
        raise RecipeError("tokenizer.dropout needs a tokenizer that Headwise trained; set it to 0 for this one")
    return kinds[tokenizer.kind](tokenizer, dropout, seed)


class BpeDropout:
    """Drops each possible merge with probability `dropout`, drawn anew in each round."""

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        self.dropout, self.seed, self.size = dropout, seed, tokenizer.size
        number = {piece: index for index, piece in enumerate(tokenizer.vocabulary)}
        merges = np.array(
            [(number[left], number[right], number[left + right]) for left, right in tokenizer.parts["model"]["merges"]],
            dtype=np.int64,
        )
        pairs = merges[:, 0] * self.size + merges[:, 1]
        self._ranks = np.argsort(pairs)  # a merge's rank is its position in the file
        self._pairs, self._merged = pairs[self._ranks], merges[:, 2]
        # The symbols from which merging builds each piece: its characters, or the piece itself if special or a byte.
        spelt = [
            [index] if index < RESERVED else [number[character] for character in piece]
            for index, piece in enumerate(tokenizer.vocabulary)
        ]
        self._spelt = Ragged.of(spelt)
        self._spelt_from = np.cumsum(self._spelt.lengths) - self._spelt.lengths
        self._space = number[" "]

    def __call__(self, epoch: int, rows: NDArray[np.integer], sentences: Ragged) -> Ragged:
        """Segments `sentences` anew; they are the rows `rows` of the corpus."""
        symbol, sentence, place = self._symbols(sentences)
        if not len(symbol):
            return sentences
        word = np.cumsum((symbol == self._space) | (place == 0))
        keys = draw_keys(self.seed, epoch, np.asarray(rows)[sentence], place) if self.dropout else None
        pieces = np.full(len(symbol), -1)  # at the position of its first symbol
        origin = np.arange(len(symbol))
        rank = self._pair_ranks(symbol, word)  # of the pair that begins at each symbol
        step = 0
        while len(symbol):
            chosen = self._chosen(rank, word, None if keys is None else (keys[origin], step))
            going = _members(word, chosen)
            pieces[origin[~going]] = symbol[~going]
            symbol[chosen] = self._merged[rank[chosen]]
            going[chosen + 1] = False  # the right symbol is now part of the left one
            symbol, origin, word, rank = symbol[going], origin[going], word[going], rank[going]
            left = np.cumsum(going)[chosen] - 1
            for changed in (left, left[left > 0] - 1):
                rank[changed] = self._pair_ranks(symbol, word, changed)
            step += 1
        kept = pieces >= 0
        return Ragged(pieces[kept], np.bincount(sentence[kept], minlength=len(sentences.lengths)))

    def _symbols(self, sentences: Ragged) -> tuple[Ints, Ints, Ints]:
        """Returns all characters end to end, the sentence of each, and its position in the sentence."""
        tokens = sentences.tokens.astype(np.int64)
        sizes = self._spelt.lengths[tokens]
        symbols = self._spelt.tokens[spans(self._spelt_from[tokens], sizes)].astype(np.int64)
        sentence = np.repeat(np.repeat(np.arange(len(sentences.lengths)), sentences.lengths), sizes)
        counts = np.bincount(sentence, minlength=len(sentences.lengths))
        return symbols, sentence, np.arange(len(symbols)) - (np.cumsum(counts) - counts)[sentence]

    def _pair_ranks(self, symbol: Ints, word: Ints, places: Ints | None = None) -> Ints:
        """Returns the rank of the merge of the symbol at each position with the next symbol of its word."""
        here = np.arange(len(symbol)) if places is None else places
        after = np.minimum(here + 1, len(symbol) - 1)
        pair = symbol[here] * self.size + symbol[after]
        found = np.minimum(np.searchsorted(self._pairs, pair), len(self._pairs) - 1)
        joined = (self._pairs[found] == pair) & (word[here] == word[after]) & (after > here)
        return np.where(joined, self._ranks[found], NEVER)

    def _chosen(self, rank: Ints, word: Ints, chance: tuple[Keys, int] | None) -> Ints:
        """Returns the position of the merge to apply in each word that has one: lowest rank, then leftmost."""
        possible = np.flatnonzero(rank != NEVER)
        if chance is not None:
            possible = possible[draws(chance[0][possible], chance[1]) >= self.dropout]
        if not len(possible):
            return possible
        # Rank and position in one number: the merge to apply has the smallest one in its word.
        scores = rank[possible] * len(rank) + possible
        return np.asarray(np.minimum.reduceat(scores, np.flatnonzero(_begins(word[possible]))) % len(rank))


def _begins(word: Ints) -> NDArray[np.bool_]:
    return np.concatenate(([True], word[1:] != word[:-1]))


def _members(word: Ints, chosen: Ints) -> NDArray[np.bool_]:
    """Marks the symbols of words that have a chosen merge."""
    number = np.cumsum(_begins(word)) - 1
    has = np.zeros(int(number[-1]) + 1, dtype=bool)
    has[number[chosen]] = True
    return np.asarray(has[number])


class UnigramSampling:
    """Segments each word at random (by flattened probabilities) with probability `share`, else as stored."""

    def __init__(self, tokenizer: Tokenizer, share: float, seed: int) -> None:
        self.share, self.seed = share, seed
        self.pieces = tokenizer.vocabulary
        scores = [score for _, score in tokenizer.parts["model"]["vocab"]]
        self._scored = {
            piece: (index, SMOOTHING * scores[index]) for index, piece in enumerate(self.pieces) if index >= RESERVED
        }
        self._is_byte = np.arange(len(self.pieces)) < RESERVED
        self._has_space = np.array([piece.startswith(" ") for piece in self.pieces])
        self._choices = lru_cache(_WORDS_KEPT)(self._choices_of)

    def __call__(self, epoch: int, rows: NDArray[np.integer], sentences: Ragged) -> Ragged:
        tokens = sentences.tokens.astype(np.int64)
        if not len(tokens):
            return sentences
        sentence = np.repeat(np.arange(len(sentences.lengths)), sentences.lengths)
        place = np.arange(len(tokens)) - (np.cumsum(sentences.lengths) - sentences.lengths)[sentence]
        # Bytes spell characters that no piece covers: they stay, each as a word of its own.
        byte = self._is_byte[tokens]
        begins = np.flatnonzero(self._has_space[tokens] | (place == 0) | byte | np.append(True, byte[:-1]))
        sizes = np.diff(np.append(begins, len(tokens)))
        keys = draw_keys(self.seed, epoch, np.asarray(rows)[sentence[begins]], place[begins])
        sampled = np.flatnonzero((draws(keys, 0) < self.share) & ~byte[begins])
        words = [
            "".join([self.pieces[token] for token in tokens[begin : begin + size].tolist()])
            for begin, size in zip(begins[sampled].tolist(), sizes[sampled].tolist(), strict=True)
        ]
        drawn = self._segmented(words, keys[sampled])
        lengths = sizes.copy()
        lengths[sampled] = [len(ids) for ids in drawn]
        return Ragged(
            _replaced(tokens, begins, sizes, sampled, drawn, lengths),
            np.bincount(sentence[begins], lengths, len(sentences.lengths)).astype(np.int64),
        )

    def _segmented(self, words: list[str], keys: Keys) -> list[list[int]]:
        """Draws a segmentation of each word by forward filtering and backward sampling, last piece first."""
        sizes = np.array([len(word) for word in words], dtype=np.int64)
        ends = spans(np.ones_like(sizes), sizes)
        chance = draws(np.repeat(keys, sizes), ends).tolist()  # one per position where a piece may end
        segmented = []
        for word, before in zip(words, (np.cumsum(sizes) - sizes - 1).tolist(), strict=True):
            choices = self._choices(word)
            ids: list[int] = []
            end = len(word)
            while end:
                bounds, starts, numbers = choices[end]
                which = bisect_right(bounds, chance[before + end] * bounds[-1], hi=len(bounds) - 1)
                ids.append(numbers[which])
                end = starts[which]
            segmented.append(ids[::-1])
        return segmented

    def _choices_of(self, word: str) -> list[tuple[list[float], list[int], list[int]]]:
        """Lists, for each end position, the pieces that may end there: cumulative weights, starts and ids."""
        reached = [0.0]
        choices: list[tuple[list[float], list[int], list[int]]] = [([], [], [])]
        for end in range(1, len(word) + 1):
            starts = [at for at in range(max(0, end - LONGEST_PIECE), end) if word[at:end] in self._scored]
            scored = [self._scored[word[at:end]] for at in starts]
            logs = [reached[at] + score for at, (_, score) in zip(starts, scored, strict=True)]
            top = max(logs)
            shares = [math.exp(log - top) for log in logs]
            reached.append(top + math.log(sum(shares)))
            choices.append((list(accumulate(shares)), starts, [number for number, _ in scored]))
        return choices


def _replaced(tokens: Ints, begins: Ints, sizes: Ints, sampled: Ints, drawn: list[list[int]], lengths: Ints) -> Ints:
    """Replaces the words numbered `sampled` in `tokens` by `drawn`."""
    starts = np.cumsum(lengths) - lengths
    stays = np.ones(len(begins), dtype=bool)
    stays[sampled] = False
    result = np.empty(int(lengths.sum()), dtype=np.int64)
    result[spans(starts[stays], lengths[stays])] = tokens[spans(begins[stays], sizes[stays])]
    result[spans(starts[sampled], lengths[sampled])] = Ragged.of(drawn).tokens
    return result
